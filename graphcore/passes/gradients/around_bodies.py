"""Backward passes through the graph around the body of a function, written into the body.

A gradient taken in a body goes on where the body captures a tensor: through the nodes outside that the tensor depends on. These run outside
once; their gradients belong to the body, which captures the forward values that they need.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from graphcore.attrs import attr_text
from graphcore.definitions import NodeDef
from graphcore.errors import UnimplementedError
from graphcore.graph import FunctionGraph, Graph, Node, Tensor
from graphcore.graph.model.node import NO_CONTROLS, input_text, producers_of
from graphcore.graph.model.search import post_order, reachable
from graphcore.passes.gradients.functions.differentiation import FORWARD_OF
from graphcore.passes.gradients.functions.reaching import Reaching
from graphcore.passes.gradients.slices import Part, Slices, gradients_of_reads
from graphcore.plumbing import CONTROL_FLOW


def tensors_between(xs: Collection[Tensor], ys: Sequence[Tensor]) -> set[Tensor]:
    """The tensors of one graph through which gradients go from `ys` to `xs`."""
    if not ys:
        return set()
    wanted, reaching = frozenset(xs), Reaching(ys[0].graph.library)
    depends: set[Tensor] = set()
    for tensor in post_order(ys, reaching.sources):
        if any(source in wanted or source in depends for source in reaching.sources(tensor)):
            depends.add(tensor)
    return depends


def nodes_between(xs: Collection[Tensor], ys: Sequence[Tensor]) -> list[Node]:
    """The nodes through which gradients go from `ys` to `xs`, tensors of one graph; producers come first."""
    between = {tensor.node for tensor in tensors_between(xs, ys)}
    return [node for node in post_order([y.node for y in ys], producers_of) if node in between]


class OuterPass:
    """The backward pass from captured tensors to others of the same graph.

    Args:
        body: the body that is being built, which the gradients are for.
        graph: a graph around it.
        seeds: for each captured tensor of `graph` its gradient, a tensor of `body`.
        reads: the tensors of `graph` to differentiate with respect to.
        of_variables: the indices of those that are reads of variables.

    Attributes:
        used: the nodes of `graph` whose attrs and inputs the gradients depend on.

    Raises:
        UnimplementedError: there are nodes of loops or branches without functions between.
    """

    def __init__(
        self, body: FunctionGraph, graph: Graph, seeds: Mapping[Tensor, Tensor], reads: Sequence[Tensor], of_variables: Collection[int]
    ) -> None:
        self.body = body
        self.graph = graph
        self.reads = list(reads)
        self.of_variables = of_variables
        self.work = FunctionGraph.within(graph, f"{body.label}_around", body.place)
        self.copies: dict[Tensor, Tensor] = {}
        between = nodes_between(self.reads, list(seeds))
        rows = [read.node for read in reads if read.node.registration.traits.reads_variable == "rows"]
        self.used: list[Node] = []
        for node in dict.fromkeys([*rows, *between]):
            self._copy(node)
        self.seeds = {self._argument(f"dy_{i}", tensor): seed for i, (tensor, seed) in enumerate(seeds.items())}
        self.ys = [self._of(tensor) for tensor in seeds]
        self.xs = [self._of(read) for read in self.reads]
        self.originals = {copy: original for original, copy in self.copies.items()}

    def run(self, stop: Sequence[Tensor], name: str, *, simplify: bool) -> list[Part]:
        """The gradient of each of the reads, in the body.

        Args:
            stop: tensors that gradients do not flow through.
            name: the name scope.
            simplify: that of `gc.gradients`.
        """
        stopped = [self.copies[tensor] for tensor in stop if tensor in self.copies]
        first = self.work.num_node_ids
        parts = gradients_of_reads(
            self.work,
            self.ys,
            self.xs,
            list(self.seeds),
            of_variables=self.of_variables,
            name=name,
            stop_gradients=stopped,
            simplify=simplify,
        )
        made = [node for node in self.work.op_nodes() if node.id >= first]
        self.outside = self._run_outside(made)
        self.originals |= {argument: captured for captured, argument in self.work.captures.items()}
        self.placed: dict[Tensor, Tensor] = {}
        return [self._placed_part(part) for part in parts]

    def _placed_part(self, part: Part) -> Part:
        if part is None:
            return None
        return Slices(*map(self._place, part)) if isinstance(part, Slices) else self._place(part)

    # ---- the forward nodes -------------------------------------------------------------------------------------------

    def _copy(self, node: Node) -> None:
        if node.op in CONTROL_FLOW:
            raise UnimplementedError.at(
                node, f"gradients within {self.body.place} do not go through '{node.name}' (op {node.op}) outside: take them outside"
            )
        inputs = [self._of(tensor) for tensor in node.inputs]
        self._insert(node, inputs)

    def _insert(self, node: Node, inputs: list[Tensor]) -> None:
        node_def = msgspec.structs.replace(node.node_def, input=tuple([input_text(tensor) for tensor in inputs]))
        types = tuple([tensor.dtype for tensor in inputs])
        made = self.work.builder.insert(node_def, node.registration, inputs, NO_CONTROLS, types, node.output_types, node.source)
        self.used.append(node)
        for original, copy in zip(node.outputs, made.outputs, strict=True):
            if original.shape.rank is not None:
                self.work.set_shape(copy, original.shape)
            self.copies[original] = copy

    def _of(self, tensor: Tensor) -> Tensor:
        """The counterpart of a tensor outside: of a node between, a constant, or else an argument."""
        if tensor not in self.copies:
            if tensor.node.op == "Const":
                self._insert(tensor.node, [])
            else:
                self.copies[tensor] = self._argument(f"outside_{len(self.copies)}", tensor)
        return self.copies[tensor]

    def _argument(self, name: str, like: Tensor) -> Tensor:
        handle = (like.node.handle_data or {}).get(like.index)
        return self.work.argument(name, like.dtype, like.shape, handle=handle)

    # ---- the backward nodes ------------------------------------------------------------------------------------------

    def _run_outside(self, made: Sequence[Node]) -> set[Node]:
        """The new nodes that run outside: loops and calls that keep values for gradients, and their inputs."""
        among = set(made)
        seeded = {seed.node for seed in self.seeds}
        backward = reachable(seeded, lambda node: [consumer for consumer, _ in self.work.consumers(node)])
        keeping = [node for node in made if FORWARD_OF in node.node_def.attr and node not in backward]
        return reachable(keeping, lambda node: [tensor.node for tensor in node.inputs if tensor.node in among])

    def _place(self, tensor: Tensor) -> Tensor:
        """The tensor of the body for one of the backward pass."""
        if tensor in self.seeds:
            return self.seeds[tensor]
        placed = self.placed.get(tensor)
        if placed is not None:
            return placed
        if tensor in self.originals:
            return self._captured(self.originals[tensor])
        needed = post_order([tensor.node], lambda node: [source.node for source in node.inputs if self._is_new(source)])
        for node in needed:
            self._put(node)
        return self.placed[tensor] if tensor in self.placed else self._captured(self.originals[tensor])

    def _is_new(self, tensor: Tensor) -> bool:
        return tensor not in self.originals and tensor not in self.seeds and tensor not in self.placed

    def _put(self, node: Node) -> None:
        if node in self.outside:
            target: Graph = self.graph
            inputs = [self.originals[tensor] for tensor in node.inputs]
            controls = self._controls_of_original(node)
        else:
            target = self.body
            inputs = [self._place(tensor) for tensor in node.inputs]
            controls = list(self.body.scopes.controls)
        name = target.names.unique(target.scopes.name + node.name)
        texts = [*[input_text(tensor) for tensor in inputs], *[f"^{control.name}" for control in controls]]
        device = node.node_def.device if target is self.graph else self.body.scopes.device
        node_def = NodeDef(name, node.op, tuple(texts), device, node.node_def.attr)
        types = tuple([tensor.dtype.base for tensor in inputs])
        made = target.builder.insert(node_def, node.registration, inputs, controls or NO_CONTROLS, types, node.output_types, node.source)
        record = self.work.gradient_records.get(node.name)
        if record is not None:
            target.gradient_records[name] = record
        for mine, theirs in zip(node.outputs, made.outputs, strict=True):
            if mine.shape.rank is not None:
                target.set_shape(theirs, mine.shape)
            (self.placed if target is self.body else self.originals)[mine] = theirs

    def _captured(self, tensor: Tensor) -> Tensor:
        captured = self.body.as_graph_element(tensor)
        assert isinstance(captured, Tensor)
        return captured

    def _controls_of_original(self, node: Node) -> list[Node]:
        texts = node.node_def.attr.get(FORWARD_OF)
        name = texts[0] if isinstance(texts, tuple) and texts else None
        original = self.graph.find(attr_text(name))
        return [] if original is None else list(original.control_inputs)
