"""Remarks under a cell: other nodes it broke, gradients in a loop; none under an ordinary cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from graphcore.graph import get_default_graph, reset_default_graph
from tests.kernelext.conftest import NotebookShell

Said = Callable[[str, str], str]


@pytest.fixture
def said(shell: NotebookShell, capsys: pytest.CaptureFixture[str]) -> Iterator[Said]:
    """Runs a cell and returns its error output."""
    reset_default_graph()
    shell.run("%load_ext kernelext\nimport graphcore as gc", "start")

    def run(code: str, cell: str) -> str:
        capsys.readouterr()
        shell.run(code, cell)
        return capsys.readouterr().err

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
    assert text.startswith("'v' keeps its value in a session that is open; the initial value is another one now.")
    assert said("1 + 1", "c") == ""
    assert said("s.run(init)", "b") == ""


def test_a_gradient_that_cannot_follow_is_told(said: Said) -> None:
    said("x = gc.placeholder(gc.float32, [], name='x')\nk = gc.placeholder(gc.float32, [], name='k')", "a")
    said("y = gc.multiply(x, k, name='y')", "b")
    said("gx, gk = gc.gradients(y, [x, k])", "c")
    text = said("y = gc.square(x, name='y')", "b")
    assert "the gradients of 'y:0' could not follow a change: result 1 would be None now; run its cell again" in text


def test_a_cell_that_fails_says_only_why(said: Said) -> None:
    said("x = gc.placeholder(gc.float32, [], name='x')", "a")
    assert said("nothing", "a") == ""
