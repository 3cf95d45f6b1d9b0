"""Graphs of exported programs in JSON: nodes, values, arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignNode, InputRef, Port, Size
from graphcore.frontends.torch_reader.arguments import Body, Collected, Named, arguments_of_body, collect
from graphcore.frontends.torch_reader.schema import Argument, Device, Graph, Node, Symbolic, TensorMeta, converted
from graphcore.frontends.torch_reader.signature import INPUT, STATE, State
from graphcore.frontends.torch_reader.symbols import symbol_text
from graphcore.frontends.torch_reader.tensors import dtype_word
from graphcore.frontends.unique_names import UniqueNames

if TYPE_CHECKING:
    from graphcore.frontends.torch_reader.program import ProgramReader

ROLES: Final = {"higher_order.cond": ("then", "else"), "higher_order.while_loop": ("cond", "body")}
"""The roles of the graphs that ops call, in order."""
_LAYOUTS: Final = ("unknown", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "mkldnn", "strided")
_FORMATS: Final = ("unknown", "contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
_SYMBOLIC: Final = {"as_sym_int": "SymInt", "as_sym_float": "SymFloat", "as_sym_bool": "SymBool"}
_OBJECTS: Final = {"as_custom_obj": "object", "as_token": "token"}
_UNUSED: Final = re.compile(r"_unused_[0-9]+$")
"""The end of the names that files give to results without a name."""
MAX_DEPTH: Final = 60


class GraphReader:
    """Reads a graph.

    Args:
        program: the program around it.
        graph: the graph.
        depth: the number of graphs around it.
    """

    def __init__(self, program: ProgramReader, graph: Graph, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise InvalidArgumentError(f"The program has graphs that are nested more than {MAX_DEPTH} deep")
        self._program = program
        self._graph = graph
        self._depth = depth
        self._values: dict[str, tuple[str, int]] = {}
        self._names = UniqueNames()
        self._node = ""
        self._shown = {
            name: _symbol(value)
            for values in (graph.sym_int_values, graph.sym_float_values, graph.sym_bool_values)
            for name, value in values.items()
        }

    def read(self, name: str, states: Mapping[str, State], results: Sequence[str]) -> ForeignFunction:
        """The graph as a function.

        Raises:
            InvalidArgumentError: it is damaged.
        """
        read = [self._input(argument, states) for argument in self._graph.inputs]
        nodes = [node for node in read if node is not None]
        inputs = tuple([node.outputs[0] for node in nodes if node.kind == "input"])
        nodes += [self._op(node) for node in self._graph.nodes]
        outputs: list[InputRef] = []
        names: list[str] = []
        for number, argument in enumerate(self._graph.outputs):
            self._node = f"result {number}"
            for value in _flat(self._value(argument)):
                if isinstance(value, Named):
                    outputs.append(self._ref(value.name))
                    names.append(results[number] if number < len(results) else "")
        return ForeignFunction(name, inputs, tuple(outputs), tuple(names), nodes)

    def _input(self, argument: Argument, states: Mapping[str, State]) -> ForeignNode | None:
        """The node of an input, None for one that has one value only."""
        kind, value = _only(argument)
        name = _name_of(kind, value)
        if not name:
            return None
        port = self._port(kind, name)
        state = states.get(name)
        if state is None:
            node = self._names.unique(name)
            self._values[name] = node, 0
            return ForeignNode(node, INPUT, outputs=(port,), device=self._device(name), kind="input")
        node = self._names.unique(state.name)
        self._values[name] = node, 0
        weight = self._program.weight(state.name, self._graph.tensor_values.get(name))
        return ForeignNode(
            node, STATE[state.kind], outputs=(port,), device=self._device(name), weight=weight, kind=state.kind, doc=state.note
        )

    def _op(self, node: Node) -> ForeignNode:
        outputs: list[tuple[str, Port]] = []
        for argument in node.outputs:
            kind, value = _only(argument)
            if kind in {"as_tensors", "as_optional_tensors", "as_sym_ints"} and isinstance(value, list):
                inner = [_only(item) if kind != "as_tensors" else ("as_tensor", item) for item in value]
            else:
                inner = [(kind, value)]
            for word, item in inner:
                name = _name_of(word, item)
                outputs.append((name, self._port(word, name) if name else Port(note="none")))
        op = op_name(node.target)
        name = self._names.unique(node.name or next((name for name, _ in outputs if name), "") or op.rpartition(".")[0] or op)
        self._node = name
        collected = collect([(named.name, self._value(named.arg)) for named in node.inputs], self._ref, self._shown)
        for number, (value, _) in enumerate(outputs):
            if value:
                self._values[value] = name, number
                if _UNUSED.search(value):
                    outputs[number] = "", replace(outputs[number][1], name="")
        bodies, arguments = self._bodies(op, collected)
        metadata = node.metadata
        return ForeignNode(
            name,
            op,
            tuple(collected.inputs),
            tuple([port for _, port in outputs]),
            tuple(collected.names),
            collected.attrs,
            modules=self._program.traces.modules(metadata.get("nn_module_stack")),
            frames=self._program.traces.frames(metadata.get("stack_trace")),
            device=self._device(outputs[0][0]) if outputs else "",
            bodies=bodies,
            arguments=arguments,
        )

    def _bodies(self, op: str, collected: Collected) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
        if not collected.bodies:
            return {}, {}
        roles: tuple[str, ...] = ROLES.get(op, ())
        if len(roles) != len(collected.bodies):
            roles = tuple(collected.bodies) if len(collected.bodies) > 1 else ("body",)
        bodies = dict(zip(roles, collected.bodies, strict=True))
        return bodies, {role: arguments_of_body(collected, self._program.arguments(key)) for role, key in bodies.items()}

    def _value(self, argument: Argument, depth: int = 0) -> object:
        """An argument as plain data, values of the graph as `Named`, graphs as `Body`."""
        kind, value = _only(argument)
        if depth > MAX_DEPTH or kind == "as_none":
            return None
        if kind in {"as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool", "as_optional_tensor", "as_custom_obj", "as_token"}:
            name = _name_of(kind, value)
            return Named(name) if name else next((item for item in value.values() if item is not True), None) if _is_table(value) else None
        if kind == "as_tensors" and isinstance(value, list):
            return [Named(_name_of("as_tensor", item)) for item in value]
        if kind in {"as_sym_ints", "as_sym_floats", "as_sym_bools", "as_optional_tensors"} and isinstance(value, list):
            word = {"as_sym_ints": "as_sym_int", "as_sym_floats": "as_sym_float", "as_sym_bools": "as_sym_bool"}.get(kind, "")
            return [self._value({word: item} if word else item, depth + 1) for item in value]
        if kind == "as_nested_tensors" and isinstance(value, list):
            return [self._value({"as_tensors": item}, depth + 1) for item in value]
        if kind == "as_string_to_argument" and isinstance(value, dict):
            return {str(key): self._value(item, depth + 1) for key, item in value.items()}
        if kind == "as_graph" and isinstance(value, dict):
            graph = converted(value.get("graph"), Graph, f"A graph that '{self._node}' calls")
            return Body(self._program.body(str(value.get("name", "body"))[:200], graph, self._depth + 1))
        return _literal(kind, value)

    def _ref(self, name: str) -> tuple[str, int]:
        ref = self._values.get(name)
        if ref is None:
            raise InvalidArgumentError(f"'{self._node}' takes the value '{name}', which no node before it gives", node=self._node)
        return ref

    def _port(self, kind: str, name: str) -> Port:
        if kind in _SYMBOLIC:
            return Port(name, _SYMBOLIC[kind], (), f"= {self._shown[name]}" if name in self._shown else "")
        if kind in _OBJECTS:
            return Port(name, _OBJECTS[kind])
        meta = self._graph.tensor_values.get(name)
        if meta is None:
            return Port(name)
        layout = _LAYOUTS[meta.layout] if 0 < meta.layout < 7 else ""
        return Port(name, dtype_word(meta.dtype), sizes(meta), layout)

    def _device(self, name: str) -> str:
        return self._program.device(self._graph.tensor_values.get(name))


def sizes(meta: TensorMeta) -> tuple[Size, ...]:
    """The sizes of a tensor: numbers, and symbols in the usual notation."""
    return tuple([symbol_text(size.as_expr.expr_str) if size.as_expr is not None else size.as_int for size in meta.sizes])


def op_name(target: str) -> str:
    """The name of an op without what all names begin with: `aten.add.Tensor`."""
    return target.removeprefix("torch.ops.").replace("/", "_")[:200] or "unknown"


def _symbol(value: Symbolic) -> str:
    if value.as_expr is not None:
        return symbol_text(value.as_expr.expr_str)
    return str(next((member for member in (value.as_int, value.as_float, value.as_bool) if member is not None), "?"))


def _only(argument: object) -> tuple[str, Any]:
    """The kind and the value of an argument."""
    if not isinstance(argument, dict):
        raise InvalidArgumentError(f"Required an argument as a table, got {str(argument)[:80]}")
    return next(((kind, value) for kind, value in argument.items() if value is not None), ("as_none", None))


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def _name_of(kind: str, value: object) -> str:
    """The name of the value that an argument is, "" for one that is none."""
    if not isinstance(value, dict):
        return ""
    if kind == "as_optional_tensor":
        value = value.get("as_tensor")
        value = value if isinstance(value, dict) else {}
    name = value.get("as_name") if kind in _SYMBOLIC else value.get("name")
    return name if isinstance(name, str) else ""


def _flat(value: object) -> list[object]:
    if isinstance(value, list):
        return [item for element in value for item in _flat(element)]
    return list(value.values()) if isinstance(value, dict) else [value]


def _literal(kind: str, value: Any) -> object:
    if kind == "as_scalar_type":
        return dtype_word(value)
    if kind == "as_layout":
        return _LAYOUTS[value] if isinstance(value, int) and 0 <= value < len(_LAYOUTS) else str(value)
    if kind == "as_memory_format":
        return _FORMATS[value] if isinstance(value, int) and 0 <= value < len(_FORMATS) else str(value)
    if kind == "as_device" and isinstance(value, dict):
        return converted(value, Device, "A device").text
    if kind == "as_complex" and isinstance(value, dict):
        return f"{value.get('real')}+{value.get('imag')}j"
    return value
