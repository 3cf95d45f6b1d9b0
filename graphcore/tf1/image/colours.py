"""Colours of images: types, brightness, contrast, hue and measures of difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.dtypes import as_dtype, float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import concat, expand_dims
from graphcore.tf1.arrays.matrices import tensordot
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope, ones
from graphcore.tf1.image.shapes import images_of
from graphcore.tf1.math.elementwise import abs as absolute
from graphcore.tf1.math.elementwise import cast, log, maximum, saturate_cast
from graphcore.tf1.math.reductions import reduce_mean, reduce_sum
from graphcore.tf1.random import random_uniform

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "convert_image_dtype",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "per_image_standardization",
    "psnr",
    "random_brightness",
    "random_contrast",
    "random_hue",
    "random_saturation",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "total_variation",
    "yiq_to_rgb",
    "yuv_to_rgb",
]

_GREY: Final = (0.2989, 0.5870, 0.1140)
"""The parts of red, green and blue in grey."""


def convert_image_dtype(image: Any, dtype: object, saturate: bool = False, name: str | None = None) -> Tensor:
    """Images of another type: floats are from 0 to 1, integers from 0 to the largest.

    Args:
        image: the images.
        dtype: the new dtype.
        saturate: limit values that are out of its range.
        name: the name of the node.
    """
    tensor, wanted = convert_to_tensor(image), as_dtype(dtype)
    if tensor.dtype.base is wanted:
        return apply_one("Identity", [tensor], name)
    convert = saturate_cast if saturate else cast
    with name_scope(name or "convert_image"):
        old = tensor.dtype.base
        if old.is_integer and wanted.is_integer:
            scale_in, scale_out = _largest(old), _largest(wanted)
            if scale_in > scale_out:
                scale = (scale_in + 1) // (scale_out + 1)
                return convert(apply_one("FloorDiv", [tensor, constant(scale, old)], None), wanted)
            scale = (scale_out + 1) // (scale_in + 1)
            return convert(tensor, wanted) * constant(scale, wanted)
        if old.is_floating and wanted.is_floating:
            return cast(tensor, wanted)
        if old.is_integer:
            return cast(tensor, wanted) * constant(1.0 / _largest(old), wanted)
        return convert(tensor * constant(_largest(wanted) + 0.5, old), wanted)


def _largest(dtype: Any) -> int:
    return int(np.iinfo(dtype.as_numpy).max)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Images with `delta` added; integers count as numbers from 0 to 1 for it."""
    with name_scope("adjust_brightness"):
        tensor = convert_to_tensor(image)
        floats = tensor if tensor.dtype.is_floating else convert_image_dtype(tensor, float32)
        return convert_image_dtype(floats + cast(convert_to_tensor(delta), floats.dtype.base), tensor.dtype.base, saturate=True)


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """Images with a random number from -max_delta to max_delta added."""
    if max_delta < 0:
        raise InvalidArgumentError(f"max_delta must be non-negative, got {max_delta}")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Images whose differences from the mean of each channel are multiplied."""
    with name_scope("adjust_contrast"):
        tensor = images_of(images, "adjust_contrast")
        floats = tensor if tensor.dtype.base is float32 else convert_image_dtype(tensor, float32)
        means = reduce_mean(floats, [-3, -2], True)
        return convert_image_dtype((floats - means) * contrast_factor + means, tensor.dtype.base, saturate=True)


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Like `adjust_contrast`, by a random factor from `lower` to `upper`."""
    _check_range(lower, upper)
    return adjust_contrast(image, random_uniform([], lower, upper, seed=seed))


def _check_range(lower: float, upper: float) -> None:
    if upper <= lower or lower < 0:
        raise InvalidArgumentError(f"required 0 <= lower < upper, got {lower} and {upper}")


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """`gain * image ** gamma`; integers count as numbers from 0 to 1."""
    if not isinstance(gamma, Tensor) and gamma < 0:
        raise InvalidArgumentError(f"Gamma should be a non-negative real number, got {gamma}")
    with name_scope("adjust_gamma"):
        tensor = convert_to_tensor(image)
        floats = tensor if tensor.dtype.is_floating else convert_image_dtype(tensor, float32)
        return convert_image_dtype(gain * floats**gamma, tensor.dtype.base, saturate=True)


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Images [..., 3] in grey, [..., 1]."""
    with name_scope(name or "rgb_to_grayscale"):
        tensor = convert_to_tensor(images)
        floats = convert_image_dtype(tensor, float32)
        grey = reduce_sum(floats * constant(np.array(_GREY, np.float32)), [-1], True)
        return convert_image_dtype(grey, tensor.dtype.base)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Images [..., 1] with three equal channels, [..., 3]."""
    with name_scope(name or "grayscale_to_rgb"):
        tensor = convert_to_tensor(images)
        if tensor.shape.rank is None:
            copies = concat([ones(expand_dims(apply_one("Rank", [tensor], None) - 1, 0), "int32"), [3]], 0)
            return apply_one("Tile", [tensor, copies], None)
        return apply_one("Tile", [tensor, [1] * (tensor.shape.rank - 1) + [3]], None)


