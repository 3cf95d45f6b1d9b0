"""Plans as CUDA graphs: what was launched once is launched again as a whole."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from graphcore.dtypes import resource
from graphcore.kernel_context import RefVariable
from graphcore.runtime.core.kernel_checks import is_built_in
from graphcore.runtime.gpu.gpu import CaptureError, Gpu
from graphcore.runtime.gpu.kernels import DeviceKernel, HostKernel
from graphcore.runtime.plan.plan import Plan
from graphcore.runtime.plan.schedule import Operation

RunPlainly = Callable[[Sequence[Any]], list[Any]]
"""Takes fed arrays, and gives arrays of the device."""
_logger: Final = logging.getLogger("graphcore.gpu")
_RUNS_BEFORE: Final = 2
"""The runs before the one that is captured: they compile kernels, copy constants, and show which variables are used."""
_ALIGNMENT: Final = 256
"""The bytes between the starts of arrays, as of those that CUDA allocates."""
_LARGEST_SHARE: Final = 1 / 16
"""The share of the memory that the variables of a captured run may take. The steps of larger networks last longer than their launches."""
_MOST_GRAPHS: Final = 4
"""The most shapes of feeds with graphs of their own: each holds the memory of a run."""


class CapturedRuns:
    """Runs a plan, from the third run with the same types and shapes of feeds on as one CUDA graph.

    The graph is captured in the first such run during which no other run uses the device. A plan that reads values on the host, draws random
    numbers or has other state than variables goes on running kernel by kernel. All feeds are on the device: values on the host follow from
    constants and shapes alone, and are the same in every run with these shapes.

    Args:
        gpu: the device.
        plan: the plan, whose kernels run there.
        variables: the variables that it names; others are seen when kernels take them.
        run_plainly: runs it kernel by kernel.
    """

    def __init__(self, gpu: Gpu, plan: Plan, variables: Iterable[RefVariable], run_plainly: RunPlainly) -> None:
        self._gpu = gpu
        self._run_plainly = run_plainly
        self._plan = plan
        self._may_capture = all(_is_repeatable(operation) for operation in plan.schedule.operations)
        self._counts: dict[Any, int] = {}
        self._graphs: dict[Any, CapturedRun] = {}
        self._variables = set(variables)

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Fed arrays in, arrays of the device out.

        Raises:
            GraphError: an error of a kernel, with its node.
        """
        gpu = self._gpu
        if not self._may_capture:
            return self._run_plainly(values)
        with gpu.lock:
            key = tuple([(value.dtype, value.shape) for value in values])
            count = self._counts[key] = self._counts.get(key, 0) + 1
            is_alone = gpu.runs == 1  # else another run could read the variables meanwhile
            if count > _RUNS_BEFORE and is_alone and key not in self._graphs and len(self._graphs) < _MOST_GRAPHS:
                self._capture(key, values)
            graph = self._graphs.get(key)
            if graph is not None and graph.may_run():
                return graph.run(values)
            with gpu.collecting(self._variables):
                return self._run_plainly(values)

    def _capture(self, key: Any, values: Sequence[Any]) -> None:
        try:
            if (
                sum([value.nbytes for variable in self._variables if (value := variable.value) is not None])
                > self._gpu.memory_limit * _LARGEST_SHARE
            ):
                raise CaptureError("its variables are large, and a graph holds three copies of them")
            self._graphs[key] = CapturedRun(self._gpu, self._plan, values, self._variables)
        except Exception:  # whatever prevents it, the plan runs as before
            _logger.info("%r runs without a CUDA graph", self._plan, exc_info=True)
            self._may_capture = False


