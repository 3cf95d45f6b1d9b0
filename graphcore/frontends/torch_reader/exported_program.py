"""Exported programs in JSON: graphs with signatures, nodes, values, functions, facts and notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, InputRef, Port, Size, WeightRef
from graphcore.frontends.torch_reader.arguments import Body, Collected, Named, arguments_of_body, collect
from graphcore.frontends.torch_reader.placing import placed_states
from graphcore.frontends.torch_reader.schema import Argument, Device, Graph, Node, Program, Symbolic, TensorMeta, converted
from graphcore.frontends.torch_reader.signature import INPUT, STATE, State, meaning_of
from graphcore.frontends.torch_reader.symbols import symbol_text
from graphcore.frontends.torch_reader.tensors import dtype_word
from graphcore.frontends.torch_reader.traces import Traces
from graphcore.frontends.unique_names import UniqueNames

KIND: Final = "PyTorch exported program"
_SHOWN: Final = 50
Weights = Callable[[str, str, tuple[int, ...]], WeightRef]
"""Gives a tensor of the source by its name, type and shape."""
ROLES: Final = {"higher_order.cond": ("then", "else"), "higher_order.while_loop": ("cond", "body")}
"""The roles of the graphs that ops call, in order."""
_LAYOUTS: Final = ("unknown", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "mkldnn", "strided")
_FORMATS: Final = ("unknown", "contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
_SYMBOLIC: Final = {"as_sym_int": "SymInt", "as_sym_float": "SymFloat", "as_sym_bool": "SymBool"}
_OBJECTS: Final = {"as_custom_obj": "object", "as_token": "token"}
_UNUSED: Final = re.compile(r"_unused_[0-9]+$")
"""The end of the names that files give to results without a name."""
MAX_DEPTH: Final = 60


class ProgramReader:
    """Reads a program.

    Args:
        program: the program.
        weights: gives the tensors that the source holds.

    Attributes:
        traces: reads traces.
        meaning: what inputs and outputs are.
    """

    def __init__(self, program: Program, weights: Weights) -> None:
        self.traces = Traces()
        self.meaning = meaning_of(program.graph_module)
        self._program = program
        self._weights = weights
        self._functions: dict[str, ForeignFunction] = {}
        metas = program.graph_module.graph.tensor_values.values()
        self._devices = list(dict.fromkeys([meta.device.text for meta in metas if meta.device is not None and meta.device.type]))

    def read(self) -> ForeignGraph:
        """The graph.

        Raises:
            InvalidArgumentError: it is damaged.
        """
        program = self._program
        main = _GraphReader(self, program.graph_module.graph, 0).read("main", self.meaning.states, self.meaning.results)
        roots = [call.type_name for node in main.nodes for call in node.modules[:1] if not call.path]
        graph = ForeignGraph(KIND, main, producer=f"PyTorch {program.torch_version}".strip(), name=roots[0] if roots else "")
        main.nodes = placed_states(main.nodes)
        graph.functions = self._functions
        graph.facts = self._facts()
        graph.notes = [*self.meaning.writes, *self._changes_in_place()][:_SHOWN]
        return graph

    def body(self, name: str, graph: Graph, depth: int) -> str:
        """Read a graph that a node calls. Returns its key."""
        key, number = name, 1
        while key in self._functions:
            number += 1
            key = f"{name}_{number}"
        self._functions[key] = ForeignFunction(key)
        self._functions[key] = _GraphReader(self, graph, depth).read(key, {}, [])
        return key

    def arguments(self, key: str) -> int:
        """The number of arguments of a called graph."""
        return len(self._functions[key].inputs)

    def device(self, meta: TensorMeta | None) -> str:
        """The device of a tensor, "" where the whole program is on one."""
        return "" if len(self._devices) < 2 or meta is None or meta.device is None else meta.device.text

    def weight(self, name: str, meta: TensorMeta | None) -> WeightRef | None:
        """A tensor of the program, None for an object that is none."""
        if meta is None:
            return None
        shape = tuple([size.as_int if size.as_int is not None else -1 for size in meta.sizes])
        return self._weights(name, dtype_word(meta.dtype), shape)

    def _changes_in_place(self) -> list[str]:
        changes = []
        for node in self._program.graph_module.graph.nodes:
            parts = node.target.split(".")
            if len(parts) > 3 and parts[-2].endswith("_") and not parts[-2].startswith("__") and node.inputs:
                first = node.inputs[0].arg.get("as_tensor")
                name = first.get("name") if isinstance(first, dict) else None
                state = self.meaning.states.get(name) if isinstance(name, str) else None
                if state is not None:
                    changes.append(f"Node '{node.name or parts[-2]}' changes {state.kind} '{state.name}' in place.")
        return changes

    def _facts(self) -> dict[str, str]:
        program = self._program
        version = program.schema_version
        if isinstance(version, dict):
            version = f"{version.get('major', '?')}.{version.get('minor', '?')}"
        facts = {"schema": str(version)} if version is not None else {}
        if program.opset_version:
            facts["opset"] = ", ".join([f"{name} {number}" for name, number in program.opset_version.items()][:_SHOWN])
        facts |= self.meaning.constants
        if len(self._devices) == 1:
            facts["device"] = self._devices[0]
        places = self._places()
        for symbol, limits in list(program.range_constraints.items())[:_SHOWN]:
            name = symbol_text(symbol)
            facts[f"size {name}"] = "; ".join([limits_text(limits.min_val, limits.max_val), *places.get(name, [])[:3]])
        return facts

    def _places(self) -> dict[str, list[str]]:
        """The sizes of inputs that symbols are."""
        graph = self._program.graph_module.graph
        places: dict[str, list[str]] = {}
        for argument in graph.inputs:
            tensor = argument.get("as_tensor")
            name = tensor.get("name") if isinstance(tensor, dict) else None
            meta = graph.tensor_values.get(name) if isinstance(name, str) else None
            for number, size in enumerate(meta.sizes if meta is not None else ()):
                if size.as_expr is not None:
                    places.setdefault(symbol_text(size.as_expr.expr_str), []).append(f"size {number} of {name}")
        return places


class _GraphReader:
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
        op = _op_name(node.target)
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
        return Port(name, dtype_word(meta.dtype), _sizes(meta), layout)

    def _device(self, name: str) -> str:
        return self._program.device(self._graph.tensor_values.get(name))


def limits_text(least: object, most: object) -> str:
    """The range of a symbolic size in words."""
    is_open = not isinstance(most, int) or most < 0 or most >= 2**62
    if is_open:
        return f"at least {least}" if isinstance(least, int) and least > -(2**62) else "any"
    return f"{least} to {most}" if isinstance(least, int) else f"at most {most}"


def _sizes(meta: TensorMeta) -> tuple[Size, ...]:
    """The sizes of a tensor: numbers, and symbols in the usual notation."""
    return tuple([symbol_text(size.as_expr.expr_str) if size.as_expr is not None else size.as_int for size in meta.sizes])


def _op_name(target: str) -> str:
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
