"""Graphs, functions and nodes of ONNX models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, InputRef, Port
from graphcore.frontends.onnx_reader.attributes import Attributes
from graphcore.frontends.onnx_reader.metadata import STACK, USED, frames_of, modules_of
from graphcore.frontends.onnx_reader.quantization import quantization_of
from graphcore.frontends.onnx_reader.schemas import Schemas, qualified
from graphcore.frontends.onnx_reader.shapes import with_shapes
from graphcore.frontends.unique_names import UniqueNames

if TYPE_CHECKING:
    from graphcore.frontends.foreign import WeightRef
    from graphcore.frontends.onnx_reader.tensors import Tensors

INITIALIZER: Final = "onnx.Initializer"
INPUT: Final = "onnx.Input"
_ROLES: Final = {"then_branch": "then", "else_branch": "else", "body": "body"}
_MAX_DEPTH: Final = 60
_STANDARD: Final = ("", "ai.onnx")
_TEXT: Final = frozenset({str})


class ModelReader:
    """Reads one model.

    Args:
        onnx: the library.
        model: the `ModelProto`.
        tensors: reads its tensors.
    """

    def __init__(self, onnx: Any, model: Any, tensors: Tensors) -> None:
        self.onnx = onnx
        self.model = model
        self.tensors = tensors
        self.attributes = Attributes(onnx, tensors)
        opsets = {("" if entry.domain in _STANDARD else entry.domain): entry.version for entry in model.opset_import}
        self.schemas = Schemas(onnx, opsets, self.attributes.value)
        self.functions: dict[str, ForeignFunction] = {}
        self.called = {
            (function.domain, function.name, getattr(function, "overload", "")): function_key(function) for function in model.functions
        }

    def read(self) -> ForeignGraph:
        """The whole.

        Raises:
            InvalidArgumentError: names are not defined, or defined twice.
        """
        model = self.model
        if not model.HasField("graph"):
            raise InvalidArgumentError("The ONNX model has no graph")
        notes = []
        facts = self._facts()
        ports, note = with_shapes(self.onnx, model, self.tensors)
        if note:
            notes.append(note)
        main = GraphReader(self, ports, None, 0).read(model.graph)
        for function in model.functions:
            key = function_key(function)
            self.functions[key] = GraphReader(self, self._ports(function.value_info), None, 0).read_function(function)
        return ForeignGraph(
            kind="ONNX model",
            main=main,
            producer=" ".join(filter(None, (model.producer_name, model.producer_version))),
            name=model.graph.name,
            functions=self.functions,
            facts=facts,
            notes=notes,
            docs=self.schemas.doc,
        )

    def _ports(self, infos: Iterable[Any]) -> dict[str, Port]:
        return {info.name: self.tensors.port(info.name, info.type) for info in infos}

    def _facts(self) -> dict[str, str]:
        model = self.model
        facts = {"opset": ", ".join(f"{entry.domain or 'ai.onnx'} {entry.version}" for entry in model.opset_import)}
        facts["IR version"] = str(model.ir_version)
        texts = {"domain": model.domain, "version": str(model.model_version or ""), "doc": model.doc_string}
        facts.update({name: value for name, value in texts.items() if value})
        facts.update({entry.key: entry.value[:1000] for entry in model.metadata_props[:50]})
        _require_texts([*facts, *facts.values(), model.producer_name, model.producer_version])
        return facts


def function_key(function: Any) -> str:
    """The key of a function of a model."""
    return f"{function.domain}.{function.name}.{getattr(function, 'overload', '')}".rstrip(".")


class GraphReader:
    """Reads one graph or function.

    Args:
        reader: that of the model.
        ports: the types of values by name.
        outer: the reader of the graph around, None for the outermost.
        depth: the number of graphs around.
    """

    def __init__(self, reader: ModelReader, ports: dict[str, Port], outer: GraphReader | None, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise InvalidArgumentError(f"The ONNX model has graphs that are nested more than {_MAX_DEPTH} deep")
        self.reader = reader
        self.ports = ports
        self.outer = outer
        self.depth = depth
        self.values: dict[str, InputRef] = {}
        self.nodes: list[ForeignNode] = []
        self.inputs: list[Port] = []
        self.captures: dict[str, None] = {}
        self.weights: dict[str, WeightRef] = {}
        self._names = UniqueNames()
        self._captured: list[ForeignNode] = []

    # ---- graphs ---------------------------------------------------------------------------------------------------------

    def read(self, graph: Any) -> ForeignFunction:
        """A graph as a function; captured values become its last inputs."""
        tensors = self.reader.tensors
        held = {tensor.name for tensor in graph.initializer}
        for info in graph.input:
            port = tensors.port(info.name, info.type)
            if info.name not in held:
                self._begin(port, info.doc_string)
        for tensor in graph.initializer:
            self._hold(tensor.name, tensors.weight(tensor), tensor.doc_string)
        for sparse in graph.sparse_initializer:
            self._hold(sparse.values.name, tensors.weight(sparse.values), "")
        notes = {annotation.tensor_name: quantization_text(annotation) for annotation in graph.quantization_annotation}
        return self._finished(graph, [info.name for info in graph.output], notes, graph.name, graph.doc_string)

    def read_function(self, function: Any) -> ForeignFunction:
        """A function of the model."""
        for name in function.input:
            self._begin(self.ports.get(name) or Port(name), "")
        return self._finished(function, list(function.output), {}, function.name, function.doc_string)

    def _finished(self, graph: Any, outputs: Sequence[str], notes: dict[str, str], name: str, doc: str) -> ForeignFunction:
        for node in graph.node:
            self._read_node(node, notes)
        results = [self._resolve(value) if value else None for value in outputs]
        self.nodes[len(self.inputs) : len(self.inputs)] = self._captured
        _require_texts([name, doc, *outputs])
        for made in self.nodes:
            texts: list[object] = [made.name, made.op, made.doc, *made.input_names, *made.attrs, *made.defaults]
            for port in made.outputs:
                texts += (port.name, port.dtype)
                if port.shape:
                    texts += [size for size in port.shape if type(size) is not int and size is not None]
            _require_texts(texts)
        inputs = (*self.inputs, *[node.outputs[0] for node in self._captured])
        return ForeignFunction(name, inputs, tuple(results), tuple(outputs), self.nodes, doc)

    def _begin(self, port: Port, doc: str) -> None:
        """An argument."""
        name = self._names.unique(port.name or "input")
        self.nodes.append(ForeignNode(name, INPUT, outputs=(port,), kind="input", doc=doc))
        self.inputs.append(port)
        self.values[port.name] = (name, 0)

    def _hold(self, name: str, weight: WeightRef, doc: str) -> None:
        """An initializer."""
        node = self._names.unique(name or "initializer")
        port = Port(name, weight.dtype, weight.shape)
        kind = "constant" if 0 <= weight.nbytes <= 8 else "parameter"
        self.nodes.append(ForeignNode(node, INITIALIZER, outputs=(port,), weight=weight, kind=kind, doc=doc))
        self.values[name] = (node, 0)
        self.weights[name] = weight

    # ---- nodes ----------------------------------------------------------------------------------------------------------

    def _read_node(self, node: Any, notes: dict[str, str]) -> None:
        reader = self.reader
        domain, op = node.domain, node.op_type
        made, doc, attributes = list(node.output), node.doc_string, list(node.attribute)
        metadata = {entry.key: entry.value for entry in node.metadata_props}
        _require_texts([node.name, domain, op, doc, *metadata, *metadata.values(), *made, *[attribute.name for attribute in attributes]])
        schema = reader.schemas.of(domain, op)
        inputs = [self._resolve(name) if name else None for name in node.input]
        attrs, graphs = reader.attributes.read(attributes) if attributes else ({}, {})
        bodies: dict[str, str] = {}
        arguments: dict[str, tuple[int, ...]] = {}
        names = list(schema.input_names(len(inputs)))
        label = self._names.unique(self._label(node, made))
        if graphs:
            names += [""] * (len(inputs) - len(names))
            bodies, arguments = self._bodies(node, label, graphs, inputs, names)
        key = reader.called.get((domain, op, getattr(node, "overload", "")))
        if key is not None:
            bodies = {**bodies, op: key}
        weight = reader.attributes.constant(node) if op == "Constant" and domain in _STANDARD else None
        outputs = []
        for name in made:
            port = self.ports.get(name) or Port(name)
            quantization = notes.get(name) or quantization_of(node, self.weights)
            if weight is not None and (port.shape is None or not port.dtype):
                port = Port(name, weight.dtype, weight.shape)
            outputs.append(Port(port.name, port.dtype, port.shape, port.note, quantization) if quantization else port)
        self.nodes.append(
            ForeignNode(
                label,
                qualified(domain, op),
                tuple(inputs),
                tuple(outputs),
                tuple(names),
                {} if weight is not None else attrs,
                {name: value for name, value in schema.defaults.items() if name not in attrs} if schema.defaults else {},
                modules_of(metadata) if metadata else (),
                frames_of(metadata[STACK]) if STACK in metadata else (),
                bodies=bodies,
                arguments=arguments,
                weight=weight,
                kind="constant" if weight is not None else "op",
                doc=_note(doc, metadata) if metadata else doc[:2000],
            )
        )
        for index, name in enumerate(made):
            if name:
                if name in self.values:
                    raise InvalidArgumentError(
                        f"Value '{name}' is made twice, by node '{label}' and by '{(self.values[name] or ('',))[0]}'"
                    )
                self.values[name] = (label, index)
                if weight is not None:
                    self.weights[name] = weight

    def _bodies(
        self, node: Any, label: str, graphs: dict[str, list[Any]], inputs: list[InputRef], names: list[str]
    ) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
        """The graphs of a node as functions. The values that they capture become inputs of the node and of all of them."""
        read: list[tuple[str, GraphReader, ForeignFunction]] = []
        for attr, protos in graphs.items():
            for number, graph in enumerate(protos):
                role = _ROLES.get(attr, attr) + (str(number) if len(protos) > 1 else "")
                inner = GraphReader(self.reader, self.reader._ports([*graph.value_info, *graph.output]), self, self.depth + 1)
                read.append((role, inner, inner.read(graph)))
        captured = list(dict.fromkeys(name for _, inner, _ in read for name in inner.captures))
        first = len(inputs)
        for name in captured:
            inputs.append(self._resolve(name))
            names.append(name)
        bodies, arguments = {}, {}
        for role, inner, function in read:
            if node.op_type == "If":  # its branches take the same tensors
                inner.take(captured, function)
            key = self._key(label, role)
            self.reader.functions[key] = function
            function.name = function.name or f"{label}_{role}"
            bodies[role] = key
            own = self._formal(node.op_type, len(inner.inputs), first)
            arguments[role] = (*own, *[first + captured.index(name) for name in inner.captures])
        return bodies, arguments

    def take(self, names: Sequence[str], function: ForeignFunction) -> None:
        """Give a graph that was read one argument for each of these values from around, in this order."""
        refs = dict(zip(self.captures, self._captured, strict=True))
        made = [refs.get(name) or self._captured_node(name) for name in names]
        first = len(self.inputs)
        function.nodes[first : first + len(self._captured)] = made
        function.inputs = (*self.inputs, *[node.outputs[0] for node in made])
        self.captures = dict.fromkeys(names)
        self._captured = made

    def _formal(self, op: str, count: int, first: int) -> tuple[int, ...]:
        """The inputs of a node that are the arguments of its body, but for captured values.

        The first argument of a Loop's body is the number of the iteration.
        """
        if op == "Loop":
            return (-1, *range(1, min(count, first)), *[-1] * (count - max(first, 1)))[:count]
        return (*range(min(count, first)), *[-1] * (count - first)) if op == "Scan" else (-1,) * count

    def _key(self, label: str, role: str) -> str:
        base = key = f"{label}:{role}"
        number = 1
        while key in self.reader.functions or key in self.reader.called.values():
            number += 1
            key = f"{base}:{number}"
        return key

    def _label(self, node: Any, outputs: Sequence[str]) -> str:
        """The name of a node; without one, the path that its first output is named by, or its op."""
        if node.name:
            return str(node.name)
        first = next(filter(None, outputs), "")
        path = first.rpartition("_output_")[0] or first
        if "/" in path:
            return path
        return str(node.op_type) or "node"

    # ---- values ---------------------------------------------------------------------------------------------------------

    def _resolve(self, name: str) -> InputRef:
        """The output that has a name; one of a graph around becomes an argument.

        Raises:
            InvalidArgumentError: nothing makes it before.
        """
        ref = self.values.get(name)
        if ref is not None:
            return ref
        if self.outer is None or not self.outer.knows(name):
            raise InvalidArgumentError(f"Value '{name}' is used, but nothing makes it before")
        node = self._captured_node(name)
        self._captured.append(node)
        self.captures[name] = None
        self.values[name] = (node.name, 0)
        return self.values[name]

    def _captured_node(self, name: str) -> ForeignNode:
        """The argument for a value of the graphs around."""
        port = Port(name) if self.outer is None else self.outer.port_of(name)
        return ForeignNode(self._names.unique(name), INPUT, outputs=(port,), kind="input", doc="a value of the graph around")

    def knows(self, name: str) -> bool:
        """True iff this graph, or one around it, makes a value of this name."""
        return name in self.values or (self.outer is not None and self.outer.knows(name))

    def port_of(self, name: str) -> Port:
        """The type of a value of this graph or of one around it."""
        if name in self.values or self.outer is None:
            weight = self.weights.get(name)
            if weight is not None:
                return Port(name, weight.dtype, weight.shape)
            declared = next((port for port in self.inputs if port.name == name), None)
            return declared or self.ports.get(name) or Port(name)
        return self.outer.port_of(name)


def _require_texts(texts: Sequence[object]) -> None:
    """Refuse bytes, which protobuf gives in place of a text that is not UTF-8.

    Raises:
        InvalidArgumentError: one is no text.
    """
    if _TEXT.issuperset(map(type, texts)):
        return
    wrong = next(text for text in texts if type(text) is not str)
    raise InvalidArgumentError(f"The ONNX model is damaged: a name or text in it is not UTF-8: {wrong!r:.80}")


def quantization_text(annotation: Any) -> str:
    """The annotation of a quantised value in words."""
    return ", ".join(f"{entry.key} {entry.value}" for entry in annotation.quant_parameter_tensor_names)


def _note(doc: str, metadata: dict[str, str]) -> str:
    """The note of a node, with what exporters say beside modules and lines."""
    rest = [f"{key}: {value[:200]}" for key, value in metadata.items() if key not in USED and value]
    return "; ".join(filter(None, [doc[:2000], *rest[:20]]))
