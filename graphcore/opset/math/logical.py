"""Logic on booleans, elementwise and over axes."""

from __future__ import annotations

from typing import Final

from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn, reduction_shape, unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, op
from graphcore.opset.framework.families import Reduction
from graphcore.opset.framework.kernels import ufunc
from graphcore.opset.math.reductions import reduction_kernel

_PAIR: Final = [[[True, False], [False, True]], [[True], [False]]]
_TABLE: Final = [[True, False, True], [True, True, True]]


@op
class LogicalAnd:
    """True where both x and y are, with broadcasting."""

    signature = "LogicalAnd(x:bool, y:bool) -> (z:bool)"
    commutative = True
    shape = broadcast_binary_op_shape_fn
    kernel = ufunc("logical_and")
    gradient = NO_GRADIENT
    examples = (Example(_PAIR, outputs=[[[True, False], [False, False]]]),)


@op
class LogicalOr:
    """True where x or y is, with broadcasting."""

    signature = "LogicalOr(x:bool, y:bool) -> (z:bool)"
    commutative = True
    shape = broadcast_binary_op_shape_fn
    kernel = ufunc("logical_or")
    gradient = NO_GRADIENT
    examples = (Example(_PAIR, outputs=[[[True, True], [False, True]]]),)


@op
class LogicalNot:
    """True where x is False."""

    signature = "LogicalNot(x:bool) -> (y:bool)"
    shape = unchanged_shape
    kernel = ufunc("logical_not")
    gradient = NO_GRADIENT
    examples = (Example([[True, False]], outputs=[[False, True]]),)


@op
class All(Reduction):
    """True where all elements along the reduced axes are."""

    signature = "All[keep_dims:bool = false, Tidx:{int32, int64} = int32](input:bool, reduction_indices:Tidx) -> (output:bool)"
    shape = reduction_shape
    kernel = reduction_kernel("logical_and")
    gradient = NO_GRADIENT
    examples = (Example([_TABLE, [1]], outputs=[[False, True]]), Example([_TABLE, [0, 1]], {"keep_dims": True}, outputs=[[[False]]]))
    failures = (Example([_TABLE, [99]]),)


@op
class Any(Reduction):
    """True where at least one element along the reduced axes is."""

    signature = "Any[keep_dims:bool = false, Tidx:{int32, int64} = int32](input:bool, reduction_indices:Tidx) -> (output:bool)"
    shape = reduction_shape
    kernel = reduction_kernel("logical_or")
    gradient = NO_GRADIENT
    examples = (
        Example([_TABLE, 0], outputs=[[True, True, True]]),
        Example([_TABLE, [-1]], {"keep_dims": True}, outputs=[[[True], [True]]]),
    )
    failures = (Example([_TABLE, 99]),)
