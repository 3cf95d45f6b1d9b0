"""Tensor connections: in one run, a tensor takes the value of another one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from graphcore.errors import InvalidArgumentError
from graphcore.graph import Graph, Node, Tensor, copy_sharing_library, parse_tensor_name
from graphcore.graph.shapes.read_values import value_kept
from graphcore.runtime.core.feeds import may_not_be_fed
from graphcore.runtime.core.rewrite import fed_tensor


def resolve_connections(graph: Graph, connections: Iterable[tuple[str, str]], fed: Collection[Tensor]) -> dict[Tensor, Tensor]:
    """Resolve connections to a mapping of tensors.

    Args:
        connections: pairs of names, from and to.
        fed: the fed tensors.

    Raises:
        NotFoundError: the target does not exist.
        InvalidArgumentError: the source does not exist, or a target is connected or fed twice, or was read to infer shapes.
    """
    resolved: dict[Tensor, Tensor] = {}
    for source, target in connections:
        end = fed_tensor(graph, target)
        if end in resolved or end in fed:
            raise InvalidArgumentError(f'Endpoint "{target}" fed more than once.', node=end.node.name, op=end.node.op)
        kept = value_kept(end)
        if kept is not None:
            raise may_not_be_fed(end, kept[0])
        resolved[end] = _source(graph, source, target)
    return resolved


def _source(graph: Graph, name: str, target: str) -> Tensor:
    place = parse_tensor_name(name)
    node = graph.find(place.node)
    if node is None:
        raise InvalidArgumentError(f"Tensor connection from '{name}' to '{target}': unknown node '{place.node}'")
    if not 0 <= place.index < len(node.outputs):
        raise InvalidArgumentError.at(
            node, f"Tensor connection from '{name}' to '{target}': unknown edge; '{node.name}' has {len(node.outputs)} outputs"
        )
    return node.outputs[place.index]


def connect(
    fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor], connections: Mapping[Tensor, Tensor]
) -> tuple[list[Tensor], list[Node], list[Tensor]]:
    """Copy the graph with the tensors connected. Returns the copies of fetches, targets and feeds.

    Raises:
        InvalidArgumentError: a connection would create a cycle.
    """
    first = next(iter(connections))
    copied, copies = copy_sharing_library(first.graph)

    def copy_of(tensor: Tensor) -> Tensor:
        return copies[tensor.node].outputs[tensor.index]

    fed = {copy_of(tensor) for tensor in feeds}
    instead = {copy_of(target): copy_of(source) for target, source in connections.items()}
    for target, source in instead.items():
        if _depends(source, target, fed, instead):
            raise InvalidArgumentError.at(
                target.node, f"The tensor connection from '{source.name}' to '{target.name}' would create a cycle"
            )
    for target in instead:
        source = _end(target, instead)
        for consumer, slot in target.graph.tensor_consumers(target):
            if slot >= 0:
                copied.update_edge(source.node, source.index, consumer, slot)
    wanted = [_end(copy_of(tensor), instead) for tensor in fetches]
    return wanted, [copies[node] for node in targets], [copy_of(tensor) for tensor in feeds]


def _end(tensor: Tensor, instead: Mapping[Tensor, Tensor]) -> Tensor:
    """The tensor that supplies the value of `tensor` after all connections are followed."""
    while tensor in instead:
        tensor = instead[tensor]
    return tensor


def _depends(source: Tensor, target: Tensor, fed: Collection[Tensor], instead: Mapping[Tensor, Tensor]) -> bool:
    """True iff `source` depends on the value of `target`, given the connections."""
    pending, seen = [source], set[Tensor]()
    while pending:
        tensor = pending.pop()
        if tensor is target:
            return True
        if tensor in seen or tensor in fed:
            continue
        seen.add(tensor)
        if tensor in instead:
            pending.append(instead[tensor])
            continue
        pending += tensor.node.inputs
        for control in tensor.node.control_inputs:
            pending += control.outputs or control.inputs
    return False
