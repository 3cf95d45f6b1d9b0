"""Images with and without a batch, and their sizes, known or computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.arrays.layout import expand_dims, shape, squeeze
from graphcore.tf1.framework import convert_to_tensor

_ONE: Final = 3
_MANY: Final = 4


def images_of(image: Any, what: str) -> Tensor:
    """An image or a batch of images as a tensor.

    Raises:
        InvalidArgumentError: its rank is known, and neither 3 nor 4.
    """
    tensor = convert_to_tensor(image)
    if tensor.shape.rank not in (_ONE, _MANY):
        raise InvalidArgumentError(f"{what}: 'image' must have either 3 or 4 dimensions, got the shape {tensor.shape}")
    return tensor


def as_batch(image: Any, what: str, change: Callable[[Tensor], Tensor]) -> Tensor:
    """`change` of a batch of images; a single image is a batch of one meanwhile."""
    tensor = images_of(image, what)
    if tensor.shape.rank == _MANY:
        return change(tensor)
    return squeeze(change(expand_dims(tensor, 0)), [0])


def sizes_of(images: Tensor) -> tuple[Any, Any]:
    """Height and width of a batch: ints where they are known, otherwise int32 tensors."""
    static_sizes = images.shape.as_list()
    sizes: list[Any] = [static_sizes[axis] if static_sizes[axis] is not None else shape(images)[axis] for axis in (1, 2)]
    return sizes[0], sizes[1]


def is_known(*values: Any) -> bool:
    """True iff all are numbers and none a tensor."""
    return not any(isinstance(value, Tensor) for value in values)
