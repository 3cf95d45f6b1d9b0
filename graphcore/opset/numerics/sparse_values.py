"""Sparse tensors on the host: indices [n, rank], values [n], and a shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.numerics.string_arrays import strings
from graphcore.support.memory_limits import check_allocation

Sizes = tuple[int, ...]


def checked(k: KernelContext, indices: Any, values: Any, shape: Any) -> Sizes:
    """The sizes of a sparse tensor, after a check of all three parts.

    Raises:
        InvalidArgumentError: they do not fit together, or an index is outside.
    """
    if indices.ndim != 2 or shape.ndim != 1 or values.ndim != 1 or indices.shape != (values.shape[0], shape.shape[0]):
        raise invalid(
            k,
            f"required indices [n, rank], values [n] and shape [rank] of a sparse tensor, got shapes {list(indices.shape)}, "
            f"{list(values.shape)} and {list(shape.shape)}",
        )
    sizes = tuple(int(size) for size in shape.tolist())
    check_inside(k, indices, sizes)
    return sizes


def check_inside(k: KernelContext, indices: Any, sizes: Sizes) -> None:
    """Check that all indices [n, rank] are inside of a shape.

    Raises:
        InvalidArgumentError: one is not; the text has the first.
    """
    outside = ((indices < 0) | (indices >= np.array(sizes, np.int64))).any(1)
    if outside.any():
        at = int(outside.argmax())
        raise invalid(k, f"indices[{at}] = {indices[at].tolist()} is out of bounds: need 0 <= index < {list(sizes)}")


def places(indices: Any, sizes: Sequence[int]) -> Any:
    """The positions of indices [n, rank] in the dense tensor, flattened: int64 [n]."""
    positions = np.zeros(len(indices), np.int64)
    for axis, size in enumerate(sizes):
        positions = positions * size + indices[:, axis]
    return positions


def indices_at(flat: Any, sizes: Sequence[int]) -> Any:
    """The indices [n, rank] of flat positions.

    Raises:
        AllocationLimitError: the indices exceed the allocation limit.
    """
    check_allocation((len(flat), len(sizes)), np.dtype(np.int64))
    rows = np.zeros((len(flat), len(sizes)), np.int64)
    rest = flat
    for axis in range(len(sizes) - 1, -1, -1):
        rows[:, axis] = rest % max(sizes[axis], 1)
        rest = rest // max(sizes[axis], 1)
    return rows


def vector_like(values: list[Any], dtype: Any) -> Any:
    """A vector of that type from its elements."""
    return strings(values, (len(values),)) if dtype == np.object_ else np.array(values, dtype)


def in_order(indices: Any, sizes: Sequence[int]) -> Any:
    """The order in which indices ascend: int64 [n]."""
    return np.argsort(places(indices, sizes), kind="stable")
