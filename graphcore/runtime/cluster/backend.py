"""The backend of sessions on a cluster: one device for each task."""

from __future__ import annotations

from collections import Counter
from typing import NoReturn

from graphcore.errors import UnimplementedError
from graphcore.graph import Graph
from graphcore.placement.device import Device, DeviceSet
from graphcore.placement.placer import Placer
from graphcore.plumbing import ARG, RECV, SEND
from graphcore.runtime.backends.devices import Devices
from graphcore.runtime.backends.work import Built, Subgraph
from graphcore.runtime.cluster.cluster_program import ClusterProgram
from graphcore.runtime.cluster.connection import Connection
from graphcore.runtime.cluster.resources import ClusterResources
from graphcore.runtime.core.options import SessionOptions
from graphcore.runtime.engines import Engine


class ClusterBackend(Devices):
    """Places the nodes of a session on the tasks of a cluster, which run them and hold the variables. See `Backend`.

    Args:
        graph, options: those of the session.
        connection: the tasks.
    """

    def __init__(self, graph: Graph, options: SessionOptions, connection: Connection) -> None:
        links = connection.links.values()
        devices = DeviceSet([Device(link.device, link.memory, link.incarnation) for link in links])
        super().__init__(graph, options, devices, ClusterResources(connection, self.device_of))
        self._connection = connection

    def build(self, subgraph: Subgraph, engine: Engine) -> Built:
        """Prepare a run on the tasks.

        Raises:
            GraphError: a node cannot be placed, has an error or cannot run, or a task is lost.
            UnimplementedError: a node was made to send or receive, or the plan engine is required for a run on several tasks.
        """
        if subgraph.is_empty:
            return super().build(subgraph, engine)
        for node in subgraph.nodes:
            if node.op in SEND | RECV:
                raise UnimplementedError.at(
                    node, f"'{node.name}' (op {node.op}) sends or receives by itself, which sessions on a cluster do not support"
                )
        placed = self._placed_copy(subgraph, engine)
        program = ClusterProgram(
            self._connection,
            placed.partitions({device.name: device.incarnation for device in self.devices}),
            self.graph.library,
            placed.graph.seed,
            [tensor.name for tensor in subgraph.feeds],
            len(subgraph.fetches),
            engine,
            self.options.inter_op_threads,
            sorted(subgraph.mild),
        )
        resources = self.kernels.resources
        resources.redeclared = resources.redeclared or self._connection.redeclared
        self._connection.redeclared = False
        return Built(program, self.client.name)

    def build_stepwise(self, subgraph: Subgraph) -> NoReturn:  # noqa: ARG002 - the signature is Backend's
        """Refuse a run that is fed step by step.

        Raises:
            UnimplementedError: always.
        """
        raise UnimplementedError("Required a session of this process for a run in several steps (partial_run); this one is on a cluster")

    def close(self) -> None:
        """End the tasks, and release their variables."""
        super().close()
        self._connection.close()

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