class CapturedRun:
    """A run as a CUDA graph, with memory of its own, into which feeds and variables are copied.

    New values of variables come out of it as one array. A variable is copied only if its value has changed since the last launch.

    Args:
        gpu: the device, whose lock is held.
        plan: the plan.
        values: the fed arrays.
        variables: those that the plan uses.

    Raises:
        Exception: the run cannot be captured. Variables are as before.
    """

    def __init__(self, gpu: Gpu, plan: Plan, values: Sequence[Any], variables: set[RefVariable]) -> None:
        self._gpu = gpu
        with gpu.within():
            gpu.module.prepare_capture()
        with gpu.within(), gpu.memory_of_its_own() as self._memory:
            self._feeds = [_on_device(gpu, gpu.to_device(value)) for value in values]
            self._staged = [gpu.pinned_like(feed) for feed in self._feeds]
            self._before = {variable: _on_device(gpu, variable.value).copy() for variable in variables}
            self._current: dict[RefVariable, Any] = {}
            self._new = gpu.cupy.empty(sum(_space(value) for value in self._before.values()), np.uint8)
            kept = {variable: variable.value for variable in variables}
            self._results: list[Any] = []
            try:
                for variable, value in self._before.items():
                    variable.value = value
                with gpu.capturing() as self._constants:
                    try:
                        gpu.stream.begin_capture()
                        self._results = plan.run(*self._feeds)
                        self._after = self._collect_new_values()
                    except BaseException:
                        with suppress(Exception):  # the capture has failed with the run
                            gpu.stream.end_capture()
                        raise
                    self._graph = gpu.stream.end_capture()
            finally:
                for variable, value in kept.items():
                    with variable.lock:
                        if gpu.holds(variable.value):  # else it was set from outside meanwhile
                            variable.value = value
        self._launched = gpu.stream.record()

    def _collect_new_values(self) -> list[tuple[RefVariable, slice]]:
        """Copy the new values of variables to one array, and from there to where the next launch reads them.

        Returns the variables whose values have changed, with their places in that array.
        """
        places: list[tuple[RefVariable, slice]] = []
        end = 0
        for variable, before in self._before.items():
            if variable.value is not before:
                value = _on_device(self._gpu, variable.value)
                if (value.shape, value.dtype) != (before.shape, before.dtype):
                    raise CaptureError
                places.append((variable, slice(end, end + value.nbytes)))
                self._view(self._new, variable, places[-1][1])[...] = value
                end += _space(value)
        for variable, place in places:  # a value may be that of another variable before
            self._before[variable][...] = self._view(self._new, variable, place)
        self._new = self._new[:end]
        return places

    def _view(self, values: Any, variable: RefVariable, place: slice) -> Any:
        before = self._before[variable]
        return values[place].view(before.dtype).reshape(before.shape)

    def may_run(self) -> bool:
        """True iff all variables have values of the types and shapes that were captured."""
        current: list[tuple[Any, Any]] = [(variable.value, value) for variable, value in self._before.items()]
        return all(self._gpu.holds(now) and (now.shape, now.dtype) == (value.shape, value.dtype) for now, value in current)

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Fed arrays in, arrays of the device out."""
        with self._gpu.within():
            return self._launch(values)

    def _launch(self, values: Sequence[Any]) -> list[Any]:
        gpu = self._gpu
        self._launched.synchronize()  # the launch before may still read what is staged
        for feed, staged, value in zip(self._feeds, self._staged, values, strict=True):
            if feed.size:
                staged[...] = value
                feed.set(staged, stream=gpu.stream)
        for variable, value in self._before.items():
            current = variable.value
            if self._current.get(variable) is not current:
                value[...] = current
                self._current[variable] = current
        self._graph.launch(stream=gpu.stream)
        self._launched = gpu.stream.record()
        new = self._new.copy()  # others may read these values while the next launch changes them
        for variable, place in self._after:
            with variable.lock:
                variable.value = self._current[variable] = self._view(new, variable, place)
        # Another run may begin before the results are on the host.
        return [result.copy() if gpu.holds(result) else result for result in self._results]


def _space(value: Any) -> int:
    """The bytes of an array, up to the next place where CUDA reads fastest."""
    size: int = -(-value.nbytes // _ALIGNMENT) * _ALIGNMENT
    return size


def _is_repeatable(operation: Operation) -> bool:
    """True iff an operation does the same in every run, as far as its node and kernel show."""
    if operation.is_long or operation.apart:
        return False  # another thread would launch it
    node = operation.node
    kernel = getattr(operation.kernel, "__wrapped__", operation.kernel)
    traits = node.registration.traits
    if kernel is None or traits.role == "variable" or traits.numbers_from_shapes is not None:
        return True
    has_variables = any(dtype.is_ref or dtype is resource for dtype in node.input_types)
    if not is_built_in(node) or (node.op_def.is_stateful and not has_variables):
        return False
    return type(kernel) is DeviceKernel or (type(kernel) is HostKernel and not has_variables)


def _on_device(gpu: Gpu, value: Any) -> Any:
    if not gpu.holds(value):
        raise CaptureError
    return value
