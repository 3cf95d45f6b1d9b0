"""The magnitudes of gradients along the depth of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from graphcore.attrs import Func
from graphcore.graph.model.gradient_record import GradientRecord
from graphcore.graph.model.node import Node, Tensor
from graphcore.runtime.core.tensor_stats import TensorStats

if TYPE_CHECKING:
    from graphcore.graph import Graph

Recorded = Callable[[Tensor], Sequence[TensorStats]]
_WEIGHTS: Final = frozenset({"constant", "variable"})
_TOTALS: Final = frozenset({"sum", "seed"})
_CARRIED: Final = ("sum", "b_arrived", "b_grad_exit", "b_acc_exit")
"""The labels of nodes of sums and loops that carry gradients on."""


class Magnitude(msgspec.Struct, frozen=True):
    """The greatest absolute value of the gradients with respect to the outputs of a forward node.

    Attributes:
        node: the forward node.
        depth: the length of the longest path of forward nodes to it; of a weight, the depth of the first node that it serves.
        weight: True iff it is a variable, a constant, or computed from those alone.
        value: the magnitude; None if its gradients have no finite elements.
        is_finite: True iff its gradients have neither NaNs nor infinities.
    """

    node: str
    depth: int
    weight: bool
    value: float | None
    is_finite: bool


def magnitudes_of(graph: Graph, recorded: Recorded) -> list[Magnitude]:
    """The magnitudes of the gradients of a run, by depth.

    Args:
        graph: the graph of the run, whose gradient records say which node differentiates which.
        recorded: the statistics of a tensor in all iterations, () if it was not computed.
    """
    by_node = {name: [one for tensor in tensors for one in recorded(tensor)] for name, tensors in _arriving(graph).items()}
    by_node = {name: stats for name, stats in by_node.items() if stats}
    depths = _depths(graph, by_node)
    magnitudes = [
        Magnitude(
            node=name,
            depth=depth,
            weight=weight,
            value=max([one.magnitude for one in by_node[name] if one.magnitude is not None], default=None),
            is_finite=all(one.is_finite for one in by_node[name]),
        )
        for name, (depth, weight) in depths.items()
    ]
    return sorted(magnitudes, key=lambda one: one.depth)


def _arriving(graph: Graph) -> dict[str, list[Tensor]]:
    """The gradients with respect to the outputs of each differentiated node.

    They are sums, or what the gradient functions of other nodes return.
    """
    records = graph.gradient_records
    by_node: dict[str, dict[Tensor, None]] = {}
    for name, record in records.items():
        node, forward = graph.find(name), graph.find(record.forward)
        if node is None or forward is None or record.forward in records or forward.registration.is_alias:
            continue
        if record.function is None and record.body_node in _TOTALS:
            arriving: Iterable[Tensor] = node.outputs
        else:
            arriving = [tensor for tensor in node.inputs if _is_gradient(tensor.node, record.forward, records)]
        by_node.setdefault(record.forward, {}).update(dict.fromkeys([tensor for tensor in arriving if tensor.dtype.base.is_floating]))
    return {name: list(tensors) for name, tensors in by_node.items()}


def _is_gradient(node: Node, forward: str, records: Mapping[str, GradientRecord]) -> bool:
    """True iff the gradient function of another node than `forward` returns the outputs of `node`."""
    record = records.get(node.name)
    if record is None or record.forward == forward:
        return False
    if record.function is not None or record.body_node in _CARRIED or node.is_opaque:  # backward functions of other frameworks
        return True
    # Gradients of branches and loops: calls, and the Switches and Merges of branches.
    return f"{record.forward}_grad" in record.body_node or any(isinstance(value, Func) for value in node.attr.values())


def _depths(graph: Graph, names: Mapping[str, object]) -> dict[str, tuple[int, bool]]:
    """The depths of some nodes of a graph, each with True iff the node is a weight. Nodes of loops count once."""
    nodes = [node for node in map(graph.find, names) if node is not None]
    order = _inputs_first(nodes)
    weights = {node for node in order if node.registration.traits.role in _WEIGHTS}
    for node in order:
        if node.inputs and all(tensor.node in weights for tensor in node.inputs):
            weights.add(node)
    if weights.issuperset(nodes):  # nothing is fed or read: weights are the leaves only
        weights = {node for node in weights if not node.inputs}
    depths: dict[Node, int] = {}
    for node in order:
        if node not in weights:
            depths[node] = 1 + max([depths.get(tensor.node, -1) for tensor in node.inputs], default=-1)
    for node in reversed(order):
        for tensor in node.inputs:
            if tensor.node in weights and node in depths:
                depths[tensor.node] = min(depths[node], depths.get(tensor.node, depths[node]))
    return {node.name: (depths.get(node, 0), node in weights) for node in nodes}


def _inputs_first(nodes: Iterable[Node]) -> list[Node]:
    """The nodes and all that they are computed from, each behind its inputs."""
    begun: set[Node] = set()
    done: dict[Node, None] = {}
    for start in nodes:
        pending = [start]
        while pending:
            node = pending[-1]
            if node not in begun:
                begun.add(node)  # a loop comes back to it
                pending += [tensor.node for tensor in node.inputs if tensor.node not in begun]
                continue
            done[pending.pop()] = None
    return list(done)
