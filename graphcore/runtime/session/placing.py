"""The devices of a session, and the placement of its runs on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from graphcore.attrs import attr_text
from graphcore.errors import FailedPreconditionError
from graphcore.graph import Graph
from graphcore.graph.model.argument_errors import refuse
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.model.tensor_id import parse_tensor_name
from graphcore.placement.body_requests import remark_body_requests
from graphcore.placement.cost_model import CostModel
from graphcore.placement.device import Device, DeviceSet
from graphcore.placement.partition.incarnations import FIRST_INCARNATION
from graphcore.placement.placement import withdraw_placement
from graphcore.placement.placer import Placer
from graphcore.plumbing import ARG, STANDS_FOR
from graphcore.runtime.core.events import Event
from graphcore.runtime.core.options import SessionOptions
from graphcore.runtime.core.program import Program, Step
from graphcore.runtime.core.tracing import Trace
from graphcore.runtime.core.value_records import ValueRecords
from graphcore.runtime.core.virtual_clock import VirtualClock, function_of, located
from graphcore.runtime.partitions.build import build_partitioned
from graphcore.runtime.partitions.program import PartitionedProgram
from graphcore.runtime.plan.schedule import MakeKernel
from graphcore.runtime.session.engines import Engine
from graphcore.runtime.session.function_runtime import FunctionLibraryRuntime
from graphcore.runtime.session.prepared import Prepared

if TYPE_CHECKING:
    from graphcore.runtime.gpu.gpu import Gpu

_CPU = "CPU"
_DEVICES = 'a gc.DeviceSet, a list of devices or their names, or "gpu"'


def checked_devices(devices: Any) -> DeviceSet | None:
    """Convert the devices of a session to a set; None stands for the CPU of this process.

    The text "gpu" stands for the CPU and the GPUs of this machine. A name that is not of a CPU is that of a simulated device.

    Raises:
        InvalidArgumentError: they are neither a DeviceSet nor a list of devices or names, or a name is not a device name.
        AlreadyExistsError: two have the same name.
        FailedPreconditionError: the set is empty, or there is no GPU.
    """
    if devices is None or isinstance(devices, DeviceSet):
        found = devices
    elif devices == "gpu":
        from graphcore.runtime.gpu.cuda import gpu_devices  # noqa: PLC0415 - most sessions need no GPU

        found = gpu_devices()
    elif isinstance(devices, Iterable) and not isinstance(devices, str | bytes):
        listed = list(devices)
        if not all(isinstance(device, Device | str) for device in listed):
            refuse("devices", _DEVICES, devices)
        found = DeviceSet([_named(device) if isinstance(device, str) else device for device in listed])
    else:
        refuse("devices", _DEVICES, devices)
    if found is not None and not len(found):
        raise FailedPreconditionError("devices: required at least one device, got none")
    return found


def _named(name: str) -> Device:
    device = Device(name)
    return Device(name, simulated=device.device_type != _CPU)


class DividedProgram(Program, Protocol):
    """A program of one partition for each device."""

    @property
    def parts(self) -> Sequence[Any]:
        """The partitions."""


class SessionDevices:
    """Places the runs of a session on several devices.

    Args:
        graph: the graph of the session.
        devices: the devices.
        options: the options of the session.

    Attributes:
        client: the device of feeds: the first CPU, or the first device.
        gpus: the CUDA devices among them, by name.
    """

    def __init__(self, graph: Graph, devices: DeviceSet, options: SessionOptions) -> None:
        self.graph = graph
        self.devices = devices
        self.options = options
        self.client = next((device for device in devices if device.device_type == _CPU), next(iter(devices)))
        self.gpus: Mapping[str, Gpu] = {}
        if any(device.cuda >= 0 for device in devices):
            from graphcore.runtime.gpu.gpu import open_gpus  # noqa: PLC0415 - most sessions need no GPU

            self.gpus = open_gpus(devices)
        self._placed: tuple[int, dict[str, Device]] = (-1, {})
        withdraw_placement(graph)
        graph.placer = self._placer(graph)  # explains devices before the first run

    def build(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Node],
        feeds: Sequence[Tensor],
        make_kernel: MakeKernel,
        engine: Engine,  # noqa: ARG002 - devices elsewhere need it, to prepare what one of them does alone
    ) -> DividedProgram | str:
        """Prepare a run on these devices; the name of the device if one does all of it.

        Args:
            fetches, targets, feeds, make_kernel: those of `build_partitioned`.
            engine: the engine of what one device does alone.

        Raises:
            GraphError: a node cannot be placed, has an error or cannot run.
        """
        return self._build(fetches, targets, feeds, make_kernel)

    def build_stepwise(
        self, fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor], make_kernel: MakeKernel
    ) -> PartitionedProgram | str:
        """Prepare a run that may be fed step by step; see `build`. What one GPU does alone is a partition, too.

        Raises:
            GraphError: a node cannot be placed, has an error or cannot run.
        """
        return self._build(fetches, targets, feeds, make_kernel, self.gpus)

    def _build(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Node],
        feeds: Sequence[Tensor],
        make_kernel: MakeKernel,
        partitions: Collection[str] = (),
    ) -> PartitionedProgram | str:
        """Prepare a run on these devices; on one of `partitions` alone as a program of one partition."""
        threads = self.options.inter_op_threads != 1 and not self.devices.simulated
        incarnations = {device.name: device.incarnation or FIRST_INCARNATION for device in self.devices}
        return build_partitioned(
            fetches, targets, feeds, make_kernel, self._place, incarnations, self.gpus, partitions, may_use_threads=threads
        )

    def trace(
        self,
        prepared: Prepared,
        program: Program,
        values: Sequence[Any],
        step: Step,
        functions: FunctionLibraryRuntime,
        records: Callable[[], ValueRecords] | None = None,
    ) -> Trace:
        """The recorded run `step` of a program on `values`, with the statistics that `records` gives.

        On simulated devices it has the times of the virtual clock.
        """

        def find(event: Event) -> Node | None:
            return functions.find_node(function_of(event.call), event.node) if event.call else self.graph.find(event.node)

        assert step.recorder is not None
        sole = "" if isinstance(program, PartitionedProgram) else prepared.device or self.client.name
        events = located(step.recorder.events, sole)
        simulated = [device.name for device in self.devices if device.simulated]
        arrays = step.recorder.arrays
        if self.devices.simulated:
            arrays = ()  # their times are those of the wall clock
            sizes = {tensor.node.name: getattr(value, "nbytes", 0) for tensor, value in zip(prepared.feeds, values, strict=True)}
            by_name = {device.name: device for device in self.devices}
            events = VirtualClock(program.nodes, by_name, find, {**step.recorder.argument_bytes, "": sizes}, CostModel()).replay(events)
        is_simulated = self.devices.simulated
        return Trace(events, program.nodes, step.peak_bytes, arrays, simulated=is_simulated, simulated_devices=simulated, values=records)

    def _place(self, pruned: Graph) -> None:
        """Assign devices to the nodes of a run."""
        known = {} if self.options.place_pruned_graph else self._placement()
        for node in pruned.nodes:
            stands_for = node.attr.get(STANDS_FOR)
            name = parse_tensor_name(attr_text(stands_for))[0] if isinstance(stands_for, bytes) else node.name
            device = self.client if node.op in ARG else known.get(name)
            node.assigned_device = "" if device is None else device.name
        if self.options.place_pruned_graph:
            self._placer(pruned).run()
        remark_body_requests(pruned.nodes)
        if self.gpus:
            computed = Counter([node.assigned_device for node in pruned.nodes if node.op not in ARG and node.assigned_device])
            for node in pruned.nodes:
                if node.op in ARG:  # straight to the device of most of its users; one without any to where the run is
                    users = Counter([user.assigned_device for user, _ in pruned.tensor_consumers(node.outputs[0])])
                    node.assigned_device = next((device for device, _ in (users or computed).most_common(1)), self.client.name)

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
