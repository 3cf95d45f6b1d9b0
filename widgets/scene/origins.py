"""The node that each gradient node differentiates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from graphcore.graph import Graph

MIRROR: Final = "∇"
"""Begins the ids of boxes and frames that mirror others: `∇conv1/` is the gradient of `conv1/`, `∇/` the whole backward pass."""


def origins_of(graph: Graph) -> dict[str, str]:
    """For each gradient node the name of the node that it differentiates.

    A node without a record, such as the sum of the gradients of several reads of a variable, lies directly among gradient nodes; it belongs to
    what its first recorded neighbour differentiates.
    """
    records = graph.gradient_records
    origins = {
        name: record.forward for name, record in records.items() if graph.find(record.forward) is not None and record.forward != name
    }
    scopes = {name.rpartition("/")[0] for name in origins} - {""}
    for node in graph.nodes if scopes else ():
        if node.name not in records and node.name.rpartition("/")[0] in scopes:
            beside = [tensor.node.name for tensor in node.inputs] + [consumer.name for consumer, slot in node.consumers() if slot >= 0]
            recorded = next((records[other].forward for other in beside if other in records), "")
            if recorded and graph.find(recorded) is not None:
                origins[node.name] = recorded
    _break_circles(origins)
    return origins


def _break_circles(origins: dict[str, str]) -> None:
    """Leave out what closes a circle of records, which a graph put together by hand may have."""
    firm: set[str] = set()
    for start in list(origins):
        path: dict[str, None] = {}
        name = start
        while name in origins and name not in firm and name not in path:
            path[name] = None
            name = origins[name]
        if name in path:
            del origins[next(reversed(path))]
        firm.update(path)
