"""Plans as CUDA graphs: what was launched once is launched again as a whole."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from graphcore.dtypes import resource
from graphcore.kernel_context import RefVariable
from graphcore.runtime.core.kernel_checks import is_built_in
from graphcore.runtime.gpu.kernels import CaptureError, DeviceKernel, HostKernel
from graphcore.runtime.plan.plan import Plan
from graphcore.runtime.plan.schedule import Operation

if TYPE_CHECKING:
    from graphcore.runtime.gpu.gpu import Gpu

RunPlainly = Callable[[Sequence[Any]], list[Any]]
"""Takes fed arrays, and gives arrays of the device."""
_logger: Final = logging.getLogger("graphcore.gpu")
_RUNS_BEFORE: Final = 2
"""The runs before the one that is captured: they compile kernels, copy constants, and show which variables are used."""
_MOST_GRAPHS: Final = 4
"""The most shapes of feeds with graphs of their own: each holds the memory of a run."""


class CapturedRuns:
    """The runs of a plan, from the third one with the same types and shapes of feeds as a CUDA graph.

    It is captured in the first such run beside which no other one uses the device. A plan that reads values on the host, draws random numbers or has other state than variables runs as before. All feeds are on the device, so
    that values on the host follow from constants and shapes alone, and are the same in every run with these shapes.

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
            self._graphs[key] = CapturedRun(self._gpu, self._plan, values, self._variables)
        except Exception:  # whatever prevents it, the plan runs as before
            _logger.info("%r runs without a CUDA graph", self._plan, exc_info=True)
            self._may_capture = False


class CapturedRun:
    """A run as a CUDA graph, with memory of its own. Variables are copied into it, and their new values out of it.

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
        with gpu.within(), gpu.memory_of_its_own() as self._memory:
            self._feeds = [_on_device(gpu, gpu.to_device(value)) for value in values]
            self._before = {variable: _on_device(gpu, variable.value).copy() for variable in variables}
            kept = {variable: variable.value for variable in variables}
            self._results: list[Any] = []
            try:
                for variable, value in self._before.items():
                    variable.value = value
                with gpu.capturing() as self._constants:
                    try:
                        gpu.stream.begin_capture()
                        self._results = plan.run(*self._feeds)
                    except BaseException:
                        with suppress(Exception):  # the capture has failed with the run
                            gpu.stream.end_capture()
                        raise
                    self._graph = gpu.stream.end_capture()
                self._after = self._changed()
            finally:
                for variable, value in kept.items():
                    with variable.lock:
                        if gpu.holds(variable.value):  # else it was set from outside meanwhile
                            variable.value = value

    def _changed(self) -> dict[RefVariable, Any]:
        """The variables that no longer have the values of before, with the new ones."""
        return {variable: _on_device(self._gpu, variable.value) for variable, value in self._before.items() if variable.value is not value}

    def may_run(self) -> bool:
        """True iff all variables have values of the types and shapes that were captured."""
        current: list[tuple[Any, Any]] = [(variable.value, value) for variable, value in self._before.items()]
        return all(self._gpu.holds(now) and (now.shape, now.dtype) == (value.shape, value.dtype) for now, value in current)

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Fed arrays in, arrays of the device out."""
        gpu = self._gpu
        with gpu.within():
            for feed, value in zip(self._feeds, values, strict=True):
                gpu.upload(value, feed)
            for variable, value in self._before.items():
                value[...] = variable.value
            self._graph.launch(stream=gpu.stream)
            after: list[tuple[RefVariable, Any]] = [(variable, value.copy()) for variable, value in self._after.items()]
            for variable, value in after:
                with variable.lock:
                    variable.value = value
            # Another run may begin before the results are on the host.
            return [result.copy() if gpu.holds(result) else result for result in self._results]


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
