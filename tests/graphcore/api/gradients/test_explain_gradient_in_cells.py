"""`gc.explain_gradient` in notebook cells: gradients of an earlier run make no difference."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import graphcore as gc
from tests.graphcore.api.cell_runs import Cells


class Notebook:
    """A forward cell, and the explanation of its gradient."""

    def __init__(self) -> None:
        self.graph = gc.Graph()
        self.cells = Cells(self.graph)
        self.said: list[str] = []
        self.gradient: gc.Tensor | None = None
        with self.graph.as_default():
            self.cells.run("forward", self.forward)

    def run(self, cell: str, *parts: Callable[[], None]) -> None:
        with self.graph.as_default():
            self.cells.run(cell, lambda: [part() for part in parts])

    def forward(self) -> None:
        self.x = gc.placeholder(gc.float32, [3], name="x")
        self.y = gc.reduce_sum(gc.tanh(self.x * gc.constant([1.0, 2.0, 3.0])) + self.x, name="y")

    def build(self) -> None:
        (self.gradient,) = gc.gradients(self.y, self.x)

    def use(self) -> None:
        assert self.gradient is not None
        self.used = gc.identity(self.gradient, name="used")

    def explain(self) -> None:
        self.said.append(repr(gc.explain_gradient(self.y, self.x)))


@pytest.mark.parametrize("used", [False, True], ids=["", "used"])
def test_a_cell_that_built_gradients_explains_as_one_that_did_not(used: bool) -> None:
    fresh = Notebook()
    fresh.run("cell", fresh.explain)
    again = Notebook()
    again.run("cell", again.build)
    if used:
        again.run("other", again.use)
    before = [node.name for node in again.graph.nodes]
    again.run("cell", again.explain)
    assert again.said == fresh.said
    assert [node.name for node in again.graph.nodes] == [name for name in before if not name.startswith("gradients/")]
    again.run("cell", again.explain)
    assert again.said == fresh.said * 2


def test_what_is_built_before_or_after_its_explanation_in_one_cell_is_built_as_ever() -> None:
    notebook = Notebook()
    notebook.run("cell", notebook.build)
    first = {node.name: node.node_def for node in notebook.graph.nodes}
    notebook.run("cell", notebook.explain, notebook.build, notebook.explain)
    assert {node.name: node.node_def for node in notebook.graph.nodes} == first
    unbuilt, built = notebook.said
    assert unbuilt.replace(" (not built yet)", "") == built
    assert unbuilt != built
