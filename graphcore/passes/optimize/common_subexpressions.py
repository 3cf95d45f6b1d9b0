"""Common subexpressions: what is computed twice from the same tensors is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from graphcore.definitions.attr_equality import attr_value_hash, attrs_equal
from graphcore.graph import Graph, Node, reverse_post_order
from graphcore.graph.traversal import by_id
from graphcore.passes.infra.declarations import ANY, PassDeclaration, declares
from graphcore.passes.infra.rewriting import Rewriting
from graphcore.passes.infra.rewriting_graphs import rewrites
from graphcore.plumbing import FEEDABLE


@declares(PassDeclaration(name="eliminate_common_subexpressions", removes=ANY, rewires=True, keeps_leaves=False))
@rewrites
def eliminate_common_subexpressions(graph: Graph, consider: Callable[[Node], bool] | None = None) -> bool:
    """Merge nodes of the same op with the same attrs, inputs and control inputs; the first in reverse post order stays.

    The inputs of commutative ops may be in any order; names and devices do not matter. Placeholders, nodes with state and nodes that take a
    reference stay as they are.

    Args:
        graph: what is changed.
        consider: False for nodes that must stay (those that are fetched by their names); all are considered unless given.

    Returns:
        True iff anything was merged.
    """
    known = _Known()
    changed = False
    with Rewriting(graph) as rewriting:
        for node in reverse_post_order(graph, by_id):
            if not _may_merge(node) or (consider is not None and not consider(node)):
                continue
            first = known.first_like(node)
            if first is not node:
                _merge(rewriting, node, first)
                changed = True
    return changed


def _may_merge(node: Node) -> bool:
    if not node.is_op or node.error is not None or node.op in FEEDABLE:
        return False
    return not node.op_def.is_stateful and not any(tensor.dtype.is_ref for tensor in node.inputs)


class _Known:
    """The nodes met so far, found by what they compute."""

    __slots__ = ("_alone", "_by_attrs")

    def __init__(self) -> None:
        self._alone: dict[Hashable, Node] = {}
        self._by_attrs: dict[Hashable, list[Node]] = {}

    def first_like(self, node: Node) -> Node:
        """The first node that computes the same, `node` itself if there was none."""
        key = _key(node)
        first = self._alone.setdefault(key, node)
        if first is node:
            return node
        # Attrs take long to hash: most nodes share their inputs with no other node of their op.
        self._by_attrs.setdefault((key, _hash_of_attrs(first)), [first])
        alike = self._by_attrs.setdefault((key, _hash_of_attrs(node)), [])
        found = next((other for other in alike if attrs_equal(other.node_def.attr, node.node_def.attr)), None)
        if found is None:
            alike.append(node)
        return found or node


def _key(node: Node) -> Hashable:
    inputs = [(tensor.node.id, tensor.index) for tensor in node.inputs]
    if node.op_def.is_commutative:
        inputs.sort()
    return node.op, tuple(inputs), frozenset([control.id for control in node.control_inputs])


def _hash_of_attrs(node: Node) -> Hashable:
    return frozenset([(name, attr_value_hash(value)) for name, value in node.node_def.attr.items()])


def _merge(rewriting: Rewriting, node: Node, first: Node) -> None:
    detached = rewriting.graph.edge_store.detached
    if node.name not in detached:
        detached.discard(first.name)  # what the one was wanted for, the other is
    rewriting.move_consumers(node, first.outputs, first)
    rewriting.remove(node)
