"""The allocation limit: refuses arrays and lists that can never fit into memory."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphcore.dtypes import as_dtype
from graphcore.errors import ResourceExhaustedError

resource: Any = import_module("resource") if os.name == "posix" else None
"""Limits of processes, which Windows does not have."""
GIB: Final = 1 << 30
_BEYOND_NUMBERS: Final = 1 << 90
"""Larger sizes, the products of damaged shapes, are not written as numbers."""


@cache
def memory_limit() -> int:
    """The most bytes this process can have: the machine's memory, or a limit of its group or itself."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [1 << 62]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = Path(path).read_text().strip() if Path(path).exists() else ""
        if text.isdigit():
            limits.append(int(text))
    if resource is not None and (own := resource.getrlimit(resource.RLIMIT_AS)[0]) >= 0:  # -1 is no limit
        limits.append(own)
    return min(limits)


def compared(size: int) -> str:
    """Compare a size in bytes with the allocation limit, in words."""
    return f"that takes {_in_gib(size)}, and there are {_in_gib(memory_limit())}"


def _in_gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB" if size < _BEYOND_NUMBERS else "more than 2^60 GiB"


class AllocationLimitError(MemoryError):
    """An allocation of a kernel was refused because it exceeds the allocation limit.

    Attributes:
        what: description of the output.
        size: its bytes.
    """

    def __init__(self, what: str, size: int) -> None:
        super().__init__(f"an output that {what}: {compared(size)}")
        self.what = what
        self.size = size


def check_claim(size: int, what: str) -> None:
    """Check the bytes that a file claims to hold against the allocation limit.

    Args:
        size: the bytes.
        what: what would have this size, for the error.

    Raises:
        ResourceExhaustedError: it exceeds the limit.
    """
    if size > memory_limit():
        raise ResourceExhaustedError(f"Cannot read {what}: {compared(size)}").advise(
            "Read a part of it, or use a machine with more memory. If it should be small, the file is damaged.",
            required=f"at most {_in_gib(memory_limit())}",
            came=_in_gib(size),
        )


def check_allocation(sizes: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Check the size of an array against the allocation limit.

    Raises:
        AllocationLimitError: the array exceeds the limit.
    """
    size = math.prod(sizes) * dtype.itemsize
    if size > memory_limit():
        raise AllocationLimitError(f"has shape [{','.join(map(str, sizes))}] and type {as_dtype(dtype).text}", size)


def check_list_allocation(count: int, element_bytes: int) -> None:
    """Check the size of a list against the allocation limit.

    Args:
        element_bytes: the bytes of an element.

    Raises:
        AllocationLimitError: the list exceeds the limit.
    """
    if count * element_bytes > memory_limit():
        raise AllocationLimitError(f"is a list of {count} elements", count * element_bytes)
