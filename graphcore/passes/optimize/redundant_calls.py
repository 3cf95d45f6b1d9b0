"""Redundant function calls: nodes whose results another node computes as well."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from graphcore.attrs import AttrValue, Func, attr_text
from graphcore.errors import UnimplementedError
from graphcore.graph import Graph
from graphcore.graph.model.node import Node
from graphcore.graph.model.search import post_order
from graphcore.passes.gradients.functions.differentiation import FORWARD_OF
from graphcore.passes.gradients.functions.kinds import is_call
from graphcore.passes.infra.rewriting import Rewriting


def find_redundant_calls(nodes: Sequence[Node]) -> dict[Node, Node]:
    """The redundant nodes, each with the node of `nodes` that returns its outputs as its first ones.

    That node must have been made for the redundant one, which must still run the same functions on the same values.

    Raises:
        UnimplementedError: two gradients need different values of one node with side effects, which would run twice.
    """
    originals = _originals(nodes)
    if not originals:
        return {}
    augmented = _Augmented(originals)
    among, replacements = set(nodes), {}
    for node in dict.fromkeys([*nodes, *originals.values()]):
        replacement = augmented.widest(node, among)
        if node in among and replacement is not None and replacement is not node:
            replacements[node] = replacement
    return replacements


def computed_by(nodes: Sequence[Node]) -> dict[str, str]:
    """The nodes that a run did not need because it computed the same elsewhere.

    Args:
        nodes: the nodes of the run.

    Returns:
        By the name of each such node, the name of the node of the run whose first outputs are its outputs.
    """
    replaced = find_redundant_calls([*dict.fromkeys([*nodes, *_originals(nodes).values()])])
    return {node.name: replacement.name for node, replacement in replaced.items()}


def _originals(nodes: Sequence[Node]) -> dict[Node, Node]:
    """The augmented nodes among `nodes` and their originals, each with the node that it can replace."""
    originals: dict[Node, Node] = {}
    pending = [node for node in nodes if FORWARD_OF in node.attr]
    while pending:
        node = pending.pop()
        names = _forward_of(node)
        original = node.graph.find(names[0]) if names else None
        if node in originals or original is None or not _does_the_same(original, node, names[1:]):
            continue
        originals[node] = original
        if FORWARD_OF in original.attr:
            pending.append(original)
    return originals


def _forward_of(node: Node) -> list[str]:
    texts = node.attr[FORWARD_OF]
    return [attr_text(text) for text in texts] if isinstance(texts, tuple) else []


class _Augmented:
    """The augmented nodes of each node; equal ones, made by several gradients, count as one.

    Args:
        originals: the augmented nodes, each with the node that it can replace.
    """

    def __init__(self, originals: Mapping[Node, Node]) -> None:
        self.same: dict[Node, list[Node]] = {}
        self.wider: dict[Node, list[Node]] = {}
        for node in post_order(originals, lambda node: [originals[node]] if node in originals else []):
            if node in originals:
                self._add(node, self._first(originals[node]))

    def _add(self, node: Node, original: Node) -> None:
        others = self.wider.setdefault(original, [])
        for other in others:
            if other.op == node.op and _own_attrs(other) == _own_attrs(node):
                self.same[node] = self.same.setdefault(other, [other])
                self.same[other].append(node)
                return
        others.append(node)

    def _first(self, node: Node) -> Node:
        return self.same[node][0] if node in self.same else node

    def widest(self, node: Node, among: Collection[Node]) -> Node | None:
        """The node of `among` that returns the outputs of `node` and the most others; None without any.

        Raises:
            UnimplementedError: see `find_redundant_calls`.
        """
        node = self._first(node)
        wider = [candidate for other in self.wider.get(node, ()) if (candidate := self.widest(other, among)) is not None]
        if len(wider) > 1 and any(call.op_def.is_stateful for call in wider):
            raise UnimplementedError.at(
                node,
                f"Two gradients need different values of '{node.name}' (op {node.op}), whose side effects one run would repeat: "
                f"'{wider[0].name}' and '{wider[1].name}'. Fetch the gradients in runs of their own",
            )
        if wider:
            return wider[0]
        return next((call for call in self.same.get(node, [node]) if call in among), None)


def _own_attrs(node: Node) -> dict[str, AttrValue]:
    """The attrs of an augmented node, without the name of its original."""
    return {**node.attr, FORWARD_OF: tuple(_forward_of(node)[1:])}


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
