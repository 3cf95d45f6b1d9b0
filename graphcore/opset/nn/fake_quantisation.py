"""Fake quantisation: rounding to the values of a quantised type between two bounds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import merge_both_inputs, unchanged_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, not_differentiable, op
from graphcore.opset.framework.families import Elementwise, Total
from graphcore.opset.framework.kernels import float_attr, invalid

_X: Final = [[-8.0, -1.3, 0.4], [2.2, 5.9, 7.0]]
_DY: Final = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
_BITS: Final = "num_bits:int = 8, narrow_range:bool = false"
_ARGS: Final = f"min:float = -6.0, max:float = 6.0, {_BITS}"
_STEPS: Final = not_differentiable("the gradient of rounding is taken for that of the identity, and that is differentiated no further")


def _levels(k: KernelContext) -> tuple[int, int]:
    bits = k.attr("num_bits")
    if not isinstance(bits, int) or not 2 <= bits <= 16:
        raise invalid(k, f"num_bits must be between 2 and 16, inclusive, got {bits!r}")
    return int(bool(k.attr("narrow_range"))), 2**bits - 1


def nudged(low: float, high: float, levels: tuple[int, int]) -> tuple[np.float32, np.float32, np.float32]:
    """The bounds moved so that 0 is representable, and the step between values."""
    least, most = map(np.float32, levels)
    low32, high32 = np.float32(low), np.float32(high)
    step = (high32 - low32) / (most - least)
    from_low = least - low32 / step
    zero = least if from_low < least else most if from_low > most else np.floor(from_low + np.float32(0.5))
    return (least - zero) * step, (most - zero) * step, step


def _rounded(k: KernelContext, x: Any, bounds: tuple[np.float32, np.float32, np.float32]) -> Any:
    low, high, step = bounds
    inverse = np.float32(1) / step
    clamped = k.xp.minimum(k.xp.maximum(x, low), high)
    return k.xp.floor((clamped - low) * inverse + np.float32(0.5)) * step + low


def _inside(x: Any, bounds: tuple[np.float32, np.float32, np.float32]) -> Any:
    return (x >= bounds[0]) & (x <= bounds[1])


@op
class FakeQuantWithMinMaxArgs(Elementwise):
    """The nearest value of a quantised type between `min` and `max`.

    min: the lower bound, moved so that 0 is representable.
    max: the upper bound, moved likewise.
    num_bits: 2 ** num_bits values.
    narrow_range: one value fewer.
    """

    signature = f"FakeQuantWithMinMaxArgs[{_ARGS}](inputs:float) -> (outputs:float)"
    shape = unchanged_shape
    gradient = """[min:float, max:float, num_bits:int, narrow_range:bool](x:float, dy:float) -> (dx:float) {
      dx = FakeQuantWithMinMaxArgsGradient[min=$min, max=$max, num_bits=$num_bits, narrow_range=$narrow_range](dy, x)
    }"""
    examples = (
        Example([_X], differentiable=False),
        Example([_X], {"num_bits": 4, "narrow_range": True, "min": -1.0}, differentiable=False),
    )

    def kernel(k: KernelContext) -> Kernel:
        bounds = nudged(float_attr(k, "min"), float_attr(k, "max"), _levels(k))
        return lambda x: _rounded(k, x, bounds)


@op
class FakeQuantWithMinMaxArgsGradient(Elementwise):
    """The gradient of FakeQuantWithMinMaxArgs: passed on where the input is inside the bounds.

    min: as of FakeQuantWithMinMaxArgs.
    max: as of FakeQuantWithMinMaxArgs.
    num_bits: as of FakeQuantWithMinMaxArgs.
    narrow_range: as of FakeQuantWithMinMaxArgs.
    """

    signature = f"FakeQuantWithMinMaxArgsGradient[{_ARGS}](gradients:float, inputs:float) -> (backprops:float)"
    shape = merge_both_inputs
    gradient = _STEPS
    examples = (Example([_DY, _X], outputs=[[[0.0, 2.0, 3.0], [4.0, 5.0, 0.0]]]),)

    def kernel(k: KernelContext) -> Kernel:
        bounds, zero = nudged(float_attr(k, "min"), float_attr(k, "max"), _levels(k)), np.float32(0)
        return lambda dy, x: k.xp.where(_inside(x, bounds), dy, zero)


def _vars_shape(c: InferenceContext) -> None:
    c.set_output(0, c.input(0))
    c.with_rank(c.input(1), 0)
    c.with_rank(c.input(2), 0)


@op
class FakeQuantWithMinMaxVars(Total):
    """The nearest value of a quantised type between `min` and `max`.

    min: the lower bound, a scalar
    max: the upper bound, a scalar
    num_bits: 2 ** num_bits values.
    narrow_range: one value fewer.
    """

    signature = f"FakeQuantWithMinMaxVars[{_BITS}](inputs:float, min:float, max:float) -> (outputs:float)"
    shape = _vars_shape
    gradient = """[num_bits:int, narrow_range:bool](x:float, low:float, high:float, dy:float) -> (dx:float, dlow:float, dhigh:float) {
      dx, dlow, dhigh = FakeQuantWithMinMaxVarsGradient[num_bits=$num_bits, narrow_range=$narrow_range](dy, x, low, high)
    }"""
    examples = (Example([_X, -6.0, 6.0], differentiable=False), Example([_X, 0.0, 4.0], {"num_bits": 3}, differentiable=False))

    def kernel(k: KernelContext) -> Kernel:
        levels = _levels(k)
        return lambda x, low, high: _rounded(k, x, nudged(float(low), float(high), levels))


@op
class FakeQuantWithMinMaxVarsGradient(Total):
    """The gradient of FakeQuantWithMinMaxVars: inside the bounds to the input, beyond them to the bound.

    min: the lower bound, a scalar
    max: the upper bound, a scalar
    num_bits: as of FakeQuantWithMinMaxVars.
    narrow_range: as of FakeQuantWithMinMaxVars.
    """

    signature = (
        f"FakeQuantWithMinMaxVarsGradient[{_BITS}](gradients:float, inputs:float, min:float, max:float) -> "
        "(backprops_wrt_input:float, backprop_wrt_min:float, backprop_wrt_max:float)"
    )
    gradient = _STEPS
    examples = (Example([_DY, _X, -6.0, 6.0], outputs=[[[0.0, 2.0, 3.0], [4.0, 5.0, 0.0]], 1.0, 6.0]),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.merge(c.input(0), c.input(1)))
        c.with_rank(c.input(2), 0)
        c.with_rank(c.input(3), 0)
        c.set_output(1, c.scalar())
        c.set_output(2, c.scalar())

    def kernel(k: KernelContext) -> Kernel:
        levels, where, total, zero = _levels(k), k.xp.where, k.xp.add.reduce, np.float32(0)

        def backprops(dy: Any, x: Any, low: Any, high: Any) -> Any:
            bounds = nudged(float(low), float(high), levels)
            parts = [where(kept, dy, zero) for kept in (_inside(x, bounds), x < bounds[0], x > bounds[1])]
            return parts[0], total(parts[1].reshape(-1)), total(parts[2].reshape(-1))

        return backprops
