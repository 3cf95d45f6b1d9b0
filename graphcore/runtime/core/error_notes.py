"""What went wrong in a kernel, told with its node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from graphcore.errors import GraphError, InvalidArgumentError, OutOfRangeError, ResourceExhaustedError, UnimplementedError
from graphcore.graph.model.node import Node, Tensor
from graphcore.kernel_context import RefVariable
from graphcore.runtime.core.memory import out_of_memory
from graphcore.runtime.core.plan_checks import called, described
from graphcore.support.memory_limits import NoRoomError, compared

_OF_INPUTS: Final = (InvalidArgumentError, OutOfRangeError, UnimplementedError)
"""What kernels refuse their inputs with."""


def explain_at(node: Node, error: BaseException, inputs: Iterable[Any] = ()) -> BaseException:
    """`error`, which the kernel of `node` raised on `inputs`, as a GraphError that names the node, its inputs and the user's line.

    What is no Exception (Ctrl-C) stays what it is and gets a note that says so.
    """
    if not isinstance(error, Exception):
        error.add_note(f"stopped while running '{node.name}' = {called(node)}" + (f"\n  made in {node.source}" if node.source else ""))
        return error
    if isinstance(error, GraphError):
        if isinstance(error, _OF_INPUTS) and node.inputs and error.node in ("", node.name) and "[[{{node" not in error.message:
            error.message += _where(node, inputs)
        return error.with_node(node.name, op=node.op, source=node.source)
    if isinstance(error, NoRoomError):
        return too_large(node, error.what, error.size)
    kind: type[GraphError] = ResourceExhaustedError if isinstance(error, MemoryError) else InvalidArgumentError
    text = out_of_memory(error) if isinstance(error, MemoryError) else str(error) or type(error).__name__
    return kind.at(node, text + _where(node, inputs))


def too_large(node: Node, what: str, size: int) -> ResourceExhaustedError:
    """The error for an output of `node` that can never fit.

    Args:
        what: what it is: `has shape [2,3] and type float`.
        size: in bytes.
    """
    return ResourceExhaustedError.at(node, f"The output of '{node.name}' = {called(node)} {what}: {compared(size)}")


def _where(node: Node, inputs: Iterable[Any]) -> str:
    """The node, what it declares to take, and what it took."""
    actual = ", ".join([described(value.value if isinstance(value, RefVariable) else value) for value in inputs])
    return f"\n\t [[{{{{node {node.name}}}}}]] = {called(node)}{f' on {actual}' if actual else ''}"


def dead_fetch(number: int, tensor: Tensor) -> InvalidArgumentError:
    """The error for fetching `tensor` when it lies on a branch that was not taken."""
    return InvalidArgumentError.at(
        tensor.node,
        f"Retval[{number}] does not have value: '{tensor.name}' (op {tensor.node.op}) lies on a branch that was not taken in this run",
    )
