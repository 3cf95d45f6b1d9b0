"""CuPy with its streams and memory on NumPy, for checks on machines without a GPU.

`StrictCupy` replaces the module `cupy`. Its arrays are strict; its functions have the parameters of CuPy's (`cupy_api.txt`). What would be wrong on a
GPU, sometimes or always, is an AssertionError here: a kernel on the default stream, the use of an array that another stream is still filling,
a transfer that does not wait for earlier kernels, and pinned memory that is released before its copy has ended.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tests.support import cupy_api
from tests.support.strict_arrays import MACHINES, StrictArray, StrictModule, StrictUfunc
from tests.support.strict_fusion import Fusion

_KNOWN: Final = cupy_api.read_cuda()


def _as_in_cupy(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function take what CuPy's function `name` takes."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = _KNOWN[name]

        def call(*arguments: Any, **named: Any) -> Any:
            signature.bind(*arguments[name[0].isupper() :], **named)
            return function(*arguments, **named)

        return call

    return decorate


class CUDARuntimeError(RuntimeError):
    """The error of CUDA."""


class OutOfMemoryError(MemoryError):
    """The error of CuPy for a limit of memory that is exceeded."""


class PinnedMemory(bytearray):
    """Memory of the host."""


class Stream:
    """A stream: it counts what is launched, and knows up to where it waits for other streams."""

    def __init__(self, machine: StrictCupy, device: int) -> None:
        self.machine = machine
        self.device = device
        self.launched = 0
        self.synchronized = 0
        self.ended = 0
        self.seen: dict[Stream, int] = {}
        self.copies: list[tuple[int, weakref.ref[PinnedMemory]]] = []
        self.lent: list[tuple[Stream, int, weakref.ref[StrictArray]]] = []

    def __enter__(self) -> None:
        self.machine.place.streams.append(self)

    def __exit__(self, *_: object) -> None:
        assert self.machine.place.streams.pop() is self

    def launch(self) -> int:
        for other, place, array in self.lent:
            may_be_used_again = array() is None and other.ended < place and self.seen.get(other, 0) < place
            assert not may_be_used_again, "the memory of an array was released before its copy to another device had ended"
        self.launched += 1
        return self.launched

    @_as_in_cupy("Stream.record")
    def record(self, event: Any = None) -> Any:
        return event or Event(self, self.launched)

    @_as_in_cupy("Stream.wait_event")
    def wait_event(self, event: Any) -> None:
        self.seen[event.stream] = max(self.seen.get(event.stream, 0), event.place)

    @_as_in_cupy("Stream.synchronize")
    def synchronize(self) -> None:
        self.synchronized += 1
        for place, memory in self.copies:
            assert place <= self.ended or memory() is not None, "pinned memory was released before its copy had ended"
        self.copies.clear()
        self.ended = self.launched
        for other, place in self.seen.items():
            other.ended = max(other.ended, place)

    @_as_in_cupy("Stream.begin_capture")
    def begin_capture(self, mode: Any = None) -> None:
        assert self.machine.captured is None
        pool = self.machine.place.allocators[-1].__self__
        pool.is_of_graph = True
        self.machine.memory_of_graph = weakref.ref(pool)
        self.machine.captured = []

    @_as_in_cupy("Stream.end_capture")
    def end_capture(self) -> Graph:
        captured, self.machine.captured = self.machine.captured, None
        assert captured is not None
        made = Graph(self, captured)
        self.machine.graphs.append(made)
        return made


class Graph:
    """A captured run. A launch computes it again into the same arrays, which hold noise before."""

    def __init__(self, stream: Stream, captured: list[tuple[Callable[[], Any], Any]]) -> None:
        self.launches = 0
        self._stream = stream
        self._memory = stream.machine.memory_of_graph
        self._captured = captured
        for _, result in captured:
            for array in _arrays(result):
                if array.flags.owndata:
                    array.reshape(-1).view(np.uint8)[...] = 0xA5

    @_as_in_cupy("Graph.launch")
    def launch(self, stream: Any = None) -> None:
        assert stream is self._stream
        assert self._memory() is not None, "the memory of intermediate results was released"
        self.launches += 1
        stream.launch()
        for again, result in self._captured:
            for array, value in zip(_arrays(result), _arrays(again()), strict=True):
                if array.flags.writeable:  # else it is a broadcast view of what is computed before
                    array[...] = value


def _arrays(value: Any) -> list[npt.NDArray[Any]]:
    """The NumPy arrays of a result."""
    if isinstance(value, tuple | list):
        return [array for part in value for array in _arrays(part)]
    return [np.asarray(getattr(value, "held", value))] if isinstance(value, StrictArray | np.ndarray | np.generic) else []


class Event:
    """A place in a stream."""

    def __init__(self, stream: Stream, place: int) -> None:
        self.stream = stream
        self.place = place

    @property
    def done(self) -> bool:
        return self.place <= self.stream.ended


class MemoryPool:
    """A pool with a limit, which allocations of `empty` respect."""

    def __init__(self) -> None:
        self.limit = 0
        self.is_of_graph = False

    @_as_in_cupy("MemoryPool.set_limit")
    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        assert fraction is None
        self.limit = size or 0

    @_as_in_cupy("MemoryPool.malloc")
    def malloc(self, size: int) -> None:
        if self.limit and size > self.limit:
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes (limit set to: {self.limit:,} bytes).")


class StrictCupy(StrictModule):
    """A module in place of `cupy`, with some devices.

    Args:
        devices: the number of devices; -1 for a machine without a driver.
        memory: the bytes of each.

    Attributes:
        uploads, downloads, copies, fused: the numbers of transfers, also between devices, and of calls of fused functions.
        cannot_fuse: the error of all such calls, "" for none.
        streams, graphs: all streams and CUDA graphs made.
        captured: what is launched while a stream is captured, else None.
        memory_of_graph: a weak reference to the pool of the last capture.
        pinned: the allocator of pinned memory.
        place: the device, streams and allocators of each thread.
    """

    ndarray: Final = StrictArray
    ufunc: Final = StrictUfunc

    def __init__(self, devices: int = 1, memory: int = 1 << 30) -> None:
        super().__init__("cupy")
        self.devices = devices
        self.memory = memory
        self.uploads = self.downloads = self.copies = self.fused = 0
        self.cannot_fuse = ""
        self.place = _Place()
        self.streams: list[Stream] = []
        self.captured: list[tuple[Callable[[], Any], Any]] | None = None
        self.graphs: list[Graph] = []
        self.memory_of_graph: Any = None
        self.pinned: Any = PinnedMemory
        self.get_default_pinned_memory_pool = _as_in_cupy("get_default_pinned_memory_pool")(lambda: SimpleNamespace(malloc=PinnedMemory))
        self.fuse = _as_in_cupy("fuse")(self._fuse)
        self.cuda = SimpleNamespace(
            Device=lambda number: _Device(self, number),
            Stream=self._stream,
            MemoryPool=MemoryPool,
            alloc_pinned_memory=_as_in_cupy("cuda.alloc_pinned_memory")(self._allocate_pinned),
            set_pinned_memory_allocator=_as_in_cupy("cuda.set_pinned_memory_allocator")(self._set_pinned),
            using_allocator=_as_in_cupy("cuda.using_allocator")(self._using_allocator),
            runtime=SimpleNamespace(
                getDeviceCount=_as_in_cupy("cuda.runtime.getDeviceCount")(self._count), CUDARuntimeError=CUDARuntimeError
            ),
        )

    @contextmanager
    def watching(self) -> Iterator[StrictCupy]:
        """Watch all uses of strict arrays within the block."""
        MACHINES.append(self)
        try:
            yield self
        finally:
            MACHINES.remove(self)

    def empty(self, shape: Any, dtype: Any = float) -> StrictArray:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        self.place.allocators[-1](size)
        assert not self.place.allocators[-1].__self__.is_of_graph, "a captured kernel may write to this memory"
        return StrictArray(np.frombuffer(b"\xa5" * size, dtype).reshape(shape).copy())

    def _stream(self) -> Stream:
        made = Stream(self, self.place.device)
        self.streams.append(made)
        return made

    def _allocate_pinned(self, size: int) -> Any:
        return self.pinned(size)

    def _set_pinned(self, allocator: Any = None) -> None:
        self.pinned = allocator

    def asarray(self, value: Any, *arguments: Any, **named: Any) -> Any:
        """Copy from the host by way of pinned memory, as CuPy does."""
        if not isinstance(value, StrictArray):
            self.pinned(np.asarray(value).nbytes)
        return super().__getattr__("asarray")(value, *arguments, **named)

    def _fuse(self, function: Callable[..., Any]) -> Callable[..., Any]:
        fusion = Fusion(function)

        def call(*arrays: StrictArray) -> Any:
            if self.cannot_fuse:
                raise TypeError(self.cannot_fuse)
            result = fusion(*arrays)
            self.fused += 1
            return result

        return call

    def made(self, array: StrictArray) -> None:
        array.number = self.place.device
        array.maker = (self.place.streams[-1], self.place.streams[-1].launched) if self.place.streams else None

    def use(self, array: StrictArray) -> None:
        stream = self._current()
        assert array.number == stream.device, "the array is on another device"
        stream.launch()
        for before, text in ((array.copied, "the copy that fills the array"), (array.maker, "the kernel that makes the array")):
            if before is not None:
                source, place = before
                has_ended = source is stream or source.ended >= place or stream.seen.get(source, 0) >= place
                assert has_ended, f"{text} may not have ended"

    def computed(self, again: Callable[[], Any], result: Any) -> None:
        if self.captured is not None:
            self.captured.append((again, result))

    def read(self, array: StrictArray, stream: Any) -> None:
        if self.captured is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing")
        self.downloads += 1
        if stream is None:
            assert array.copied is None or not self.place.streams or self._current().seen.get(array.copied[0], 0) >= array.copied[1]
            return
        self._require_order(stream)
        stream.launch()
        stream.synchronize()

    def copy(self, array: StrictArray, source: StrictArray, stream: Any) -> None:
        self.copies += 1
        self._require_order(stream)
        producer, place = source.maker
        assert stream.seen.get(producer, 0) >= place, "the transfer does not wait for the kernel that makes the array"
        array.copied = (stream, stream.launch())
        producer.lent.append((stream, stream.launched, weakref.ref(source)))

    def write(self, array: StrictArray, source: npt.NDArray[Any], stream: Any) -> None:
        self.uploads += 1
        array.copied = (stream, stream.launch())
        if self.captured is not None:
            return
        array.copied = None
        self._require_order(stream)
        owner: Any = source
        while isinstance(owner, np.ndarray | memoryview):
            owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
        assert isinstance(owner, PinnedMemory), "required pinned memory"
        array.copied = (stream, stream.launch())
        stream.copies.append((stream.launched, weakref.ref(owner)))

    def _require_order(self, stream: Stream) -> None:
        """Require that a transfer waits for what was launched on the current stream."""
        current = self._current()
        assert stream is not current, "required a stream of its own for transfers"
        assert stream.seen.get(current, 0) == current.launched, "the transfer does not wait for earlier kernels"

    def _current(self) -> Stream:
        assert self.place.streams, "a kernel was launched on the default stream"
        stream: Stream = self.place.streams[-1]
        assert stream.device == self.place.device, "the stream is that of another device"
        return stream

    def _count(self) -> int:
        if self.devices < 0:
            raise CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version")
        return self.devices

    @contextmanager
    def _using_allocator(self, allocator: Any = None) -> Iterator[None]:
        self.place.allocators.append(allocator)
        try:
            yield
        finally:
            self.place.allocators.pop()


class _Place(threading.local):
    def __init__(self) -> None:
        self.device = 0
        self.streams: list[Stream] = []
        self.captured: list[tuple[Callable[[], Any], Any]] | None = None
        self.graphs: list[Graph] = []
        self.pinned: Any = PinnedMemory
        self.get_default_pinned_memory_pool = _as_in_cupy("get_default_pinned_memory_pool")(lambda: SimpleNamespace(malloc=PinnedMemory))
        self.allocators: list[Any] = []


class _Device:
    def __init__(self, machine: StrictCupy, number: int) -> None:
        self._machine = machine
        self.id = number
        self._before: list[int] = []

    @property
    def mem_info(self) -> tuple[int, int]:
        return self._machine.memory, self._machine.memory

    def __enter__(self) -> None:
        if not 0 <= self.id < self._machine.devices:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        self._before.append(self._machine.place.device)
        self._machine.place.device = self.id

    def __exit__(self, *_: object) -> None:
        self._machine.place.device = self._before.pop()
