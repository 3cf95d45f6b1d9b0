"""Ctrl-C while a graph is built, wherever it comes: a node is there altogether or not at all, and building goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import graphcore as gc
from graphcore.source import CellRun, SourceLocation
from tests.graphcore.graph.example_graphs import graph_def, ranks_fit
from tests.support.interrupting import Attempt, interrupted_everywhere
from tests.support.whole_graphs import Mirror, check_whole

PLACES = tuple(
    [
        f"graph/{name}.py"
        for name in ("graph", "apply", "edge_reading", "edges", "journal", "names", "rewiring", "scopes", "telling", "transaction")
    ]
)
"""Where it comes: in what keeps the books. What works out types, shapes and places in the code changes nothing."""


def small() -> tuple[gc.Graph, gc.Tensor]:
    graph = gc.Graph()
    x = graph.apply_op("Placeholder", [], {"dtype": gc.float32, "shape": [2]}, "x").outputs[0]
    return graph, x * 2.0


def outcome(graph: gc.Graph) -> list[str]:
    return sorted(str(each.node_def) for each in graph.nodes)


def check_interrupted(
    change: Callable[[gc.Graph, gc.Tensor], object],
    prepare: Callable[[gc.Graph, gc.Tensor], object] | None = None,
    every: int = 1,
    *,
    after_calls: bool = False,
) -> None:
    """Interrupt `change` of a small graph everywhere, or at one place of so many: it is done or not done, the graph is whole, and the change may be made after."""

    def make() -> Attempt:
        graph, y = small()
        if prepare is not None:
            prepare(graph, y)
        mirror, before = Mirror(graph), outcome(graph)

        def check() -> None:
            check_whole(graph, mirror)
            assert ranks_fit(graph)
            assert outcome(graph) in (before, wanted)
            assert graph.journal is None
            assert (graph.scopes.name, graph.scopes.device, graph.scopes.controls) == ("", "", ())
            with pytest.raises(RuntimeError, match="un-acquired"):  # this thread does not hold it any more
                graph.lock.release()
            if outcome(graph) == before:
                change(graph, y)
            assert outcome(graph) == wanted
            (y + 1.0)[0]
            check_whole(graph, mirror)
            with gc.Session(graph=graph) as session:
                assert session.run(y, {"x:0": [1.0, 2.0]}).tolist() == [2.0, 4.0]

        return lambda: change(graph, y), check

    graph, y = small()
    if prepare is not None:
        prepare(graph, y)
    change(graph, y)
    wanted = outcome(graph)
    assert interrupted_everywhere(make, PLACES, every, after_calls=after_calls) > 50


def test_a_node_is_added_altogether_or_not_at_all() -> None:
    check_interrupted(lambda graph, y: graph.apply_op("Tanh", [y]))


def test_a_node_that_is_described_is_added_altogether_or_not_at_all() -> None:
    check_interrupted(lambda graph, y: graph.add_node(gc.NodeDef("z", "Tanh", (y.node.name, "^x"), "", {"T": gc.float32})))


def test_what_an_op_is_given_as_a_value_is_taken_back_with_it() -> None:
    check_interrupted(lambda _, y: y + 1.0, every=3)


def test_a_node_of_a_cell_is_added_altogether_or_not_at_all() -> None:
    source = SourceLocation("cell", 1, CellRun(cell="c", execution=1, label="In [1]"))
    check_interrupted(lambda graph, y: graph.add_node(gc.NodeDef("z", "Tanh", (y.node.name,), "", {"T": gc.float32}), source))


def test_a_node_that_others_wait_for_feeds_all_of_them_or_none() -> None:
    def remove(graph: gc.Graph, y: gc.Tensor) -> None:
        z = graph.apply_op("Tanh", [y], name="z")
        first, second = (graph.apply_op("Exp", [z.outputs[0]], name=name) for name in ("first", "second"))
        graph.add_control_edge(z, graph.apply_op("NoOp", name="third"))
        graph.remove_node(z)
        assert first.error is not None
        assert second.error is not None

    check_interrupted(lambda graph, y: graph.add_node(gc.NodeDef("z", "Tanh", (y.node.name,), "", {"T": gc.float32})), remove, 5)


def test_a_transaction_happens_altogether_or_not_at_all() -> None:
    def change(graph: gc.Graph, y: gc.Tensor) -> None:
        with graph.transaction():
            graph.remove_node(graph.apply_op("Tanh", [y], name="z"))
            graph.apply_op("Exp", [y], name="e")

    check_interrupted(change, every=5)


def test_a_graph_that_is_imported_is_there_altogether_or_not_at_all() -> None:
    given = graph_def("a=NoOp", "b=NoOp(^a)")
    check_interrupted(lambda graph, _: gc.import_graph_def(given, graph=graph, prefix="part"), every=5)


def test_looking_at_a_graph_may_be_interrupted_without_harm() -> None:
    def change(graph: gc.Graph, y: gc.Tensor) -> None:
        assert len(graph.nx) == 6
        assert graph.num_edges > 0

    def grow(graph: gc.Graph, y: gc.Tensor) -> None:
        with graph.control_dependencies([y]):
            graph.apply_op("AddN", [[y, y, y]])

    check_interrupted(change, grow, every=3)


def test_scopes_that_are_interrupted_are_left() -> None:
    def change(graph: gc.Graph, y: gc.Tensor) -> None:
        with graph.name_scope("s"), graph.device("/cpu:0"), graph.control_dependencies([y]):
            graph.apply_op("NoOp", name="inner/")

    check_interrupted(change, after_calls=True)
