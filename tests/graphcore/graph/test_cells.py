"""Cell ownership: running a cell again replaces its nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.source import CellRun, current_run

Cell = Callable[[], None]


class Notebook:
    """Runs functions as cells of one graph."""

    def __init__(self) -> None:
        self.graph = gc.Graph()
        self.count = 0

    def run(self, cell: str, code: Cell, *, fails: bool = False) -> list[str]:
        self.count += 1
        run = CellRun(cell=cell, execution=self.count, label=f"In [{self.count}]")
        token = current_run.set(run)
        self.graph.begin_cell(run)
        try:
            with self.graph.as_default():
                code()
        except InvalidArgumentError:
            assert fails
        finally:
            current_run.reset(token)
        return self.graph.end_cell(run, failed=fails)

    def names(self) -> list[str]:
        return [node.name for node in self.graph.nodes]

    def shape(self, name: str) -> str:
        return str(self.graph.get_tensor_by_name(name).shape)


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


def logits(notebook: Notebook) -> None:
    graph = notebook.graph
    product = graph.get_tensor_by_name("x") @ graph.get_tensor_by_name("W/read")
    gc.add(product, graph.get_tensor_by_name("b/read"), name="logits")


def bias() -> None:
    gc.Variable(gc.zeros([10]), name="b")


def make(notebook: Notebook) -> None:
    notebook.run("x", make_x)
    notebook.run("W", lambda: make_w(10))
    notebook.run("b", bias)
    notebook.run("y", lambda: logits(notebook))


def make_x() -> None:
    gc.placeholder(gc.float32, [None, 64], name="x")


def make_w(columns: int) -> None:
    gc.Variable(gc.zeros([64, columns]), name="W")


def test_running_a_cell_again_unchanged_changes_nothing(notebook: Notebook) -> None:
    make(notebook)
    names, nodes = notebook.names(), notebook.graph.nodes
    for cell, code in (("W", lambda: make_w(10)), ("y", lambda: logits(notebook))):
        assert notebook.run(cell, code) == []
    assert notebook.names() == names
    assert notebook.graph.nodes == nodes


def test_a_changed_cell_replaces_its_nodes_and_marks_what_no_longer_fits(notebook: Notebook) -> None:
    make(notebook)
    names = notebook.names()
    notebook.run("W", lambda: make_w(12))
    assert notebook.names() == names
    assert notebook.shape("W/read:0") == "[64,12]"
    assert notebook.shape("matmul:0") == "[?,12]"
    misfit = notebook.graph.get_operation_by_name("logits")
    assert misfit.error is not None
    assert "Dimensions must be equal, but are 12 and 10 for 'logits' (op: 'AddV2') with input shapes: [?,12], [10]." in str(misfit.error)
    assert set(misfit.input_errors) == {0, 1}
    assert [tensor.node.source.run.label for tensor in misfit.inputs if tensor.node.source and tensor.node.source.run] == [
        "In [4]",
        "In [3]",
    ]


def test_changing_it_back_makes_all_well_again(notebook: Notebook) -> None:
    make(notebook)
    notebook.run("W", lambda: make_w(12))
    notebook.run("W", lambda: make_w(10))
    assert all(node.error is None and not node.input_errors for node in notebook.graph.nodes)
    assert notebook.shape("logits:0") == "[?,10]"


def test_nodes_that_a_cell_no_longer_makes_go_and_their_consumers_wait_for_them(notebook: Notebook) -> None:
    make(notebook)
    removed = notebook.run("b", lambda: None)
    assert "b" in removed
    misfit = notebook.graph.get_operation_by_name("logits")
    assert "no longer in the graph" in misfit.input_errors[1]
    notebook.run("b", bias)
    assert misfit.error is None
    assert notebook.graph.nx.has_edge("b/read", "logits", (0, 1))


def test_a_cell_that_fails_keeps_what_it_made_marked_until_its_next_run(notebook: Notebook) -> None:
    make(notebook)

    def broken() -> None:
        make_w(10)
        gc.matmul(gc.ones([2, 3]), gc.ones([2, 3]))

    assert notebook.run("W", broken, fails=True) == []
    node = notebook.graph.get_operation_by_name("W")
    assert notebook.graph.cells.is_partial(node)
    assert notebook.names().count("ones") == 1
    removed = notebook.run("W", lambda: make_w(10))
    assert sorted(removed) == ["ones", "ones_1"]
    assert not notebook.graph.cells.is_partial(node)
    assert "W_1" not in notebook.names()


def test_another_cell_with_the_same_code_gets_other_names(notebook: Notebook) -> None:
    make(notebook)
    notebook.run("copy of W", lambda: make_w(10))
    assert "W_1" in notebook.names()
    notebook.run("copy of W", lambda: make_w(10))
    assert "W_2" not in notebook.names()


def test_python_variables_of_other_cells_stay_valid(notebook: Notebook) -> None:
    make(notebook)
    held = notebook.graph.get_tensor_by_name("W/read")
    notebook.run("W", lambda: make_w(12))
    assert notebook.graph.get_tensor_by_name("W/read") is held
    assert str(held.shape) == "[64,12]"


def test_a_node_that_would_come_to_depend_on_itself_is_refused(notebook: Notebook) -> None:
    make(notebook)

    def loop() -> None:
        gc.add(notebook.graph.get_tensor_by_name("logits"), 1.0, name="x")

    before = notebook.graph.as_graph_def()
    notebook.run("x", loop, fails=True)
    assert notebook.graph.get_operation_by_name("x").op == "Placeholder"
    assert [node for node in notebook.graph.as_graph_def().node if node.op != "Const"] == [
        node for node in before.node if node.op != "Const"
    ]


def test_a_dropped_cell_takes_its_nodes_along(notebook: Notebook) -> None:
    make(notebook)
    assert notebook.graph.drop_cell("y") == ["logits", "matmul"] or notebook.graph.find("logits") is None


def test_variables_of_a_cell_that_ran_again_are_listed_once(notebook: Notebook) -> None:
    make(notebook)
    notebook.run("W", lambda: make_w(12))
    with notebook.graph.as_default():
        assert [variable.name for variable in gc.all_variables()] == ["W:0", "b:0"]
        assert str(gc.all_variables()[0].shape) == "[64,12]"


def test_a_cell_that_takes_its_own_last_result_is_told_what_to_do(notebook: Notebook) -> None:
    held: list[gc.Tensor] = []

    def start() -> None:
        held[:] = [gc.placeholder(gc.float32, [3], name="h")]

    def step() -> None:
        held[:] = [gc.tanh(held[0], name="step")]

    notebook.run("a", start)
    notebook.run("b", step)
    errors: list[str] = []

    def again() -> None:
        try:
            step()
        except InvalidArgumentError as error:
            errors.append(error.message)
            raise

    notebook.run("b", again, fails=True)
    assert "a cycle. This cell made 'step' itself in an earlier run" in errors[0]
    notebook.run("a", start)
    notebook.run("b", step)
    assert notebook.graph.get_operation_by_name("step").error is None
