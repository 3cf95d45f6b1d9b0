"""Notebook cells and their graphs: running a cell again replaces its nodes."""

from __future__ import annotations

import pytest

from graphcore.graph import Graph, get_default_graph
from tests.kernelext.conftest import NotebookShell

X = 'x = gc.placeholder(gc.float32, [None, 64], name="x")'
W = 'W = gc.Variable(gc.zeros([64, 10]), name="W")'
Y = 'y = gc.matmul(x, W, name="y")'


def names(graph: Graph | None = None) -> list[str]:
    return [node.name for node in (get_default_graph() if graph is None else graph).nodes]


def test_a_cell_that_runs_again_gives_the_same_nodes(tracked: NotebookShell) -> None:
    for code, cell in ((X, "a"), (W, "b"), (Y, "c")):
        tracked.run(code, cell)
    before = names()
    for code, cell in ((X, "a"), (W, "b"), (Y, "c"), (W, "b")):
        assert tracked.run(code, cell).success
        assert names() == before
    assert "W_1" not in before


def test_a_changed_cell_changes_what_follows(tracked: NotebookShell) -> None:
    for code, cell in ((X, "a"), (W, "b"), (Y, "c")):
        tracked.run(code, cell)
    tracked.run(W.replace("10", "12"), "b")
    assert str(tracked.user_ns["y"].shape) == "[?,12]"
    assert tracked.user_ns["y"].node.error is None


def test_what_no_longer_fits_is_marked_and_well_again_when_it_fits(tracked: NotebookShell) -> None:
    for code, cell in ((X, "a"), (W, "b"), (Y, "c")):
        tracked.run(code, cell)
    result = tracked.run(W.replace("64", "60"), "b")
    assert result.success, "the cell itself is right; what follows is marked"
    node = tracked.user_ns["y"].node
    assert node.error is not None
    assert "60" in str(node.error)
    tracked.run(W, "b")
    assert node.error is None
    assert str(node.outputs[0].shape) == "[?,10]"


def test_each_node_knows_its_cell_and_line(tracked: NotebookShell) -> None:
    tracked.run(f"# one\n{X}", "a")
    assert str(tracked.user_ns["x"].node.source) == f"cell In [2], line 2: {X}"
    tracked.run(f"# one\n# two\n{X}", "a")
    assert str(tracked.user_ns["x"].node.source) == f"cell In [3], line 3: {X}"


def test_a_cell_that_makes_less_drops_the_rest(tracked: NotebookShell) -> None:
    tracked.run("a = gc.constant(1.0, name='a')\nb = gc.constant(2.0, name='b')", "cell")
    tracked.run("a = gc.constant(1.0, name='a')", "cell")
    assert names() == ["a"]


def test_an_emptied_cell_drops_everything_and_the_nodes_of_a_deleted_cell_stay_until_they_are_forgotten(tracked: NotebookShell) -> None:
    tracked.run("gc.constant(1.0, name='a')", "one")
    tracked.run("gc.constant(2.0, name='b')", "two")
    tracked.run("", "one")
    assert names() == ["b"]
    tracked.run("pass", "three", deletedCells=["two"])
    graph = get_default_graph()
    assert graph.cells.is_without_cell(graph.get_operation_by_name("b"))
    assert graph.forget_deleted_cells() == ["b"]
    assert names() == []


def test_a_deleted_cell_that_runs_again_owns_its_nodes_again(tracked: NotebookShell) -> None:
    tracked.run("gc.constant(2.0, name='b')", "two")
    tracked.run("pass", "three", deletedCells=["two"])
    tracked.run("gc.constant(3.0, name='b')", "two")
    graph = get_default_graph()
    assert not graph.cells.is_without_cell(graph.get_operation_by_name("b"))
    assert graph.forget_deleted_cells() == []
    assert names() == ["b"]


def test_a_cell_that_fails_keeps_its_partial_nodes_marked_until_it_runs_again(tracked: NotebookShell) -> None:
    result = tracked.run("a = gc.constant(1.0, name='a')\n1 / 0", "cell")
    assert not result.success
    graph = get_default_graph()
    node = graph.find("a")
    assert node is not None
    assert graph.cells.is_partial(node)
    tracked.run("a = gc.constant(2.0, name='a')", "cell")
    node = graph.find("a")
    assert node is not None
    assert not graph.cells.is_partial(node)
    assert names() == ["a"]


def test_a_cell_that_fails_early_keeps_what_its_last_run_made(tracked: NotebookShell) -> None:
    tracked.run("a = gc.constant(1.0, name='a')\nb = gc.constant(2.0, name='b')", "cell")
    tracked.run("a = gc.constant(1.0, name='a')\n1 / 0\nb = gc.constant(2.0, name='b')", "cell")
    assert names() == ["a", "b"]
    tracked.run("a = gc.constant(1.0, name='a')\nb = gc.constant(2.0, name='b')", "cell")
    assert names() == ["a", "b"]


def test_a_loop_in_a_cell_gets_the_same_numbered_names_each_time(tracked: NotebookShell) -> None:
    code = "for i in range(3):\n    gc.constant(float(i), name='c')"
    tracked.run(code, "cell")
    assert names() == ["c", "c_1", "c_2"]
    tracked.run(code.replace("3", "2"), "cell")
    assert names() == ["c", "c_1"]


def test_two_cells_that_want_one_name_share_nothing(tracked: NotebookShell) -> None:
    tracked.run("gc.constant(1.0, name='c')", "one")
    tracked.run("gc.constant(2.0, name='c')", "two")
    tracked.run("gc.constant(3.0, name='c')", "one")
    assert names() == ["c", "c_1"]


@pytest.mark.parametrize("holder", ["g", "shelf['g']", "model.graph"])
def test_graphs_that_the_user_holds_anywhere_are_owned_cell_by_cell_too(tracked: NotebookShell, holder: str) -> None:
    tracked.run("from types import SimpleNamespace\nshelf, model = {}, SimpleNamespace()", "shelves")
    tracked.run(f"{holder} = gc.Graph()", "make")
    build = f"with {holder}.as_default():\n    c = gc.constant(1.0, name='c')"
    tracked.run(build, "build")
    tracked.run(build, "build")
    graph = tracked.user_ns["c"].graph
    assert graph is not get_default_graph()
    assert names(graph) == ["c"]
    tracked.run("pass", "build")
    assert names(graph) == []


def test_a_graph_made_in_the_cell_that_fills_it_starts_empty_each_time(tracked: NotebookShell) -> None:
    code = "g = gc.Graph()\nwith g.as_default():\n    c = gc.constant(1.0, name='c')"
    tracked.run(code, "cell")
    first = tracked.user_ns["g"]
    tracked.run(code, "cell")
    assert tracked.user_ns["g"] is not first
    assert names(tracked.user_ns["g"]) == ["c"]


def test_name_scopes_keep_their_names(tracked: NotebookShell) -> None:
    code = "with gc.name_scope('layer'):\n    c = gc.constant(1.0, name='c')"
    tracked.run(code, "cell")
    tracked.run(code, "cell")
    assert names() == ["layer/c"]


def test_a_cell_that_takes_its_own_last_result_is_told_so(tracked: NotebookShell) -> None:
    tracked.run("h = gc.constant([1.0], name='start')", "start")
    assert tracked.run("h = gc.tanh(h, name='h')", "cell").success
    result = tracked.run("h = gc.tanh(h, name='h')", "cell")
    assert not result.success
    assert "'h' would take 'h' as an input" in str(result.error_in_exec)
    assert names() == ["start", "h"]
