"""The difference of two graphs: a few edits in a mix, and a mix below another scope."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.rows.mix import our_graph
from tests.benchmarks.work import Budget, Row, Work

EDITED_MS = {1_000: 40, 100_000: 3_000}
MOVED_MS = 100
EXPORTED_MS = 2_000
LAYERS = 260
"""The layers of a decoder of 5,000 nodes."""


def edited(nodes: int) -> tuple[Any, Any]:
    """A graph, and the same built again with a new node, a rewired input and a device."""
    import graphcore as gc

    before, after = our_graph(nodes)[0], our_graph(nodes)[0]
    _, rewired, placed, *_, last = after.nodes[2:]
    with after.as_default():
        gc.tanh(last.outputs[0], name="new")
    after.update_edge(after.nodes[0], 0, rewired, 1)
    after.set_requested_device(placed, "/cpu:0")
    return before, after


def moved(nodes: int) -> tuple[Any, Any]:
    """A graph, and the same below a scope."""
    import graphcore as gc

    before, after = our_graph(nodes)[0], gc.Graph()
    gc.import_graph_def(before.as_graph_def(), after, prefix="net")
    return before, after


def exported(layers: int) -> tuple[Any, Any]:
    """A decoder, and the same in the ops and names of another framework, without modules."""
    from graphcore.frontends.lowering import lower
    from tests.support.foreign_models import transformer

    before, after = transformer(layers), transformer(layers, named=False)
    names = {node.name: f"v{number}" for number, node in enumerate(after.main.nodes)}
    for node in after.main.nodes:
        node.name, node.op = names[node.name], node.op.replace("f.", "g.", 1).replace("MatMul", "dot").replace("Add", "add")
        node.inputs = tuple([(names[ref[0]], ref[1]) for ref in node.inputs if ref is not None])
    after.main.outputs = tuple([(names[ref[0]], ref[1]) for ref in after.main.outputs if ref is not None])
    return lower(before), lower(after)


def ours_exported(pair: tuple[Any, Any]) -> Work:
    """`gc.graph_diff` of two models, each of which is a network with a trace of its own."""
    import graphcore as gc

    def run() -> None:
        diff = gc.graph_diff(*pair)
        assert diff.is_between_frameworks
        assert not diff.removed
        assert not diff.added

    return Work(run=run, fewest=1)


def ours(pair: tuple[Any, Any], counts: tuple[int, int]) -> Work:
    """`gc.graph_diff`."""
    import graphcore as gc

    def run() -> None:
        diff = gc.graph_diff(*pair)
        assert (len(diff.added) + len(diff.changed), len(diff.renamed)) == counts

    return Work(run=run, fewest=1)


def by_hand(pair: tuple[Any, Any]) -> Work:
    """The names, edges and attrs of two networkx graphs compared, without matching and words."""
    graphs = [graph.nx for graph in pair]

    def run() -> None:
        first, second = graphs
        nodes = first.nodes.keys() ^ second.nodes.keys()
        edges = set(first.edges(keys=True)) ^ set(second.edges(keys=True))
        both = first.nodes.keys() & second.nodes.keys()
        changed = [name for name in both if first.nodes[name]["node"].attr != second.nodes[name]["node"].attr]
        assert nodes or edges or changed

    return Work(run=run, fewest=1)


def edited_row(place: int, nodes: int, limit: float) -> Row:
    """The row of one size."""
    return Row(
        order=40.0 + place / 10,
        title=f"gc.graph_diff of two graphs of {nodes:,} nodes",
        unit="ms",
        budgets=(Budget(limit),),
        ours=lambda: ours(edited(nodes), (3, 0)),
        numpy=lambda: by_hand(edited(nodes)),
        most_rounds=3,
    )


EDITED_1K, EDITED_100K = (edited_row(place, nodes, limit) for place, (nodes, limit) in enumerate(EDITED_MS.items()))
MOVED = Row(
    order=40.5,
    title="the same with all 1,000 nodes below another scope",
    unit="ms",
    budgets=(Budget(MOVED_MS),),
    ours=lambda: ours(moved(1_000), (0, 1_003)),
    numpy=lambda: by_hand(moved(1_000)),
    most_rounds=3,
)
EXPORTED = Row(
    order=40.6,
    title="the same of two models of 5,000 nodes in two frameworks",
    unit="ms",
    budgets=(Budget(EXPORTED_MS),),
    ours=lambda: ours_exported(exported(LAYERS)),
    numpy=lambda: by_hand(exported(LAYERS)),
    most_rounds=3,
)
