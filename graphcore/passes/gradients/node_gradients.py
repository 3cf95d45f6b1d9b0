"""The gradients of single nodes, and those that have arrived at each tensor of a backward pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Final

from graphcore import dtypes
from graphcore.definitions import name_ranges_for_node
from graphcore.dtypes import DType, dtype_by_number
from graphcore.errors import GraphError, InvalidArgumentError, UnimplementedError
from graphcore.graph import GradientRecord, Graph, Node, Tensor, convert_to_tensor
from graphcore.graph.model.node import producers_of
from graphcore.graph.model.search import post_order
from graphcore.passes.gradients.bodies.body import GRADIENT_ARRAY, GradientBody
from graphcore.passes.gradients.bodies.recorded import ProgramCache, knowledge_key, recorded
from graphcore.passes.gradients.bodies.template import GradientTemplate, call_template, gradient_template
from graphcore.passes.gradients.bodies.writer import GradientWriter
from graphcore.passes.gradients.functions.functional import functional_gradient
from graphcore.passes.gradients.overrides import GradientFunction, gradient_function, op_of_gradient
from graphcore.passes.gradients.trace import GradientTrace
from graphcore.passes.infra.zero_analysis import is_zeros
from graphcore.source import cell_run, dropped_gradients

_ALL_DTYPES: Final = [dtype for number in range(200) if (dtype := dtype_by_number(number)) is not None]
NUMBERS: Final = frozenset([dtype for dtype in _ALL_DTYPES if dtype.base.is_floating or dtype.base.is_complex])
DIFFERENTIABLE: Final[frozenset[DType]] = NUMBERS | {dtypes.variant}
"""The dtypes that gradients flow through, references among them. A variant is a list of tensors, whose gradient is a list of gradients."""


class NodeGradients(ABC):
    """The part of a backward pass that concerns one node at a time.

    Attributes:
        arrived: the gradients of each tensor so far; replaced by their sum on first use.
    """

    def __init__(
        self,
        graph: Graph,
        xs: Sequence[Tensor],
        stop: Sequence[Tensor],
        *,
        simplify: bool,
        trace: GradientTrace | None = None,
        keeps_all: bool = False,
    ) -> None:
        self.graph = graph
        self.xs = list(xs)
        self.x_set = frozenset(xs)
        self.stop = frozenset(stop)
        self.simplify = simplify
        self.trace = trace
        self.keeps_all = keeps_all
        self.given: set[Tensor] = set()
        self.arrived: dict[Tensor, list[Tensor]] = {}
        self.writer = GradientWriter(graph)
        self.scope = graph.scopes.name
        self.templates: dict[tuple[str, int, bool], GradientTemplate | None] = {}

    def forward_value(self, tensor: Tensor) -> Tensor:
        """The tensor itself: outside of loops, forward values are available in the backward pass."""
        return tensor

    def control_inputs(self, _: Node) -> list[Node]:
        """None: outside of loops, nodes without inputs need no control input."""
        return []

    @abstractmethod
    def within(
        self, graph: Graph, ys: Sequence[Tensor], xs: Sequence[Tensor], grad_ys: Sequence[Tensor], *, keeps_all: bool = False
    ) -> list[Tensor | None]:
        """The backward pass in the body of a function that a node of this graph runs."""

    def slots(self, node: Node, useful: set[Node]) -> list[int]:
        """The inputs of `node` with a gradient; `useful` are the nodes that depend on an x."""
        x_set, stop = self.x_set, self.stop
        return [
            slot
            for slot, tensor in enumerate(node.inputs)
            if (tensor in x_set or (tensor.node in useful and tensor not in stop))
            and tensor.node.output_types[tensor.index] in DIFFERENTIABLE
            and slot not in node.registration.no_gradient_by
        ]

    def differentiate(self, node: Node, useful: set[Node]) -> None:
        """Propagate the gradients of the outputs of `node` to its inputs."""
        slots = self.slots(node, useful)
        if not slots:
            return
        function = gradient_function(node)
        if function is not None:
            self._by_function(node, slots, function)
            return
        through_functions = functional_gradient(node, simplify=self.simplify)
        if through_functions is not None:
            scope = self.writer.new_scope(f"{self.scope}{node.name}_grad")
            for slot, gradient in through_functions(self, node, slots, scope).items():
                self.arrive(node.inputs[slot], gradient, node, slot)
            return
        template = self.fitting_template(node, slots)
        if template is None:
            return
        scope = self.writer.new_scope(f"{self.scope}{node.name}_grad")
        if self.simplify and self._only_zeros_at(node):
            for slot in slots:
                source = node.inputs[slot]
                self.arrive(source, self.writer.zeros_like(f"{scope}zeros", source, node.name), node, slot)
            return
        for slot, gradient in zip(slots, self._inline(node, template, slots, scope), strict=True):
            self.arrive(node.inputs[slot], gradient, node, slot)

    def _by_function(self, node: Node, slots: list[int], function: GradientFunction) -> None:
        """Propagate gradients through a node whose gradient is a Python function.

        Raises:
            InvalidArgumentError: it returns something else than a gradient for each input.
        """
        graph = self.graph
        scope = self.writer.new_scope(f"{self.scope}{node.name}_grad")
        incoming = [
            self.output_gradient(node, index, scope) if dtype in DIFFERENTIABLE else None for index, dtype in enumerate(node.output_types)
        ]
        first_new = graph.num_node_ids
        with graph.as_default(), graph.name_scope(scope):
            result = function(node, *incoming)
            results = list(result) if isinstance(result, list | tuple) else [result]
            if len(results) != len(node.inputs):
                raise InvalidArgumentError.at(
                    node, f"The gradient of '{node.name}' must return a gradient for each of {len(node.inputs)} inputs, got {len(results)}"
                )
            gradients = self._arrive_all(node, slots, results)
        new = [graph.find_node_id(number) for number in range(first_new, graph.num_node_ids)]
        for made in dict.fromkeys([*filter(None, new), *_within(scope, gradients)]):  # nodes that were made again have their old ids
            record = GradientRecord(node.name, None, {}, made.name.removeprefix(scope))
            graph.gradient_records.setdefault(made.name, record)

    def _arrive_all(self, node: Node, slots: Iterable[int], results: Sequence[Any]) -> list[Tensor]:
        gradients = {slot: self._fitting(node, slot, results[slot]) for slot in slots if results[slot] is not None}
        for slot, gradient in gradients.items():
            self.arrive(node.inputs[slot], gradient, node, slot)
        return list(gradients.values())

    def _fitting(self, node: Node, slot: int, gradient: Any) -> Tensor:
        """A gradient that a Python function returned, as a tensor like the input."""
        wanted = node.inputs[slot]
        tensor = convert_to_tensor(self.graph, gradient, wanted.dtype.base, f"gradient of '{node.name}'")
        if tensor.dtype.base is not wanted.dtype.base or not tensor.shape.is_compatible_with(wanted.shape):
            raise InvalidArgumentError.at(
                node,
                f"The gradient of '{node.name}' with respect to input {slot} must be {wanted.dtype.base.text} {wanted.shape}, "
                f"got '{tensor.name}' {tensor.dtype.base.text} {tensor.shape}",
            )
        return tensor

    def _only_zeros_at(self, node: Node) -> bool:
        """True iff all gradients of the outputs of `node` are zero, hence those of its inputs."""
        return all(self.is_zeros(part) for output in node.outputs for part in self.arrived.get(output, ()))

    def is_zeros(self, gradient: Tensor) -> bool:
        """True iff a gradient is known to be zero for all feeds."""
        return gradient not in self.given and is_zeros(gradient)

    def arrive(self, tensor: Tensor, gradient: Tensor, node: Node | None, slot: int) -> None:
        """Add `gradient` from `node` to `tensor`, its input `slot`."""
        self.arrived.setdefault(tensor, []).append(gradient)
        if self.trace is not None:
            self.trace.arrived(tensor, gradient, node, slot)

    def fitting_template(self, node: Node, slots: list[int]) -> GradientTemplate | None:
        """The gradient of the node's op that handles all incoming gradients; None if not differentiable.

        Raises:
            NotFoundError, InvalidArgumentError: as `template_of`.
        """
        template = self.template_of(node)
        if template is None or not (template.ignored or template.zeros):
            return template
        lost = [index for index in template.ignored if self._has_arrived(node.outputs[index])]
        if node.registration.full_gradient is not None:
            return self.template_of(node, full=True) if lost or not template.zeros.isdisjoint(slots) else template
        for index in lost:
            self._drop(node, index)
        return template

    def _has_arrived(self, tensor: Tensor) -> bool:
        return (
            tensor not in self.stop
            and tensor.shape.num_elements != 0
            and not all(self.is_zeros(part) for part in self.arrived.get(tensor, ()))
        )

    def _drop(self, node: Node, index: int) -> None:
        """Record that the gradient of an output that has none defined is dropped, as in TensorFlow."""
        ranges = name_ranges_for_node(node.node_def, node.op_def)[1]
        name = next(name for name, (start, end) in ranges.items() if start <= index < end)
        reason = node.registration.no_gradient_through.get(name)
        if reason is None:
            return
        if self.trace is not None:
            self.trace.dropped[node] = f"the gradient that arrives at its output '{name}' is dropped, as in TensorFlow: {reason}"
        elif cell_run() is not None:
            dropped_gradients[f"'{node.outputs[index].name}' ({name})"] = reason

    def template_of(self, node: Node, *, full: bool = False) -> GradientTemplate | None:
        """The gradient of the node's op; None if it is registered as not differentiable.

        Args:
            full: select the complete variant of a partial gradient.

        Raises:
            NotFoundError: nothing is registered.
            InvalidArgumentError: the registered function does not fit the node.
        """
        op = op_of_gradient(node)
        key = op, id(node.node_def.attr), full  # nodes share their attrs
        if key in self.templates:
            return self.templates[key]
        if gradient_function(node) is not None:
            raise UnimplementedError.at(
                node, f"The gradient of '{node.name}' is a Python function, which gradients within loops and branches do not call"
            )
        try:
            template = (
                call_template(node)
                if node.registration.is_function
                else gradient_template(op, node.node_def.attr, full=full, plain=not self.simplify)
            )
        except GraphError as error:
            raise error.with_node(node.name, op=node.op, source=node.source) from None
        inputs, outputs = len(node.inputs), len(node.outputs)
        if template is not None and (len(template.rets) != inputs or len(template.args) != inputs + outputs):
            raise InvalidArgumentError.at(
                node,
                f"The gradient function of op {node.op} must take {inputs} inputs and {outputs} gradients and give "
                f"{inputs} results; it takes {len(template.args)} and gives {len(template.rets)}",
            )
        self.templates[key] = template
        return template

    def _inline(self, node: Node, template: GradientTemplate, slots: list[int], scope: str) -> list[Tensor]:
        """The gradients of some inputs of `node`, replayed from the cache or built."""
        if template.programs is None:
            template.programs = ProgramCache()
        cache: ProgramCache = template.programs
        arrived = tuple([tensor in self.arrived for tensor in node.outputs])
        wanted = (tuple(slots), arrived, self.simplify, self.graph.registry)
        needed = cache.needed.get(wanted)
        if needed is not None:
            values = [*node.inputs, *node.outputs, *[self.output_gradient(node, index, scope) for index in needed]]
            program = cache.programs.get((wanted, knowledge_key(node, values)))
            if program is not None:
                return program.run(self.writer, template, node, values, scope)
        taken = _NodeValues(self, node, scope)
        body = GradientBody(self.graph, template, node, taken, simplify=self.simplify)
        results = self.in_scope(body, slots, scope)
        if any(made.op == GRADIENT_ARRAY for made in body.made):
            return results  # this attr contains the name of the call
        values = [*node.inputs, *node.outputs, *taken.gradients.values()]
        program = recorded(self.graph, body, values, results)
        if program is not None:
            cache.keep(wanted, tuple(taken.gradients), knowledge_key(node, values), program)
        return results

    def in_scope(self, body: GradientBody, slots: list[int], scope: str) -> list[Tensor]:
        """The gradients of some inputs built in the name scope `scope`."""
        scopes = self.graph.scopes
        outer, scopes.name = scopes.name, scope
        try:
            return [body.input_gradient(slot) for slot in slots]
        finally:
            scopes.name = outer

    def output_gradient(self, node: Node, index: int, scope: str) -> Tensor:
        """The gradient of an output of `node`, zeros if there is none."""
        output = node.outputs[index]
        if output in self.arrived:
            return self.total(output)
        return self.writer.zeros_like(f"{scope}zeros", output, node.name)

    def total(self, tensor: Tensor) -> Tensor:
        """The sum of the gradients of `tensor`."""
        parts = self.arrived[tensor]
        if len(parts) > 1 and self.simplify:
            self.arrived[tensor] = parts = [part for part in parts if not self.is_zeros(part)] or parts[:1]
        if len(parts) > 1:
            scope = self.writer.new_scope(f"{self.scope}{tensor.node.name}_sum")
            self.arrived[tensor] = parts = [self.writer.sum(f"{scope}AddN", parts, tensor.node.name)]
            if self.trace is not None:
                self.trace.sums[tensor] = parts[0]
        return parts[0]


def _within(scope: str, gradients: Iterable[Tensor]) -> list[Node]:
    """The nodes of a scope that `gradients` need."""
    starts = [tensor.node for tensor in gradients if tensor.node.name.startswith(scope)]
    return post_order(starts, lambda node: [producer for producer in producers_of(node) if producer.name.startswith(scope)])


class _NodeValues:
    """The values of a node outside of loops. Records the output gradients used."""

    __slots__ = ("back", "gradients", "node", "scope")

    def __init__(self, back: NodeGradients, node: Node, scope: str) -> None:
        self.back = back
        self.node = node
        self.scope = scope
        self.gradients: dict[int, Tensor] = {}

    def input(self, slot: int) -> Tensor:
        return self.node.inputs[slot]

    def output(self, index: int) -> Tensor:
        return self.node.outputs[index]

    def gradient(self, index: int) -> Tensor:
        if index not in self.gradients:
            self.gradients[index] = self.back.output_gradient(self.node, index, self.scope)
        return self.gradients[index]
