"""Gradients of single nodes in place of those of their ops: Python functions, or those of other ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from graphcore.attrs import Attrs, attr_text
from graphcore.errors import AlreadyExistsError, NotFoundError
from graphcore.functions.library import names_in_node
from graphcore.graph import Graph, Node
from graphcore.graph.following.redefining import functions_that_call
from graphcore.graph.graph import live_graphs
from graphcore.registry import GradientKind, op_registry

GRADIENT_OP: Final = "_gradient_op_type"
"""The attr of a node with the name of its gradient."""
GradientFunction = Callable[..., Any]
"""Takes a node and the gradients of its outputs, gives those of its inputs: tensors or None, or one of them."""

_functions: dict[str, GradientFunction] = {}
_replaced: Final[list[str]] = []


def register_gradient_function(name: str, function: GradientFunction) -> None:
    """Register the gradient `name` for nodes that ask for it. A later one replaces it, and gradients built with it are built again.

    Raises:
        AlreadyExistsError: it is the name of an op.
    """
    if name in op_registry:
        raise AlreadyExistsError(
            f"'{name}' is an op, whose gradient gc.register_op_gradient sets; take another name for one of single nodes"
        )
    is_new = name not in _functions
    _functions[name] = function
    if is_new:
        return
    _replaced.append(name)
    for graph in live_graphs():
        with graph.lock:
            _announce(graph, name)


def num_replacements() -> int:
    """The number of times that a registered gradient was replaced."""
    return len(_replaced)


def _announce(graph: Graph, name: str) -> None:
    """Announce the nodes that ask for the gradient `name`, or run functions with such nodes, as changed."""
    asking = [function.name for function in graph.library if any(_asked(node.attr) == name for node in function.node_def)]
    running = functions_that_call(graph.library, asking)
    for node in list(graph.op_nodes()):
        if not graph.finalized and (_override(node) == name or not running.isdisjoint(names_in_node(node.node_def))):
            graph.journal.note(node)
            graph.journal.publish("replaced", node)


def _override(node: Node) -> str:
    """The name of the gradient in place of that of the op, "" for none."""
    name = _asked(node.attr)
    return "" if not name or node.registration.is_function or "PartitionedCall" in name else name  # a call has its function's gradient


def _asked(attrs: Attrs) -> str:
    return attr_text(attrs.get(GRADIENT_OP))


def gradient_function(node: Node) -> GradientFunction | None:
    """The Python function that is the gradient of `node`, None if it has that of an op.

    Raises:
        NotFoundError: the gradient that it asks for is not registered.
    """
    name = _override(node)
    if not name or name in op_registry:
        return None
    function = _functions.get(name)
    if function is None:
        raise NotFoundError.at(
            node, f"'{node.name}' asks for the gradient '{name}', which is not registered: gc.RegisterGradient('{name}') registers one"
        )
    return function


def slots_with_gradients(node: Node) -> frozenset[int] | None:
    """The inputs that a custom gradient may give gradients of, None if it does not tell beforehand."""
    slots: frozenset[int] | None = getattr(_functions.get(_override(node)), "slots", None)
    return slots


def op_of_gradient(node: Node) -> str:
    """The op that has the gradient of `node`: its own, or another one by request."""
    name = _override(node)
    return name if name and name in op_registry else node.op


def gradient_kind(node: Node) -> GradientKind:
    """The kind of the gradient of `node`."""
    name = _override(node)
    if not name:
        return node.registration.gradient_kind
    return op_registry.look_up(name).gradient_kind if name in op_registry else "function"
