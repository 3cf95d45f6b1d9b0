"""Names that nodes keep when a graph is read again: what is the same is called the same."""

from __future__ import annotations

from graphcore.difference import GraphDiff, compare, state_of_graph
from graphcore.frontends.lowering import OUTPUT, lower
from graphcore.frontends.record import foreign_of
from graphcore.graph import Graph


def with_names_of(last: Graph, graph: Graph) -> Graph:
    """The graph of a source, with the names that its nodes have in an earlier graph of that source.

    A node is recognised by its name, else by its place in the structure: where a call of `relu` is put before another one, that one stays
    `relu` and the new one is `relu_1`.

    Args:
        last: the earlier graph.
        graph: the graph, as `lower` makes it.
    """
    record = foreign_of(graph)
    names = _names(compare(state_of_graph(last), state_of_graph(graph)))
    return graph if record is None or not names else lower(record.source, names)


def _names(diff: GraphDiff) -> dict[str, str]:
    """The other names of nodes, by their names in the later graph."""
    names = {new: old for old, new in diff.pairs.items() if old.rpartition("/")[0] == new.rpartition("/")[0]}
    taken = set(names.values())
    for name, node in diff.after.nodes.items():
        if name in names or node.op == OUTPUT:
            continue
        number, other = 0, name
        while other in taken:
            number += 1
            other = f"{name}_{number}"
        names[name] = other
        taken.add(other)
    return {name: other for name, other in names.items() if name != other}
