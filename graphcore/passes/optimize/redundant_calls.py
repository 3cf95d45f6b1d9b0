"""Redundant function calls: nodes whose results another node computes as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphcore.attrs import AttrValue, Func
from graphcore.graph import Graph
from graphcore.graph.model.node import Node
from graphcore.passes.gradients.functions.calls import is_call
from graphcore.passes.gradients.functions.differentiation import FORWARD_OF
from graphcore.passes.infra.rewriting import Rewriting


def find_redundant_calls(nodes: Sequence[Node]) -> dict[Node, Node]:
    """The redundant nodes, each with the node of `nodes` that returns its outputs as its first ones.

    That node must have been made for the redundant one, which must still run the same functions on the same values.
    """
    found: dict[Node, Node] = {}
    for replacement in nodes:
        if FORWARD_OF not in replacement.attr:
            continue
        texts = replacement.attr[FORWARD_OF]
        names = [text.decode() for text in texts if isinstance(text, bytes)] if isinstance(texts, tuple) else []
        node = replacement.graph.find(names[0]) if names else None
        if node is None or not _does_the_same(node, replacement, names[1:]):
            continue
        first = found.setdefault(node, replacement)
        if first is not replacement and first.op == replacement.op and first.attr == replacement.attr:
            found[replacement] = first  # two gradients of the node have made one each
    among = set(nodes)
    # A replacement may itself be replaced: only the last one is left.
    return {node: last for node, replacement in found.items() if node in among and (last := _last(replacement, found)) in among}


def computed_by(nodes: Sequence[Node]) -> dict[str, str]:
    """The nodes that a run did not need because it computed the same elsewhere.

    Args:
        nodes: the nodes of the run.

    Returns:
        The names of these nodes, each with that of the node of the run that returns its outputs as its first ones.
    """
    originals: dict[Node, None] = {}
    pending = list(nodes)
    while pending:
        node = pending.pop()
        names = node.attr.get(FORWARD_OF)
        found = node.graph.find(names[0].decode()) if isinstance(names, tuple) and names and isinstance(names[0], bytes) else None
        if found is not None and found not in originals:
            originals[found] = None
            pending.append(found)
    if not originals:
        return {}
    replaced = find_redundant_calls([*dict.fromkeys([*nodes, *originals])])
    return {node.name: replacement.name for node, replacement in replaced.items()}


def _last(replacement: Node, found: dict[Node, Node]) -> Node:
    while replacement in found:
        replacement = found[replacement]
    return replacement


def _does_the_same(node: Node, replacement: Node, functions: list[str]) -> bool:
    count = len(node.inputs)
    return (
        _kind(node) == _kind(replacement)
        and replacement.inputs[:count] == node.inputs
        and replacement.control_inputs == node.control_inputs
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


def merge_redundant_calls(graph: Graph, replacements: Mapping[Node, Node]) -> None:
    """Replace redundant nodes permanently.

    In function bodies this must precede inlining, since random numbers of two inlined calls differ.
    """
    if not replacements:
        return
    with Rewriting(graph) as rewriting:
        for node, replacement in replacements.items():
            rewriting.move_consumers(node, replacement.outputs[: len(node.outputs)], replacement)
            rewriting.remove(node)


def in_replacement_order(nodes: Sequence[Node], replacements: Mapping[Node, Node]) -> list[Node]:
    """The nodes in topological order, with each replacement before the node it replaces."""
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
                before = [
                    *node.control_inputs,
                    *[tensor.node for tensor in node.inputs],
                    *([replacements[node]] if node in replacements else []),
                ]
                pending += [(other, False) for other in before]
    return order
