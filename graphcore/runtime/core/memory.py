"""Memory: live-array accounting of recorded runs, and errors."""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

import numpy as np

from graphcore.dtypes import resource
from graphcore.graph.model.node import Node
from graphcore.kernel_context import is_kept, is_on_device
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.recorder import Recorder
from graphcore.support.memory_limits import GIB

_LARGEST_KEPT: Final = (32 << 20) - (64 << 10)
"""The bytes of the largest array whose memory the C library of Linux will keep for the next one, its own limit."""


@cache
def keep_freed_memory() -> None:
    """Make the C library keep up to 64 MB of freed memory instead of returning it after every step.

    Otherwise each step gets its memory from the system again, cleared page by page, which takes as long as the computation of a small
    network. The C library of Linux adapts to the largest array freed so far and keeps freed memory up to that size. This function allocates
    and frees an array of the largest size that the library considers, without touching its pages. Other C libraries are unaffected, and so
    are processes whose environment sets MALLOC_TRIM_THRESHOLD_, such as Dask's workers.
    """
    with contextlib.suppress(MemoryError):
        np.empty(_LARGEST_KEPT, np.uint8)


def out_of_memory(error: MemoryError) -> str:
    """The description of an allocation that failed, with its size in GiB if NumPy reports it."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return f"Out of memory: {error}" if str(error) else "Out of memory"
    size = math.prod(shape) * dtype.itemsize
    return f"Out of memory when making an array of shape [{','.join(map(str, shape))}] and type {dtype} ({size / GIB:.2f} GiB)"


class LiveArrays:
    """Counts arrays from their creation by a node to their release.

    A view counts as its base. Feeds, constants, values of variables and scalars do not count.

    Args:
        step: the run.
        recorder: its recorder.
        feeds: the feeds.
        device: the full name of the device, "" if there is only one.
    """

    __slots__ = ("__weakref__", "_call", "_device", "_feeds", "_lives", "_recorder", "_step")

    def __init__(self, step: Step, recorder: Recorder, feeds: Iterable[Any] = (), device: str = "") -> None:
        self._step = step
        self._recorder = recorder
        self._call = step.call
        self._device = device
        self._feeds = {id(_owner(value)) for value in feeds}
        self._lives: dict[int, _Life] = {}

    def add(self, values: Iterable[Any], node: str) -> None:
        """Count the arrays in `values`, the outputs of `node`."""
        for value in values:
            if (type(value) is not np.ndarray and not is_on_device(value)) or not value.ndim:
                continue
            owner = value if value.base is None else _owner(value)
            identity = id(owner)
            if identity not in self._lives and not is_kept(owner) and identity not in self._feeds:
                life = self._lives[identity] = _Life(owner, self._end)
                life.identity, life.size = identity, owner.nbytes
                life.record = self._recorder.record_array(node, self._call, self._device, life.size)
                self._step.hold(life.size)

    def settle(self) -> None:
        """After a node has run, stop counting the arrays that variables took."""
        for life in list(self._lives.values()):
            array = life()
            if array is not None and is_kept(array):
                self._end(life)

    def close(self) -> None:
        """Stop counting after the run: the results belong to the caller."""
        for life in list(self._lives.values()):
            self._end(life)

    def _end(self, life: _Life) -> None:
        """Stop counting an array."""
        if self._lives.pop(life.identity, None) is None:
            return
        self._step.hold(-life.size)
        self._recorder.end_array(life.record)


class _Life(weakref.ref[Any]):
    """A counted array, until its release."""

    __slots__ = ("identity", "record", "size")

    identity: int
    record: list[Any]
    size: int


def may_assign_inputs(node: Node) -> bool:
    """True iff an input array of `node` may become the value of a variable."""
    return node.op_def.is_stateful or any(dtype.is_ref or dtype is resource for dtype in node.input_types)


def _owner(value: Any) -> Any:
    """The array that owns the memory of `value`."""
    base = getattr(value, "base", None)
    while base is not None and type(base) is type(value):
        value, base = base, base.base
    return value
