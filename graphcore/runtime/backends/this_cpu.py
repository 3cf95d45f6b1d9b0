"""The backend of sessions without devices: the CPU of this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from graphcore.graph import Graph
from graphcore.graph.model.node import Node
from graphcore.kernel_context import ResourceManager
from graphcore.placement.body_requests import remark_body_requests
from graphcore.runtime.backends.kernels import Kernels
from graphcore.runtime.backends.work import Built, RecordedRun, StepwiseProgram, Subgraph
from graphcore.runtime.core.devices import check_devices, local_devices, remark_absent_devices
from graphcore.runtime.core.options import SessionOptions
from graphcore.runtime.core.rewrite import DeviceAttributes
from graphcore.runtime.core.tracing import CPU, Trace
from graphcore.runtime.dataflow.dataflow_program import build_dataflow
from graphcore.runtime.engines import Engine, build_program


class ThisCpu:
    """Runs everything on the CPU of this process; requests for other devices are refused, or remarked on. See `Backend`.

    Args:
        graph, options: those of the session.
    """

    devices: Final = None
    moves_nodes: Final = False

    def __init__(self, graph: Graph, options: SessionOptions) -> None:
        self.kernels = Kernels(graph.library, ResourceManager())
        self._options = options

    def __repr__(self) -> str:
        return "<ThisCpu>"

    def list_devices(self) -> list[DeviceAttributes]:
        """The CPU."""
        return list(local_devices())

    def build(self, subgraph: Subgraph, engine: Engine) -> Built:
        """Prepare a run.

        Raises:
            InvalidArgumentError: a node requests a device that does not exist, without soft placement.
            GraphError: a node has an error or cannot run.
        """
        self._check_requests(subgraph.nodes)
        make_kernel = self.kernels.maker(subgraph.mild)
        return Built(build_program(*subgraph.ends, make_kernel, engine, subgraph.nodes, self._options.inter_op_threads), CPU)

    def build_stepwise(self, subgraph: Subgraph) -> StepwiseProgram:
        """Prepare a run that is fed step by step; see `build`."""
        self._check_requests(subgraph.nodes)
        return build_dataflow(*subgraph.ends, self.kernels.maker(subgraph.mild))

    def trace(self, run: RecordedRun) -> Trace:
        """The trace of a run."""
        recorder = run.recorder
        return Trace(lambda: recorder.events, run.program.nodes, run.peak_bytes, recorder.arrays, values=run.values)

    def close(self) -> None:
        """Release the variables."""
        self.kernels.close()

    def _check_requests(self, nodes: Sequence[Node]) -> None:
        if self._options.allow_soft_placement:
            remark_absent_devices(nodes, local_devices())
        else:
            check_devices(nodes, local_devices())
        remark_body_requests(nodes, CPU)
