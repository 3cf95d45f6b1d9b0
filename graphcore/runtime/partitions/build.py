"""Preparation of a subgraph for several devices: placement, partitions, tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphcore.definitions import GraphDef
from graphcore.graph import Graph, ImportOptions, import_graph_def
from graphcore.graph.importing.from_nodes import graph_with_library
from graphcore.graph.model.node import Node, Tensor
from graphcore.placement.partition import partition_graph
from graphcore.plumbing import ARG, IDENTITY, MERGE
from graphcore.runtime.core.rewrite import copy_with_shapes
from graphcore.runtime.core.tokens import TRANSFER
from graphcore.runtime.dataflow.table import build_table
from graphcore.runtime.partitions.partition_run import Part
from graphcore.runtime.partitions.program import PartitionedProgram
from graphcore.runtime.plan.parallel import has_large
from graphcore.runtime.plan.schedule import MakeKernel

Place = Callable[[Graph], None]
"""Assigns a device to every node of a graph."""


def build_partitioned(
    fetches: Sequence[Tensor],
    targets: Sequence[Node],
    feeds: Sequence[Tensor],
    make_kernel: MakeKernel,
    place: Place,
    incarnations: Mapping[str, int],
    *,
    may_use_threads: bool = True,
) -> PartitionedProgram | str:
    """Prepare the subgraph for `fetches` and `targets`, given `feeds`, with one executor for each device.

    Args:
        place: assigns devices to the nodes of a copy of the subgraph, in which feeds are `_Arg` nodes.
        incarnations: the incarnation of each device.
        may_use_threads: False to run all partitions in one thread.

    Returns:
        The program; if all nodes are on one device, the name of that, "" for no nodes.

    Raises:
        GraphError: a node cannot be placed, has an error or cannot run, or a loop is malformed.
    """
    if not fetches and not targets:
        return ""
    fetches, targets, feeds = copy_with_shapes(fetches, targets, feeds)
    graph = (fetches[0].node if fetches else targets[0]).graph
    place(graph)
    used = {node.assigned_device for node in graph.nodes}
    if len(used) == 1:
        return used.pop()
    _read_variables_at_home(graph)
    divided = partition_graph(graph, get_incarnation=incarnations.__getitem__)
    parts = [_Part(device, graph_def, graph) for device, graph_def in divided.items()]
    prepared = [part.prepared(fetches, feeds, make_kernel) for part in parts]
    concurrent = may_use_threads and has_large(graph.nodes, dict.fromkeys(feeds, 0))
    return PartitionedProgram(prepared, len(fetches), concurrent=concurrent)


def _read_variables_at_home(graph: Graph) -> None:
    """Let a reference be read on its own device, when everything that its reader waits for is there.

    A send would read it as soon as the variable is there, before changes that the reader waits for.
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


class _Part:
    """A partition as a graph, whose nodes have the source lines of the whole graph."""

    def __init__(self, device: str, graph_def: GraphDef, whole: Graph) -> None:
        self.device = device
        self.graph = graph_with_library(whole.library)
        self.graph.seed = whole.seed
        import_graph_def(GraphDef(node=graph_def.node, versions=graph_def.versions), self.graph, ImportOptions(allow_internal_ops=True))
        for node in self.graph.nodes:
            source = node.attr.get(TRANSFER)
            original = whole.find(source.decode() if isinstance(source, bytes) else node.name)
            node.assigned_device = device
            node.source = None if original is None else original.source

    def prepared(self, fetches: Sequence[Tensor], feeds: Sequence[Tensor], make_kernel: MakeKernel) -> Part:
        """The table of its nodes."""
        own_feeds = {number: tensor for number, tensor in enumerate(map(self._own, feeds)) if tensor is not None}
        own_fetches = {number: tensor for number, tensor in enumerate(map(self._own, fetches)) if tensor is not None}
        targets = [node for node in self.graph.nodes if node.op not in ARG]
        table = build_table(list(own_fetches.values()), targets, list(own_feeds.values()), make_kernel)
        transfers = frozenset([node for node in targets if TRANSFER in node.attr])
        return Part(self.device, table, tuple(own_feeds), tuple(own_fetches), transfers)

    def _own(self, tensor: Tensor) -> Tensor | None:
        """The tensor of this partition that is `tensor` of the whole graph; None if it is elsewhere."""
        node = self.graph.find(tensor.node.name)
        return None if node is None else node.outputs[tensor.index]
