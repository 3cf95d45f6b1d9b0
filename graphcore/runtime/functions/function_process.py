"""The function runtimes of one process, one for each device, which run each other's instantiations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from graphcore.device_spec import DeviceSpec
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.functions import FunctionCallFrame, FunctionLibraryDefinition, InstantiateOptions
from graphcore.kernel_context import ResourceManager
from graphcore.runtime.functions.function_handles import FunctionHandles
from graphcore.runtime.functions.function_runtime import FunctionLibraryRuntime, KernelCreator


class ProcessFunctionLibraryRuntime:
    """A group of FunctionLibraryRuntimes, one for each device.

    A function with a target device in its options runs there, from any of the runtimes.

    Args:
        library: the functions.
        devices: the full names of the devices.
        resources: the variables that functions share with their callers; none by default.
        custom_kernel_creator: tried first for the kernel of each node.

    Raises:
        InvalidArgumentError: there is no device, or one that is not fully named.
    """

    def __init__(
        self,
        library: FunctionLibraryDefinition,
        devices: Sequence[str],
        *,
        resources: ResourceManager | None = None,
        custom_kernel_creator: KernelCreator | None = None,
    ) -> None:
        incomplete = [device for device in devices if not DeviceSpec.parse(device).is_complete]
        if incomplete or not devices:
            raise InvalidArgumentError(f"Required full names of one device or more, got {incomplete[0] if incomplete else 'none'!r}")
        shared, handles = resources or ResourceManager(), FunctionHandles()
        runtimes: dict[str, FunctionLibraryRuntime] = {}
        for device in devices:
            runtimes[device] = FunctionLibraryRuntime(
                library, resources=shared, custom_kernel_creator=custom_kernel_creator, device=device, peers=runtimes, handles=handles
            )
        self._runtimes = runtimes

    @property
    def devices(self) -> list[str]:
        """The names of the devices."""
        return list(self._runtimes)

    def get_flr(self, device: str) -> FunctionLibraryRuntime:
        """The runtime for a device.

        Raises:
            NotFoundError: there is none.
        """
        runtime = self._runtimes.get(device)
        if runtime is None:
            raise NotFoundError(f"No function runtime for device '{device}'; there is one for {', '.join(self._runtimes)}")
        return runtime

    def instantiate(self, name: str, attrs: Mapping[str, object] | None = None, options: InstantiateOptions | None = None) -> int:
        """Instantiate a function on the target device of its options, by default the first one.

        Raises:
            NotFoundError, InvalidArgumentError: as `FunctionLibraryRuntime.instantiate`.
        """
        return self._first().instantiate(name, attrs, options)

    @overload
    def run(self, handle: int, args: Sequence[Any] = ()) -> list[Any]: ...

    @overload
    def run(self, handle: int, args: FunctionCallFrame) -> None: ...

    def run(self, handle: int, args: Sequence[Any] | FunctionCallFrame = ()) -> list[Any] | None:
        """Call an instantiated function, on its device; see `FunctionLibraryRuntime.run`.

        Raises:
            GraphError: as `FunctionLibraryRuntime.run`.
        """
        return self._first().run(handle, args)

    def release_handle(self, handle: int) -> None:
        """Release an instantiation.

        Raises:
            NotFoundError: there is none, or it was released.
        """
        self._first().release_handle(handle)

    def _first(self) -> FunctionLibraryRuntime:
        return next(iter(self._runtimes.values()))
