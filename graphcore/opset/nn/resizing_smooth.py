"""Bicubic and area resizing: products with a weight matrix for each dimension."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.kernels import constant_ints, ints, invalid
from graphcore.opset.nn.resizing import Resizing
from graphcore.traits import FailsOn

_X: Final = (np.arange(24, dtype=np.float32) ** 2 % 17 / 4).reshape(2, 3, 2, 2)
_TYPES: Final = "{int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}"
_ATTRS: Final = "align_corners:bool = false, half_pixel_centers:bool = false"
_GIVEN: Final = "align_corners=$align_corners, half_pixel_centers=$half_pixel_centers"
_FLAGS: Final = "align_corners:bool, half_pixel_centers:bool"
_STEPS: Final = 1024
"""The weights are tabulated at so many places between two pixels, as in TensorFlow."""


def _scale(in_size: int, wanted: int, *, align: bool) -> np.float32:
    return np.float32((in_size - 1) / (wanted - 1) if align and wanted > 1 else in_size / wanted)


def _table(a: float) -> Any:
    """The weights of the pixels at distance x and 1 + x, for steps of x."""
    x = np.arange(_STEPS + 1, dtype=np.float64) / _STEPS
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    x = x + 1
    return near.astype(np.float32), (((a * x - 5 * a) * x + 8 * a) * x - 4 * a).astype(np.float32)


_NEAR, _FAR = _table(-0.75)
_KEYS_NEAR, _KEYS_FAR = _table(-0.5)


def _cubic_weights(k: KernelContext, in_size: int, wanted: int) -> Any:
    """The weight of each given pixel in each new pixel: [wanted, given]."""
    half, align = bool(k.attr("half_pixel_centers")), bool(k.attr("align_corners"))
    if half and align:
        raise invalid(k, "If half_pixel_centers is True, align_corners must be False.")
    scale, places = _scale(in_size, wanted, align=align), np.arange(wanted, dtype=np.float32)
    at = (places + np.float32(0.5)) * scale - np.float32(0.5) if half else places * scale
    first = np.floor(at).astype(np.int64)
    step = np.rint((at - first.astype(np.float32)) * np.float32(_STEPS)).astype(np.int64)
    near, far = (_KEYS_NEAR, _KEYS_FAR) if half else (_NEAR, _FAR)
    weights = np.stack([far[step], near[step], near[_STEPS - step], far[_STEPS - step]], 1)
    sources = first[:, None] + np.arange(-1, 3)
    inside = np.clip(sources, 0, in_size - 1)
    if half:
        # Pixels outside have weight 0, and the others are normalised to sum to 1.
        weights = np.where(sources == inside, weights, np.float32(0))
        total = weights.sum(1, keepdims=True, dtype=np.float32)
        weights = np.where(abs(total) >= 1000 * np.finfo(np.float32).tiny, weights / total, weights)
    matrix = np.zeros((wanted, in_size), np.float32)
    np.add.at(matrix, (np.arange(wanted)[:, None], inside), weights)
    return matrix


def _area_weights(k: KernelContext, in_size: int, wanted: int) -> Any:
    """The share of each given pixel in each new pixel: [wanted, given]."""
    scale = float(_scale(in_size, wanted, align=bool(k.attr("align_corners"))))
    if in_size == 1:  # an aligned scale is 0 then
        return np.ones((wanted, 1), np.float32)
    starts = np.arange(wanted)[:, None] * scale
    pixels = np.arange(in_size + 1)[None, :]
    share = np.minimum(starts + scale, pixels + 1) - np.maximum(starts, pixels)
    share[:, in_size:] = starts + scale - np.maximum(starts, in_size)  # the last pixel is repeated behind the border
    share = np.where(share > 0, share, 0)
    matrix = share[:, :in_size].copy()
    matrix[:, -1] += share[:, in_size]
    return (matrix / scale).astype(np.float32)


def _mixed(k: KernelContext, x: Any, rows: Any, columns: Any, dtype: Any = np.float32) -> Any:
    """Convert x, [n, h, w, c], to `dtype`, and multiply its rows and columns by matrices."""
    xp = k.xp
    wide = x.astype(dtype, copy=False)
    n, height, width, channels = wide.shape
    by_rows = xp.matmul(xp.asarray(rows), wide.reshape(n, height, width * channels)).reshape(n, -1, width, channels)
    return xp.matmul(xp.asarray(columns), by_rows)


def _checked(k: KernelContext, x: Any, size: tuple[int, ...]) -> tuple[int, int]:
    if x.ndim != 4 or len(size) != 2 or min(size) <= 0 or 0 in x.shape[1:3]:
        raise invalid(
            k, f"images must be 4-dimensional with positive sizes and size two positive numbers, got {list(x.shape)} and {list(size)}"
        )
    return size[0], size[1]


@op
class ResizeBicubic(Resizing):
    """Images of another size by cubic interpolation.

    images: [batch, rows, columns, channels]
    size: [2], the new rows and columns
    align_corners: align the centres of the corner pixels.
    half_pixel_centers: pixels are squares with their centre at a half.
    """

    signature = f"ResizeBicubic[T:{_TYPES}, {_ATTRS}](images:T, size:int32) -> (resized_images:float)"
    layer = "resizing"
    cost = "pairs"
    gradient = f"""[T:{{float, double}}, {_FLAGS}](images:T, size:int32, dy:float) -> (dimages:T, dsize:int32) {{
      dimages = ResizeBicubicGrad[T=$T, {_GIVEN}](dy, images)
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
            rows, columns = _checked(k, x, ints(size) if constant_size is None else constant_size)
            return _mixed(k, x, _cubic_weights(k, x.shape[1], rows), _cubic_weights(k, x.shape[2], columns))

        return resize


def _like_original(c: InferenceContext) -> None:
    c.set_output(0, c.with_rank(c.input(1), 4))


@op
class ResizeBicubicGrad:
    """The gradient of ResizeBicubic.

    grads: [batch, new rows, new columns, channels]
    original_image: the resized images; only their shape counts
    """

    signature = f"ResizeBicubicGrad[T:{{float, double}}, {_ATTRS}](grads:float, original_image:T) -> (output:T)"
    shape = _like_original
    cost = "pairs"
    can_fail = FailsOn(empty=True)
    gradient = f"""[T:{{float, double}}, {_FLAGS}](grads:float, original_image:T, dz:T) -> (dgrads:float, doriginal:T) {{
      shape = Shape[T=float](grads)
      one = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: 1>]()
      two = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: 2>]()
      size = Slice[T=int32, Index=int32](shape, one, two)
      dgrads = ResizeBicubic[T=$T, {_GIVEN}](dz, size)
      doriginal = ZerosLike[T=$T](original_image)
    }}"""
    examples = (
        Example([(np.arange(40, dtype=np.float32) % 7).reshape(2, 5, 2, 2), _X]),
        Example([(np.arange(40, dtype=np.float32) % 7).reshape(2, 2, 5, 2), _X], {"half_pixel_centers": True}),
    )
    failures = (Example([np.zeros((0, 5, 0, 0), np.float32), np.zeros((0, 3, 0, 0), np.float32)]),)

    def kernel(k: KernelContext) -> Kernel:
        dtype = k.dtype("T")

        def resize_back(grads: Any, original: Any) -> Any:
            rows, columns = _checked(k, original, grads.shape[1:3])
            by_rows, by_columns = _cubic_weights(k, original.shape[1], rows), _cubic_weights(k, original.shape[2], columns)
            return _mixed(k, grads, by_rows.T, by_columns.T, dtype)

        return resize_back


@op
class ResizeArea(Resizing):
    """Images of another size, each pixel the mean of its area.

    images: [batch, rows, columns, channels]
    size: [2], the new rows and columns
    align_corners: align the centres of the corner pixels.
    """

    signature = f"ResizeArea[T:{_TYPES}, align_corners:bool = false](images:T, size:int32) -> (resized_images:float)"
    layer = "resizing"
    cost = "pairs"
    gradient = no_registered_gradient("TensorFlow has none; ResizeBilinear has one")
    examples = (Example([_X, [2, 1]]), Example([_X, [5, 3]]))

    def kernel(k: KernelContext) -> Kernel:
        constant_size = constant_ints(k, 1)

        def resize(x: Any, size: Any) -> Any:
            rows, columns = _checked(k, x, ints(size) if constant_size is None else constant_size)
            return _mixed(k, x, _area_weights(k, x.shape[1], rows), _area_weights(k, x.shape[2], columns))

        return resize
