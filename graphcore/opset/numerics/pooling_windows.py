"""Pooling of arrays: windows over any dimensions, and the kernels of pooling ops."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.kernels import constant_ints, ints, invalid, masked, narrow, unimplemented
from graphcore.opset.numerics.windows import PIECE, inside, int_list, padded, sliding, spatial_axes
from graphcore.registry import Kernel

Sizes = tuple[int, ...]


class Pooling:
    """Windows over all dimensions of an array, batch and channels included."""

    def __init__(self, k: KernelContext, ksize: Sizes, strides: Sizes) -> None:
        if len(ksize) != len(strides) or min(ksize, default=1) < 1:
            raise invalid(k, f"ksize {list(ksize)} and strides {list(strides)} must be positive, one number a dimension")
        self.k = k
        self.xp = k.xp
        self.ksize = ksize
        self.slides = sliding(k, strides, tuple(range(len(strides))))
        self.channels: int | None = None
        self._require_one_kind()

    def _require_one_kind(self) -> None:
        """Check that windows are either spatial or, for MaxPool, disjoint and along the channels.

        Raises:
            UnimplementedError: they are not.
        """
        spatial = spatial_axes(self.k, b"NHWC" if len(self.ksize) == 4 else b"NDHWC")
        sizes = [(window, slide.stride) for window, slide in zip(self.ksize, self.slides, strict=True)]
        said = f"got ksize {list(self.ksize)} and strides {[stride for _, stride in sizes]}"
        if sizes[0] != (1, 1):
            raise unimplemented(self.k, f"required windows and strides of 1 along the batch, {said}")
        along_space = any(sizes[at] != (1, 1) for at in spatial)
        for at in range(1, len(sizes)):
            window, stride = sizes[at]
            if at in spatial or (window, stride) == (1, 1):
                continue
            if not self.k.op.startswith("MaxPool") or len(sizes) != 4:
                raise unimplemented(self.k, f"required windows and strides of 1 along the channels, {said}")
            if along_space or window != stride:
                raise unimplemented(self.k, f"required windows along space, or along the channels with strides as long as they are, {said}")
            self.channels = at

    def places(self, shape: Sizes) -> Sizes:
        """The number of windows in each dimension.

        Raises:
            InvalidArgumentError: wrong rank, or the window does not fit.
            UnimplementedError: windows along the channels do not fill them.
        """
        if len(shape) != len(self.ksize):
            raise invalid(self.k, f"the input must be {len(self.ksize)}-dimensional, got shape {list(shape)}")
        places = tuple([slide.places(size, window) for slide, size, window in zip(self.slides, shape, self.ksize, strict=True)])
        if self.channels is not None and shape[self.channels] % self.ksize[self.channels]:
            raise unimplemented(
                self.k, f"required windows along the channels that fill them, got {list(self.ksize)} of shape {list(shape)}"
            )
        if min(places) < 0:
            raise invalid(self.k, f"a window of {list(self.ksize)} does not fit into an input of shape {list(shape)}")
        return places

    def pads(self, shape: Sizes) -> tuple[tuple[int, int], ...]:
        """The padding of an array of this shape."""
        return tuple([slide.pads(size, window) for slide, size, window in zip(self.slides, shape, self.ksize, strict=True)])

    def moving_axes(self) -> list[int]:
        """The dimensions with windows larger than 1 or padding."""
        return [i for i, (window, slide) in enumerate(zip(self.ksize, self.slides, strict=True)) if window > 1 or slide.stride > 1]

    def windows_are_apart(self) -> bool:
        """True if windows are disjoint."""
        return all(slide.stride >= window for slide, window in zip(self.slides, self.ksize, strict=True))

    def reduce(self, x: Any, combine: Any, fill: Any) -> Any:
        """Apply `combine` to each window, one dimension after the other: rows before columns."""
        places = self.places(x.shape)
        x = padded(self.xp, x, self.pads(x.shape), fill)
        for axis in self.moving_axes():
            parts = [x[_along(axis, self.slides[axis].tap(i, places[axis]))] for i in range(self.ksize[axis])]
            x = parts[0].copy() if len(parts) == 1 else combine(parts[0], parts[1])
            for part in parts[2:]:
                combine(x, part, out=x)
        return x

    def spread(self, dy: Any, shape: Sizes) -> Any:
        """Add each element of dy to all elements of its window: the transpose of `reduce` with add."""
        pads, places = self.pads(shape), self.places(shape)
        for axis in reversed(self.moving_axes()):
            wide = list(dy.shape)
            wide[axis] = shape[axis] + sum(pads[axis])
            result = self.xp.zeros(wide, dy.dtype)
            for i in range(self.ksize[axis]):
                result[_along(axis, self.slides[axis].tap(i, places[axis]))] += dy
            dy = result
        return dy[inside(shape, tuple([pad if axis in self.moving_axes() else (0, 0) for axis, pad in enumerate(pads)]))]

    def counts(self, shape: Sizes, dtype: Any) -> Any:
        """The number of elements of each window without padding, shaped to broadcast."""
        total: Any = dtype.type(1)
        places, pads = self.places(shape), self.pads(shape)
        for axis in self.moving_axes():
            slide, before = self.slides[axis], pads[axis][0]
            starts = self.xp.arange(places[axis]) * slide.stride - before
            inner = self.xp.minimum(starts + self.ksize[axis], shape[axis]) - self.xp.maximum(starts, 0)
            total = total * inner.astype(dtype).reshape([-1 if i == axis else 1 for i in range(len(shape))])
        return total

    def taps(self, shape: Sizes) -> list[tuple[slice, ...]]:
        """For each element of the window, in order, its slices in the padded array."""
        places = self.places(shape)
        return [
            tuple([slide.tap(i, count) for slide, i, count in zip(self.slides, element, places, strict=True)])
            for element in itertools.product(*[range(window) for window in self.ksize])
        ]


def _along(axis: int, part: slice) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, part)


def lowest(dtype: np.dtype[Any]) -> Any:
    """The padding value for a maximum."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def pooling_of(k: KernelContext) -> Pooling:
    """The windows given by the attrs ksize, strides and padding."""
    return Pooling(k, int_list(k, "ksize"), int_list(k, "strides"))


