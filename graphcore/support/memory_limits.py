"""Whether what is to be made can ever fit into the memory: asked by what only knows how large that will be when it is about to make it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphcore.dtypes import as_dtype

GIB: Final = 1 << 30


@cache
def memory_limit() -> int:
    """The bytes that this process can have at most: the machine's memory, or what its control group allows."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [1 << 62]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = Path(path).read_text().strip() if Path(path).exists() else ""
        if text.isdigit():
            limits.append(int(text))
    return min(limits)


def compared(size: int) -> str:
    """What so many bytes are beside what there is."""
    return f"that takes {size / GIB:.2f} GiB, and there are {memory_limit() / GIB:.2f} GiB"


class NoRoomError(MemoryError):
    """What a kernel was to make can never fit, and has not been made.

    Attributes:
        what: what the node's output is.
        size: in bytes.
    """

    def __init__(self, what: str, size: int) -> None:
        super().__init__(f"an output that {what}: {compared(size)}")
        self.what = what
        self.size = size


def require_room(sizes: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Require that an array can be had.

    Raises:
        NoRoomError: it never can.
    """
    size = math.prod(sizes) * dtype.itemsize
    if size > memory_limit():
        raise NoRoomError(f"has shape [{','.join(map(str, sizes))}] and type {as_dtype(dtype).name}", size)


def require_places(count: int, each: int) -> None:
    """Require that a list with so many places can be had.

    Args:
        each: the bytes that a place takes.

    Raises:
        NoRoomError: it never can.
    """
    if count * each > memory_limit():
        raise NoRoomError(f"is a list of {count} elements", count * each)
