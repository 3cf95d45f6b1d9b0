"""Patches of images."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import scalar, vector
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.windows import Sliding, int_list, padded, views
from graphcore.traits import FailsOn

_X: Final = (np.arange(60, dtype=np.float32) ** 2 % 17 / 4).reshape(1, 5, 6, 2)
_TYPES: Final = "{bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128, bool}"


def _slides(padding: bytes, strides: tuple[int, ...], rates: tuple[int, ...]) -> tuple[Sliding, Sliding]:
    rows, columns = (Sliding(strides[at], rates[at], padding) for at in (1, 2))
    return rows, columns


@op
class ExtractImagePatches:
    """Windows of images, each flattened along the channels by row, column and channel.

    images: [batch, rows, columns, channels]
    patches: [batch, places down, places across, window rows * window columns * channels]
    ksizes: [1, window rows, window columns, 1].
    strides: [1, rows, columns, 1] from one window to the next.
    rates: [1, rows, columns, 1] from one element of a window to the next.
    """

    signature = (
        "ExtractImagePatches[ksizes:list(int) >= 4, strides:list(int) >= 4, rates:list(int) >= 4, "
        f"T:{_TYPES}, padding:{{'SAME', 'VALID'}}](images:T) -> (patches:T)"
    )
    can_fail = FailsOn(empty=True)
    examples = (
        Example([_X], {"ksizes": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}),
        Example([_X], {"ksizes": [1, 3, 2, 1], "strides": [1, 1, 1, 1], "rates": [1, 2, 2, 1], "padding": "SAME"}),
    )
    failures = (
        Example(
            [np.zeros((1, 5, 0, 2), np.float32)],
            {"ksizes": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "rates": [1, 1, 1, 1], "padding": "VALID"},
        ),
    )

    def shape(c: InferenceContext) -> None:
        images = c.with_rank(c.input(0), 4)
        ksizes, strides, rates = (c.ints_attr(name) for name in ("ksizes", "strides", "rates"))
        if images.dims is None:
            c.set_output(0, c.unknown_shape_of_rank(4))
            return
        places = []
        for axis, slide in zip((1, 2), _slides(c.text_attr("padding").encode(), strides, rates), strict=True):
            size = c.value(c.dim(images, axis))
            places.append(c.unknown_dim() if size < 0 else c.make_dim(max(0, slide.places(size, ksizes[axis]))))
        depth = c.multiply(c.dim(images, 3), ksizes[1] * ksizes[2])
        c.set_output(0, c.make_shape([c.dim(images, 0), *places, depth]))

    def kernel(k: KernelContext) -> Kernel:
        ksizes, strides, rates = (int_list(k, name) for name in ("ksizes", "strides", "rates"))
        for name, value in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
            if len(value) != 4 or value[0] != 1 or value[3] != 1 or min(value) < 1:
                raise invalid(k, f"attr '{name}' must be [1, rows, columns, 1] with positive numbers, got {list(value)}")
        padding = k.attr("padding")
        assert isinstance(padding, bytes)
        window, slides, xp = ksizes[1:3], _slides(padding, strides, rates), k.xp

        def extract(x: Any) -> Any:
            if x.ndim != 4:
                raise invalid(k, f"input must be 4-dimensional, got shape {list(x.shape)}")
            sizes = list(zip(slides, x.shape[1:3], window, strict=True))
            places = tuple([slide.places(size, length) for slide, size, length in sizes])
            if min(places) < 0:
                raise invalid(k, f"a window of {list(window)} does not fit into images of shape {list(x.shape)}")
            wide = padded(xp, x, ((0, 0), *[slide.pads(size, length) for slide, size, length in sizes], (0, 0)))
            patches = views(xp, wide, window, slides, places)
            return patches.reshape(x.shape[0], *places, window[0] * window[1] * x.shape[3])

        return extract

    def gradient(attrs: Attrs) -> str:
        """Return each element's gradient to its source, by a transposed depthwise convolution.

        Its filters select single elements.
        """
        ksizes = attrs["ksizes"]
        assert isinstance(ksizes, tuple)
        rows, columns = ksizes[1], ksizes[2]
        assert isinstance(rows, int)
        assert isinstance(columns, int)
        count = rows * columns
        part = {"complex64": "float", "complex128": "double"}.get(getattr(attrs.get("T"), "name", ""), "")
        real = part or "$T"
        picked = "strides=$strides, padding=$padding, dilations=$rates](shape, filter, "
        of_real = f"dimages = DepthwiseConv2dNativeBackpropInput[T=$T, {picked}joined)"
        of_complex = f"""re = Real[T=$T, Tout={real}](joined)
          im = Imag[T=$T, Tout={real}](joined)
          dre = DepthwiseConv2dNativeBackpropInput[T={real}, {picked}re)
          dim = DepthwiseConv2dNativeBackpropInput[T={real}, {picked}im)
          dimages = Complex[T={real}, Tout=$T](dre, dim)"""
        return f"""[T:{{half, bfloat16, float, double, complex64, complex128}}, ksizes:list(int), strides:list(int), rates:list(int), padding:string]
            (images:T, dy:T) -> (dimages:T) {{
          shape = Shape[T=$T](images)
          dy_shape = Shape[T=$T](dy)
          step = {vector("int32", 1)}
          zero = {vector("int32", 0)}
          three = {vector("int32", 3)}
          four = {vector("int32", 4)}
          axis = {scalar("int32", 0)}
          channels = StridedSlice[T=int32, Index=int32](shape, three, four, step)
          places = StridedSlice[T=int32, Index=int32](dy_shape, zero, three, step)
          count = {vector("int32", count)}
          split = ConcatV2[N=3, T=int32, Tidx=int32](places, count, channels, axis)
          by_element = Reshape[T=$T](dy, split)
          order = {vector("int32", 0, 1, 2, 4, 3)}
          by_channel = Transpose[T=$T](by_element, order)
          joined = Reshape[T=$T](by_channel, dy_shape)
          ones32 = {vector("float", *[1] * count)}
          ones = Cast[SrcT=float, DstT={real}](ones32)
          pick = MatrixDiag[T={real}](ones)
          one_channel = {vector("int32", rows, columns, 1, count)}
          pick_one = Reshape[T={real}](pick, one_channel)
          one_one = {vector("int32", 1, 1)}
          times = ConcatV2[N=3, T=int32, Tidx=int32](one_one, channels, step, axis)
          filter = Tile[T={real}](pick_one, times)
          {of_complex if part else of_real}
        }}"""
