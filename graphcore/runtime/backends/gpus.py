"""The backend of sessions with CUDA devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from functools import partial

from graphcore.graph import Graph
from graphcore.placement.device import DeviceSet
from graphcore.plumbing import ARG
from graphcore.runtime.backends.devices import Devices
from graphcore.runtime.backends.work import Built, Subgraph
from graphcore.runtime.core.options import SessionOptions
from graphcore.runtime.engines import Engine, build_program
from graphcore.runtime.functions.function_runtime import FunctionLibraryRuntime, kernel_of_op
from graphcore.runtime.gpu.gpu import Gpu, open_gpus
from graphcore.runtime.gpu.gpu_program import GpuProgram
from graphcore.runtime.gpu.kernels import kernels_on
from graphcore.runtime.partitions.partition_graphs import PartGraph
from graphcore.runtime.partitions.partition_run import Part
from graphcore.runtime.plan.schedule import MakeKernel


class Gpus(Devices):
    """Places the nodes of a session on devices some of which are GPUs. What one GPU does alone is one program on it.

    Args:
        graph, options, devices: see `Devices`.

    Raises:
        FailedPreconditionError: there is no CuPy, or CUDA cannot use a device.
    """

    def __init__(self, graph: Graph, options: SessionOptions, devices: DeviceSet) -> None:
        self._gpus = open_gpus(devices)
        self._functions: dict[str, FunctionLibraryRuntime] = {}
        super().__init__(graph, options, devices)

    def close(self) -> None:
        """Release the variables."""
        self._functions.clear()
        super().close()

    def _build_alone(self, subgraph: Subgraph, engine: Engine, device: str) -> Built:
        gpu = self._gpus.get(device)
        if gpu is None:
            return super()._build_alone(subgraph, engine, device)
        program = build_program(*subgraph.ends, self._kernels_on(gpu, subgraph.mild), engine, subgraph.nodes, threads=1)
        return Built(GpuProgram(gpu, program, capture=bool(self.options.capture_on_gpu)), device)

    def _is_divided(self, devices: set[str]) -> bool:
        """True also for one GPU: a partition passes feeds and results between it and the host."""
        return super()._is_divided(devices) or not devices.isdisjoint(self._gpus)

    def _part(self, part: PartGraph, subgraph: Subgraph) -> Part:
        gpu = self._gpus.get(part.partition.device)
        return super()._part(part, subgraph) if gpu is None else part.prepared(self._kernels_on(gpu, subgraph.mild), gpu)

    def _kernels_on(self, gpu: Gpu, mild: Container[str]) -> MakeKernel:
        """A maker of kernels that run on a GPU, as do the functions they call; for `mild` see `Kernels.make`."""
        functions = self._functions.get(gpu.name)
        if functions is None:
            creator = kernels_on(gpu, kernel_of_op)
            functions = self._functions[gpu.name] = FunctionLibraryRuntime(
                self.kernels.library,
                resources=self.kernels.resources,
                custom_kernel_creator=lambda node, context: None if node.registration.is_function else creator(node, context),
                device=gpu.name,
                handles=self.kernels.functions.handles,
            )
        return kernels_on(gpu, partial(self.kernels.make, functions=functions, mild=mild))

    def _place(self, pruned: Graph) -> None:
        """Assign devices to the nodes of a run; a feed goes straight to the device of most of its users."""
        super()._place(pruned)
        computed = Counter([node.assigned_device for node in pruned.nodes if node.op not in ARG and node.assigned_device])
        for node in pruned.nodes:
            if node.op in ARG:  # one without users goes to where the run is
                users = Counter([user.assigned_device for user, _ in pruned.tensor_consumers(node.outputs[0])])
                node.assigned_device = next((device for device, _ in (users or computed).most_common(1)), self.client.name)
