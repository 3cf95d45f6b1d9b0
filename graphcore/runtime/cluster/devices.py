"""The devices of a session on a cluster: one for each task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NoReturn

from graphcore.errors import UnimplementedError
from graphcore.graph import Graph
from graphcore.graph.model.node import Node, Tensor
from graphcore.kernel_context import ResourceManager
from graphcore.placement.device import Device, DeviceSet
from graphcore.placement.placer import Placer
from graphcore.plumbing import ARG, RECV, SEND
from graphcore.runtime.cluster.connection import Connection
from graphcore.runtime.cluster.program import ClusterProgram
from graphcore.runtime.core.options import SessionOptions
from graphcore.runtime.core.prune import needed_nodes
from graphcore.runtime.partitions.build import Placed
from graphcore.runtime.plan.schedule import MakeKernel
from graphcore.runtime.session.engines import Engine
from graphcore.runtime.session.mild_initializers import mild_initializers
from graphcore.runtime.session.placing import SessionDevices


class ClusterDevices(SessionDevices):
    """Places the runs of a session on the tasks of a cluster.

    Args:
        graph: the graph of the session.
        connection: the tasks.
        options: those of the session.
        resources: learns that variables were declared again.
    """

    def __init__(self, graph: Graph, connection: Connection, options: SessionOptions, resources: ResourceManager) -> None:
        links = connection.links.values()
        devices = DeviceSet([Device(link.device, link.memory, link.incarnation) for link in links])
        super().__init__(graph, devices, options)
        self.connection = connection
        self._resources = resources

    def build(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Node],
        feeds: Sequence[Tensor],
        make_kernel: MakeKernel,  # noqa: ARG002 - the kernels are made by the tasks
        engine: Engine,
    ) -> ClusterProgram | str:
        """Prepare a run on the tasks; see `SessionDevices.build`.

        Raises:
            GraphError: a node cannot be placed, has an error or cannot run, or a task is lost.
            UnimplementedError: a node was made to send or receive.
        """
        if not fetches and not targets:
            return ""
        needed = needed_nodes(fetches, targets, feeds)
        for node in needed:
            if node.op in SEND | RECV:
                raise UnimplementedError.at(
                    node, f"'{node.name}' (op {node.op}) sends or receives by itself, which sessions on a cluster do not support"
                )
        placed = Placed(fetches, targets, feeds, self._place)
        incarnations = {device.name: device.incarnation for device in self.devices}
        program = ClusterProgram(
            self.connection,
            placed.partitions(incarnations),
            self.graph.library,
            placed.graph.seed,
            [tensor.name for tensor in feeds],
            len(fetches),
            engine,
            self.options.inter_op_threads,
            sorted(mild_initializers(targets, needed)),
        )
        self._resources.redeclared = self._resources.redeclared or self.connection.redeclared
        self.connection.redeclared = False
        return program

    def build_stepwise(self, *_what: object) -> NoReturn:
        """Refuse a run in several steps.

        Raises:
            UnimplementedError: always.
        """
        raise UnimplementedError("Required a session of this process for a run in several steps (partial_run); this one is on a cluster")

    def device_of(self, node: str) -> str:
        """The device of the node of the graph with this name.

        Raises:
            GraphError: it cannot be placed.
        """
        return self._placement()[node].name

    def _placer(self, graph: Graph) -> Placer:
        """The placer; a node that may be anywhere goes to the first task."""
        soft, logs = bool(self.options.allow_soft_placement), bool(self.options.log_device_placement)
        return Placer(graph, self.devices, soft, log_device_placement=logs, default_local_device=self.client)

    def _place(self, pruned: Graph) -> None:
        """Assign devices to the nodes of a run; a feed goes straight to the task with most of its users."""
        super()._place(pruned)
        for node in pruned.nodes:
            if node.op in ARG:
                users = Counter([user.assigned_device for user, _ in pruned.tensor_consumers(node.outputs[0])])
                node.assigned_device = users.most_common(1)[0][0] if users else self.client.name