_YIQ: Final = ((0.299, 0.59590059, 0.2115), (0.587, -0.27455667, -0.52273617), (0.114, -0.32134392, 0.31119955))
_FROM_YIQ: Final = ((1.0, 1.0, 1.0), (0.95598634, -0.27201283, -1.10674021), (0.6208248, -0.64720424, 1.70423049))
_YUV: Final = ((0.299, -0.14714119, 0.61497538), (0.587, -0.28886916, -0.51496512), (0.114, 0.43601035, -0.10001026))
_FROM_YUV: Final = ((1.0, 1.0, 1.0), (0.0, -0.394642334, 2.03206185), (1.13988303, -0.58062185, 0.0))
"""The colours of video: the parts that each channel adds to the three new ones."""


def rgb_to_yiq(images: Any) -> Tensor:
    """From red, green and blue to luminance and the two colours of NTSC. images: [..., 3]."""
    return _recombined(images, _YIQ)


def yiq_to_rgb(images: Any) -> Tensor:
    """From luminance and the two colours of NTSC to red, green and blue. images: [..., 3]."""
    return _recombined(images, _FROM_YIQ)


def rgb_to_yuv(images: Any) -> Tensor:
    """From red, green and blue to luminance and the two colours of PAL. images: [..., 3]."""
    return _recombined(images, _YUV)


def yuv_to_rgb(images: Any) -> Tensor:
    """From luminance and the two colours of PAL to red, green and blue. images: [..., 3]."""
    return _recombined(images, _FROM_YUV)


def _recombined(images: Any, parts: Sequence[Sequence[float]]) -> Tensor:
    tensor = convert_to_tensor(images)
    return tensordot(tensor, constant(np.array(parts), tensor.dtype.base), [[-1], [0]])


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Images [..., 3] of floats from 0 to 1, as hue, saturation and value."""
    return apply_one("RGBToHSV", [images], name)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Images [..., 3] of hue, saturation and value, from 0 to 1, as red, green and blue."""
    return apply_one("HSVToRGB", [images], name)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Images with `delta`, from -1 to 1, added to their hue."""
    with name_scope(name or "adjust_hue"):
        tensor = convert_to_tensor(image)
        return convert_image_dtype(apply_one("AdjustHue", [convert_image_dtype(tensor, float32), delta], None), tensor.dtype.base)


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """Like `adjust_hue`, by a random number from -max_delta to max_delta, which is at most 0.5."""
    if not 0 <= max_delta <= 0.5:
        raise InvalidArgumentError(f"max_delta must be from 0 to 0.5, got {max_delta}")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Images with their saturation multiplied."""
    with name_scope(name or "adjust_saturation"):
        tensor = convert_to_tensor(image)
        saturated = apply_one("AdjustSaturation", [convert_image_dtype(tensor, float32), saturation_factor], None)
        return convert_image_dtype(saturated, tensor.dtype.base)


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Like `adjust_saturation`, by a random factor from `lower` to `upper`."""
    _check_range(lower, upper)
    return adjust_saturation(image, random_uniform([], lower, upper, seed=seed))


def per_image_standardization(image: Any) -> Tensor:
    """Images of mean 0 and variance 1, each by itself.

    The standard deviation counts as at least 1 / sqrt(elements).
    """
    with name_scope("per_image_standardization"):
        tensor = images_of(image, "per_image_standardization")
        floats = tensor if tensor.dtype.is_floating else cast(tensor, float32)
        axes = [-3, -2, -1]
        mean = reduce_mean(floats, axes, True)
        centred = floats - mean
        deviation = apply_one("Sqrt", [reduce_mean(centred * centred, axes, True)], None)
        known_sizes = floats.shape.as_list()[-3:]
        sizes = apply_one("StridedSlice", [apply_one("Shape", [floats], None), [-3], [0], [1]], None, {"end_mask": 1})
        count = (
            float(np.prod([size or 0 for size in known_sizes]))
            if None not in known_sizes
            else cast(apply_one("Prod", [sizes, [0]], None), floats.dtype.base)
        )
        least = 1.0 / np.sqrt(count) if isinstance(count, float) else apply_one("Rsqrt", [count], None)
        return centred / maximum(deviation, cast(convert_to_tensor(least), floats.dtype.base))


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of the absolute differences of neighbouring pixels, for each image."""
    with name_scope(name or "total_variation"):
        tensor = images_of(images, "total_variation")
        axes = [-3, -2, -1]
        down = tensor[..., 1:, :, :] - tensor[..., :-1, :, :]
        across = tensor[..., :, 1:, :] - tensor[..., :, :-1, :]
        return reduce_sum(absolute(down), axes) + reduce_sum(absolute(across), axes)


def psnr(a: Any, b: Any, max_val: float, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of images, in decibels.

    Args:
        a, b: the images to compare.
        max_val: the difference of the largest and the smallest value that their type has.
        name: the name scope.
    """
    with name_scope(name or "PSNR"):
        first, second = (convert_image_dtype(image, float32) for image in (a, b))
        peak = convert_image_dtype(cast(convert_to_tensor(max_val), convert_to_tensor(a).dtype.base), float32)
        error = reduce_mean(apply_one("SquaredDifference", [first, second], None), [-3, -2, -1])
        return 20 * log(peak) / np.float32(np.log(10)) - np.float32(10 / np.log(10)) * log(error)
