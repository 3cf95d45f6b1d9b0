"""A graph error in a cell: a few lines that say what, where and who; everything else as IPython shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.source import CellRun, SourceLocation, cell_labels
from kernelext.error_display import ErrorDisplay
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
    assert lines[:4] == [
        "InvalidArgumentError: Dimensions must be equal",
        "      op  MatMul",
        "    node  y",
        "   input  W:0",
    ]
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


def test_the_place_that_failed_is_not_named_twice(shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]) -> None:
    code = "from graphcore.source import caller_location\nraise InvalidArgumentError('wrong', source=caller_location())"
    shell.run(code, "a")
    text = printed(capsys)
    assert text.count("raise InvalidArgumentError") == 1
    assert "made in" not in text


def test_the_reason_behind_an_error_is_named(shell: NotebookShell, display: ErrorDisplay, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run("try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise InvalidArgumentError('wrong') from error", "a")
    assert "because   ZeroDivisionError: division by zero" in printed(capsys)


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
    cell_labels.pop(source.file, None)
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
