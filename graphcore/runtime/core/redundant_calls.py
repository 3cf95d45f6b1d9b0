"""Twins of nodes that run functions: one computes everything that the other does, so a run that needs both runs it alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphcore.attrs import AttrValue, Func
from graphcore.graph import Graph
from graphcore.graph.model.node import Node
from graphcore.passes.gradients.functions import FORWARD_OF
from graphcore.passes.gradients.of_functions import is_call
from graphcore.passes.infra.rewriting import Rewriting


def find_twins(nodes: Sequence[Node]) -> dict[Node, Node]:
    """The nodes that need not run because another of `nodes` gives, as its first outputs, what they give; and that other.

    That it was made for the node is not enough: the node must still run the same functions on the same values.
    """
    found: dict[Node, Node] = {}
    for twin in nodes:
        if FORWARD_OF not in twin.attr:
            continue
        texts = twin.attr[FORWARD_OF]
        names = [text.decode() for text in texts if isinstance(text, bytes)] if isinstance(texts, tuple) else []
        node = twin.graph.find(names[0]) if names else None
        if node is None or not _does_the_same(node, twin, names[1:]):
            continue
        first = found.setdefault(node, twin)
        if first is not twin and first.op == twin.op and first.attr == twin.attr:
            found[twin] = first  # each of two gradients of the node has made one
    among = set(nodes)
    # A twin may have a twin: the last one does it all.
    return {node: last for node, twin in found.items() if node in among and (last := _last(twin, found)) in among}


def _last(twin: Node, found: dict[Node, Node]) -> Node:
    while twin in found:
        twin = found[twin]
    return twin


def _does_the_same(node: Node, twin: Node, functions: list[str]) -> bool:
    count = len(node.inputs)
    return (
        _kind(node) == _kind(twin)
        and twin.inputs[:count] == node.inputs
        and twin.control_inputs == node.control_inputs
        and sorted(run_by(node)) == sorted(functions)
    )


def _kind(node: Node) -> str:
    return "call" if is_call(node) else node.op.removeprefix("Stateless")


def run_by(node: Node) -> list[str]:
    """The names of the functions that a node runs."""
    if node.registration.is_function:
        return [node.op]
    return [function.name for value in node.attr.values() for function in _functions(value)]


def _functions(value: AttrValue) -> list[Func]:
    return [item for item in (value if isinstance(value, tuple) else (value,)) if isinstance(item, Func)]


def merge_twins(graph: Graph, twins: Mapping[Node, Node]) -> None:
    """Put twins in the place of the nodes that they stand in for, for good.

    In a function's body this has to be done before calls are inlined: what two of them draw at random is not the same.
    """
    if not twins:
        return
    with Rewriting(graph) as rewriting:
        for node, twin in twins.items():
            rewriting.move_consumers(node, twin.outputs[: len(node.outputs)], twin)
            rewriting.remove(node)


def in_twin_order(nodes: Sequence[Node], twins: Mapping[Node, Node]) -> list[Node]:
    """The nodes, producers first, in an order in which each twin comes before the node that it stands in for."""
    among, done = set(nodes), set()
    order: list[Node] = []
    for start in nodes:
        pending = [(start, False)]
        while pending:
            node, leaving = pending.pop()
            if leaving:
                order.append(node)
            elif node not in done and node in among:
                done.add(node)
                pending.append((node, True))
                before = [*node.control_inputs, *[tensor.node for tensor in node.inputs], *([twins[node]] if node in twins else [])]
                pending += [(other, False) for other in before]
    return order
