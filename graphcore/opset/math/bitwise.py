"""Bitwise operations on integers."""

from __future__ import annotations

from typing import Any, Final

from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn, unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.kernels import ufunc
from graphcore.opset.framework.type_sets import INTEGER
from graphcore.registry import KernelFactory

_PAIR: Final = [[5, -8, 0], [3, 6, 7]]


@op
class BitwiseAnd:
    """The bits set in both x and y, with broadcasting."""

    signature = f"BitwiseAnd[T:{INTEGER}](x:T, y:T) -> (z:T)"
    commutative = True
    shape = broadcast_binary_op_shape_fn
    kernel = ufunc("bitwise_and")
    gradient = NO_GRADIENT
    examples = (Example(_PAIR, outputs=[[1, 0, 0]]),)


@op
class BitwiseOr:
    """The bits set in x or y, with broadcasting."""

    signature = f"BitwiseOr[T:{INTEGER}](x:T, y:T) -> (z:T)"
    commutative = True
    shape = broadcast_binary_op_shape_fn
    kernel = ufunc("bitwise_or")
    gradient = NO_GRADIENT
    examples = (Example(_PAIR, outputs=[[7, -2, 7]]),)


@op
class BitwiseXor:
    """The bits set in one of x and y, with broadcasting."""

    signature = f"BitwiseXor[T:{INTEGER}](x:T, y:T) -> (z:T)"
    commutative = True
    shape = broadcast_binary_op_shape_fn
    kernel = ufunc("bitwise_xor")
    gradient = NO_GRADIENT
    examples = (Example(_PAIR, outputs=[[6, -2, 7]]),)


@op
class Invert:
    """All bits inverted."""

    signature = f"Invert[T:{INTEGER}](x:T) -> (y:T)"
    shape = unchanged_shape
    kernel = ufunc("invert")
    gradient = NO_GRADIENT
    examples = (Example([[0, 5, -1]], outputs=[[-1, -6, 0]]),)


def _shift(name: str) -> KernelFactory:
    """Limit the shift to the number of bits, as in the reference, since other shifts are undefined."""

    def kernel(k: KernelContext) -> Kernel:
        shift, clip, last = getattr(k.xp, name), k.xp.clip, 8 * k.dtype("T").itemsize - 1

        def shifted(x: Any, y: Any) -> Any:
            return shift(x, clip(y, 0, last))

        return shifted

    return kernel


@op
class LeftShift(Elementwise):
    """The bits of x shifted up by y places."""

    signature = f"LeftShift[T:{INTEGER}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    kernel = _shift("left_shift")
    gradient = NO_GRADIENT
    examples = (Example([[5, -8, 1], [1, 2, 31]], outputs=[[10, -32, -2147483648]]),)


@op
class RightShift(Elementwise):
    """The bits of x shifted down by y places; the sign is kept."""

    signature = f"RightShift[T:{INTEGER}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    kernel = _shift("right_shift")
    gradient = NO_GRADIENT
    examples = (Example([[5, -8, 1], [1, 2, 40]], outputs=[[2, -2, 0]]),)
