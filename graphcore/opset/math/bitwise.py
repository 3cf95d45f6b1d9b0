"""Bitwise operations on integers."""

from __future__ import annotations

from typing import Any, Final

from graphcore.opset.framework.binary import binary
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.kernels import ufunc
from graphcore.opset.framework.type_sets import INTEGER
from graphcore.opset.framework.unary import unary
from graphcore.registry import KernelFactory

_PAIR: Final = [[5, -8, 0], [3, 6, 7]]


def _shift(name: str) -> KernelFactory:
    """Limit the shift to the number of bits, as in TensorFlow, since other shifts are undefined."""

    def kernel(k: KernelContext) -> Kernel:
        shift, clip, last = getattr(k.xp, name), k.xp.clip, 8 * k.dtype("T").itemsize - 1

        def shifted(x: Any, y: Any) -> Any:
            return shift(x, clip(y, 0, last))

        return shifted

    return kernel


def _bitwise(name: str, doc: str, ufunc_name: str, result: list[int]) -> None:
    """Register a commutative op on bits."""
    binary(name, doc, ufunc(ufunc_name), Example(_PAIR, outputs=[result]), types=INTEGER, commutative=True)


_bitwise("BitwiseAnd", "The bits set in both x and y, with broadcasting.", "bitwise_and", [1, 0, 0])
_bitwise("BitwiseOr", "The bits set in x or y, with broadcasting.", "bitwise_or", [7, -2, 7])
_bitwise("BitwiseXor", "The bits set in one of x and y, with broadcasting.", "bitwise_xor", [6, -2, 7])
unary("Invert", "All bits inverted.", ufunc("invert"), NO_GRADIENT, Example([[0, 5, -1]], outputs=[[-1, -6, 0]]), types=INTEGER)
binary(
    "LeftShift",
    "The bits of x shifted up by y places.",
    _shift("left_shift"),
    Example([[5, -8, 1], [1, 2, 31]], outputs=[[10, -32, -2147483648]]),
    types=INTEGER,
    family=Elementwise,
)
binary(
    "RightShift",
    "The bits of x shifted down by y places; the sign is kept.",
    _shift("right_shift"),
    Example([[5, -8, 1], [1, 2, 40]], outputs=[[2, -2, 0]]),
    types=INTEGER,
    family=Elementwise,
)
