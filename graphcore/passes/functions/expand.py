"""Inlines the function calls of a graph, one level at a time."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from graphcore.attrs import Attrs, Func
from graphcore.definitions import NodeDef
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.functions.canonicalize import CALL_EXECUTOR_ATTR, DEFAULT_EXECUTORS, EXECUTOR_ATTR, named_executor
from graphcore.graph import Graph, Node
from graphcore.passes.functions.function_body import FunctionBody
from graphcore.passes.functions.inline import NO_INLINE_ATTR, InlineFunctionBodyOptions, check_inlining, inline_checked, is_function_call
from graphcore.passes.infra.declarations import ANY, PassDeclaration, declares
from graphcore.passes.infra.rewriting import Rewriting
from graphcore.passes.infra.rewriting_graphs import rewrites
from graphcore.plumbing import CALL


class FunctionBodies(Protocol):
    """The protocol of a source of instantiated functions, such as a FunctionLibraryRuntime."""

    @property
    def library(self) -> FunctionLibraryDefinition:
        """The functions by name."""

    def body_of(self, name: str, attrs: Attrs) -> FunctionBody:
        """The body of function `name` under these attrs."""


class ExpandInlineFunctionsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for inlining the calls of a graph.

    Args:
        native: options for calls by name.
        multi_device: options for PartitionedCall and StatefulPartitionedCall.
        keep: the names of calls to be replaced by a node of the same name and outputs.
        max_nodes: the size limit of the graph; calls that would exceed it are kept. Nested calls can multiply to more
            nodes than fit into memory.
    """

    native: InlineFunctionBodyOptions = InlineFunctionBodyOptions()
    multi_device: InlineFunctionBodyOptions = InlineFunctionBodyOptions(output_control_src="control_outputs")
    keep: frozenset[str] = frozenset()
    max_nodes: int = 1 << 18


DEFAULT_OPTIONS: Final = ExpandInlineFunctionsOptions()


@declares(
    PassDeclaration(name="expand_inline_functions", adds=ANY, removes=ANY, rewires=True, keeps_leaves=False, keeps_order=False, once=False)
)
@rewrites
def expand_inline_functions(bodies: FunctionBodies, graph: Graph, options: ExpandInlineFunctionsOptions = DEFAULT_OPTIONS) -> bool:
    """Inline every call in the graph, one level: calls inside inlined bodies are left.

    Kept are calls of functions that are marked `_noinline`, name an executor, cannot be instantiated, or would exceed `max_nodes`.

    Args:
        bodies: instantiates functions.
        graph: the graph to change.
        options: the options.

    Returns:
        True iff a call was inlined.
    """
    library = bodies.library
    calls: list[tuple[Node, FunctionBody, InlineFunctionBodyOptions]] = []
    size = len(graph)
    for node in graph.nodes:
        if not is_function_call(library, node.node_def) or _is_marked(library, node.node_def):
            continue
        chosen = options.multi_device if node.op in CALL else options.native
        if node.name in options.keep:
            chosen = msgspec.structs.replace(chosen, keep_caller_node="fetchable")
        body = fitting_body(bodies, node, chosen)
        if body is not None and size + len(body.graph) <= options.max_nodes:
            size += len(body.graph)
            calls.append((node, body, chosen))
    if calls:
        with Rewriting(graph) as rewriting:
            for node, body, chosen in calls:
                inline_checked(rewriting, library, node, body, chosen)
    return bool(calls)


def called_function(node: NodeDef) -> Func:
    """The function of a call, with its attrs.

    Raises:
        InvalidArgumentError: a PartitionedCall without a function.
    """
    if node.op not in CALL:
        return Func(node.op, dict(node.attr))
    function = node.attr.get("f")
    if not isinstance(function, Func):
        raise InvalidArgumentError(f"Node '{node.name}' ({node.op}) names no function in attr 'f'", op=node.op, node=node.name, attr="f")
    return function


def names_executor(node: NodeDef) -> bool:
    """True iff a call names an executor for its function, which excludes inlining.

    Raises:
        InvalidArgumentError: a PartitionedCall without a function.
    """
    attrs = called_function(node).attr
    named = node.attr.get(CALL_EXECUTOR_ATTR) if node.op in CALL else None
    return named_executor({**attrs, EXECUTOR_ATTR: named} if named else attrs) not in DEFAULT_EXECUTORS


def _is_marked(library: FunctionLibraryDefinition, node: NodeDef) -> bool:
    try:
        return library.get_attr(node, NO_INLINE_ATTR) is True
    except GraphError:
        return False


def fitting_body(bodies: FunctionBodies, node: Node, options: InlineFunctionBodyOptions) -> FunctionBody | None:
    """The body to inline, None if the call must be kept. Running the call reports the reason."""
    try:
        if names_executor(node.node_def):
            return None
        called = called_function(node.node_def)
        body = bodies.body_of(called.name, called.attr)
        check_inlining(node, body, options)
    except GraphError:
        return None
    return body
