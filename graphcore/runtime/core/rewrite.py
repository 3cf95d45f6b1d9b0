"""The subgraph for one run, with nodes for the client's feeds and fetches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from graphcore.attrs import AttrValue, as_attr_value
from graphcore.definitions import NodeDef
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.graph import Graph, constant_value
from graphcore.graph.model.node import NO_CONTROLS, Node, Tensor, absent_tensor, input_text
from graphcore.graph.model.search import dependency_order
from graphcore.graph.model.tensor_id import parse_tensor_name
from graphcore.plumbing import STANDS_FOR, is_back_edge
from graphcore.registry import op_registry
from graphcore.runtime.core.late_reads import add_late_reads, late_reads
from graphcore.runtime.core.prune import PLACEHOLDERS, checked_frames, cyclic, needed_nodes
from graphcore.shapes import Shape


class DeviceAttributes(msgspec.Struct, frozen=True):
    """The public attributes of a device.

    Args:
        name: its full name.
        device_type: `CPU` or `GPU`.
        memory_limit_bytes: its memory, 0 if unknown.
        incarnation: a number that changes when the device restarts.
    """

    name: str
    device_type: str = "CPU"
    memory_limit_bytes: int = 0
    incarnation: int = 0


class RewrittenGraph(msgspec.Struct, frozen=True):
    """The result of `rewrite_graph_for_execution`.

    Args:
        graph: the nodes of the run.
        feed_types, fetch_types: dtypes in the order of the feeds and fetches, without references.
    """

    graph: Graph
    feed_types: tuple[DType, ...]
    fetch_types: tuple[DType, ...]


class _Client:
    """A node to be made, which takes `tensor` from the client as a feed, or gives it to the client."""

    __slots__ = ("attrs", "name", "op", "shape", "tensor")

    def __init__(self, name: str, op: str, tensor: Tensor, attrs: dict[str, AttrValue], shape: Shape | None = None) -> None:
        self.name = name
        self.op = op
        self.tensor = tensor
        self.attrs = attrs
        self.shape = shape

    @property
    def is_feed(self) -> bool:
        return self.op in {"_Recv", "_Arg"}


def rewrite_graph_for_execution(
    graph: Graph,
    feeds: Sequence[str],
    fetches: Sequence[str],
    targets: Sequence[str],
    device: str | DeviceAttributes,
    use_function_convention: bool = False,
) -> RewrittenGraph:
    """Copy the subgraph for `fetches` and `targets`, with feeds from the client.

    `graph` is unchanged.

    Args:
        feeds: endpoints (`x`, `x:1`) fed by the client; each becomes a `_Recv` node, or an `_Arg` by the function convention.
        fetches: endpoints for the client; each becomes a `_Send` node, or a `_Retval`. Names are compared literally:
            `x` is not `x:0`.
        targets: further nodes to run.
        device: the client's device.
        use_function_convention: pass values as arguments and results of a function instead of a rendezvous.

    Raises:
        InvalidArgumentError: nothing to run; an endpoint is fed twice, or both fed and fetched; there is no such output.
        NotFoundError: no such node.
    """
    if not fetches and not targets:
        raise InvalidArgumentError("Must specify at least one target to fetch or execute.")
    for number, endpoint in enumerate(feeds):
        if endpoint in feeds[:number]:
            raise InvalidArgumentError(f'Endpoint "{endpoint}" fed more than once.')
    for endpoint in fetches:
        if endpoint in feeds:
            raise InvalidArgumentError(f"{endpoint} is both fed and fetched.")
    client = DeviceAttributes(device) if isinstance(device, str) else device
    convention = None if use_function_convention else client
    with graph.lock:
        fed = [_feed_node(fed_tensor(graph, endpoint), endpoint, number, convention) for number, endpoint in enumerate(feeds)]
        fetched = [_fetch_node(fetched_tensor(graph, endpoint), endpoint, number, convention) for number, endpoint in enumerate(fetches)]
        _make_names_unique(fetched)
        copy = _Rewriter(graph, fed, client.name if convention else "").copy([*fetched, *_target_nodes(graph, fed, fetched, targets)])
    return RewrittenGraph(copy, tuple(item.tensor.dtype.base for item in fed), tuple(item.tensor.dtype.base for item in fetched))


def prune_for_targets(graph: Graph, targets: Sequence[str]) -> Graph:
    """Copy the part of `graph` that the nodes called `targets` need.

    Raises:
        NotFoundError: `PruneForTargets: Some target nodes not found: `.
    """
    with graph.lock:
        return _Rewriter(graph, [], "").copy(_target_nodes(graph, [], [], targets))


def copy_with_shapes(
    fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor], shapes: Sequence[Shape] | None = None
) -> tuple[list[Tensor], list[Node], list[Tensor]]:
    """Copy the needed subgraph with shapes inferred from those of the feeds.

    Args:
        shapes: the shape of each feed; the graph's if None.

    Returns:
        The copies of fetches, targets and feeds.

    Raises:
        GraphError: it cannot be copied.
    """
    graph = (fetches[0].node if fetches else targets[0] if targets else feeds[0].node).graph
    known_shapes: Sequence[Shape | None] = shapes or [None] * len(feeds)
    clients = [
        _Client(
            f"_arg_{tensor.node.name}_{tensor.index}_{i}",
            "_Arg",
            tensor,
            {"T": tensor.dtype.base, "index": i, STANDS_FOR: tensor.name.encode()},
            shape,
        )
        for i, (tensor, shape) in enumerate(zip(feeds, known_shapes, strict=True))
    ]
    rewriter = _Rewriter(graph, clients, "")
    fed = rewriter.fed
    wanted = [rewriter.instead.get(node, node) for node in targets]
    computed = [tensor.node for tensor in fetches if tensor not in fed]
    with graph.lock:
        rewriter.copy([*clients, *computed, *wanted])
    copies = rewriter.copies

    def copied(tensor: Tensor) -> Tensor:
        return copies[fed[tensor]].outputs[0] if tensor in fed else copies[tensor.node].outputs[tensor.index]

    return [copied(tensor) for tensor in fetches], [copies[node] for node in wanted], [copied(tensor) for tensor in feeds]


def fed_tensor(graph: Graph, endpoint: str) -> Tensor:
    """The tensor of a fed `endpoint`.

    Raises:
        NotFoundError, InvalidArgumentError: there is no such output.
    """
    name, index = parse_tensor_name(endpoint)
    node = graph.find(name)
    if node is None:
        raise NotFoundError(f"FeedInputs: unable to find feed output {endpoint}", node=name)
    if not 0 <= index < len(node.outputs):
        raise InvalidArgumentError(
            f"FeedInputs: {endpoint} should have output index < {len(node.outputs)}", op=node.op, node=name, source=node.source
        )
    return node.outputs[index]


def fetched_tensor(graph: Graph, endpoint: str) -> Tensor:
    """The tensor of a fetched `endpoint`.

    Raises:
        NotFoundError, InvalidArgumentError: there is no such output.
    """
    name, index = parse_tensor_name(endpoint)
    node = graph.find(name)
    if node is None:
        raise NotFoundError(f"FetchOutputs node {endpoint}: not found", node=name)
    if not node.outputs:
        raise InvalidArgumentError(
            f"Tried to fetch data for '{endpoint}', which produces no output. "
            f"To run to a node but not fetch any data, give '{endpoint}' in 'target_node_names'.",
            op=node.op,
            node=name,
            source=node.source,
        )
    if not 0 <= index < len(node.outputs):
        raise InvalidArgumentError(
            f"FetchOutputs {endpoint}: output index too large, must be < {len(node.outputs)}", op=node.op, node=name, source=node.source
        )
    return node.outputs[index]


def _feed_node(tensor: Tensor, endpoint: str, number: int, client: DeviceAttributes | None) -> _Client:
    dtype, place = tensor.dtype.base, f"{tensor.node.name}_{tensor.index}"
    if client is None:
        return _Client(f"_arg_{place}_{number}", "_Arg", tensor, {"T": dtype, "index": number})
    return _Client(f"_recv_{place}", "_Recv", tensor, {"tensor_type": dtype, **_ends(endpoint, client)})


def _fetch_node(tensor: Tensor, endpoint: str, number: int, client: DeviceAttributes | None) -> _Client:
    dtype, place = tensor.dtype.base, f"{tensor.node.name}_{tensor.index}"
    if client is None:
        return _Client(f"_retval_{place}_{number}", "_Retval", tensor, {"T": dtype, "index": number})
    return _Client(f"_send_{place}", "_Send", tensor, {"T": dtype, **_ends(endpoint, client)})


def _make_names_unique(clients: list[_Client]) -> None:
    """Distinguish the ends of a tensor that is fetched as `x` and as `x:0`."""
    names: dict[str, int] = {}
    for client in clients:
        count = names[client.name] = names.get(client.name, 0) + 1
        client.name += f"_{count - 1}" if count > 1 else ""


def _ends(endpoint: str, client: DeviceAttributes) -> dict[str, AttrValue]:
    device = as_attr_value(client.name, "string")
    return {
        "tensor_name": as_attr_value(endpoint, "string"),
        "send_device": device,
        "send_device_incarnation": client.incarnation,
        "recv_device": device,
        "client_terminated": True,
    }


_Vertex = Node | _Client


def _target_nodes(graph: Graph, fed: list[_Client], fetched: list[_Client], targets: Sequence[str]) -> list[_Vertex]:
    """The targets, which may be nodes of the client."""
    index: dict[str, _Vertex] = {item.name: item for item in (*fed, *fetched)}
    nodes = [index.get(name) or graph.find(name) for name in targets]
    missing = "".join([f"{name} " for name, node in zip(targets, nodes, strict=True) if node is None])
    if missing:
        raise NotFoundError(f"PruneForTargets: Some target nodes not found: {missing}")
    return [node for node in nodes if node is not None]


class _Rewriter:
    """Copies the needed nodes, with feeds in place of computed tensors."""

    def __init__(self, graph: Graph, fed: Iterable[_Client], device: str) -> None:
        self.graph = graph
        self.device = device
        self.fed: dict[Tensor, _Client] = {}
        for item in fed:
            self.fed.setdefault(item.tensor, item)  # "x" and "x:0" may both be fed: the first one counts
        self.instead: dict[Node, _Client] = {item.tensor.node: item for item in self.fed.values() if item.tensor.node.op in PLACEHOLDERS}
        self.copies: dict[_Vertex, Node] = {}
        self.back_edges: list[tuple[Node, int, Tensor]] = []

    def copy(self, roots: Sequence[_Vertex]) -> Graph:
        made = Graph(self.graph.registry)
        made.versions = self.graph.versions
        made.seed = self.graph.seed
        made.add_function_library(self.graph.library)
        order = self._order(roots)
        # Feeds come first: shape inference follows all edges, and loops are closed only at the end.
        for vertex in sorted(order, key=lambda vertex: not (isinstance(vertex, _Client) and vertex.is_feed)):
            self.copies[vertex] = self._copy_node(made, vertex) if isinstance(vertex, Node) else self._make(made, vertex)
        for node, slot, tensor in self.back_edges:
            made.update_edge(self.copies[tensor.node], tensor.index, node, slot)
        return made

    def _order(self, roots: Sequence[_Vertex]) -> list[_Vertex]:
        """The nodes that `roots` depend on, producers first."""
        starts = list(roots)

        def producers(vertex: _Vertex) -> list[_Vertex]:
            starts.extend(tensor.node for tensor in self._around(vertex))
            return self._producers(vertex)

        return dependency_order(starts, producers, lambda vertex: cyclic(vertex.tensor.node if isinstance(vertex, _Client) else vertex))

    def _producers(self, vertex: _Vertex) -> list[_Vertex]:
        if isinstance(vertex, _Client):
            return [] if vertex.is_feed else [vertex.tensor.node]
        around = self._around(vertex)
        inputs: list[_Vertex] = [self.fed.get(tensor, tensor.node) for tensor in vertex.inputs if tensor not in around]
        return inputs + [self.instead.get(control, control) for control in vertex.control_inputs]

    def _around(self, vertex: _Vertex) -> list[Tensor]:
        """The tensors that reach `vertex` over loop back edges, which are added later."""
        if isinstance(vertex, _Client):
            return []
        return [tensor for tensor in vertex.inputs if is_back_edge(tensor.node.op, vertex.op) and tensor not in self.fed]

    def _copy_node(self, made: Graph, node: Node) -> Node:
        around = self._around(node)
        inputs = [self._input(made, tensor, later=tensor in around) for tensor in node.inputs]
        controls = [self.copies[self.instead.get(control, control)] for control in node.control_inputs] or NO_CONTROLS
        texts = tuple([input_text(tensor) for tensor in inputs] + [f"^{control.name}" for control in controls])
        node_def = node.node_def if texts == node.node_def.input else msgspec.structs.replace(node.node_def, input=texts)
        copy = made.builder.insert(node_def, node.registration, inputs, controls, node.input_types, node.output_types, node.source)
        copy.assigned_device = node.assigned_device
        self.back_edges += [(copy, slot, tensor) for slot, tensor in enumerate(node.inputs) if tensor in around]
        return copy

    def _input(self, made: Graph, tensor: Tensor, *, later: bool) -> Tensor:
        if later:
            return absent_tensor(made, tensor.node.name, tensor.index, tensor.dtype)
        client = self.fed.get(tensor)
        return self.copies[tensor.node].outputs[tensor.index] if client is None else self.copies[client].outputs[0]

    def _make(self, made: Graph, client: _Client) -> Node:
        is_feed = client.is_feed
        registration = op_registry.look_up(client.op)
        inputs = [] if is_feed else [self.copies[client.tensor.node].outputs[client.tensor.index]]
        node_def = NodeDef(client.name, client.op, tuple([input_text(tensor) for tensor in inputs]), "", client.attrs)
        dtypes = (client.tensor.dtype.base,)
        node = made.builder.insert(
            node_def, registration, inputs, NO_CONTROLS, () if is_feed else dtypes, dtypes if is_feed else (), client.tensor.node.source
        )
        node.assigned_device = self.device
        if is_feed and client.tensor.node.error is None:
            made.set_shape(node.outputs[0], client.tensor.shape if client.shape is None else client.shape)
        return node


def subgraph_to_run(fetches: list[Tensor], targets: list[Node], feeds: list[Tensor]) -> tuple[list[Tensor], list[Node], list[Tensor]]:
    """The subgraph to run: a copy if it has late reads, or if its shapes may not hold for `feeds`.

    Raises:
        GraphError: a tensor within a loop is fetched or fed, or a fed shape does not fit.
    """
    needed = needed_nodes(fetches, targets, feeds)
    late = late_reads(needed, feeds)
    if not late and not any(_decides_shapes(tensor) for tensor in feeds):
        return fetches, targets, feeds
    checked_frames(needed, fetches, feeds)  # the copy does not contain the fed tensors
    copied = copy_with_shapes(fetches, targets, feeds)
    if late:
        add_late_reads(copied[0][0].node.graph if copied[0] else copied[1][0].graph, late)
    return copied


def _decides_shapes(tensor: Tensor) -> bool:
    """True iff shapes may have been inferred from a value of `tensor` that a feed would replace."""
    return (
        tensor.node.op not in PLACEHOLDERS and not tensor.node.is_opaque and tensor.dtype.base.is_integer and constant_value(tensor) is None
    )
