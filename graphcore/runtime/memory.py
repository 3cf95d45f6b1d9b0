"""Memory: what a run will need, what there is, and the refusal of what can never fit."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphcore.dtypes import DType
from graphcore.errors import ResourceExhaustedError
from graphcore.graph.node import Node, Tensor
from graphcore.runtime.schedule import Operation, Schedule

_SIZED_BY_INPUT: Final = {
    **dict.fromkeys(("Fill", "RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt", "Empty"), 0),
    **dict.fromkeys(("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"), 0),
    **dict.fromkeys(("BroadcastTo",), 1),
}
"""Ops whose output has the shape that this input says."""
VIEWS: Final = frozenset({"Reshape", "Squeeze", "ExpandDims", "Transpose", "StridedSlice", "Slice", "BroadcastTo", "Identity"})
"""Ops that may give a view of their first input."""
_GIB: Final = 1 << 30
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


@cache
def memory_limit() -> int:
    """The bytes that this process can have at most: the machine's memory, or what its control group allows."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [1 << 62]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = Path(path).read_text().strip() if Path(path).exists() else ""
        if text.isdigit():
            limits.append(int(text))
    return min(limits)


def tensor_bytes(tensor: Tensor) -> int | None:
    """What `tensor` takes, None if its shape is not known."""
    dtype = tensor.dtype.base.as_numpy
    count = tensor.shape.num_elements
    return None if count < 0 or dtype is None else count * dtype.itemsize


def guard_sizes(schedule: Schedule, *, any_large: bool = True) -> None:
    """Refuse what is larger than the memory, now where the shape is known, else before it is made.

    Args:
        any_large: whether any known shape is large at all.

    Raises:
        ResourceExhaustedError: a tensor can never fit.
    """
    limit = memory_limit()
    for operation in schedule.operations:
        for value in operation.outputs if any_large else ():
            size = tensor_bytes(value.tensor)
            if size is not None and size > limit and not value.is_reference and operation.node.op not in VIEWS:
                raise _too_large(operation.node, str(value.tensor.shape), value.tensor.dtype, size)
        slot = _SIZED_BY_INPUT.get(operation.node.op)
        if slot is not None and operation.inputs[slot].constant is None and operation.kernel is not None:
            operation.kernel = _guarded(operation, slot)


def _guarded(operation: Operation, slot: int) -> Callable[..., Any]:
    kernel, node = operation.kernel, operation.node
    dtype = node.output_types[0]
    itemsize = dtype.as_numpy.itemsize if dtype.as_numpy is not None else 1
    limit = memory_limit()

    def call(*values: Any) -> Any:
        shape = values[slot].tolist()
        size = math.prod(shape) * itemsize
        if size > limit:
            raise _too_large(node, f"[{','.join(map(str, shape))}]", dtype, size)
        return kernel(*values)

    return call


def out_of_memory(error: MemoryError) -> str:
    """What NumPy could not get, with its size in GiB where NumPy says it."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return f"Out of memory: {error}" if str(error) else "Out of memory"
    size = math.prod(shape) * dtype.itemsize
    return f"Out of memory when making an array of shape [{','.join(map(str, shape))}] and type {dtype} ({size / _GIB:.2f} GiB)"


def _too_large(node: Node, shape: str, dtype: DType, size: int) -> ResourceExhaustedError:
    inputs = ", ".join(f"{tensor.name} {tensor.dtype.name} {tensor.shape}" for tensor in node.inputs)
    return ResourceExhaustedError.at(
        node,
        f"The output of '{node.name}' = {node.op}({inputs}) has shape {shape} and type {dtype.name}: "
        f"that takes {size / _GIB:.2f} GiB, and there are {memory_limit() / _GIB:.2f} GiB",
    )
