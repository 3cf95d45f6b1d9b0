"""Resizing images: nearest neighbour and bilinear, and their gradients."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import vector
from graphcore.opset.framework.kernels import constant_ints, ints, invalid
from graphcore.traits import FailsOn

_X: Final = (np.arange(24, dtype=np.float32) ** 2 % 17 / 4).reshape(2, 3, 2, 2)
_ATTRS: Final = "align_corners:bool = false, half_pixel_centers:bool = false"
_NEAREST_TYPES: Final = "{int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}"
_BILINEAR_TYPES: Final = "{int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}"
_GIVEN: Final = "align_corners=$align_corners, half_pixel_centers=$half_pixel_centers"
_FLAGS: Final = "align_corners:bool, half_pixel_centers:bool"


def _rows_and_columns(images: str, dtype: str) -> str:
    """Text of nodes that compute `spatial`, the size of images."""
    return f"""shape = Shape[T={dtype}]({images})
      one = {vector("int32", 1)}
      three = {vector("int32", 3)}
      step = {vector("int32", 1)}
      spatial = StridedSlice[Index=int32, T=int32](shape, one, three, step)"""


def resized_shape(c: InferenceContext) -> None:
    """Images of the size in input 1."""
    in_shape = c.with_rank(c.input(0), 4)
    c.with_value(c.dim(c.with_rank(c.input(1), 1), 0), 2)
    size = c.input_tensor_as_partial_shape(1)
    new_size = size.dims if size is not None and size.dims is not None and len(size.dims) == 2 else (c.unknown_dim(), c.unknown_dim())
    c.set_output(0, c.make_shape([c.dim(in_shape, 0), *new_size, c.dim(in_shape, 3)]))


class _Axis:
    """The source pixels of one output dimension."""

    def __init__(self, k: KernelContext, in_size: int, wanted: int) -> None:
        if in_size <= 0 or wanted <= 0:
            raise invalid(k, f"image sizes must be positive, got {in_size} to be resized to {wanted}")
        self.align = bool(k.attr("align_corners")) and wanted > 1
        self.half = bool(k.attr("half_pixel_centers"))
        if self.half and k.attr("align_corners"):
            raise invalid(k, "If half_pixel_centers is True, align_corners must be False.")
        self.given = in_size
        scale = (in_size - 1) / (wanted - 1) if self.align else in_size / wanted
        self.scale = np.float32(scale)
        self.places = np.arange(wanted, dtype=np.float32)

    def nearest(self) -> Any:
        """The source pixel of each output pixel."""
        at = (self.places + np.float32(0.5)) * self.scale if self.half else self.places * self.scale
        rounded = np.floor(at + np.float32(0.5)) if self.align else np.floor(at)
        return np.clip(rounded.astype(np.int64), 0, self.given - 1)

    def between(self) -> tuple[Any, Any, Any]:
        """The pixels before and after each output pixel, and the weight of the second."""
        at = (self.places + np.float32(0.5)) * self.scale - np.float32(0.5) if self.half else self.places * self.scale
        floor = np.floor(at)
        low = np.maximum(floor.astype(np.int64), 0)
        high = np.minimum(np.ceil(at).astype(np.int64), self.given - 1)
        return low, high, (at - floor).astype(np.float32)


def _axes(k: KernelContext, x: Any, size: tuple[int, ...]) -> tuple[_Axis, _Axis]:
    if len(size) != 2 or x.ndim != 4:
        raise invalid(k, f"images must be 4-dimensional and size two numbers, got shape {list(x.shape)} and size {list(size)}")
    return _Axis(k, x.shape[1], size[0]), _Axis(k, x.shape[2], size[1])


class Resizing:
    """Ops that make images of the size that their second input gives."""

    shape = resized_shape
    can_fail = FailsOn(values=("size",), empty=True)
    failures = (Example([_X, [-1, -1]]),)


@op
class ResizeNearestNeighbor(Resizing):
    """Images of another size, each pixel a copy of the nearest one.

    images: [batch, rows, columns, channels]
    size: [2], the new rows and columns
    align_corners: align the centres of the corner pixels.
    half_pixel_centers: pixels are squares with their centre at a half.
    """

    signature = f"ResizeNearestNeighbor[T:{_NEAREST_TYPES}, {_ATTRS}](images:T, size:int32) -> (resized_images:T)"
    layer = "resizing"
    gradient = f"""[T:{{half, float, double}}, {_FLAGS}](images:T, size:int32, dy:T) -> (dimages:T, dsize:int32) {{
      {_rows_and_columns("images", "$T")}
      dimages = ResizeNearestNeighborGrad[T=$T, {_GIVEN}](dy, spatial)
      dsize = ZerosLike[T=int32](size)
    }}"""
    examples = (
        Example([_X, [5, 4]]),
        Example([_X, [2, 5]], {"half_pixel_centers": True}),
        Example([_X, [5, 3]], {"align_corners": True}),
    )

    def kernel(k: KernelContext) -> Kernel:
        constant_size = constant_ints(k, 1)

        def resize(x: Any, size: Any) -> Any:
            rows, columns = _axes(k, x, ints(size) if constant_size is None else constant_size)
            return x.take(k.xp.asarray(rows.nearest()), 1).take(k.xp.asarray(columns.nearest()), 2)

        return resize


@op
class ResizeNearestNeighborGrad(Resizing):
    """The gradient of ResizeNearestNeighbor: each pixel's gradient goes to the pixel it was copied from.

    grads: [batch, new rows, new columns, channels]
    size: [2], the rows and columns before resizing
    """

    signature = (
        f"ResizeNearestNeighborGrad[T:{{uint8, int8, int32, half, float, double, bfloat16}}, {_ATTRS}](grads:T, size:int32) -> (output:T)"
    )
    gradient = f"""[T:{{half, float, double}}, {_FLAGS}](grads:T, size:int32, dz:T) -> (dgrads:T, dsize:int32) {{
      {_rows_and_columns("grads", "$T")}
      dgrads = ResizeNearestNeighbor[T=$T, {_GIVEN}](dz, spatial)
      dsize = ZerosLike[T=int32](size)
    }}"""
    examples = (Example([_X, [2, 3]]), Example([_X, [5, 1]], {"half_pixel_centers": True}))

    def kernel(k: KernelContext) -> Kernel:
        xp, constant_size, dtype = k.xp, constant_ints(k, 1), k.dtype("T")

        def spread(grads: Any, size: Any) -> Any:
            height, width = ints(size) if constant_size is None else constant_size
            rows, columns = _Axis(k, height, grads.shape[1]).nearest(), _Axis(k, width, grads.shape[2]).nearest()
            result = xp.zeros((grads.shape[0], height, width, grads.shape[3]), dtype)
            xp.add.at(result, (slice(None), xp.asarray(rows)[:, None], xp.asarray(columns)), grads)
            return result

        return spread


@op
class ResizeBilinear(Resizing):
    """Images of another size, each pixel interpolated between the nearest four.

    images: [batch, rows, columns, channels]
    size: [2], the new rows and columns
    align_corners: align the centres of the corner pixels.
    half_pixel_centers: pixels are squares with their centre at a half.
    """

    signature = f"ResizeBilinear[T:{_BILINEAR_TYPES}, {_ATTRS}](images:T, size:int32) -> (resized_images:float)"
    layer = "resizing"
    gradient = f"""[T:{{half, float, double}}, {_FLAGS}](images:T, size:int32, dy:float) -> (dimages:T, dsize:int32) {{
      dimages = ResizeBilinearGrad[T=$T, {_GIVEN}](dy, images)
      dsize = ZerosLike[T=int32](size)
    }}"""
    examples = (
        Example([_X, [5, 4]]),
        Example([_X, [2, 5]], {"half_pixel_centers": True}),
        Example([_X, [5, 3]], {"align_corners": True}),
    )

    def kernel(k: KernelContext) -> Kernel:
        xp, constant_size = k.xp, constant_ints(k, 1)

        def resize(x: Any, size: Any) -> Any:
            rows, columns = _axes(k, x, ints(size) if constant_size is None else constant_size)
            if x.shape[1:3] == (len(rows.places), len(columns.places)):  # interpolating with weight 0 would make infinite pixels NaN
                return x.astype(np.float32)
            wide = x.astype(np.float32, copy=False)
            return _mixed(xp, _mixed(xp, wide, columns, 2), rows, 1)

        return resize


def _mixed(xp: Any, x: Any, axis: _Axis, at: int) -> Any:
    low, high, weight = (xp.asarray(part) for part in axis.between())
    first, second = x.take(low, at), x.take(high, at)
    return first + (second - first) * weight.reshape([-1 if i == at else 1 for i in range(x.ndim)])


@op
class ResizeBilinearGrad:
    """The gradient of ResizeBilinear: each pixel's gradient goes to its four sources, by weight.

    grads: [batch, new rows, new columns, channels]
    original_image: the resized images
    """

    signature = f"ResizeBilinearGrad[T:{{float, bfloat16, half, double}}, {_ATTRS}](grads:float, original_image:T) -> (output:T)"
    gradient = f"""[T:{{half, float, double}}, {_FLAGS}](grads:float, image:T, dz:T) -> (dgrads:float, dimage:T) {{
      {_rows_and_columns("grads", "float")}
      dgrads = ResizeBilinear[T=$T, {_GIVEN}](dz, spatial)
      dimage = ZerosLike[T=$T](image)
    }}"""
    examples = (
        Example([_X, np.ones((2, 2, 3, 2), np.float32)]),
        Example([_X, np.ones((2, 5, 1, 2), np.float32)], {"half_pixel_centers": True}),
    )
    failures = (Example([np.zeros((0, 3, 0, 0), np.float32), np.zeros((0, 0, 3, 0), np.float32)]),)

    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.input(1))

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("T")

        def spread(grads: Any, image: Any) -> Any:
            rows, columns = _Axis(k, image.shape[1], grads.shape[1]), _Axis(k, image.shape[2], grads.shape[2])
            return _unmixed(xp, _unmixed(xp, grads, rows, 1), columns, 2).astype(dtype, copy=False)

        return spread


def _unmixed(xp: Any, grads: Any, axis: _Axis, at: int) -> Any:
    low, high, weight = (xp.asarray(part) for part in axis.between())
    shape = list(grads.shape)
    shape[at] = axis.given
    result = xp.zeros(shape, grads.dtype)
    factor = weight.reshape([-1 if i == at else 1 for i in range(grads.ndim)])
    before = (slice(None),) * at
    xp.add.at(result, (*before, low), grads * (1 - factor))
    xp.add.at(result, (*before, high), grads * factor)
    return result
