"""Dilation of images by a structuring function, and its gradients. Erosion is the dilation of the negative image by the mirrored function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.windows import Window, sizes_attr, windowed_output_size
from graphcore.opset.framework.block import Example, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.type_sets import REAL
from graphcore.opset.numerics.windows import Sliding, int_list

_X: Final = (np.arange(60, dtype=np.float32) * 37 % 61 / 8).reshape(1, 5, 6, 2)
_FILTER: Final = (np.arange(12, dtype=np.float32) * 7 % 13 / 16).reshape(2, 3, 2)
_SAME: Final = {"strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": "SAME"}
_VALID: Final = {"strides": [1, 1, 2, 1], "rates": [1, 2, 1, 1], "padding": "VALID"}
_DY_SAME: Final = (np.arange(36, dtype=np.float32) * 5 % 11 / 4 - 1).reshape(1, 3, 6, 2)
_DY_VALID: Final = (np.arange(12, dtype=np.float32) / 4 - 1).reshape(1, 3, 2, 2)
_ATTRS: Final = f"T:{REAL}, strides:list(int) >= 4, rates:list(int) >= 4, padding:{{'SAME', 'VALID'}}"
_OF_A_GRADIENT: Final = "second derivatives of dilation are not available, in TensorFlow neither"

Tap = tuple[int, tuple[slice, ...], tuple[slice, ...]]


class _Dilation:
    """The geometry of a dilation, from a node's attrs."""

    def __init__(self, k: KernelContext) -> None:
        strides, rates, padding = int_list(k, "strides"), int_list(k, "rates"), k.attr("padding")
        assert isinstance(padding, bytes)
        for name, value in (("strides", strides), ("rates", rates)):
            if len(value) != 4 or value[0] != 1 or value[3] != 1 or min(value) < 1:
                raise invalid(k, f"attr '{name}' must be [1, rows, columns, 1] with positive numbers, got {list(value)}")
        self.k = k
        self.slides = [Sliding(strides[at], rates[at], padding) for at in (1, 2)]

    def places(self, x: Any, window: Any) -> tuple[int, ...]:
        """The numbers of windows down and across.

        Raises:
            InvalidArgumentError: the arrays do not fit.
        """
        if x.ndim != 4 or window.ndim != 3 or x.shape[3] != window.shape[2]:
            raise invalid(
                self.k,
                f"required input [batch, rows, columns, depth] and filter [rows, columns, depth], got {list(x.shape)}, {list(window.shape)}",
            )
        places = tuple([slide.places(size, length) for slide, size, length in zip(self.slides, x.shape[1:3], window.shape, strict=False)])
        if min(places) < 0 or not all(window.shape[:2]):
            raise invalid(self.k, f"a filter of shape {list(window.shape)} does not fit into an input of shape {list(x.shape)}")
        return places

    def taps(self, x: Any, window: Any, places: tuple[int, ...]) -> Iterator[Tap]:
        """The elements of the filter that meet the image.

        For each its number, the windows where it does, and the pixels there.
        """
        for number, element in enumerate(np.ndindex(*window.shape[:2])):
            inner = [
                self._range(slide, size, length, count, at)
                for slide, size, length, count, at in zip(self.slides, x.shape[1:3], window.shape, places, element, strict=False)
            ]
            if all(count for _, count, _ in inner):
                windows = tuple([slice(first, first + count) for first, count, _ in inner])
                pixels = tuple(
                    [
                        slice(start, start + (count - 1) * slide.stride + 1, slide.stride)
                        for slide, (_, count, start) in zip(self.slides, inner, strict=True)
                    ]
                )
                yield number, (slice(None), *windows), (slice(None), *pixels)

    @staticmethod
    def _range(slide: Sliding, size: int, length: int, places: int, at: int) -> tuple[int, int, int]:
        """The first window whose element `at` is a pixel, the number of such windows, the first pixel."""
        offset = at * slide.dilation - slide.pads(size, length)[0]
        first = max(0, -(offset // slide.stride))
        last = min(places - 1, (size - 1 - offset) // slide.stride)
        return first, max(0, last - first + 1), first * slide.stride + offset

    def largest(self, x: Any, window: Any) -> tuple[Any, Any]:
        """The largest sum of each window, and the number of its filter element, the first of several.

        As in TensorFlow NaN and what is not above the lowest finite number do not count; a window without others has its first element.
        """
        places, xp = self.places(x, window), self.k.xp
        shape = (x.shape[0], *places, x.shape[3])
        best = xp.full(shape, self.k.output_types[0].min, x.dtype)
        chosen = xp.full(shape, -1, np.int32)
        flat = window.reshape(-1, window.shape[2])
        for number, windows, pixels in self.taps(x, window, places):
            values = (x[pixels] + flat[number]).astype(x.dtype, copy=False)
            larger = values > best[windows]
            best[windows] = xp.where(larger, values, best[windows])
            chosen[windows] = xp.where(larger | (chosen[windows] < 0), number, chosen[windows]).astype(np.int32)
        return best, chosen

    def chosen(self, x: Any, window: Any, dy: Any) -> Any:
        """The number of the filter element that is chosen in each window, for gradients of that shape.

        Raises:
            InvalidArgumentError: the gradients have another one.
        """
        chosen = self.largest(x, window)[1]
        if dy.shape != chosen.shape:
            raise invalid(self.k, f"required out_backprop of shape {list(chosen.shape)}, got {list(dy.shape)}")
        return chosen


@op
class Dilation2D:
    """The largest sum of a pixel and a filter element in each window; padding does not count.

    Each channel has its own filter.

    input: [batch, rows, columns, depth]
    filter: [filter rows, filter columns, depth]
    output: [batch, places down, places across, depth]
    strides: [1, rows, columns, 1] from one window to the next.
    rates: [1, rows, columns, 1] from one element of a window to the next.
    """

    signature = f"Dilation2D[{_ATTRS}](input:T, filter:T) -> (output:T)"
    cost = "pairs"
    layer = "pooling"
    gradient = """[T:type, strides:list(int), rates:list(int), padding:string](x:T, filter:T, dy:T) -> (dx:T, dfilter:T) {
      dx = Dilation2DBackpropInput[T=$T, strides=$strides, rates=$rates, padding=$padding](x, filter, dy)
      dfilter = Dilation2DBackpropFilter[T=$T, strides=$strides, rates=$rates, padding=$padding](x, filter, dy)
    }"""
    examples = (Example([_X, _FILTER], _SAME), Example([_X, _FILTER], _VALID))
    failures = (Example([_X, np.zeros((0, 2, 2), np.float32)], _SAME),)

    def shape(c: InferenceContext) -> None:
        in_shape, window = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 3)
        strides = sizes_attr(c, "strides", 4, what="Dilation2D requires the stride")
        rates = sizes_attr(c, "rates", 4, what="Dilation2D requires the rates")
        depth = c.merge_dim(c.dim(in_shape, 3), c.dim(window, 2))
        padding = c.text_attr("padding")
        places = [
            windowed_output_size(c, c.dim(in_shape, at), Window(c.dim(window, at - 1), strides[at], rates[at]), padding) for at in (1, 2)
        ]
        c.set_output(0, c.make_shape([c.dim(in_shape, 0), *places, depth]))

    def kernel(k: KernelContext) -> Kernel:
        dilation = _Dilation(k)
        return lambda x, window: dilation.largest(x, window)[0]


@op
class Dilation2DBackpropInput:
    """The gradient of Dilation2D by its input: that of each window goes to the pixel chosen there.

    input: [batch, rows, columns, depth]
    filter: [filter rows, filter columns, depth]
    out_backprop: [batch, places down, places across, depth]
    in_backprop: like the input
    strides, rates, padding: see Dilation2D.
    """

    signature = f"Dilation2DBackpropInput[{_ATTRS}](input:T, filter:T, out_backprop:T) -> (in_backprop:T)"
    cost = "pairs"
    gradient = no_registered_gradient(_OF_A_GRADIENT)
    examples = (Example([_X, _FILTER, _DY_SAME], _SAME), Example([_X, _FILTER, _DY_VALID], _VALID))
    failures = (Example([_X, _FILTER, _DY_SAME], _VALID),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.input(0))

    def kernel(k: KernelContext) -> Kernel:
        dilation, xp = _Dilation(k), k.xp

        def by_input(x: Any, window: Any, dy: Any) -> Any:
            chosen = dilation.chosen(x, window, dy)
            result = xp.zeros(x.shape, x.dtype)
            for number, windows, pixels in dilation.taps(x, window, dy.shape[1:3]):
                result[pixels] += xp.where(chosen[windows] == number, dy[windows], x.dtype.type(0))
            return result

        return by_input


@op
class Dilation2DBackpropFilter:
    """The gradient of Dilation2D by its filter: that of each window goes to the element chosen there.

    input: [batch, rows, columns, depth]
    filter: [filter rows, filter columns, depth]
    out_backprop: [batch, places down, places across, depth]
    filter_backprop: like the filter
    strides, rates, padding: see Dilation2D.
    """

    signature = f"Dilation2DBackpropFilter[{_ATTRS}](input:T, filter:T, out_backprop:T) -> (filter_backprop:T)"
    cost = "pairs"
    gradient = no_registered_gradient(_OF_A_GRADIENT)
    examples = (Example([_X, _FILTER, _DY_SAME], _SAME), Example([_X, _FILTER, _DY_VALID], _VALID))
    failures = (Example([_X, _FILTER, _DY_SAME], _VALID),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.input(1))

    def kernel(k: KernelContext) -> Kernel:
        dilation, xp = _Dilation(k), k.xp

        def by_filter(x: Any, window: Any, dy: Any) -> Any:
            chosen = dilation.chosen(x, window, dy)
            result = xp.zeros((window.shape[0] * window.shape[1], window.shape[2]), x.dtype)
            for number, windows, _ in dilation.taps(x, window, dy.shape[1:3]):
                result[number] = xp.where(chosen[windows] == number, dy[windows], x.dtype.type(0)).sum((0, 1, 2), dtype=x.dtype)
            return result.reshape(window.shape)

        return by_filter
