"""Lowering: a graph of another framework as a graph of opaque ops."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from graphcore.attrs import AttrValue, Func
from graphcore.definitions import NodeDef, OpDef
from graphcore.definitions.types import AttrDef
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, Port
from graphcore.frontends.foreign_ops import foreign_traits
from graphcore.frontends.naming import Scopes, node_names, split_name
from graphcore.frontends.record import ForeignBody, ForeignLocation, ForeignRecord, foreign_of, set_foreign
from graphcore.frontends.source_names import names_in, titles_of
from graphcore.frontends.words import attr_value, device_of, dtype_of
from graphcore.graph import GradientRecord, Graph
from graphcore.graph.model.node import NO_CONTROLS, Node, Tensor
from graphcore.graph.provenance.explain_shape import KnownSteps, explain_fact
from graphcore.graph.provenance.origins import Fact, Origin
from graphcore.inference import DimensionHandle, ShapeHandle
from graphcore.inference.expressions import symbol
from graphcore.inference.shape_fns.common_shape_fns import unknown_shape
from graphcore.registry import OpRegistration
from graphcore.runtime.backends.owned_models import OwnedModel, owned_model
from graphcore.shapes import MAX_RANK
from graphcore.support.budget import FEW_OUTPUTS, charge_outputs, within_one_budget
from graphcore.support.gc_pause import paused_collector

if TYPE_CHECKING:
    from graphcore.frontends.foreign import SourceFrame

OUTPUT: Final = "graph.Output"
"""The op of nodes that stand for the results of a graph."""
_ROLES: Final = {"then": "then_branch", "else": "else_branch", "cond": "cond", "body": "body"}
"""The attrs that name bodies, by their roles; others are named by `f`, or by `branches` if there are several."""
_FUNCTIONS: Final = (*_ROLES.values(), "f")
_MAX_SYMBOL: Final = 32
"""The longest size in words that pictures show: of a longer one they show that it is unknown."""
_MADE_UP: Final = re.compile(r"unk__\d+|.+_o\d+__d\d+")
"""The names that ONNX and ONNX Runtime give to sizes that they do not know."""
_MOST_FACTS: Final = 1000
"""The most steps of the chains of one clash behind forks."""
_MAX_SIZE: Final = 2**63


@within_one_budget
def lower(source: ForeignGraph, renamed: Mapping[str, str] = MappingProxyType({})) -> Graph:
    """The graph of opaque ops that shows a graph of another framework.

    `foreign_of` gives what its nodes stand for. No weights are read.

    Args:
        source: the graph of the other framework.
        renamed: other names for nodes, by those that they would have.

    Raises:
        InvalidArgumentError: a node takes an output that is not there, nodes form a cycle, or two have one name.
    """
    lowering = _Lowering(source)
    graph, _, _ = lowering.graph_of(source.main, "", renamed)
    record = foreign_of(graph)
    assert record is not None
    inputs = {name: node.name for name, node in record.nodes.items() if node.kind == "input"}
    owned_model.set(graph, OwnedModel(source.kind, source.runner, names_in(record), inputs))
    return graph


class _Lowering:
    """The lowering of one source: its graph, and bodies when they are opened."""

    def __init__(self, source: ForeignGraph) -> None:
        self.source = source
        self.registrations: dict[object, OpRegistration] = {}
        self.titles = titles_of(source.functions)
        self.keys = {title: key for key, title in self.titles.items()}
        self.documented: dict[str, str] = {}

    def graph_of(
        self, function: ForeignFunction, prefix: str, renamed: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[Graph, list[str], list[str]]:
        """The graph of a function or of the whole, and the names of the nodes of its arguments and results."""
        ports = [port for node in function.nodes for port in node.outputs]
        is_symbolic = any(isinstance(size, str) for port in ports if port.shape for size in port.shape)
        graph = Graph(infer="symbolic" if is_symbolic else "")
        filling = _Filling(self, graph, prefix)
        with paused_collector(), graph.lock:
            filling.fill(function, renamed)
        record = ForeignRecord(self.source, filling.foreign, filling.scopes.classes, filling.scopes.modules, self.body)
        set_foreign(graph, record)
        return graph, filling.args, filling.rets

    def body(self, title: str, prefix: str) -> ForeignBody:
        """The body of a function as a graph.

        Raises:
            InvalidArgumentError: there is no such function, or its body is inconsistent.
        """
        key = self.keys.get(title)
        if key is None:
            raise InvalidArgumentError(f"The {self.source.kind} has no function '{title}'")
        function = self.source.opened(key)
        if len(self.titles) != len(self.source.functions):
            self.titles = titles_of(self.source.functions)
            self.keys = {title: key for key, title in self.titles.items()}
        graph, args, rets = self.graph_of(function, prefix)
        return ForeignBody(title, function.doc, graph, args, rets)

    def registration(self, node: ForeignNode) -> OpRegistration:
        """The registration of an op, in the role that a node has."""
        key = node.op, node.kind, bool(node.bodies)
        registration = self.registrations.get(key)
        if registration is None:
            attrs = tuple([AttrDef(name=name, type="func") for name in _FUNCTIONS]) if node.bodies else ()
            branches = (AttrDef(name="branches", type="list(func)"),) if node.bodies else ()
            op_def = OpDef(name=node.op, attr=(*attrs, *branches), description=self._doc(node.op), is_stateful=True)
            registration = OpRegistration(op_def, _kept_shapes, is_opaque=True)
            registration.traits = foreign_traits(node.op, node.kind)
            registration.size_step = None if self.source.size_step is None else self._size_step
            self.registrations[key] = registration
        return registration

    def _size_step(self, node: Node, output: int, axis: int) -> tuple[str, str, list[tuple[int, int]]] | None:
        """The step backwards from a size of a node, as the source knows it."""
        record = foreign_of(node.graph)
        foreign = None if record is None else record.nodes.get(node.name)
        if foreign is None or self.source.size_step is None:
            return None
        step = self.source.size_step(foreign, output, axis)
        return None if step is None else (step.how, step.text, list(step.sources))

    def _doc(self, op: str) -> str:
        if op not in self.documented:
            self.documented[op] = "" if self.source.docs is None else self.source.docs(op)
        return self.documented[op]


class _Filling:
    """The nodes of one graph, as they are added."""

    def __init__(self, lowering: _Lowering, graph: Graph, prefix: str) -> None:
        self.lowering = lowering
        self.graph = graph
        self.prefix = prefix
        self.scopes = Scopes(prefix)
        self.foreign: dict[str, ForeignNode] = {}
        self.made: dict[str, Node] = {}
        self.symbols: dict[str, DimensionHandle] = {}
        self.locations: dict[SourceFrame, ForeignLocation] = {}
        self.handles: tuple[ShapeHandle, ...] = ()
        self.args: list[str] = []
        self.rets: list[str] = []

    def fill(self, function: ForeignFunction, renamed: Mapping[str, str]) -> None:
        """Add all nodes, and one for each result unless the source has its own.

        Raises:
            InvalidArgumentError: an input is not there, or nodes form a cycle.
        """
        nodes = function.nodes
        names = [renamed.get(name, name) for name in node_names(nodes, self.scopes, self.prefix)]
        later = self._add_all(nodes, names, range(len(nodes)))
        while later:
            left = self._add_all(nodes, names, later)
            if len(left) == len(later):
                raise self._stuck(nodes, left)
            later = left
        self.args = [self.made[node.name].name for node in nodes if node.kind == "input"]
        if any(node.kind == "output" for node in nodes):
            self.rets = [self.made[node.name].name for node in nodes if node.kind == "output"]
            return
        taken = set(names)
        for number, ref in enumerate(function.outputs):
            result_name = function.output_names[number] if number < len(function.output_names) else ""
            self._add_result(result_name or f"output_{number}" if len(function.outputs) > 1 else result_name or "output", ref, taken)

    def _add_all(self, nodes: Sequence[ForeignNode], names: Sequence[str], places: Sequence[int]) -> list[int]:
        """Add nodes whose inputs are there. Returns the places of the others."""
        made, left = self.made, []
        for place in places:
            node = nodes[place]
            tensors: list[Tensor] = []
            for ref in node.inputs:
                if ref is None:
                    continue
                producer = made.get(ref[0])
                if producer is None:
                    left.append(place)
                    break
                outputs = producer.outputs
                if not 0 <= ref[1] < len(outputs):
                    raise InvalidArgumentError(
                        f"Node '{node.name}' takes output {ref[1]} of node '{ref[0]}', which has {len(outputs)}", node=node.name, op=node.op
                    )
                tensors.append(outputs[ref[1]])
            else:
                controls = NO_CONTROLS
                if node.control_inputs:
                    if not all(name in made for name in node.control_inputs):
                        left.append(place)
                        continue
                    controls = list(dict.fromkeys([made[name] for name in node.control_inputs]))
                self._add(node, names[place], tensors, controls)
        return left

    def _add(self, node: ForeignNode, name: str, tensors: list[Tensor], controls: list[Node]) -> None:
        if node.name in self.made:
            raise InvalidArgumentError(f"Two nodes are named '{node.name}'", node=node.name, op=node.op)
        outputs = node.outputs
        if len(outputs) > FEW_OUTPUTS:
            charge_outputs(node.name, len(outputs))
        self.handles = tuple([self._shape(port) for port in outputs])
        types = tuple([dtype_of(port.dtype) for port in outputs])
        frames = node.frames
        self.foreign[name] = node
        self.made[node.name] = self._insert(
            name,
            self.lowering.registration(node),
            self._attrs(node),
            tensors,
            controls,
            types,
            self._location(frames[-1]) if frames else None,
            device_of(node.device) if node.device else "",
        )
        if node.differentiates in self.made:
            self.graph.gradient_records[name] = GradientRecord(self.made[node.differentiates].name, None, {}, node.part)
        if node.error:
            made = self.made[node.name]
            made.error = InvalidArgumentError(node.error, node=name, op=node.op).explained_by(partial(_chains, made, node.clashes))

    def _add_result(self, result_name: str, ref: tuple[str, int] | None, taken: set[str]) -> None:
        if ref is None:
            return
        producer = self.made.get(ref[0])
        if producer is None or not 0 <= ref[1] < len(producer.outputs):
            raise InvalidArgumentError(f"Result '{result_name}' is output {ref[1]} of node '{ref[0]}', which is not there", node=ref[0])
        scope, leaf = split_name(result_name)
        base = name = f"{self.prefix}{scope}/{leaf}" if scope else self.prefix + leaf
        number = 0
        while name in taken:
            number += 1
            name = f"{base}_output" if number == 1 else f"{base}_output_{number}"
        taken.add(name)
        self.handles = ()
        node = ForeignNode(result_name, OUTPUT, (ref,), kind="output")
        tensor = producer.outputs[ref[1]]
        self._insert(name, self.lowering.registration(node), {}, [tensor], NO_CONTROLS, (), producer.source, "")
        self.rets.append(name)

    def _insert(
        self,
        name: str,
        registration: OpRegistration,
        attrs: Mapping[str, AttrValue],
        tensors: list[Tensor],
        controls: list[Node],
        types: tuple[DType, ...],
        location: ForeignLocation | Any,
        device: str,
    ) -> Node:
        definition: NodeDef | Mapping[str, AttrValue] = attrs
        if device or controls:
            texts = [tensor.node.name if tensor.index == 0 else f"{tensor.node.name}:{tensor.index}" for tensor in tensors]
            definition = NodeDef(name, registration.op_def.name, (*texts, *[f"^{node.name}" for node in controls]), device, attrs)
        input_types = tuple([tensor.node.output_types[tensor.index] for tensor in tensors])
        return self.graph.builder.insert(
            definition, registration, tensors, controls, input_types, types, location, name=name, fits=True, infer=self._give_shapes
        )

    def _give_shapes(self, node: Node) -> None:
        node.output_handles = self.handles

    def _shape(self, port: Port) -> ShapeHandle:
        sizes = port.shape
        if sizes is None or len(sizes) > MAX_RANK:
            return ShapeHandle()
        return ShapeHandle(tuple([self._dim(size) for size in sizes]))

    def _dim(self, size: object) -> DimensionHandle:
        if isinstance(size, str) and size:
            handle = self.symbols.get(size)
            if handle is None:
                is_name = len(size) <= _MAX_SYMBOL and not _MADE_UP.fullmatch(size)
                handle = self.symbols[size] = DimensionHandle(origin=symbol(size) if is_name else None)
            return handle
        if isinstance(size, int) and 0 <= size < _MAX_SIZE:
            return DimensionHandle(size)
        return DimensionHandle()

    def _attrs(self, node: ForeignNode) -> Mapping[str, AttrValue]:
        attrs = {name: attr_value(value) for name, value in node.attrs.items()} if node.attrs else {}
        if node.bodies:
            rest = []
            for role, key in node.bodies.items():
                function = Func(self.lowering.titles.get(key, key))
                if role in _ROLES:
                    attrs[_ROLES[role]] = function
                else:
                    rest.append(function)
            if len(rest) == 1:
                attrs["f"] = rest[0]
            elif rest:
                attrs["branches"] = tuple(rest)
        return attrs

    def _location(self, frame: SourceFrame) -> ForeignLocation:
        location = self.locations.get(frame)
        if location is None:
            location = self.locations[frame] = ForeignLocation(file=frame.file, line=frame.line, line_text=frame.text)
        return location

    def _stuck(self, nodes: Sequence[ForeignNode], left: Sequence[int]) -> InvalidArgumentError:
        names = {node.name for node in nodes}
        for place in left:
            node = nodes[place]
            needed = [*[ref[0] for ref in node.inputs if ref is not None], *node.control_inputs]
            missing = next((name for name in needed if name not in names), None)
            if missing is not None:
                return InvalidArgumentError(
                    f"Node '{node.name}' takes an output of '{missing}', which is no node", node=node.name, op=node.op
                )
        node = nodes[left[0]]
        return InvalidArgumentError(f"{len(left)} nodes form a cycle or follow one, '{node.name}' among them", node=node.name, op=node.op)


def _chains(node: Node, axes: Sequence[tuple[int, int]]) -> tuple[Origin, ...]:
    """The origins of sizes of inputs that clash at a node, each an input and its axis."""
    steps = KnownSteps()
    tensors = [(node.inputs[slot], axis) for slot, axis in axes if slot < len(node.inputs)]
    return tuple([explain_fact(tensor, Fact(tensor.name, "dimension", axis), steps, _MOST_FACTS) for tensor, axis in tensors])


def _kept_shapes(context: Any) -> None:
    """Keep the shapes that the source gives; unknown ones where it gives none."""
    handles = context.node.output_handles if hasattr(context, "node") else ()
    if len(handles) != len(context.outputs):
        unknown_shape(context)
        return
    for index, handle in enumerate(handles):
        context.set_output(index, handle)
