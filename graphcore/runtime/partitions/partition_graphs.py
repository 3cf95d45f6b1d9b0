"""Preparation of a subgraph for several devices: placement, partitions, tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from graphcore.attrs import attr_text
from graphcore.definitions import GraphDef
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import Graph, ImportOptions, import_graph_def
from graphcore.graph.importing.from_nodes import graph_with_library
from graphcore.graph.model.node import Node, Tensor
from graphcore.placement.partition import partition_graph
from graphcore.plumbing import ARG, IDENTITY, MERGE
from graphcore.runtime.core.rewrite import copy_with_shapes
from graphcore.runtime.core.tokens import TRANSFER
from graphcore.runtime.dataflow.table import build_table
from graphcore.runtime.partitions.partition_run import Part
from graphcore.runtime.plan.schedule import MakeKernel
from graphcore.source import SourceLocation

if TYPE_CHECKING:
    from graphcore.runtime.gpu.gpu import Gpu

Place = Callable[[Graph], None]
"""Assigns a device to every node of a graph."""
_NO_GPUS: Final[Mapping[str, Gpu]] = MappingProxyType({})


class Partition(msgspec.Struct, frozen=True):
    """The nodes of one device, in a form that can travel.

    Args:
        device: the device that runs them.
        graph_def: the nodes, and the functions that they reach.
        sources: the source line of each node, by its name; of a transfer, by the name of the node whose value it transfers.
        feeds, fetches: the names of its fed and fetched tensors, by their positions among those of the whole step.
        targets: the names of its nodes that were asked for without their values.
    """

    device: str
    graph_def: GraphDef
    sources: Mapping[str, SourceLocation]
    feeds: Mapping[int, str]
    fetches: Mapping[int, str]
    targets: Sequence[str] = ()


class Placed:
    """A copy of the subgraph for `fetches` and `targets`, given `feeds`, whose nodes have devices.

    Args:
        fetches, targets: at least one of them.
        place: assigns devices to the nodes of the copy, in which feeds are `_Arg` nodes.

    Raises:
        GraphError: a node cannot be copied or placed.

    Attributes:
        graph: the copy.
        feeds: the fed tensors of the copy.
    """

    def __init__(self, fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor], place: Place) -> None:
        self._fetches, self._targets, self.feeds = copy_with_shapes(fetches, targets, feeds)
        self.graph = (self._fetches[0].node if self._fetches else self._targets[0]).graph
        place(self.graph)

    @property
    def devices(self) -> set[str]:
        """The devices of its nodes."""
        return {node.assigned_device for node in self.graph.nodes}

    def partitions(self, incarnations: Mapping[str, int]) -> list[Partition]:
        """Its nodes by device, with the sends and receives between them.

        Args:
            incarnations: the incarnation of each device.

        Raises:
            GraphError: a loop is malformed.
        """
        if len(self.devices) > 1:
            _read_variables_at_home(self.graph)
        sources = {node.name: node.source for node in self.graph.nodes if node.source is not None}
        divided = partition_graph(self.graph, get_incarnation=incarnations.__getitem__)
        return [self._partition(device, graph_def, sources) for device, graph_def in divided.items()]

    def _partition(self, device: str, graph_def: GraphDef, sources: Mapping[str, SourceLocation]) -> Partition:
        there = {node.name for node in graph_def.node}

        def own(tensors: Sequence[Tensor]) -> dict[int, str]:
            return {number: tensor.name for number, tensor in enumerate(tensors) if tensor.node.name in there}

        targets = [node.name for node in self._targets if node.name in there]
        return Partition(device, graph_def, sources, own(self.feeds), own(self._fetches), targets)


def _read_variables_at_home(graph: Graph) -> None:
    """Read variables for nodes of other devices at home, after all that these nodes wait for.

    Otherwise the send would read a variable at once, before changes that the node waits for.
    """
    for node in graph.nodes:
        for slot, tensor in enumerate(node.inputs):
            at_home = tensor.node.assigned_device == node.assigned_device
            if at_home or not tensor.dtype.is_ref or node.input_types[slot].is_ref or node.op in MERGE:
                continue
            others = [*node.control_inputs, *[other.node for other in node.inputs if not other.dtype.is_ref]]
            with graph.control_dependencies(others):
                read = graph.apply_op(IDENTITY, [tensor], name=f"{node.name}/read")
            read.assigned_device = tensor.node.assigned_device
            graph.update_edge(read, 0, node, slot)


class PartGraph:
    """A partition as a graph, whose nodes have the source lines of the whole graph.

    Args:
        partition: the partition.
        library: the functions, which become those of the graph.
        seed: the seed of the whole graph.
    """

    def __init__(self, partition: Partition, library: FunctionLibraryDefinition, seed: int | None) -> None:
        self.partition = partition
        self.graph = graph_with_library(library)
        self.graph.seed = seed
        graph_def = partition.graph_def
        # Nodes are placed already, and those that are fed are not among them.
        options = ImportOptions(allow_internal_ops=True, validate_colocation_constraints=False)
        import_graph_def(GraphDef(node=graph_def.node, versions=graph_def.versions), self.graph, options)
        for node in self.graph.nodes:
            source = node.attr.get(TRANSFER)
            node.assigned_device = partition.device
            node.source = partition.sources.get(attr_text(source) or node.name)

    @property
    def feeds(self) -> list[Tensor]:
        """Its fed tensors, in order."""
        return [self.graph.get_tensor_by_name(name) for name in self.partition.feeds.values()]

    @property
    def fetches(self) -> list[Tensor]:
        """Its fetched tensors, in order."""
        return [self.graph.get_tensor_by_name(name) for name in self.partition.fetches.values()]

    def prepared(self, make_kernel: MakeKernel, gpu: Gpu | None = None) -> Part:
        """The table of its nodes, which run on `gpu` if it is given."""
        targets = [node for node in self.graph.nodes if node.op not in ARG]
        table = build_table(self.fetches, targets, self.feeds, make_kernel)
        transfers = frozenset([node for node in targets if TRANSFER in node.attr])
        return Part(self.partition.device, table, tuple(self.partition.feeds), tuple(self.partition.fetches), transfers, gpu)
