"""The backend of sessions on several devices: placement, and one partition for each device."""

from __future__ import annotations

from typing import Final

from graphcore.attrs import attr_text
from graphcore.errors import UnimplementedError
from graphcore.graph import Graph
from graphcore.graph.model.node import Node
from graphcore.graph.model.tensor_id import parse_tensor_name
from graphcore.kernel_context import ResourceManager
from graphcore.placement.body_requests import remark_body_requests
from graphcore.placement.cost_model import CostModel
from graphcore.placement.device import Device, DeviceSet
from graphcore.placement.partition.incarnations import FIRST_INCARNATION
from graphcore.placement.placer import Placer, last_placer, withdraw_placement
from graphcore.plumbing import ARG, STANDS_FOR
from graphcore.runtime.backends.kernels import Kernels
from graphcore.runtime.backends.work import Built, RecordedRun, StepwiseProgram, Subgraph
from graphcore.runtime.core.events import Event
from graphcore.runtime.core.options import SessionOptions
from graphcore.runtime.core.tracing import Trace
from graphcore.runtime.core.virtual_clock import VirtualClock, function_of, located
from graphcore.runtime.dataflow.dataflow_program import build_dataflow
from graphcore.runtime.engines import Engine, build_program
from graphcore.runtime.partitions.partition_graphs import PartGraph, Placed
from graphcore.runtime.partitions.partition_run import Part
from graphcore.runtime.partitions.partitioned_program import PartitionedProgram
from graphcore.runtime.plan.parallel import has_large

CPU_TYPE: Final = "CPU"


class Devices:
    """Places the nodes of a session on CPUs and simulated devices, and runs a partition on each.

    Args:
        graph, options: those of the session.
        devices: the devices.
        resources: the variables and the like, if something else holds them.

    Attributes:
        client: the device of feeds: the first CPU, or the first device.
    """

    moves_nodes: Final = True

    def __init__(self, graph: Graph, options: SessionOptions, devices: DeviceSet, resources: ResourceManager | None = None) -> None:
        self.graph = graph
        self.options = options
        self.devices = devices
        self.kernels = Kernels(graph.library, ResourceManager() if resources is None else resources)
        self.client = next((device for device in devices if device.device_type == CPU_TYPE), next(iter(devices)))
        self._placed: tuple[int, dict[str, Device]] = (-1, {})
        withdraw_placement(graph)
        last_placer.set(graph, self._placer(graph))  # explains devices before the first run

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join([device.name for device in self.devices])}>"

    def list_devices(self) -> list[Device]:
        """The devices."""
        return list(self.devices)

    def build(self, subgraph: Subgraph, engine: Engine) -> Built:
        """Prepare a run: with `engine` if one device does all of it, otherwise as partitions.

        Raises:
            UnimplementedError: the plan engine is required, and several devices share the run.
            GraphError: a node cannot be placed, has an error or cannot run.
        """
        if subgraph.is_empty:
            return self._build_alone(subgraph, engine, self.client.name)
        placed = self._placed_copy(subgraph, engine)
        if len(placed.devices) == 1:
            return self._build_alone(subgraph, engine, *placed.devices)
        return Built(self._build_divided(subgraph, placed), None)

    def build_stepwise(self, subgraph: Subgraph) -> StepwiseProgram:
        """Prepare a run that is fed step by step.

        Raises:
            GraphError: a node cannot be placed, has an error or cannot run.
        """
        if not subgraph.is_empty:
            placed = self._placed_copy(subgraph)
            if self._is_divided(placed.devices):
                return self._build_divided(subgraph, placed)
        return build_dataflow(*subgraph.ends, self.kernels.maker(subgraph.mild))

    def trace(self, run: RecordedRun) -> Trace:
        """The trace of a run. On simulated devices it has the times of the virtual clock."""

        def find(event: Event) -> Node | None:
            return self.kernels.functions.find_node(function_of(event.call), event.node) if event.call else self.graph.find(event.node)

        nodes, arrays = run.program.nodes, run.recorder.arrays
        events = located(run.recorder.events, run.device or "")
        simulated = [device.name for device in self.devices if device.simulated]
        if self.devices.simulated:
            arrays = ()  # their times are those of the wall clock
            by_name = {device.name: device for device in self.devices}
            events = VirtualClock(nodes, by_name, find, run.recorder.argument_bytes, CostModel()).replay(events)
        return Trace(
            events, nodes, run.peak_bytes, arrays, simulated=self.devices.simulated, simulated_devices=simulated, values=run.values
        )

    def close(self) -> None:
        """Release the variables."""
        self.kernels.close()

    def _build_alone(self, subgraph: Subgraph, engine: Engine, device: str) -> Built:
        """The program of a run that one device does alone."""
        make_kernel = self.kernels.maker(subgraph.mild)
        return Built(build_program(*subgraph.ends, make_kernel, engine, subgraph.nodes, self.options.inter_op_threads), device)

    def _build_divided(self, subgraph: Subgraph, placed: Placed) -> PartitionedProgram:
        """One partition for each device."""
        library, seed = placed.graph.library, placed.graph.seed
        partitions = placed.partitions({device.name: device.incarnation or FIRST_INCARNATION for device in self.devices})
        parts = [self._part(PartGraph(partition, library, seed), subgraph) for partition in partitions]
        may_use_threads = self.options.inter_op_threads != 1 and not self.devices.simulated
        concurrent = may_use_threads and has_large(placed.graph.nodes, dict.fromkeys(placed.feeds, 0))
        return PartitionedProgram(parts, len(subgraph.fetches), concurrent=concurrent)

    def _is_divided(self, devices: set[str]) -> bool:
        """True iff a run that is fed step by step on these devices has partitions."""
        return len(devices) > 1

    def _part(self, part: PartGraph, subgraph: Subgraph) -> Part:
        """The partition `part` of `subgraph`, prepared for running."""
        return part.prepared(self.kernels.maker(subgraph.mild))

    # ---- placement -------------------------------------------------------------------------------------------------

    def _placed_copy(self, subgraph: Subgraph, engine: Engine = "auto") -> Placed:
        """A copy of `subgraph` whose nodes have devices.

        Raises:
            UnimplementedError: the plan engine is required, and these are several devices.
            GraphError: a node cannot be copied or placed.
        """
        placed = Placed(*subgraph.ends, self._place)
        if engine == "plan" and len(placed.devices) > 1:
            raise UnimplementedError(f"Required a run on one device for the plan engine; this one is on {len(placed.devices)}")
        return placed

    def _place(self, pruned: Graph) -> None:
        """Assign devices to the nodes of a run."""
        devices = {} if self.options.place_pruned_graph else self._placement()
        for node in pruned.nodes:
            stands_for = node.attr.get(STANDS_FOR)
            name = parse_tensor_name(attr_text(stands_for))[0] if isinstance(stands_for, bytes) else node.name
            device = self.client if node.op in ARG else devices.get(name)
            node.assigned_device = "" if device is None else device.name
        if self.options.place_pruned_graph:
            self._placer(pruned).run()
        remark_body_requests(pruned.nodes)

    def _placement(self) -> dict[str, Device]:
        """The device of each node of the whole graph, by name."""
        if self._placed[0] != self.graph.version:
            withdraw_placement(self.graph)
            placement = self._placer(self.graph).run()
            self._placed = (self.graph.version, {node.name: device for node, device in placement.devices.items()})
        return self._placed[1]

    def _placer(self, graph: Graph) -> Placer:
        soft, logs = bool(self.options.allow_soft_placement), bool(self.options.log_device_placement)
        return Placer(graph, self.devices, soft, log_device_placement=logs)
