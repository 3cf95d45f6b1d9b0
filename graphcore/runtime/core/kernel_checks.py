"""Checks of kernel outputs, and errors with the node whose kernel failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from graphcore.attrs import attr_text
from graphcore.dtypes import as_dtype
from graphcore.errors import GraphError, InternalError, InvalidArgumentError, OutOfRangeError, ResourceExhaustedError, UnimplementedError
from graphcore.graph.model.node import Node, Tensor
from graphcore.kernel_context import RefVariable
from graphcore.plumbing import STANDS_FOR
from graphcore.registry import Kernel
from graphcore.runtime.core.memory import out_of_memory
from graphcore.runtime.core.shape_misfits import in_our_words
from graphcore.shapes import Shape
from graphcore.support.memory_limits import AllocationLimitError, compared


def wrong_dtype(node: Node) -> Callable[[int, Any], None]:
    """A handler for outputs whose dtype is another object than the expected one, perhaps an equal one."""
    wanted = [dtype.as_numpy for dtype in node.output_types]

    def refuse(index: int, value: Any) -> None:
        got = getattr(value, "dtype", None)
        if got is None or got != wanted[index]:
            raise _wrong_type(node, index, value)

    return refuse


def is_built_in(node: Node) -> bool:
    """True iff the op's kernel is part of this package: tests check its outputs, so that runs need not."""
    return getattr(node.registration.kernel, "__module__", "").startswith("graphcore.")


def checked(node: Node, kernel: Kernel) -> Kernel:
    """Wrap a user's kernel with checks of the number, types and shapes of its outputs."""
    if type(kernel) is np.ufunc or not node.outputs:
        return kernel
    wanted = [(i, dtype.as_numpy, node.outputs[i].shape) for i, dtype in enumerate(node.output_types) if not dtype.is_ref]
    references = [(i, dtype.base) for i, dtype in enumerate(node.output_types) if dtype.is_ref]
    count = len(node.outputs)

    def run(*inputs: Any) -> Any:
        result = kernel(*inputs)
        values = (result,) if count == 1 else result
        if not isinstance(values, tuple | list) or len(values) != count:
            raise outputs_unset(node, f"got {described(result)}" if not isinstance(values, tuple | list) else f"got {len(values)}")
        for i, dtype, shape in wanted:
            _check(node, i, dtype, shape, values[i])
        for i, base in references:
            if getattr(values[i], "dtype", None) is not base:
                raise _wrong_type(node, i, values[i])
        return result

    return run


def _check(node: Node, index: int, dtype: np.dtype[Any] | None, shape: Shape, value: Any) -> None:
    if value is None:
        raise _broken(node, f"Missing {index}-th output from {{{{node {node.name}}}}}", value)
    if dtype is None or dtype.kind == "O":
        return
    if getattr(value, "dtype", None) != dtype:
        raise _wrong_type(node, index, value)
    if not shape.is_compatible_with(Shape(value.shape)):
        raise _broken(node, f"Output {index} does not have the declared shape {shape} for node {{{{node {node.name}}}}}", value)


def outputs_unset(node: Node, text: str) -> InternalError:
    """The error for a kernel that returned another number of outputs than its op declares."""
    return InternalError.at(
        node, f"The kernel of {{{{node {node.name}}}}} = {called(node)} was required to give {len(node.outputs)} outputs; {text}"
    )


def described(value: Any) -> str:
    """`float32 [2,3]`, or the Python type of a value that is not an array."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return "nothing" if value is None else f"{type(value).__name__}"
    return f"{dtype} [{','.join(map(str, shape))}]" if isinstance(shape, tuple) else f"{dtype} {shape}"


def _wrong_type(node: Node, index: int, value: Any) -> InternalError:
    if value is None:
        return _broken(node, f"Missing {index}-th output from {{{{node {node.name}}}}}", value)
    declared, actual = node.output_types[index].text, _type_name(value)
    return _broken(
        node, f"Output {index} of type {actual} does not match declared output type {declared} for node {{{{node {node.name}}}}}", value
    )


def _type_name(value: Any) -> str:
    try:
        return as_dtype(value.dtype).text + ("_ref" if type(value) is RefVariable else "")
    except (AttributeError, TypeError, ValueError):
        return f"{type(value).__name__} (no array)"


def _broken(node: Node, text: str, value: Any) -> InternalError:
    return InternalError.at(node, f"{text}: {called(node)} gave {described(value)}")


def called(node: Node) -> str:
    """The op of a node with names, dtypes and static shapes of its inputs."""
    return f"{node.op}({', '.join([f'{shown_name(tensor)} {tensor.dtype.text} {tensor.shape}' for tensor in node.inputs])})"


def shown_name(tensor: Tensor) -> str:
    """The user's name of a tensor, also if its node is a copy made for feeds."""
    stands_for = tensor.node.attr.get(STANDS_FOR)
    return attr_text(stands_for) or tensor.name


_OF_INPUTS: Final = (InvalidArgumentError, OutOfRangeError, UnimplementedError)
"""The errors that kernels raise for inputs they refuse."""


def explain_at(node: Node, error: BaseException, inputs: Iterable[Any] = ()) -> BaseException:
    """Convert an error of a node's kernel to a GraphError with node, inputs and the user's line.

    Other exceptions than `Exception` (Ctrl-C) are returned with a note.
    """
    if not isinstance(error, Exception):
        error.add_note(f"stopped while running '{node.name}' = {called(node)}" + (f"\n  made in {node.source}" if node.source else ""))
        return error
    if isinstance(error, GraphError):
        if isinstance(error, _OF_INPUTS) and node.inputs and error.node in ("", node.name) and "[[{{node" not in error.message:
            error.message += _where(node, inputs)
        return error.with_node(node.name, op=node.op, source=node.source)
    if isinstance(error, AllocationLimitError):
        return too_large(node, error.what, error.size)
    if isinstance(error, MemoryError):
        return ResourceExhaustedError.at(node, out_of_memory(error) + _where(node, inputs))
    text, values = str(error) or type(error).__name__, list(inputs)
    if not isinstance(error, ValueError | IndexError):
        return InvalidArgumentError.at(node, text + _where(node, values))
    text, advise = in_our_words(text, node, [_value(value) for value in values], shown_name)
    return advise(InvalidArgumentError.at(node, text + _where(node, values)))


def too_large(node: Node, what: str, size: int) -> ResourceExhaustedError:
    """The error for an output of `node` that exceeds the allocation limit.

    Args:
        what: its description: `has shape [2,3] and type float`.
        size: its bytes.
    """
    return ResourceExhaustedError.at(node, f"The output of '{node.name}' = {called(node)} {what}: {compared(size)}")


def _value(value: Any) -> Any:
    """The value of an input; of a reference that of its variable."""
    return value.value if isinstance(value, RefVariable) else value


def _where(node: Node, inputs: Iterable[Any]) -> str:
    """The node, its declared input types, and the actual ones."""
    actual = ", ".join([described(_value(value)) for value in inputs])
    return f"\n\t [[{{{{node {node.name}}}}}]] = {called(node)}{f' on {actual}' if actual else ''}"


def dead_fetch(number: int, tensor: Tensor) -> InvalidArgumentError:
    """The error for fetching `tensor` from a branch that was not taken."""
    return InvalidArgumentError.at(
        tensor.node,
        f"Retval[{number}] does not have value: '{tensor.name}' (op {tensor.node.op}) lies on a branch that was not taken in this run",
    ).advise("Fetch the value after both branches, such as the result of `gc.cond` or of the Merge, or feed values that take this branch.")
