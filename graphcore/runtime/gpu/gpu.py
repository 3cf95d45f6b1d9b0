"""One CUDA device of a session: its stream, its memory, and transfers from and to the host."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array, attr_text
from graphcore.errors import FailedPreconditionError, ResourceExhaustedError
from graphcore.kernel_context import RefVariable
from graphcore.opset.numerics.tensor_list_values import TensorList
from graphcore.placement.device import Device
from graphcore.placement.partition.host_memory import ON_HOST
from graphcore.runtime.core.memory import out_of_memory
from graphcore.runtime.gpu.cuda import find_cupy
from graphcore.runtime.gpu.products import DeviceModule

_HELD: Final = frozenset("?bBhHiIlLqQefdFD")
"""The type codes of the arrays that a GPU holds; others stay on the host."""


class CaptureError(Exception):
    """A run that is being captured does what cannot be captured, such as a transfer."""


class _Current(threading.local):
    """The device that a thread uses now."""

    gpu: Gpu | None = None


_current: Final = _Current()
_one_capture: Final = threading.Lock()
"""Held during a capture: all devices share one allocator of pinned memory, which refuses meanwhile."""


class Gpu:
    """A CUDA device as one session uses it. Thread-safe.

    Kernels are launched on one stream, in the order of the calls; transfers go over another one, by way of pinned memory. Both streams wait for
    CUDA's default stream and are waited for by it, so that code outside of runs sees arrays that are complete.

    Args:
        device: the device.

    Attributes:
        name: the name of the device.
        cupy: the array module.
        module: the array module of kernels.
        lock: held while a kernel is launched.
        peers: the GPUs of the session by name, this one included; none if two of them are the same GPU.
        memory_limit: the most bytes that it allocates.
        runs: the number of runs that may read variables now.
        cuda_error: the error of CUDA.
    """

    def __init__(self, device: Device) -> None:
        self.name = device.name
        self.cupy = cupy = find_cupy()
        self.lock = threading.RLock()
        self.peers: Mapping[str, Gpu] = {}
        self.runs = 0
        self._capturing: int | None = None
        self._copied_apart: list[Any] = []
        self._taken: set[RefVariable] | None = None
        self._array: type[Any] = cupy.ndarray
        self.cuda_error: type[Exception] = cupy.cuda.runtime.CUDARuntimeError
        self._staged: deque[tuple[Any, Array]] = deque()
        self._number = device.cuda
        with cupy.cuda.Device(device.cuda):
            self.stream = cupy.cuda.Stream()
            self.module = DeviceModule(cupy, self.stream, self.is_capturing)
            self._transfers = cupy.cuda.Stream()
            self.memory_limit = device.memory_limit_bytes
            self._pool = self._new_pool()

    def __repr__(self) -> str:
        return f"<Gpu {self.name}>"

    @contextmanager
    def within(self) -> Iterator[None]:
        """Use the device, its stream and its memory in this thread."""
        before = _current.gpu
        if before is self:
            yield
            return
        with self.cupy.cuda.Device(self._number), self.stream, self.cupy.cuda.using_allocator(self._pool.malloc):
            try:
                _current.gpu = self
                yield
            finally:
                _current.gpu = before

    @contextmanager
    def running(self) -> Iterator[None]:
        """Use the device for a run. While two runs use it, neither is captured."""
        with self.lock:
            self.runs += 1
        try:
            with self.within():
                yield
        finally:
            with self.lock:
                self.runs -= 1

    def holds(self, value: Any) -> bool:
        """True iff a value is an array of the device, or of another GPU from which it was received."""
        return isinstance(value, self._array)

    def reaches(self, name: Any) -> bool:
        """True iff an attr names a GPU of the session, which takes arrays of this one."""
        return attr_text(name) in self.peers

    def to_device(self, value: Any) -> Any:
        """The value on the device if a GPU can hold it: an array, or a list of tensors. Any other value as it is."""
        if self.holds(value):
            source = self._owner(value)
            return value if source is self else self._copied_from(source, value)
        if isinstance(value, np.ndarray | np.generic) and value.dtype.char in _HELD:
            return self.upload(np.asarray(value))
        return _converted(value, self.to_device)

    def to_host(self, value: Any) -> Any:
        """The value on the host, complete."""
        return self._owner(value)._download(value) if self.holds(value) else _converted(value, self.to_host)

    def fed(self, value: Any) -> Any:
        """A fed value on the device, unless it is of a type that stays on the host."""
        return value if getattr(value, "dtype", None) == np.int32 else self.to_device(value)

    def end(self, results: Sequence[Any]) -> list[Any]:
        """The results of a run on the host, once all of its kernels have ended."""
        on_host = [self.to_host(value) for value in results]
        self.finish()
        return on_host

    def take(self, variable: RefVariable) -> None:
        """Move a value that was set from outside of runs to the device, unless its type stays on the host."""
        if self._taken is not None:
            self._taken.add(variable)
        value = variable.value
        if isinstance(value, np.ndarray) and variable.dtype.base not in ON_HOST:
            with variable.lock:
                if variable.value is value:
                    variable.value = self.to_device(value)

    def finish(self) -> None:
        """Wait until all launched kernels have ended."""
        self.stream.synchronize()

    def upload(self, array: Array, into: Any = None) -> Any:
        """Copy an array to the device, into a given array of the device or a new one, which is returned.

        Raises:
            ResourceExhaustedError: there is no memory for it.
        """
        if self.is_capturing():
            return self._upload_apart(array)
        with self.lock, self.within():
            made = self._empty(array) if into is None else into
            if array.size:
                staged = self._pinned(array.shape, array.dtype)
                staged[...] = array
                self._transfers.wait_event(self.stream.record())  # the memory may be in use by kernels launched before
                made.set(staged, stream=self._transfers)
                copied = self._transfers.record()
                self.stream.wait_event(copied)
                self._keep(copied, staged)
            return made

    def _download(self, value: Any) -> Array:
        self.refuse_while_capturing()
        with self.lock, self.within():
            if not value.size:
                return np.empty(value.shape, value.dtype)
            whole = self.cupy.ascontiguousarray(value).reshape(value.shape)
            staged = self._pinned(value.shape, value.dtype)
            self._transfers.wait_event(self.stream.record())
            whole.get(stream=self._transfers, out=staged)  # waits for the end of the copy
            return staged

    def _empty(self, array: Any) -> Any:
        """A new array of the shape and type of `array`."""
        try:
            return self.cupy.empty(array.shape, array.dtype)
        except MemoryError as error:
            raise ResourceExhaustedError(out_of_memory(error)) from error

    def _owner(self, array: Any) -> Gpu:
        return next((peer for peer in self.peers.values() if peer._number == array.data.device_id), self)

    def _copied_from(self, source: Gpu, array: Any) -> Any:
        """Copy an array of another GPU straight to this one.

        Where the two cannot reach each other, the driver goes by way of the host.
        """
        with source.lock, source.within():
            whole = self.cupy.ascontiguousarray(array).reshape(array.shape)
            complete = source.stream.record()
        with self.lock, self.within():
            made = self._empty(array)
            self._transfers.wait_event(complete)
            self._transfers.wait_event(self.stream.record())  # the memory may be in use by kernels launched before
            made.data.copy_from_device_async(whole.data, whole.nbytes, self._transfers)
            copied = self._transfers.record()
            self.stream.wait_event(copied)
        with source.lock, source.within():
            source.stream.wait_event(copied)  # later kernels there may get the memory of `whole`
        return made

    def _pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """A new array in pinned memory of the host, which CUDA copies without the help of the CPU."""
        count = int(np.prod(shape, dtype=np.int64))
        memory = self.cupy.cuda.alloc_pinned_memory(count * dtype.itemsize)
        return np.frombuffer(memory, dtype, count).reshape(shape)

    def pinned_like(self, placed: Any) -> Array:
        """A new array in pinned memory of the host, of the shape and type of one on the device."""
        return self._pinned(placed.shape, placed.dtype) if placed.size else np.empty(placed.shape, placed.dtype)

    def _keep(self, copied: Any, staged: Array) -> None:
        """Keep pinned memory until the copy from it has ended."""
        while self._staged and self._staged[0][0].done:
            self._staged.popleft()
        self._staged.append((copied, staged))

    def _new_pool(self) -> Any:
        pool = self.cupy.cuda.MemoryPool()
        pool.set_limit(size=self.memory_limit)
        return pool

    # ---- capture ---------------------------------------------------------------------------------------------------

    @contextmanager
    def memory_of_its_own(self) -> Iterator[Any]:
        """Allocate within the block from a new pool. Nothing else gets its memory while the pool is kept."""
        pool = self._new_pool()
        with self.cupy.cuda.using_allocator(pool.malloc):
            yield pool

    @contextmanager
    def collecting(self, variables: set[RefVariable]) -> Iterator[None]:
        """Add the variables that are taken within the block to `variables`. The caller holds the lock."""
        before, self._taken = self._taken, variables
        try:
            yield
        finally:
            self._taken = before

    @contextmanager
    def capturing(self) -> Iterator[list[Any]]:
        """Refuse transfers of this thread within the block, also those that CuPy makes. The caller holds the lock.

        Arrays of the host that are the same in every run are still copied, outside of what is captured. The block gets the list of these copies.
        """
        self.finish()
        self._copied_apart = []
        cuda = self.cupy.cuda
        usual = self.cupy.get_default_pinned_memory_pool().malloc

        def allocate(size: int) -> Any:  # CuPy copies arrays of the host by way of such memory
            self.refuse_while_capturing()
            return usual(size)

        with _one_capture:
            try:
                self._capturing = threading.get_ident()
                cuda.set_pinned_memory_allocator(allocate)
                yield self._copied_apart
            finally:
                cuda.set_pinned_memory_allocator(usual)
                self._capturing = None

    def refuse_while_capturing(self) -> None:
        """Refuse what cannot be captured.

        Raises:
            CaptureError: this thread is capturing a run.
        """
        if self.is_capturing():
            raise CaptureError

    def is_capturing(self) -> bool:
        """True iff this thread captures a run."""
        return self._capturing == threading.get_ident()

    def _upload_apart(self, array: Array) -> Any:
        """Copy an array while a run is captured, into memory that no captured kernel writes."""
        with self.cupy.cuda.using_allocator(self._pool.malloc):
            made = self.cupy.empty(array.shape, array.dtype)
        made.set(np.array(array, order="C"), stream=self._transfers)
        self._transfers.synchronize()
        self._copied_apart.append(made)
        return made


def open_gpus(devices: Iterable[Device]) -> dict[str, Gpu]:
    """The CUDA devices among `devices`, by name, for one session.

    Raises:
        FailedPreconditionError: there is no CuPy, or CUDA cannot use a device.
    """
    gpus: dict[str, Gpu] = {}
    for device in devices:
        if device.cuda >= 0:
            try:
                gpus[device.name] = Gpu(device)
            except find_cupy().cuda.runtime.CUDARuntimeError as error:
                raise FailedPreconditionError(f"The device '{device.name}' cannot be used: {error}") from error
    if len({gpu._number for gpu in gpus.values()}) == len(gpus):  # else an array would not tell by which stream it is made
        for gpu in gpus.values():
            gpu.peers = gpus
    return gpus


def _converted(value: Any, convert: Any) -> Any:
    """A list of tensors, or an array of such lists, with the items converted; any other value as it is."""
    if isinstance(value, np.ndarray) and value.size and type(value.flat[0]) is TensorList:
        made = np.empty(value.shape, np.object_)
        for place, element in np.ndenumerate(value):
            made[place] = _converted(element, convert)
        return made
    if type(value) is not TensorList:
        return value
    kind = value.kind
    return TensorList(kind.dtype, kind.shape, [convert(item) for item in value.items], kind.limit)
