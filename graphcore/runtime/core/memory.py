"""Memory: what there is, what tensors take of it, and what is said when it is not enough."""

from __future__ import annotations

import contextlib
import math
from functools import cache
from typing import Final

import numpy as np

from graphcore.graph.model.node import Tensor
from graphcore.support.memory_limits import GIB

VIEWS: Final = frozenset({"Reshape", "Squeeze", "ExpandDims", "Transpose", "StridedSlice", "Slice", "BroadcastTo", "Identity"})
"""Ops that may give a view of their first input."""
_LARGEST_KEPT: Final = (32 << 20) - (64 << 10)
"""The bytes of the largest array whose memory the C library of Linux will keep for the next one, its own limit."""


@cache
def keep_freed_memory() -> None:
    """Have the C library keep the memory of freed arrays, up to 64 MB, rather than return it after every step.

    A step that returns its memory gets it back from the system page by page, cleared, at the next: for small networks that takes as
    long as the computing. The C library of Linux adapts: once it has seen an array freed, it keeps memory for others up to that size.
    It is shown the largest that it takes into account. No page of that array is ever touched, and other C libraries are not moved.
    """
    with contextlib.suppress(MemoryError):
        np.empty(_LARGEST_KEPT, np.uint8)


def tensor_bytes(tensor: Tensor) -> int | None:
    """What `tensor` takes, None if its shape is not known."""
    dtype = tensor.dtype.base.as_numpy
    count = tensor.shape.num_elements
    return None if count < 0 or dtype is None else count * dtype.itemsize


def out_of_memory(error: MemoryError) -> str:
    """What NumPy could not get, with its size in GiB where NumPy says it."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return f"Out of memory: {error}" if str(error) else "Out of memory"
    size = math.prod(shape) * dtype.itemsize
    return f"Out of memory when making an array of shape [{','.join(map(str, shape))}] and type {dtype} ({size / GIB:.2f} GiB)"
