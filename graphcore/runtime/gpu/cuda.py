"""The CUDA devices of this machine, found through CuPy when a session asks for them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from graphcore.device_spec import full_name
from graphcore.errors import FailedPreconditionError
from graphcore.graph.model.argument_errors import refuse
from graphcore.placement.device import Device, DeviceSet
from graphcore.runtime.core.tracing import CPU
from graphcore.support.memory_limits import memory_limit as memory_of_host

_INSTALL: Final = "Install CuPy for the CUDA version that `nvidia-smi` shows: pip install 'graphloupe[cuda12]' or 'graphloupe[cuda13]'."
_WITHOUT: Final = "Run on the CPU, with `gc.Session()`, or check with `nvidia-smi` that this machine has a GPU of NVIDIA and its driver."


def find_cupy() -> Any:
    """The package CuPy, which is imported on the first call.

    Raises:
        FailedPreconditionError: it cannot be imported.
    """
    try:
        return import_module("cupy")
    except ImportError as error:
        raise FailedPreconditionError(f"GPUs need the package CuPy, which cannot be imported: {error}").advise(
            _INSTALL, required="CuPy", came=str(error)
        ) from error


def gpu_devices(memory_limit: int = 0) -> DeviceSet:
    """The CPU of this process and the CUDA devices of this machine, for `gc.Session(devices=...)`.

    `gc.Session(devices="gpu")` is short for `gc.Session(devices=gc.gpu_devices())`. Nodes that have kernels for a GPU run on `/gpu:0`, unless
    `gc.device` requests another device. Texts, bfloat16 and int32 stay on the host; from one GPU to another, other values go straight.

    Args:
        memory_limit: the most bytes that a session allocates on each GPU; 0 for all of its memory.

    Raises:
        FailedPreconditionError: there is no CuPy, no driver or no GPU; the message says which.
        InvalidArgumentError: the limit is no number of bytes.
    """
    _check_bytes("memory_limit", memory_limit)
    runtime = find_cupy().cuda.runtime
    try:
        totals = [_total_memory(number) for number in range(runtime.getDeviceCount())]
    except runtime.CUDARuntimeError as error:
        raise _no_gpu(f"CUDA cannot be used: {error}") from error
    if not totals:
        raise _no_gpu("CUDA finds no device")
    devices = DeviceSet([Device(CPU, memory_of_host())])
    for number, total in enumerate(totals):
        name = full_name("localhost", 0, 0, "GPU", number)
        devices.add(Device(name, memory_limit_bytes=min(memory_limit or total, total), incarnation=len(devices) + 1, cuda=number))
    return devices


def _check_bytes(name: str, value: Any) -> None:
    if not isinstance(value, int) or value < 0:
        refuse(name, "a number of bytes, or 0 for all of the memory", value)


def _total_memory(number: int) -> int:
    total: int = find_cupy().cuda.Device(number).mem_info[1]
    return total


def _no_gpu(text: str) -> FailedPreconditionError:
    return FailedPreconditionError(f"A GPU was requested, and there is none: {text}").advise(_WITHOUT, required="a CUDA device", came=text)
