"""Parts of images: crops, padding, flips and turns."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from graphcore.api.branches import switch_case
from graphcore.dtypes import float64, int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import convert_to_tensor, name_scope
from graphcore.tf1.image.shapes import as_batch, images_of, is_known, sizes_of
from graphcore.tf1.math.elementwise import cast, maximum, minimum, where
from graphcore.tf1.random import random_uniform

__all__ = [
    "central_crop",
    "crop_to_bounding_box",
    "flip_left_right",
    "flip_up_down",
    "pad_to_bounding_box",
    "random_flip_left_right",
    "random_flip_up_down",
    "resize_image_with_crop_or_pad",
    "resize_with_crop_or_pad",
    "rot90",
    "transpose",
    "transpose_image",
]


def _reversed(images: Tensor, axis: int) -> Tensor:
    return apply_one("ReverseV2", [images, np.array([axis], np.int32)], None)


def flip_left_right(image: Any) -> Tensor:
    """Images mirrored left to right."""
    return as_batch(image, "flip_left_right", lambda images: _reversed(images, 2))


def flip_up_down(image: Any) -> Tensor:
    """Images mirrored top to bottom."""
    return as_batch(image, "flip_up_down", lambda images: _reversed(images, 1))


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Images mirrored left to right, each with a chance of one half."""
    return _randomly_flipped(image, 2, seed, "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Images mirrored top to bottom, each with a chance of one half."""
    return _randomly_flipped(image, 1, seed, "random_flip_up_down")


def _randomly_flipped(image: Any, axis: int, seed: int | None, name: str) -> Tensor:
    tensor = images_of(image, name)
    with name_scope(name):
        if tensor.shape.rank == 3:
            mirrored = apply_one("Less", [random_uniform([], 0.0, 1.0, seed=seed), 0.5], None)
            return where(mirrored, _reversed(tensor, axis - 1), tensor)
        count = apply_one("StridedSlice", [apply_one("Shape", [tensor], None), [0], [1], [1]], None)
        draws = random_uniform(count, 0.0, 1.0, seed=seed)
        flips = apply_one("Round", [draws], None)
        flips = cast(apply_one("Reshape", [flips, [-1, 1, 1, 1]], None), tensor.dtype.base)
        return flips * _reversed(tensor, axis) + (1 - flips) * tensor


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Images turned to the left by `k` quarters of a turn."""
    with name_scope(name or "rot90"):
        if isinstance(k, Tensor):
            times = k % 4
            tensor = images_of(image, "rot90")
            turned: Tensor = switch_case(cast(times, int32), [partial(rot90, tensor, turns) for turns in range(4)])
            return turned
        turns = int(k) % 4

        def change(images: Tensor) -> Tensor:
            if turns == 2:
                return _reversed(_reversed(images, 1), 2)
            if not turns:
                return images
            swapped = apply_one("Transpose", [images if turns == 3 else _reversed(images, 2), [0, 2, 1, 3]], None)
            return _reversed(swapped, 2) if turns == 3 else swapped

        return as_batch(image, "rot90", change)


def transpose_image(image: Any, name: str | None = None) -> Tensor:
    """Images with height and width exchanged."""
    with name_scope(name or "transpose_image"):
        return as_batch(image, "transpose_image", lambda images: apply_one("Transpose", [images, [0, 2, 1, 3]], None))


transpose = transpose_image


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """The middle of images.

    Args:
        image: the images.
        central_fraction: its part of height and width, above 0 and at most 1.

    Raises:
        InvalidArgumentError: the part is out of this range.
    """
    tensor = images_of(image, "central_crop")
    if not 0.0 < central_fraction <= 1.0:
        raise InvalidArgumentError(f"central_fraction must be within (0, 1], got {central_fraction}")
    if central_fraction == 1.0:
        return tensor

    def change(images: Tensor) -> Tensor:
        starts = [_border(size, central_fraction) for size in sizes_of(images)]
        sizes = [size - 2 * start for size, start in zip(sizes_of(images), starts, strict=True)]
        return _cropped(images, starts[0], starts[1], sizes[0], sizes[1])

    return as_batch(tensor, "central_crop", change)


def _border(size: Any, part: float) -> Any:
    """The size of the border that is left out."""
    if isinstance(size, Tensor):
        wide = cast(size, float64)
        return cast((wide - wide * part) / 2, int32)
    return int((size - size * part) / 2)


def _cropped(images: Tensor, top: Any, left: Any, height: Any, width: Any) -> Tensor:
    begin, size = (
        apply_one("Pack", [[convert_to_tensor(number, int32) for number in each4]], None)
        for each4 in ((0, top, left, 0), (-1, height, width, -1))
    )
    cut = apply_one("Slice", [images, begin, size], None)
    sizes = images.shape.as_list()
    cut.set_shape([sizes[0], height if is_known(height) else None, width if is_known(width) else None, sizes[3]])
    return cut


def crop_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> Tensor:
    """A part of images.

    Args:
        image: the images.
        offset_height, offset_width: the rows above and the columns to the left of it.
        target_height, target_width: its size.

    Raises:
        InvalidArgumentError: it is not within the images, as far as sizes are known; others are checked at run time.
    """

    def change(images: Tensor) -> Tensor:
        _check_box(sizes_of(images), (offset_height, offset_width), (target_height, target_width), "crop_to_bounding_box")
        return _cropped(images, offset_height, offset_width, target_height, target_width)

    return as_batch(image, "crop_to_bounding_box", change)


def _check_box(whole: tuple[Any, Any], offsets: tuple[Any, Any], sizes: tuple[Any, Any], what: str) -> None:
    for name, size, offset, part in zip(("height", "width"), whole, offsets, sizes, strict=True):
        if is_known(offset) and offset < 0:
            raise InvalidArgumentError(f"{what}: offset_{name} must be >= 0, got {offset}")
        if is_known(part) and part <= 0:
            raise InvalidArgumentError(f"{what}: target_{name} must be > 0, got {part}")
        if is_known(size, offset, part) and offset + part > size:
            raise InvalidArgumentError(f"{what}: {name} must be >= target + offset, got {size} < {part} + {offset}")


def pad_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> Tensor:
    """Images with zeros around them.

    Args:
        image: the images.
        offset_height, offset_width: the rows above and the columns to the left of each image.
        target_height, target_width: the size of the result.

    Raises:
        InvalidArgumentError: the images do not fit, as far as sizes are known; others are checked at run time.
    """

    def change(images: Tensor) -> Tensor:
        height, width = sizes_of(images)
        _check_box((target_height, target_width), (offset_height, offset_width), (height, width), "pad_to_bounding_box")
        below, right = target_height - offset_height - height, target_width - offset_width - width
        numbers = [convert_to_tensor(number, int32) for number in (0, 0, offset_height, below, offset_width, right, 0, 0)]
        around = apply_one("Reshape", [apply_one("Pack", [numbers], None), [4, 2]], None)
        padded = apply_one("Pad", [images, around], None)
        sizes = images.shape.as_list()
        padded.set_shape(
            [sizes[0], target_height if is_known(target_height) else None, target_width if is_known(target_width) else None, sizes[3]]
        )
        return padded

    return as_batch(image, "pad_to_bounding_box", change)


def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Images cut at all sides, or with zeros around them, to a size."""
    with name_scope("resize_image_with_crop_or_pad"):

        def change(images: Tensor) -> Tensor:
            wanted = target_height, target_width
            sizes = sizes_of(images)
            if any(is_known(target) and target <= 0 for target in wanted):
                raise InvalidArgumentError(f"resize_image_with_crop_or_pad: the size must be > 0, got {wanted}")
            more = [target - size for target, size in zip(wanted, sizes, strict=True)]
            cut = [_half(_most(-extra, 0)) for extra in more]
            kept = [_least(target, size) for target, size in zip(wanted, sizes, strict=True)]
            inside = _cropped(images, cut[0], cut[1], kept[0], kept[1])
            above, before = (_half(_most(extra, 0)) for extra in more)
            return pad_to_bounding_box(inside, above, before, target_height, target_width)

        return as_batch(image, "resize_image_with_crop_or_pad", change)


resize_with_crop_or_pad = resize_image_with_crop_or_pad


def _half(value: Any) -> Any:
    return apply_one("FloorDiv", [value, 2], None) if isinstance(value, Tensor) else value // 2


def _most(a: Any, b: Any) -> Any:
    return max(a, b) if is_known(a, b) else maximum(a, b)


def _least(a: Any, b: Any) -> Any:
    return min(a, b) if is_known(a, b) else minimum(a, b)
