"""Programs that run on one GPU as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.graph.model.node import Node
from graphcore.kernel_context import RefVariable
from graphcore.runtime.core.program import Program, Step
from graphcore.runtime.core.sizes import OWN_SIZES, PeakMemory, Sizes
from graphcore.runtime.gpu.capture import CapturedRuns
from graphcore.runtime.gpu.fusing import fuse_chains
from graphcore.runtime.gpu.gpu import Gpu
from graphcore.runtime.plan.plan import Plan


class GpuProgram:
    """A program whose kernels run on one GPU; its feeds and results are on the host. Thread-safe.

    A plan runs with chains of elementwise operations fused, except in recorded runs, which show each node.

    Args:
        gpu: the device.
        program: the program.
        capture: capture a plan as a CUDA graph, if possible.

    Attributes:
        on_device: the program.
    """

    __slots__ = ("_captured", "_fast", "_gpu", "_variables", "on_device")

    def __init__(self, gpu: Gpu, program: Program, *, capture: bool) -> None:
        self._gpu = gpu
        self.on_device = program
        fused = fuse_chains(program.schedule, gpu) if type(program) is Plan else None
        self._fast = program if fused is None else Plan(fused)
        variables = program.schedule.variables.values() if isinstance(program, Plan) else ()
        self._variables = [value for value in variables if type(value) is RefVariable]
        self._captured = CapturedRuns(gpu, self._fast, self._variables, self._run_plainly) if capture and type(self._fast) is Plan else None

    def __repr__(self) -> str:
        return f"<{self.on_device!r} on {self._gpu.name}>"

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes that are run."""
        return self.on_device.nodes

    def run(self, *values: Any) -> list[Any]:
        """Fed arrays in, fetched arrays out, once all kernels have ended.

        Raises:
            GraphError: an error of a kernel, with its node.
        """
        gpu = self._gpu
        with gpu.running():
            return gpu.end(self._run_plainly(values) if self._captured is None else self._captured.run(values))

    def run_step(self, step: Step, values: Sequence[Any]) -> list[Any]:
        """Run with recording and cancellation; a recorded kernel lasts until the device has finished it.

        Raises:
            CancelledError: it was cancelled.
        """
        gpu = self._gpu
        with gpu.running():
            return gpu.end(self.on_device.run_step(step, self._begin(values)))

    def _run_plainly(self, values: Sequence[Any]) -> list[Any]:
        return self._fast.run(*self._begin(values))

    def _begin(self, values: Sequence[Any]) -> list[Any]:
        """The feeds on the device, once all variables are there."""
        for variable in self._variables:
            self._gpu.take(variable)
        return [self._gpu.fed(value) for value in values]

    def explain(self, error: BaseException) -> BaseException:
        """Convert `error` to a GraphError with its node."""
        fast = self._fast
        return (fast if isinstance(fast, Plan) and fast.node_at(error.__traceback__) else self.on_device).explain(error)

    def peak_memory(self, sizes: Sizes = OWN_SIZES) -> PeakMemory:
        """The predicted peak of live arrays, from shapes; see `Program.peak_memory`."""
        return self.on_device.peak_memory(sizes)

    def close(self) -> None:
        """Release resources."""
        self.on_device.close()
        self._fast.close()
