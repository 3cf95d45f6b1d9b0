"""Comparisons of two values, with broadcasting."""

from __future__ import annotations

from typing import Any, Final

from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.kernels import ufunc
from graphcore.opset.framework.type_sets import REAL

_EXAMPLES: Final = (Example([[[1.0, 2.0], [3.0, 4.0]], [[2.0], [3.0]]]), Example([[1, 2, 3], 2]))


def _equality(name: str, unequal_shapes: bool) -> Any:
    """Equal and NotEqual: an attr decides if incompatible shapes are an error or unequal."""

    def kernel(k: KernelContext) -> Kernel:
        compare: Kernel = getattr(k.xp, name)
        if k.attr("incompatible_shape_error"):
            return compare
        answer = k.xp.asarray(unequal_shapes)

        def lenient(x: Any, y: Any) -> Any:
            try:
                return compare(x, y)
            except ValueError:
                return answer

        return lenient

    return kernel


@op
class Equal(Elementwise):
    """True where x and y are equal."""

    signature = "Equal[T:type, incompatible_shape_error:bool = true](x:T, y:T) -> (z:bool)"
    commutative = True
    shape = broadcast_binary_op_shape_fn
    kernel = _equality("equal", unequal_shapes=False)
    gradient = NO_GRADIENT
    examples = (*_EXAMPLES, Example([[b"a", b"b"], b"b"], outputs=[[False, True]]))


@op
class NotEqual(Elementwise):
    """True where x and y differ."""

    signature = "NotEqual[T:type, incompatible_shape_error:bool = true](x:T, y:T) -> (z:bool)"
    commutative = True
    shape = broadcast_binary_op_shape_fn
    kernel = _equality("not_equal", unequal_shapes=True)
    gradient = NO_GRADIENT
    examples = (*_EXAMPLES, Example([[b"a", b"b"], b"b"], outputs=[[True, False]]))


@op
class Less:
    """True where x is less than y."""

    signature = f"Less[T:{REAL}](x:T, y:T) -> (z:bool)"
    shape = broadcast_binary_op_shape_fn
    kernel = ufunc("less")
    gradient = NO_GRADIENT
    examples = _EXAMPLES


@op
class LessEqual:
    """True where x is less than y or equal to it."""

    signature = f"LessEqual[T:{REAL}](x:T, y:T) -> (z:bool)"
    shape = broadcast_binary_op_shape_fn
    kernel = ufunc("less_equal")
    gradient = NO_GRADIENT
    examples = _EXAMPLES


@op
class Greater:
    """True where x is greater than y."""

    signature = f"Greater[T:{REAL}](x:T, y:T) -> (z:bool)"
    shape = broadcast_binary_op_shape_fn
    kernel = ufunc("greater")
    gradient = NO_GRADIENT
    examples = _EXAMPLES


@op
class GreaterEqual:
    """True where x is greater than y or equal to it."""

    signature = f"GreaterEqual[T:{REAL}](x:T, y:T) -> (z:bool)"
    shape = broadcast_binary_op_shape_fn
    kernel = ufunc("greater_equal")
    gradient = NO_GRADIENT
    examples = _EXAMPLES
