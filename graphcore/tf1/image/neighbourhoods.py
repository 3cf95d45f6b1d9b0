"""Edges, slopes and the structural similarity of images, from the neighbours of each pixel."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.dtypes import float32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import concat, reshape, shape
from graphcore.tf1.arrays.slices import pad
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.image.colours import convert_image_dtype
from graphcore.tf1.math.elementwise import cast, square
from graphcore.tf1.math.reductions import reduce_mean
from graphcore.tf1.nn import depthwise_conv2d

__all__ = ["image_gradients", "sobel_edges", "ssim"]

_SOBEL: Final = np.array([[[-1, -2, -1], [0, 0, 0], [1, 2, 1]], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]], np.float32)
"""The filters for edges down and across."""


def sobel_edges(image: Any) -> Tensor:
    """The slopes of brightness by Sobel's filters, down and across.

    Args:
        image: [batch, height, width, channels]; the result has one more dimension, of size 2.
    """
    tensor = convert_to_tensor(image)
    channels = _channels(tensor, "sobel_edges")
    filters = constant(np.repeat(_SOBEL.transpose(1, 2, 0)[:, :, None], channels, axis=2), tensor.dtype.base)
    around = pad(tensor, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    edges = depthwise_conv2d(around, filters, [1, 1, 1, 1], "VALID")
    return reshape(edges, concat([shape(tensor), [2]], 0))


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """The differences of each pixel from the next one down, and across; 0 in the last row or column.

    Args:
        image: [batch, height, width, channels].

    Raises:
        InvalidArgumentError: it has another rank.
    """
    tensor = convert_to_tensor(image)
    if tensor.shape.rank != 4:
        raise InvalidArgumentError(f"image_gradients: required image as [batch, height, width, channels], got shape {tensor.shape}")
    down = tensor[:, 1:] - tensor[:, :-1]
    across = tensor[:, :, 1:] - tensor[:, :, :-1]
    return pad(down, [[0, 0], [0, 1], [0, 0], [0, 0]]), pad(across, [[0, 0], [0, 0], [0, 1], [0, 0]])


def ssim(
    img1: Any, img2: Any, max_val: float, filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03
) -> Tensor:
    """The structural similarity of images, [...]: 1 for equal ones.

    It is the mean over windows that a Gaussian weighs.

    Args:
        img1, img2: the images, [..., height, width, channels].
        max_val: the difference of the largest and the smallest value that their type has.
        filter_size: the side of a window, in pixels.
        filter_sigma: the width of the Gaussian, in pixels.
        k1, k2: small factors that keep the result steady where there is little light or contrast.
    """
    with name_scope("SSIM"):
        kind = convert_to_tensor(img1).dtype.base
        peak = convert_image_dtype(cast(convert_to_tensor(max_val), kind), float32)
        first, second = (convert_image_dtype(image, float32) for image in (img1, img2))
        places = np.square(np.arange(filter_size, dtype=np.float32) - (filter_size - 1) / 2) * (-0.5 / filter_sigma**2)
        weights = np.exp(places[:, None] + places)
        window = np.repeat((weights / weights.sum())[:, :, None, None], _channels(first, "ssim"), axis=2).astype(np.float32)

        def mean(images: Tensor) -> Tensor:
            sizes = shape(images)
            batch = reshape(images, concat([[-1], sizes[-3:]], 0))
            smoothed = depthwise_conv2d(batch, constant(window), [1, 1, 1, 1], "VALID")
            return reshape(smoothed, concat([sizes[:-3], shape(smoothed)[1:]], 0))

        light, contrast = square(k1 * peak), square(k2 * peak)
        means = mean(first), mean(second)
        both, squares = 2.0 * means[0] * means[1], square(means[0]) + square(means[1])
        luminance = (both + light) / (squares + light)
        structure = (2.0 * mean(first * second) - both + contrast) / (mean(square(first) + square(second)) - squares + contrast)
        return reduce_mean(reduce_mean(luminance * structure, [-3, -2]), [-1])


def _channels(images: Tensor, function: str) -> int:
    sizes = images.shape.as_list() if images.shape.rank else [None]
    if sizes[-1] is None:
        raise InvalidArgumentError(f"{function}: required images with a known number of channels, got shape {images.shape}")
    return sizes[-1]
