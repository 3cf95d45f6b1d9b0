"""The table of `%graph?` on cells that run again: each of its rows, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.graph import reset_default_graph
from kernelext.graph_line import HELP
from tests.kernelext.conftest import NotebookShell
from widgets.render.compiled import build_scene

X = "x = gc.placeholder(gc.float32, [None, 3], name='x')"
W = "W = gc.Variable(gc.ones([3, 2]), name='W')"
Y = "y = gc.matmul(x, W, name='y')\nz = gc.tanh(y, name='z')"
ROWS = np.ones((4, 3), np.float32)

Case = Callable[[NotebookShell, Callable[[], str]], None]
CASES: dict[str, Case] = {}


def row(title: str) -> Callable[[Case], Case]:
    """The test of the row with this title."""

    def register(case: Case) -> Case:
        CASES[title] = case
        return case

    return register


def test_each_row_of_the_table_is_tested() -> None:
    table = HELP.partition("A cell that runs again\n")[2].partition("\n\n")[0]
    titles = [re.split(r"\s{2,}|(?<=\)) is ", line.strip())[0] for line in table.splitlines()]
    assert titles == list(CASES)


@pytest.fixture
def built(shell: NotebookShell) -> Iterator[NotebookShell]:
    """Three cells that build x, W, and y with z."""
    reset_default_graph()
    shell.run("%load_ext kernelext\nimport graphcore as gc", "load")
    for cell, code in (("x", X), ("W", W), ("y", Y)):
        assert shell.run(code, cell).success
    yield shell
    shell.run("%unload_ext kernelext", "unload")
    reset_default_graph()


def names() -> list[str]:
    return [node.name for node in gc.get_default_graph().op_nodes()]


def value(shell: NotebookShell, name: str = "z") -> Any:
    """The value of a variable of the user in a new session."""
    with gc.Session() as session:
        session.run(shell.user_ns["W"].initializer)
        return session.run(shell.user_ns[name], {"x:0": ROWS})


@row("with the same code")
def same(shell: NotebookShell, _said: Callable[[], str]) -> None:
    before, x = names(), shell.user_ns["x"]
    for cell, code in (("x", X), ("W", W), ("y", Y)):
        assert shell.run(code, cell).success
    assert names() == before
    assert shell.user_ns["x"] is x
    np.testing.assert_allclose(value(shell), np.tanh(np.full((4, 2), 3.0)), rtol=1e-6)


@row("with other code")
def other(shell: NotebookShell, _said: Callable[[], str]) -> None:
    before, z = names(), shell.user_ns["z"]
    shell.run(W.replace("ones", "zeros"), "W")
    assert sorted(name.replace("zeros", "ones") for name in names()) == sorted(before)
    assert shell.user_ns["z"] is z
    np.testing.assert_array_equal(value(shell), np.zeros((4, 2)))


@row("making other shapes")
def shapes(shell: NotebookShell, said: Callable[[], str]) -> None:
    shell.run(W.replace("[3, 2]", "[3, 5]"), "W")
    assert str(shell.user_ns["z"].shape) == "[?,5]"
    shell.run(W.replace("[3, 2]", "[7, 2]"), "W")
    assert "does not fit any more" in said()
    assert shell.user_ns["y"].node.error is not None
    assert [edge.target for edge in build_scene(gc.get_default_graph()).edges if edge.error] == ["y", "y"]
    shell.run(W, "W")
    assert not [edge for edge in build_scene(gc.get_default_graph()).edges if edge.error]


@row("making more nodes")
def more(shell: NotebookShell, said: Callable[[], str]) -> None:
    before = names()
    shell.run(f"{Y}\nu = gc.exp(z, name='u')", "y")
    assert names() == [*before, "u"]
    assert said() == "+1 node\n"


@row("making fewer nodes")
def fewer(shell: NotebookShell, _said: Callable[[], str]) -> None:
    shell.run("u = gc.exp(z, name='u')", "u")
    shell.run("y = gc.matmul(x, W, name='y')", "y")
    assert "z" not in names()
    u = shell.user_ns["u"].node
    assert u.error is not None
    assert "'z'" in u.error.message
    shell.run(Y, "y")
    assert u.error is None
    assert not u.input_errors
    np.testing.assert_allclose(value(shell, "u"), np.exp(np.tanh(np.full((4, 2), 3.0))), rtol=1e-6)


@row("emptied")
def emptied(shell: NotebookShell, _said: Callable[[], str]) -> None:
    shell.run("", "y")
    assert not {"y", "z"} & {*names()}


@row("and fails")
def fails(shell: NotebookShell, _said: Callable[[], str]) -> None:
    assert not shell.run("y = gc.matmul(x, W, name='y')\n1 / 0", "y").success
    assert {"y", "z"} <= {*names()}
    node = gc.get_default_graph().find("z")
    assert node is not None
    assert node.error is not None
    assert "failed before it made 'z' again" in node.error.message
    with pytest.raises(gc.GraphError, match="failed before it made 'z' again"):
        value(shell)
    assert shell.run(Y, "y").success
    assert node.error is None


@row("and uses its own last result (h = tanh(h))")
def circle(shell: NotebookShell, _said: Callable[[], str]) -> None:
    assert shell.run("z = gc.tanh(z, name='h')", "h").success
    result = shell.run("z = gc.tanh(z, name='h')", "h")
    assert "'h' would take 'h' as an input, which itself depends on 'h': a cycle" in str(result.error_in_exec)
    assert [(edge.source, edge.target) for edge in build_scene(gc.get_default_graph()).edges if edge.error] == [("h", "h")]
    shell.run(Y, "y")
    assert shell.run("z = gc.tanh(z, name='h')", "h").success
    assert not [edge for edge in build_scene(gc.get_default_graph()).edges if edge.error]
    more = "z = gc.square(z, name='a')\nz = gc.exp(z, name='b')"
    shell.run(more, "more")
    assert not shell.run(more, "more").success
    assert [(edge.source, edge.target) for edge in build_scene(gc.get_default_graph()).edges if edge.error] == [("b", "a")]


@row("in another order or place")
def order(shell: NotebookShell, _said: Callable[[], str]) -> None:
    before = sorted(names())
    for cell, code in (("y", Y), ("W", W), ("x", X), ("y", Y)):
        assert shell.run(code, cell).success
    assert sorted(names()) == before
    np.testing.assert_allclose(value(shell), np.tanh(np.full((4, 2), 3.0)), rtol=1e-6)


@row("as a copy")
def copy(shell: NotebookShell, _said: Callable[[], str]) -> None:
    shell.run(Y, "copy of y")
    assert {"y", "z", "y_1", "z_1"} <= {*names()}
    shell.run("", "y")
    assert {"y_1", "z_1"} <= {*names()}
    assert not {"y", "z"} & {*names()}


@row("with other initial values")
def values(shell: NotebookShell, said: Callable[[], str]) -> None:
    shell.run("session = gc.Session()\nsession.run(W.initializer)", "run")
    said()
    shell.run(W.replace("ones", "zeros"), "W")
    assert "The open session keeps the old value" in said()
    assert shell.run("session.run(W)[0, 0]", "read").result == 1.0
    assert shell.run("session.run(W.initializer)\nsession.run(W)[0, 0]", "read").result == 0.0


@row("with gradients below it")
def gradients(shell: NotebookShell, _said: Callable[[], str]) -> None:
    shell.run("(g,) = gc.gradients(gc.reduce_sum(z), [W])", "g")
    before, g = sorted(names()), shell.user_ns["g"]
    shell.run(Y.replace("tanh", "sigmoid"), "y")
    assert shell.user_ns["g"].name == g.name
    assert g.node.error is None
    fed = 4 * 1 / (1 + np.exp(-3.0)) * (1 - 1 / (1 + np.exp(-3.0)))
    np.testing.assert_allclose(value(shell, "g"), np.full((3, 2), fed), rtol=1e-5)
    shell.run(Y, "y")
    assert sorted(names()) == before


@row("after it was deleted")
def deleted(shell: NotebookShell, said: Callable[[], str]) -> None:
    shell.run("pass", "other", deletedCells=["y"])
    assert "2 nodes without a cell" in said()
    cells = gc.get_default_graph().cells
    assert cells.deleted == {"y"}
    shell.run(Y, "y")
    assert not cells.deleted
    shell.run("pass", "other", deletedCells=["y"])
    shell.run("%graph forget", "forget")
    assert not {"y", "z"} & {*names()}


@row("after %graph undo")
def undone(shell: NotebookShell, _said: Callable[[], str]) -> None:
    before = names()
    shell.run("%graph undo", "undo")
    assert not {"y", "z"} & {*names()}
    shell.run(Y, "y")
    assert names() == before


@row("after reset_default_graph()")
def reset(shell: NotebookShell, _said: Callable[[], str]) -> None:
    before = names()
    shell.run("gc.reset_default_graph()", "reset")
    assert names() == []
    assert "another graph" in str(shell.run(Y, "y").error_in_exec)
    for cell, code in (("x", X), ("W", W), ("y", Y)):
        assert shell.run(code, cell).success
    assert names() == before


@row("after a kernel restart")
def restart(shell: NotebookShell, _said: Callable[[], str]) -> None:
    before = [(node.name, node.op, [str(tensor.shape) for tensor in node.outputs]) for node in gc.get_default_graph().op_nodes()]
    picture = build_scene(gc.get_default_graph()).nodes
    shell.run("%unload_ext kernelext\n%reset -f", "end")
    reset_default_graph()
    shell.run("%load_ext kernelext\nimport graphcore as gc", "load")
    for cell, code in (("x", X), ("W", W), ("y", Y)):
        shell.run(code, cell)
    graph = gc.get_default_graph()
    assert [(node.name, node.op, [str(tensor.shape) for tensor in node.outputs]) for node in graph.op_nodes()] == before
    assert [node.id for node in build_scene(graph).nodes] == [node.id for node in picture]


@pytest.mark.parametrize("title", CASES)
def test_a_cell_that_runs_again_does_what_the_table_says(built: NotebookShell, capsys: pytest.CaptureFixture[str], title: str) -> None:
    def said() -> str:
        captured = capsys.readouterr()
        return captured.out + captured.err

    said()
    CASES[title](built, said)
