"""CuPy with its streams and memory on NumPy, for checks on machines without a GPU.

`StrictCupy` replaces the module `cupy`. Its arrays are strict; its functions have the parameters of CuPy's (`cupy_api.txt`). What would be wrong on a
GPU, sometimes or always, is an AssertionError here: a kernel on the default stream, the use of an array that another stream is still filling,
a transfer that does not wait for earlier kernels, and pinned memory that is released before its copy has ended.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tests.support import cupy_api
from tests.support.strict_arrays import MACHINES, StrictArray, StrictModule, StrictUfunc, wrapped
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
        self.ptr = id(self)
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

    @_as_in_cupy("Event.synchronize")
    def synchronize(self) -> None:
        self.stream.ended = max(self.stream.ended, self.place)


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


class StrictCublas:
    """cuBLAS on the memory of strict arrays: it reads and writes matrices column by column.

    Attributes:
        products: the number of calls.
    """

    _types: Final = {0: np.float32, 1: np.float64, 4: np.complex64, 5: np.complex128}

    def __init__(self, machine: StrictCupy) -> None:
        self.products = 0
        self._machine = machine
        self._stream = 0
        self._workspace = (0, 0)

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:  # noqa: N802  # the name of the library
        self._stream, self._workspace = stream.value, (0, 0)
        return 0

    def cublasSetWorkspace_v2(self, handle: Any, memory: Any, size: Any) -> int:  # noqa: N802  # the name of the library
        self._workspace = memory.value, size.value
        return 0

    def cublasGemmStridedBatchedEx(self, handle: Any, *given: Any) -> int:  # noqa: N802  # the name of the library
        (
            turn_a,
            turn_b,
            rows,
            columns,
            inner,
            alpha,
            a,
            kind,
            lead_a,
            step_a,
            b,
            kind_b,
            lead_b,
            step_b,
            beta,
            c,
            kind_c,
            lead_c,
            step_c,
            count,
            *_,
        ) = given
        assert kind == kind_b == kind_c
        assert self._stream == self._machine.place.streams[-1].ptr, "the product is launched on another stream"
        assert all(self._workspace), "cuBLAS would allocate memory"
        dtype = np.dtype(self._types[kind])
        assert [self._read(pointer.value, dtype, (1, 1), (1, 1), 0, 1).item() for pointer in (alpha, beta)] == [1, 0]
        first = self._read(a.value, dtype, (rows, inner), (lead_a, 1) if turn_a else (1, lead_a), step_a.value, count)
        second = self._read(b.value, dtype, (inner, columns), (lead_b, 1) if turn_b else (1, lead_b), step_b.value, count)
        into = self._read(c.value, dtype, (rows, columns), (1, lead_c), step_c.value, count)
        into[...] = first @ second
        self.products += 1
        self._machine.place.streams[-1].launch()
        self._machine.computed(lambda: (first @ second).transpose(0, 2, 1), wrapped(into.transpose(0, 2, 1)))
        return 0

    @staticmethod
    def _read(pointer: int, dtype: np.dtype[Any], shape: tuple[int, int], strides: tuple[int, int], step: int, count: int) -> Any:
        last = (count - 1) * step + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        held: Any = (ctypes.c_char * ((last + 1) * dtype.itemsize)).from_address(pointer)
        flat = np.frombuffer(held, dtype)
        return np.lib.stride_tricks.as_strided(flat, (count, *shape), [each * dtype.itemsize for each in (step, *strides)])


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
        self.cublas = StrictCublas(self)
        self._of_graphs: list[weakref.ref[StrictArray]] = []
        self._kept: list[StrictArray] = []
        self.pinned: Any = PinnedMemory
        self.get_default_pinned_memory_pool = _as_in_cupy("get_default_pinned_memory_pool")(lambda: SimpleNamespace(malloc=PinnedMemory))
        self.fuse = _as_in_cupy("fuse")(self._fuse)
        self.cuda = SimpleNamespace(
            Device=lambda number: _Device(self, number),
            Stream=self._stream,
            device=SimpleNamespace(get_cublas_handle=lambda: 1),
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

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name not in {"dot", "matmul", "tensordot"} or self.captured is None:
            return found

        def refuse(*_: Any) -> Any:
            raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")

        return refuse

    def empty(self, shape: Any, dtype: Any = float) -> StrictArray:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        self.place.allocators[-1](size)
        made = StrictArray(np.frombuffer(b"\xa5" * size, dtype).reshape(shape).copy())
        if self.place.allocators[-1].__self__.is_of_graph:
            self._of_graphs.append(weakref.ref(made))
        return made

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
        if self.captured is not None:
            self._kept.append(array)  # cuBLAS knows addresses only
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
        if stream is self._current():
            assert self.captured is None, "the current stream is capturing, so H2D transfers are disallowed"
            stream.copies.append((stream.launch(), weakref.ref(self._require_pinned(source))))
            return
        array.copied = (stream, stream.launch())
        if self.captured is not None:
            assert not any(each() is array for each in self._of_graphs), "a captured kernel may write to this memory"
            return
        array.copied = None
        self._require_order(stream)
        array.copied = (stream, stream.launch())
        stream.copies.append((stream.launched, weakref.ref(self._require_pinned(source))))

    @staticmethod
    def _require_pinned(source: npt.NDArray[Any]) -> PinnedMemory:
        owner: Any = source
        while isinstance(owner, np.ndarray | memoryview):
            owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
        assert isinstance(owner, PinnedMemory), "required pinned memory"
        return owner

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
