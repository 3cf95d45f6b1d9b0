"""Kernels on a GPU: each gets its inputs in the memory where it needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from graphcore.attrs import Array
from graphcore.errors import InternalError
from graphcore.graph.model.node import Node
from graphcore.kernel_context import KernelContext, RefVariable
from graphcore.placement.partition.host_memory import decides_shapes, in_host_memory
from graphcore.registry import Kernel
from graphcore.runtime.core.program import current
from graphcore.runtime.gpu.gpu import Gpu
from graphcore.runtime.plan.schedule import MakeKernel

_BOUND: Final = "iub"
"""The kinds of constants that kernels bind: axes, shapes, indices."""


def kernels_on(gpu: Gpu, make_kernel: MakeKernel) -> MakeKernel:
    """A maker of kernels that run on a GPU, or on the host if all of their values are there.

    Args:
        make_kernel: makes the kernel for the array module in its context.
    """
    return lambda node, context: _kernel_on(gpu, make_kernel, node, context)


def _kernel_on(gpu: Gpu, make_kernel: MakeKernel, node: Node, context: KernelContext) -> Kernel:
    if node.registration.is_function or node.registration.traits.numbers_from_shapes is not None:
        return make_kernel(node, context)  # the kernels of a body convert, and shapes can be read anywhere
    if runs_on_host(node):
        return HostKernel(gpu, make_kernel(node, context))
    constants = context.constants
    context.xp = gpu.module
    context.constants = bound(constants)
    with gpu.within():
        kernel = make_kernel(node, context)
    return DeviceKernel(gpu, kernel, [decides_shapes(node, slot) for slot in range(len(node.input_types))], constants)


def bound(constants: Sequence[Array | None]) -> tuple[Array | None, ...]:
    """The constants that the maker of a kernel on a device gets; others are inputs of its calls only."""
    return tuple([value if value is not None and value.dtype.kind in _BOUND else None for value in constants])


def runs_on_host(node: Node) -> bool:
    """True iff the kernel of a node on a GPU runs on the host.

    All of its values are in that memory, or one is of a type that a GPU does not hold.
    """
    arrays = [dtype.as_numpy for dtype in (*node.input_types, *node.output_types)]
    if any(array is not None and array.isbuiltin != 1 for array in arrays):
        return True
    return all(in_host_memory(node, slot, is_output=False) for slot in range(len(node.input_types))) and all(
        in_host_memory(node, slot, is_output=True) for slot in range(len(node.output_types))
    )


class HostKernel:
    """A kernel on the host, whose inputs may be on the device.

    Args:
        gpu: the device.
        kernel: the kernel.
    """

    __slots__ = ("_gpu", "kernel")

    def __init__(self, gpu: Gpu, kernel: Kernel) -> None:
        self.kernel = kernel
        self._gpu = gpu

    def __call__(self, *inputs: Any) -> Any:
        """Run the kernel on the host."""
        return self.kernel(*[self._gpu.to_host(value) for value in inputs])


class DeviceKernel:
    """A kernel on the arrays of a GPU. Inputs that are on the host are copied to the device, except those that it reads on the host.

    Args:
        gpu: the device.
        kernel: the kernel.
        on_host: True for each input that the kernel reads on the host.
        constants: the inputs that are the same in every run, else None; they are copied once.
    """

    __slots__ = ("_constants", "_copies", "_gpu", "_on_host", "kernel")

    has_own_limit: Final = True  # the device refuses what exceeds its memory

    def __init__(self, gpu: Gpu, kernel: Kernel, on_host: Sequence[bool], constants: Sequence[Array | None]) -> None:
        self.kernel = kernel
        self._gpu = gpu
        self._on_host = on_host
        self._constants = constants
        self._copies: dict[int, Any] = {}

    def __call__(self, *inputs: Any) -> Any:
        """Launch the kernel; in a recorded run, wait for its end, so that its time is recorded.

        Raises:
            InternalError: CUDA reports an error, perhaps of a kernel launched before.
        """
        gpu = self._gpu
        with gpu.lock, gpu.within():
            try:
                outputs = self.kernel(*[self._placed(slot, value) for slot, value in enumerate(inputs)])
                if current.step is not None and current.step.recorder is not None:
                    gpu.finish()
            except gpu.cuda_error as error:
                raise InternalError(f"CUDA reports: {error}") from error
            if type(outputs) is RefVariable:
                gpu.take(outputs)
            return outputs

    def _placed(self, slot: int, value: Any) -> Any:
        gpu = self._gpu
        if gpu.holds(value):
            return gpu.to_host(value) if self._on_host[slot] else value
        if type(value) is RefVariable:
            gpu.take(value)
            return value
        if self._on_host[slot]:
            return value
        if value is not self._constants[slot]:
            return gpu.to_device(value)
        if slot not in self._copies:
            self._copies[slot] = gpu.to_device(value)
        return self._copies[slot]
