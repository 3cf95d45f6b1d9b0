"""Graph errors in a cell: a few lines; all other errors as in IPython."""

from __future__ import annotations

import _thread
import re
from collections.abc import Iterator

import pytest

from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.graph import reset_default_graph
from graphcore.source import CellRun, SourceLocation, cell_runs
from kernelext.errors import ErrorDisplay
from kernelext.guard import Guard
from tests.kernelext.conftest import NotebookShell


@pytest.fixture
def display(shell: NotebookShell) -> Iterator[ErrorDisplay]:
    shell.user_ns.update(InvalidArgumentError=InvalidArgumentError, NotFoundError=NotFoundError)
    display = ErrorDisplay(shell, Guard())
    display.start()
    yield display
    display.stop()


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)


def test_a_graph_error_is_shown_with_what_it_is_about(
    shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run("raise InvalidArgumentError('Dimensions must be equal', op='MatMul', node='y', input='W:0')", "a")
    lines = printed(capsys).splitlines()
    assert lines[:2] == ["InvalidArgumentError: Dimensions must be equal", "    node  y (op MatMul), input W:0"]
    assert lines[-1] == "%tb shows the full traceback."
    assert not any("interactiveshell.py" in line for line in lines)


def test_the_line_that_made_the_node_and_the_line_that_failed_are_quoted(
    shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run("W = 3", "a")
    file = shell.compile.get_code_name("W = 3", "W = 3\n", 1)
    run = CellRun(cell="a", execution=1, label="In [1]", file=file)
    shell.user_ns["made"] = SourceLocation(file, 1, run)
    shell.run("def deep():\n    raise NotFoundError('gone', node='W', source=made)\n\ndeep()", "b")
    text = printed(capsys)
    assert " made in  cell In [1], line 1\n          W = 3" in text
    assert "called in  " in text
    assert "    here  " in text
    assert "          raise NotFoundError('gone', node='W', source=made)" in text
    assert "the name of a node" not in text, "the node was made, so something else is missing"


def test_the_place_that_failed_is_not_named_twice(shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]) -> None:
    code = "from graphcore.source import caller_location\nraise InvalidArgumentError('wrong', source=caller_location())"
    shell.run(code, "a")
    text = printed(capsys)
    assert text.count("raise InvalidArgumentError") == 1
    assert "made in" not in text


def test_the_reason_behind_an_error_is_named(shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run("try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise InvalidArgumentError('wrong') from error", "a")
    assert " because  ZeroDivisionError: division by zero" in printed(capsys)


def test_a_reason_with_several_lines_keeps_to_its_column(
    shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "cause = NotFoundError('gone\\nfor good', node='W', source=made)\nraise InvalidArgumentError('wrong') from cause"
    shell.user_ns["made"] = SourceLocation("/home/me/model.py", 12)
    shell.run(code, "a")
    text = printed(capsys)
    assert " because  NotFoundError: gone\n          for good\n   to do  " in text, "where the cause was made has been told already"


def test_an_interrupted_run_is_told_in_a_few_lines(model: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    model.user_ns["interrupt_main"] = _thread.interrupt_main
    model.run("v = gc.while_loop(lambda v: v > 0.0, lambda v: (v * 1.0,), [gc.constant(1.0)], name='forever')", "loop")
    capsys.readouterr()
    code = "import threading\ntimer = threading.Timer(0.3, interrupt_main)\ntimer.start()\nsession.run(v)"
    result = model.run(code, "run")
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    lines = printed(capsys).splitlines()
    assert lines[0].startswith("KeyboardInterrupt: stopped while running 'forever' = ")
    assert lines[1:] == [
        "          made in cell In [3], line 1: " + model.user_ns["In"][-2].strip(),
        "    here  cell In [4], line 4",
        "          session.run(v)",
        "%tb shows the full traceback.",
    ]
    model.run("%tb", "again")
    assert "Traceback (most recent call last)" in printed(capsys)
    assert model.run("session.run(gc.constant(2.0))", "after").result == 2.0


def test_an_interrupt_elsewhere_looks_as_always(shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]) -> None:
    result = shell.run("raise KeyboardInterrupt", "a")
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    assert "Traceback (most recent call last)" in printed(capsys)


@pytest.mark.parametrize("follow_up", ["%tb", "%tb Verbose"])
def test_the_full_traceback_is_there_on_request(
    shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str], follow_up: str
) -> None:
    shell.run("def deep():\n    raise NotFoundError('gone')\ndeep()", "a")
    printed(capsys)
    shell.run(follow_up, "b")
    text = printed(capsys)
    assert "Traceback (most recent call last)" in text
    assert "NotFoundError" in text


def test_a_failed_check_is_shown_in_a_few_lines_with_a_picture_of_the_difference(
    shell: NotebookShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[dict[str, str]] = []
    shell.display_pub.publish = lambda data, **_: shown.append(data)  # type: ignore[method-assign]  # keeps the outputs
    display = ErrorDisplay(shell, Guard(), lambda diff: f"<b>{len(diff.added)} added</b>")
    display.start()
    shell.run("import graphcore as gc\nx = gc.constant(1.0)\ngc.testing.same_graph(gc.tanh(x), gc.sigmoid(x))", "a")
    display.stop()
    lines = printed(capsys).splitlines()
    assert lines[0] == "CheckFailed: Required the same graph up to names; the difference from the required one:"
    assert "          gc.testing.same_graph(gc.tanh(x), gc.sigmoid(x))" in lines
    assert not any("graphcore/testing" in line for line in lines)
    assert [output["text/html"] for output in shown] == ["<b>1 added</b>"]


def test_a_failed_check_keeps_its_columns_as_text_and_is_a_card_in_a_page(
    shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]
) -> None:
    check = "import graphcore as gc\ngc.testing.runs_to(gc.constant([[1.0, 2.0]] * 2), [[1.0, 2.0], [1.0, 3.0]])"
    columns = "  required [[1. 2.]\n            [1. 3.]]"
    shell.run(check, "a")
    assert columns in printed(capsys)
    shown: list[dict[str, str]] = []
    shell.display_pub.publish = lambda data, **_: shown.append(data)  # type: ignore[method-assign]  # keeps the outputs
    shell.kernel = object()
    shell.run(check, "a")
    (card,) = shown
    assert columns in card["text/plain"]
    assert columns in card["text/html"]
    assert "graphloupe-error" in card["text/html"]
    assert len(printed(capsys).splitlines()) == 1


def test_the_cell_counts_as_failed(shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]) -> None:
    result = shell.run("raise NotFoundError('gone')", "a")
    assert isinstance(result.error_in_exec, GraphError)
    assert not result.success


def test_other_errors_look_as_always(shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run("1 / 0", "a")
    assert "Traceback (most recent call last)" in printed(capsys)


def test_a_handler_of_the_users_keeps_its_exceptions_and_comes_back(shell: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    def handler(self: object, etype: object, value: BaseException, tb: object, tb_offset: int | None = None) -> list[str]:
        theirs.append(str(value))
        return [str(value)]

    theirs: list[str] = []
    shell.catch(ZeroDivisionError, handler)
    before = (shell.custom_exceptions, shell.CustomTB)
    display = ErrorDisplay(shell, Guard())
    display.start()
    shell.user_ns.update(NotFoundError=NotFoundError)
    shell.run("1 / 0", "a")
    assert theirs == ["division by zero"]
    printed(capsys)
    shell.run("raise NotFoundError('gone')", "b")
    assert printed(capsys).startswith("NotFoundError: gone")
    display.stop()
    assert (shell.custom_exceptions, shell.CustomTB) == before


def test_a_handler_that_was_set_later_is_left_in_place(shell: NotebookShell, display: ErrorDisplay) -> None:
    shell.catch(ZeroDivisionError, None)
    theirs = (shell.custom_exceptions, shell.CustomTB)
    display.stop()
    assert (shell.custom_exceptions, shell.CustomTB) == theirs


def test_an_error_that_cannot_be_described_is_shown_in_full(
    shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run("error = InvalidArgumentError('wrong')\nerror.source = 7\nraise error", "a")
    text = printed(capsys)
    assert "Traceback (most recent call last)" in text
    assert "Custom TB Handler failed" not in text


def test_a_line_of_a_module_is_named_by_its_file(shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]) -> None:
    source = SourceLocation("/home/me/model.py", 12)
    cell_runs.pop(source.file, None)
    shell.user_ns["made"] = source
    shell.run("raise InvalidArgumentError('wrong', source=made)", "a")
    assert " made in  model.py, line 12" in printed(capsys)


def test_a_line_of_a_generated_plan_is_not_called_the_users(
    shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run("import graphcore as gc\nx = gc.placeholder(gc.float32, [2], name='x')", "a")
    capsys.readouterr()
    shell.run("gc.Session().run(x + 1.0)", "b")
    shown = printed(capsys)
    assert "You must feed a value for placeholder tensor 'x'" in shown
    assert "gc.Session().run(x + 1.0)" in shown
    assert "graphcore plan" not in shown


MODEL = """import graphcore as gc
import numpy as np
x = gc.placeholder(gc.float32, [None, 64], name="x")
W = gc.Variable(gc.zeros([64, 10]), name="W")
y = gc.matmul(x, W, name="y")
session = gc.Session()
foreign = gc.Graph()
with foreign.as_default():
    z = gc.constant(1.0, name="z")"""
ROWS = "np.zeros([2, 64], np.float32)"


@pytest.fixture
def model(shell: NotebookShell, capsys: pytest.CaptureFixture[str]) -> Iterator[NotebookShell]:
    reset_default_graph()
    shell.run("%load_ext kernelext", "load")
    assert shell.run(MODEL, "model").success
    capsys.readouterr()
    yield shell
    shell.run("%unload_ext kernelext", "unload")
    reset_default_graph()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("gc.apply_op('Foo', [x])", ["NotFoundError: Op type not registered 'Foo'", "op  Foo"]),
        ("x + gc.constant([1], gc.int32)", ["node  add (op AddV2), input y", "'x' is float and 'y' is int32", "'x:0' float [?,64]"]),
        ("x @ gc.zeros([3, 4])", ["node  matmul (op MatMul)", "64 and 3"]),
        ("session.run(y, {x: np.zeros([2, 63], np.float32)})", ["node  x", "[2,63]", "[?,64]", "made in  cell In [2], line 3"]),
        ("session.run(W.initializer)\nsession.run(y)", ["node  x", "dtype float and shape [?,64]", "made in  cell In [2], line 3"]),
        (f"session.run(y, {{x: {ROWS}}})", ["FailedPreconditionError", "node  W (op VariableV2)", "made in  cell In [2], line 4"]),
        ("session.run(z)", ["node  z (op Const)", "another graph", "made in  cell In [2], line 9"]),
    ],
    ids=["unknown-op", "wrong-dtype", "wrong-shape", "wrong-feed-shape", "unfed-placeholder", "uninitialised-variable", "foreign-tensor"],
)
def test_bad_input_names_op_node_expected_got_and_lines(
    model: NotebookShell, capsys: pytest.CaptureFixture[str], code: str, says: list[str]
) -> None:
    result = model.run(code, "bad")
    assert isinstance(result.error_in_exec, GraphError)
    text = printed(capsys)
    for part in [*says, f"here  cell In [3], line {len(code.splitlines())}"]:
        assert part in text


def test_each_line_on_the_way_names_its_own_cell(model: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    model.run("def dense(t):\n    return t @ gc.zeros([3, 4])", "define")
    model.run("dense(x)", "use")
    text = printed(capsys)
    assert "called in  cell In [4], line 1\n" in text
    assert "here  cell In [3], line 2\n" in text


def test_shapes_that_clash_are_followed_back_to_the_lines_that_wrote_the_numbers(
    model: NotebookShell, capsys: pytest.CaptureFixture[str]
) -> None:
    model.run("b = gc.Variable(gc.zeros([12]), name='b')", "bias")
    capsys.readouterr()
    model.run("y + b", "clash")
    text = printed(capsys)
    first, second = (line for line in text.splitlines() if line.startswith("   where"))
    assert first == "   where  dimension 1 of `y:0` = 10"
    assert second.startswith("   where  dimension 0 of `b")
    assert second.endswith("= 12")
    assert "cell In [2], line 4: W = gc.Variable(gc.zeros([64, 10])" in text
    assert "cell In [3], line 1: b = gc.Variable(gc.zeros([12])" in text


def test_a_card_that_cannot_be_drawn_leaves_the_text(
    model: NotebookShell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no picture")

    shown: list[dict[str, str]] = []
    model.kernel = object()
    model.display_pub.publish = lambda data, **_: shown.append(data)  # type: ignore[method-assign]  # keeps the outputs
    monkeypatch.setattr("kernelext.errors.display.surroundings", fail)
    assert isinstance(model.run("session.run(y)", "a").error_in_exec, GraphError)
    cards = [output["text/html"] for output in shown if "graphloupe-error" in output.get("text/html", "")]
    assert len(cards) == 1
    assert "To do" in cards[0]
    assert "<img" not in cards[0]
    monkeypatch.setattr("kernelext.errors.display.to_card", fail)
    capsys.readouterr()
    assert isinstance(model.run("session.run(y)", "b").error_in_exec, GraphError)
    assert "   to do  " in printed(capsys)


def test_names_in_code_of_graphs_are_escaped_in_a_card(model: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[dict[str, str]] = []
    model.kernel = object()
    model.display_pub.publish = lambda data, **_: shown.append(data)  # type: ignore[method-assign]  # keeps the outputs
    model.run("session.run('<script>alert(1)</script>')", "a")
    assert "&lt;script&gt;alert(1)" in shown[-1]["text/html"]
    assert "<script>" not in shown[-1]["text/html"]


@pytest.mark.parametrize("code", ["len(3)", "[].mean()", "None + 1"])
def test_errors_of_python_that_are_not_about_tensors_look_as_always(
    model: NotebookShell, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    model.run(code, "a")
    assert "Traceback (most recent call last)" in printed(capsys)


def test_an_unknown_name_looks_as_always_while_there_is_no_graph(
    shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]
) -> None:
    reset_default_graph()
    shell.run("nowhere", "a")
    assert "Traceback (most recent call last)" in printed(capsys)


def test_the_line_of_a_shape_function_that_breaks_is_named(model: NotebookShell, capsys: pytest.CaptureFixture[str]) -> None:
    model.run(
        "from graphcore.text import parse_op_signature\n"
        "def infer(c):\n"
        "    c.set_output(0, [][3])\n"
        "graph = gc.Graph(gc.OpRegistry())\n"
        "graph.registry.register(parse_op_signature('BreaksInACell() -> (y:float)'), infer)",
        "define",
    )
    capsys.readouterr()
    model.run("graph.apply_op('BreaksInACell')", "use")
    text = printed(capsys)
    assert "InternalError: The shape function of op BreaksInACell raised IndexError: list index out of range" in text
    assert "here  cell In [4], line 1\n" in text
    assert "to do  Correct the shape function of BreaksInACell, cell In [3], line 3.\n" in text


def test_a_script_ends_its_traceback_with_what_to_do() -> None:
    error = InvalidArgumentError("wrong").advise("Feed «x:0».", required="a value", came="none")
    assert error.__notes__ == ["To do: Feed 'x:0'."]
    assert error.advise("Something else.").suggestion == "Feed «x:0»."
