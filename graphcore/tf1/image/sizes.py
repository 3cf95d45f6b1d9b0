"""Images in other sizes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.dtypes import float32, int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import convert_to_tensor, name_scope
from graphcore.tf1.image.shapes import as_batch, sizes_of
from graphcore.tf1.math.elementwise import cast, minimum

__all__ = ["ResizeMethod", "resize", "resize_area", "resize_bicubic", "resize_bilinear", "resize_images", "resize_nearest_neighbor"]


class ResizeMethod:
    """The ways of resizing."""

    BILINEAR: Final = 0
    NEAREST_NEIGHBOR: Final = 1
    BICUBIC: Final = 2
    AREA: Final = 3


def resize_images(
    images: Any,
    size: Any,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Images in another size.

    Args:
        images: [batch, height, width, channels] or [height, width, channels].
        size: the new height and width: two ints, or an int32 tensor.
        method: one of `ResizeMethod`.
        align_corners: the centres of the corners stay where they are.
        preserve_aspect_ratio: the largest size of this ratio that is within `size`.
        name: the name scope.

    Returns:
        float32; the type of `images` for nearest neighbours, and the images themselves if they have this size.

    Raises:
        InvalidArgumentError: no such method, or not two sizes.
    """
    resized = _RESIZED.get(method)
    if resized is None:
        raise InvalidArgumentError("Resize method is not implemented: required one of gc.image.ResizeMethod, got " + repr(method))
    with name_scope(name or "resize"):
        wanted = convert_to_tensor(size if isinstance(size, Tensor) else np.asarray(size), name="size")
        if wanted.shape.as_list() != [2]:
            raise InvalidArgumentError(f"'size' must be a 1-D Tensor of 2 elements: new_height, new_width; got shape {wanted.shape}")

        def change(batch: Tensor) -> Tensor:
            target = _within(batch, wanted) if preserve_aspect_ratio else cast(wanted, int32)
            static_size = None if isinstance(size, Tensor) or preserve_aspect_ratio else [int(number) for number in np.asarray(size)]
            if static_size is not None and static_size == batch.shape.as_list()[1:3]:
                return batch
            return resized(batch, target, align_corners)

        return as_batch(images, "resize_images", change)


resize = resize_images


def _within(images: Tensor, size: Tensor) -> Tensor:
    """The largest size with the ratio of the images that is within `size`."""
    own = cast(apply_one("Pack", [[convert_to_tensor(length, int32) for length in sizes_of(images)]], None), float32)
    scales = cast(size, float32) / own
    scale = minimum(scales[0], scales[1])
    return cast(apply_one("Round", [scale * own], None), int32)


def resize_bilinear(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Tensor:
    """A batch of images in another size, between four pixels each."""
    return apply_one("ResizeBilinear", [images, size], name, {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers})


def resize_nearest_neighbor(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Tensor:
    """A batch of images in another size, made from the nearest pixels."""
    return apply_one(
        "ResizeNearestNeighbor", [images, size], name, {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    )


def resize_bicubic(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Tensor:
    """A batch of images in another size, between sixteen pixels each."""
    return apply_one("ResizeBicubic", [images, size], name, {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers})


def resize_area(images: Any, size: Any, align_corners: bool = False, name: str | None = None) -> Tensor:
    """A batch of images in another size, of means over areas."""
    return apply_one("ResizeArea", [images, size], name, {"align_corners": align_corners})


_RESIZED: Final = {
    ResizeMethod.BILINEAR: resize_bilinear,
    ResizeMethod.NEAREST_NEIGHBOR: resize_nearest_neighbor,
    ResizeMethod.BICUBIC: resize_bicubic,
    ResizeMethod.AREA: resize_area,
}
