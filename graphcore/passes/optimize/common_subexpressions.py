"""Common subexpression elimination: equal computations on equal tensors are shared."""

from __future__ import annotations

from collections.abc import Callable

from graphcore.graph import Graph, Node, reverse_post_order
from graphcore.graph.traversal import by_id
from graphcore.passes.infra.declarations import ANY, PassDeclaration, declares
from graphcore.passes.infra.rewriting import Rewriting
from graphcore.passes.infra.rewriting_graphs import rewrites
from graphcore.passes.infra.value_numbering import ValueNumbering
from graphcore.plumbing import FEEDABLE


@declares(PassDeclaration(name="eliminate_common_subexpressions", removes=ANY, rewires=True, keeps_leaves=False))
@rewrites
def eliminate_common_subexpressions(graph: Graph, consider: Callable[[Node], bool] | None = None) -> bool:
    """Merge nodes with the same op, attrs, inputs and control inputs.

    The first one in reverse post order is kept. The inputs of commutative ops may be in any order; names and devices are ignored.
    Placeholders, stateful nodes and nodes with reference inputs are not merged.

    Args:
        graph: the graph to change.
        consider: returns False for nodes to keep (those fetched by name); all are considered by default.

    Returns:
        True iff anything was merged.
    """
    with Rewriting(graph) as rewriting:
        return _merge_all(rewriting, consider)


def _merge_all(rewriting: Rewriting, consider: Callable[[Node], bool] | None) -> bool:
    numbering = ValueNumbering[Node]()
    changed = False
    for node in reverse_post_order(rewriting.graph, by_id):
        if not _may_merge(node) or (consider is not None and not consider(node)):
            continue
        inputs = [(tensor.node.id, tensor.index) for tensor in node.inputs]
        first = numbering.first(node, inputs, node, frozenset([control.id for control in node.control_inputs]))
        if first is not node:
            _merge(rewriting, node, first)
            changed = True
    return changed


def _may_merge(node: Node) -> bool:
    if not node.is_op or node.error is not None or node.op in FEEDABLE:
        return False
    return not node.op_def.is_stateful and not any(tensor.dtype.is_ref for tensor in node.inputs)


def _merge(rewriting: Rewriting, node: Node, first: Node) -> None:
    detached = rewriting.graph.edge_store.detached
    if node.name not in detached:
        detached.discard(first.name)  # the kept node is now wanted instead of the other
    rewriting.move_consumers(node, first.outputs, first)
    rewriting.remove(node)
