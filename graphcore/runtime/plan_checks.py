"""What kernels are held to: they give arrays of the types and shapes that their op declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphcore.errors import InternalError
from graphcore.graph.node import Node
from graphcore.shapes import Shape


def wrong_dtype(node: Node) -> Callable[[int, Any], None]:
    """What is called for an output whose dtype is not the very object that was expected: it may be equal all the same."""
    wanted = [dtype.as_numpy for dtype in node.output_types]

    def refuse(index: int, value: Any) -> None:
        got = getattr(value, "dtype", None)
        if got is None or got != wanted[index]:
            raise _broken(node, index, f"of type {node.output_types[index].name}", described(value))

    return refuse


def make_check(node: Node) -> Callable[..., None]:
    """What is called with all outputs of a kernel that is not of this package."""
    wanted = [(i, dtype.as_numpy, node.outputs[i].shape) for i, dtype in enumerate(node.output_types) if not dtype.is_ref]

    def check(*values: Any) -> None:
        for i, dtype, shape in wanted:
            value = values[i]
            if value is None:
                raise _broken(node, i, "to be set", "nothing")
            if dtype is None or dtype.kind == "O":
                continue
            if getattr(value, "dtype", None) != dtype:
                raise _broken(node, i, f"of type {node.output_types[i].name}", described(value))
            if not shape.is_compatible_with(Shape(value.shape)):
                raise _broken(node, i, f"of shape {shape}", described(value))

    return check


def outputs_unset(node: Node, text: str) -> InternalError:
    """The error for a kernel that gave another number of outputs than its op declares."""
    return InternalError(
        f"The kernel of '{node.name}' (op {node.op}) was required to give {len(node.outputs)} outputs; it left some unset or gave more ({text})",
        op=node.op,
        node=node.name,
        source=node.source,
    )


def described(value: Any) -> str:
    """`float32 [2,3]`, or the Python type of what is no array."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return "nothing" if value is None else f"{type(value).__name__}"
    return f"{dtype} [{','.join(map(str, shape))}]" if isinstance(shape, tuple) else f"{dtype} {shape}"


def _broken(node: Node, index: int, wanted: str, got: str) -> InternalError:
    return InternalError(
        f"Output {index} of '{node.name}' (op {node.op}) was required {wanted}; its kernel gave {got}",
        op=node.op,
        node=node.name,
        source=node.source,
    )
