"""Lowering: If, Case and While to Switch and Merge, Enter and Exit; function calls to their bodies."""

from __future__ import annotations

from typing import Final

import msgspec

from graphcore.graph import Graph, Node
from graphcore.passes.functions.expand import FunctionBodies, fitting_body
from graphcore.passes.functions.function_body import FunctionBody
from graphcore.passes.functions.inline import InlineFunctionBodyOptions, inline_checked, is_function_call
from graphcore.passes.functions.recursion import InlinableFunctions
from graphcore.passes.gradients.functions.instantiation import InstantiatedFunctions
from graphcore.passes.infra.declarations import ANY, PassDeclaration, declares
from graphcore.passes.infra.rewriting import Rewriting
from graphcore.passes.infra.rewriting_graphs import rewrites
from graphcore.passes.lower.branches import lower_branches
from graphcore.passes.lower.loops import lower_loop
from graphcore.passes.lower.lowering import Lowering
from graphcore.plumbing import BRANCH, WHILE

LOWER_ATTR: Final = "_lower_using_switch_merge"
_COMPILED: Final = frozenset({"_tpu_replicate", "_xla_compile_id"})
"""The attrs of nodes marked for a compiler, which are not lowered."""
_LOWERED: Final = {
    **dict.fromkeys(BRANCH, lower_branches),
    **dict.fromkeys(WHILE, lower_loop),
}


class LowerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for lowering.

    Args:
        keep_fetchable: keep a node of each lowered node's name, with its outputs; otherwise a NoOp.
        max_nodes: nodes whose lowering would make the graph larger than this are kept.
    """

    keep_fetchable: bool = True
    max_nodes: int = 1 << 18


DEFAULT_OPTIONS: Final = LowerOptions()


@declares(
    PassDeclaration(
        name="lower_functional_ops", adds=ANY, removes=ANY, rewires=True, keeps_leaves=False, keeps_order=False, keeps_state=False
    )
)
@rewrites
def lower_functional_ops(bodies: FunctionBodies | None, graph: Graph, options: LowerOptions = DEFAULT_OPTIONS) -> bool:
    """Lower nodes with attr `_lower_using_switch_merge` and inline calls, until none is left.

    Exceptions: loops without values, functions that are recursive or marked `_noinline` (one call of each is kept), and nodes
    marked for a compiler.

    Args:
        bodies: instantiates functions; uses the graph's own library if None.
        graph: the graph to change.
        options: the options.

    Returns:
        True iff anything was changed.

    Raises:
        InvalidArgumentError, NotFoundError: a function is missing or does not fit; the graph stays as it was at that point.
    """
    functions = InlinableFunctions(bodies or InstantiatedFunctions(graph.library))
    outermost = {node.name for node in graph.op_nodes()} if options.keep_fetchable else set()
    changed = False
    while _lower_all(functions, graph, outermost, options) or _inline_all(functions, graph, outermost, options):
        changed = True
    return changed


def is_lowered(node: Node) -> bool:
    """True iff lowering replaces a node."""
    attrs = node.node_def.attr
    return node.op in _LOWERED and attrs.get(LOWER_ATTR) is True and _COMPILED.isdisjoint(attrs) and _is_possible(node)


def _is_possible(node: Node) -> bool:
    return node.error is None and not (node.op in WHILE and all(dtype.text == "resource" for dtype in node.input_types))


def _lower_all(functions: InlinableFunctions, graph: Graph, outermost: set[str], options: LowerOptions) -> bool:
    lowered = [node for node in graph.nodes if is_lowered(node)] if len(graph) < options.max_nodes else []
    if lowered:
        with Rewriting(graph) as rewriting:
            for node in lowered:
                _LOWERED[node.op](Lowering(rewriting, functions, node, keep=node.name in outermost))
    return bool(lowered)


def _inline_all(functions: InlinableFunctions, graph: Graph, outermost: set[str], options: LowerOptions) -> bool:
    size = len(graph)
    calls: list[tuple[Node, FunctionBody, InlineFunctionBodyOptions]] = []
    for node in graph.nodes:
        if not is_function_call(functions.library, node.node_def) or not _COMPILED.isdisjoint(node.node_def.attr):
            continue
        keep = "fetchable" if node.name in outermost else "do_not_keep"
        chosen = InlineFunctionBodyOptions(output_control_src="control_outputs", keep_caller_node=keep)  # type: ignore[arg-type]  # one of them
        body = fitting_body(functions, node, chosen)
        if body is not None and size + len(body.graph) <= options.max_nodes:
            size += len(body.graph)
            calls.append((node, body, chosen))
    if calls:
        with Rewriting(graph) as rewriting:
            for node, body, chosen in calls:
                inline_checked(rewriting, functions.library, node, body, chosen)
    return bool(calls)