def max_pool(k: KernelContext) -> Kernel:
    """The kernel of MaxPool and MaxPool3D."""
    pooling, maximum, fill = pooling_of(k), k.xp.maximum, lowest(k.dtype("T"))
    return lambda x: pooling.reduce(x, maximum, fill)


def first_maxima(pooling: Pooling, x: Any, y: Any) -> Iterator[tuple[tuple[slice, ...], Any]]:
    """For each window element: its slices, and a mask of the windows with their first maximum there."""
    wide = padded(pooling.xp, x, pooling.pads(x.shape), lowest(x.dtype))
    free = pooling.xp.ones(y.shape, bool)
    for tap in pooling.taps(x.shape):
        is_first = wide[tap] == y
        is_first &= free
        yield tap, is_first
        free ^= is_first


def max_grad(pooling: Pooling, x: Any, y: Any, dy: Any) -> Any:
    """Distribute the gradient of each window to its first maximum, some images at a time.

    x and the result are shaped like the input, y and dy like the output.
    """
    pads = pooling.pads(x.shape)
    wide = [before + size + after for size, (before, after) in zip(x.shape, pads, strict=True)]
    apart = pooling.windows_are_apart()
    covered = apart and all(
        count * slide.stride == size and slide.stride == window
        for count, slide, size, window in zip(y.shape, pooling.slides, wide, pooling.ksize, strict=True)
    )
    dx = (pooling.xp.empty if covered else pooling.xp.zeros)(wide, dy.dtype)
    at_once = max(1, PIECE * len(y) // max(1, y.size)) if pooling.xp is np else max(1, len(y))
    for first in range(0, len(y), at_once):
        images = slice(first, first + at_once)
        target, gradients = dx[images], dy[images]
        for tap, is_maximum in first_maxima(pooling, x[images], y[images]):
            part = masked(pooling.xp, gradients, is_maximum)
            if apart:
                target[tap] = part
            else:
                target[tap] += part
    return dx[inside(x.shape, pads)]


def max_grad_grad(pooling: Pooling, x: Any, y: Any, grad: Any) -> Any:
    """For each window the element of grad (shaped like x) at the first maximum."""
    wide = padded(pooling.xp, grad, pooling.pads(x.shape))
    result = pooling.xp.zeros(y.shape, grad.dtype)
    for tap, is_maximum in first_maxima(pooling, x, y):
        result += masked(pooling.xp, wide[tap], is_maximum)
    return result


def avg_pool(k: KernelContext) -> Kernel:
    """The kernel of AvgPool and AvgPool3D; padding is ignored."""
    pooling, add, dtype = pooling_of(k), k.xp.add, k.dtype("T")
    wide = np.dtype(np.float32) if narrow(dtype) else dtype

    def avg_pool(x: Any) -> Any:
        total = pooling.reduce(x.astype(wide, copy=False), add, 0)
        return (total / pooling.counts(x.shape, wide)).astype(dtype, copy=False)

    return avg_pool


def avg_pool_grad(k: KernelContext) -> Kernel:
    """The kernel of AvgPoolGrad and AvgPool3DGrad: inputs (orig_input_shape, grad)."""
    pooling, dtype, constant_sizes = pooling_of(k), k.dtype("T"), constant_ints(k, 0)
    wide = np.dtype(np.float32) if narrow(dtype) else dtype

    def avg_pool_grad(shape: Any, dy: Any) -> Any:
        sizes = ints(shape) if constant_sizes is None else constant_sizes
        if pooling.places(sizes) != dy.shape:
            raise invalid(k, f"the gradient must have shape {list(pooling.places(sizes))}, got {list(dy.shape)}")
        return pooling.spread(dy.astype(wide, copy=False) / pooling.counts(sizes, wide), sizes).astype(dtype, copy=False)

    return avg_pool_grad
