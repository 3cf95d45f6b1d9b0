"""Assignments to slices of variables, as `v[1:3].assign(x)` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from graphcore.inference.shape_fns.common_shape_fns import no_outputs, unchanged_shape
from graphcore.kernel_context import RefVariable
from graphcore.opset.arrays.slicing import MASKS, with_index, written
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op, no_registered_gradient
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.type_sets import INDEX
from graphcore.traits import declares_traits

_SUMMARY: Final = """Replaces a slice of a variable: the part that StridedSlice takes for the same arguments.

{}begin: the first index in each entry
end: the end, not included
strides: the steps, not 0
value: the new values, of the shape of the slice or one that is broadcast to it
{}"""
_NO_GRADIENT: Final = no_registered_gradient("it changes state; differentiate the value that is assigned instead")
_X: Final = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]
_EXAMPLES: Final = (
    Example([_X, [0, 1], [2, 4], [1, 2], [[-1.0, -2.0], [-3.0, -4.0]]]),
    Example([_X, [1, 0], [2, 0], [1, 1], [-1.0, -2.0, -3.0, -4.0]], {"shrink_axis_mask": 1, "end_mask": 2}),
    Example([_X, [0, -1], [0, 0], [1, -1], 0.5], {"ellipsis_mask": 1, "begin_mask": 2, "end_mask": 2}),
)
_FAILURES: Final = (
    Example([_X, [0, 1], [2, 4], [0, 0], 1.0]),
    Example([_X, [0, 1], [2, 4], [1, 2], [1.0, 2.0, 3.0]]),
)


@declares_traits(writes_input=True)
def _kernel(k: KernelContext) -> Kernel:
    returns_variable = bool(k.output_types)

    def put(index: tuple[Any, ...], inputs: tuple[Any, ...]) -> RefVariable | None:
        variable, value = inputs[0], inputs[4]
        with variable.lock:
            changed = variable.read().copy()
            try:
                part = changed[index]
            except IndexError as error:
                raise invalid(k, f"cannot take {written(index)} of a variable of shape {list(changed.shape)}: {error}") from error
            if part.size:  # as in TensorFlow, an empty slice takes any value
                if not _is_broadcast(value.shape, part.shape):
                    raise invalid(
                        k, f"{written(index)} of the variable has the shape {list(part.shape)}, and the value {list(value.shape)}"
                    )
                changed[index] = value
            variable.assign(changed)
        return variable if returns_variable else None

    return with_index(k, 1, put)


def _is_broadcast(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """True if an array of a shape is broadcast to another one."""
    ends = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(size in (1, other) for size, other in ends)


define_op(
    "StridedSliceAssign",
    _SUMMARY.format("ref: the variable\n", "output_ref: the variable, after the change\n"),
    signature=f"StridedSliceAssign[T:type, Index:{INDEX}, {MASKS}](ref:Ref(T), begin:Index, end:Index, strides:Index, value:T) -> (output_ref:Ref(T))",
    shape=unchanged_shape,
    kernel=_kernel,
    gradient=_NO_GRADIENT,
    examples=_EXAMPLES,
    failures=_FAILURES,
)
define_op(
    "ResourceStridedSliceAssign",
    _SUMMARY.format("", ""),
    signature=f"ResourceStridedSliceAssign[T:type, Index:{INDEX}, {MASKS}](ref:resource, begin:Index, end:Index, strides:Index, value:T) -> ()",
    stateful=True,
    shape=no_outputs,
    kernel=_kernel,
    gradient=_NO_GRADIENT,
    examples=_EXAMPLES,
    failures=_FAILURES,
)
