"""Remarks under a cell: other nodes it broke, gradients in a loop; none under an ordinary cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from IPython.utils.capture import capture_output

from graphcore.graph import get_default_graph, reset_default_graph
from tests.kernelext.conftest import NotebookShell

Said = Callable[[str, str], str]


@pytest.fixture
def said(shell: NotebookShell, capsys: pytest.CaptureFixture[str]) -> Iterator[Said]:
    """Runs a cell and returns its remarks; they are no error output."""
    reset_default_graph()
    shell.run("%load_ext kernelext\nimport graphcore as gc", "start")

    def run(code: str, cell: str) -> str:
        with capture_output() as captured:
            shell.run(code, cell)
        assert captured.stderr == ""
        shown = [output.data for output in captured.outputs if "--jp-warn-color1" in (output.data or {}).get("text/html", "")]
        return "".join([f"{data['text/plain']}\n" for data in shown])

    yield run
    shell.run("%unload_ext kernelext")
    reset_default_graph()


def test_a_run_that_breaks_later_nodes_says_how_many_which_is_first_and_in_which_cell(said: Said) -> None:
    assert said("x = gc.placeholder(gc.float32, [2, 3], name='x')", "a") == ""
    assert said("w = gc.Variable([[1.0], [2.0], [3.0]], name='w')\ny = gc.matmul(x, w, name='y')", "b") == ""
    assert said("t = gc.matmul(x, w, name='t')", "c") == ""
    text = said("x = gc.placeholder(gc.float32, [2, 4], name='x')", "a")
    begins = "2 nodes do not fit any more. The first is 'y' (cell In [3], line 2): Dimensions must be equal, but are 4 and 3"
    assert text.startswith(begins)
    assert text.count("\n") == 1
    assert len([node for node in get_default_graph().op_nodes() if node.error is not None]) == 2
    assert said("1 + 1", "d") == ""
    assert said("x = gc.placeholder(gc.float32, [2, 5], name='x')", "a") == ""  # they were broken before
    assert said("x = gc.placeholder(gc.float32, [2, 3], name='x')", "a") == ""
    assert said("w = gc.placeholder(gc.int32, [3, 1], name='w')", "b").startswith("1 node does not fit any more: 't' (cell ")


def test_the_nodes_that_could_not_follow_are_counted_in_a_sentence_of_their_own(said: Said) -> None:
    said("x = gc.placeholder(gc.float32, [2, 3], name='x')", "a")
    said("w = gc.Variable(gc.zeros([3, 1]), name='w')", "b")
    said("y = gc.reduce_sum(gc.matmul(x, w, name='product'))", "c")
    said("g = gc.gradients(y, [w])[0]", "d")
    text = said("w = None", "b")
    assert "'w/read' is no longer in the graph. 7 derived nodes could not follow.\n" in text


def test_a_failed_run_that_breaks_nodes_says_so_too(said: Said) -> None:
    said("x = gc.placeholder(gc.float32, [2, 3], name='x')", "a")
    said("y = gc.matmul(x, gc.ones([3, 1]), name='y')", "b")
    text = said("x = gc.placeholder(gc.int32, [2, 3], name='x')\n1 / 0", "a")
    assert "1 node does not fit any more: 'y' (cell In [3], line 1): Input 0 of node y was passed int32 from x:0" in text


LOOP = """
session = gc.Session()
session.run(gc.initialize_all_variables())
for step in range({0}):
    gw = gc.gradients(loss, w)[0]
    session.run(gw)
"""
MODEL = "w = gc.Variable([[1.0], [2.0]], name='w')\nloss = gc.reduce_sum(gc.square(gc.matmul(gc.ones([3, 2]), w)))"


def test_gradients_in_a_loop_are_told_once_under_the_cell(said: Said) -> None:
    said(MODEL, "a")
    text = said(LOOP.format(60), "b")
    assert re.match(r"Gradients were built 60 times in cell In \[3\], line 4, and \d{3,} nodes were added\. ", text)
    assert "A training loop should run a graph, not build one" in text
    assert text.count("\n") == 1
    assert said("1 + 1", "c") == ""


def test_an_optimizer_in_a_loop_is_told_once_under_the_cell(said: Said) -> None:
    said(MODEL, "a")
    text = said("for step in range(60):\n    train = gc.GradientDescentOptimizer(0.1).minimize(loss)", "b")
    assert text.startswith("Gradients were built 60 times in cell In [3], line 2")


def test_gradients_of_many_layers_and_many_runs_of_one_graph_are_not_remarked(said: Said) -> None:
    said(MODEL, "a")
    assert said("for layer in range(50):\n    gc.gradients(loss, w)", "b") == ""
    assert said("for layer in range(40):\n    gc.gradients(loss, w)\nfor layer in range(40):\n    gc.gradients(loss, w)", "b") == ""
    code = "step = gc.GradientDescentOptimizer(0.1).minimize(loss)\nsession = gc.Session()\nsession.run(gc.initialize_all_variables())\n"
    assert said(code + "for i in range(300):\n    session.run(step)", "c") == ""


def test_a_name_that_the_package_lacks_is_told_without_its_own_lines(
    shell: NotebookShell, said: Said, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    shell.run("gc.softmx", "a")
    text = capsys.readouterr().out
    assert "did you mean gc.softmax?" in text
    assert "ops.py" not in text
    assert "gc.softmx" in text


def test_a_session_that_keeps_a_value_whose_initial_value_has_changed_is_told(said: Said) -> None:
    start = "k = gc.constant({0}, name='k')\nv = gc.Variable(k * 2.0, name='v')\ninit = gc.initialize_all_variables()"
    said(start.format(1.0), "a")
    assert said("s = gc.Session()\ns.run(init)", "b") == ""
    text = said(start.format(5.0), "a")
    assert text == "'v' has a new initial value. The open session keeps the old value until the initializer runs again.\n"
    assert said("1 + 1", "c") == ""
    assert said("s.run(init)", "b") == ""


def test_variables_of_other_shapes_have_no_values_and_no_remark_says_that_they_keep_them(said: Said, shell: NotebookShell) -> None:
    model = "W = gc.Variable(gc.zeros([{0}, 2]), name='W')\nb = gc.Variable(gc.fill([2], {0}.0), name='b')\ninit = gc.initialize_all_variables()"
    said(model.format(3), "a")
    said("s = gc.Session()\ns.run(init)", "b")
    text = said(model.format(4), "a")
    assert text == (
        "'b' has a new initial value. The open session keeps the old value until the initializer runs again.\n"
        "'W' has another type or shape now. The open session has no value for it until its initializer runs.\n"
    )
    shell.run("kept = s.run(b)", "c")
    assert list(shell.user_ns["kept"]) == [3.0, 3.0]
    assert not shell.run("s.run(W)", "d").success
    shell.run("s.run(init)\nnow = s.run(b)", "b2")
    assert list(shell.user_ns["now"]) == [4.0, 4.0]
    assert said(model.format(4), "a") == ""


def test_a_gradient_that_cannot_follow_is_told(said: Said) -> None:
    said("x = gc.placeholder(gc.float32, [], name='x')\nk = gc.placeholder(gc.float32, [], name='k')", "a")
    said("y = gc.multiply(x, k, name='y')", "b")
    said("gx, gk = gc.gradients(y, [x, k])", "c")
    text = said("y = gc.square(x, name='y')", "b")
    assert "the gradients of 'y:0' could not follow a change: result 1 would be None now; run its cell again" in text


def test_a_cell_that_fails_says_only_why(said: Said) -> None:
    said("x = gc.placeholder(gc.float32, [], name='x')", "a")
    assert said("nothing", "a") == ""


@pytest.mark.parametrize("loop", ["v.assign_add(1.0)", "session.run(v.assign_add(1.0))", "session.run(v + 1.0)"])
def test_nodes_that_a_loop_builds_over_and_over_are_told(said: Said, loop: str) -> None:
    said("v = gc.Variable(0.0, name='v')\nsession = gc.Session()\nsession.run(v.initializer)", "a")
    text = said(f"for step in range(300):\n    {loop}", "b")
    assert re.match(r"300 \w+ nodes were built in cell In \[3\], line 2", text)
    assert "make the node once before the loop" in text
    assert text.count("\n") == 1


def test_layers_that_a_loop_builds_and_one_node_that_a_loop_runs_are_not_told(said: Said) -> None:
    said("v = gc.Variable(0.0, name='v')\nstep = v.assign_add(1.0)\nsession = gc.Session()\nsession.run(v.initializer)", "a")
    assert said("for _ in range(100):\n    session.run(step)", "b") == ""
    assert said("h = gc.ones([2])\nfor _ in range(100):\n    h = gc.tanh(h)\nsession.run(h)", "c") == ""
    assert said("vs = [gc.Variable(0.0) for _ in range(60)]\nsteps = [each.assign_add(1.0) for each in vs]", "d") == ""


def test_a_remark_with_signs_that_hide_or_turn_letters_shows_them_as_escapes(said: Said) -> None:
    text = said("from graphcore.remarks import remark\nremark('a\\ud800b \\u202e c')", "a")
    assert text == "a\\ud800b \\u202e c\n"
