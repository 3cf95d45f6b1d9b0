"""Graphs of `torch.fx` in memory: those of exported programs, and traced modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignFunction, ForeignNode, InputRef, ModuleCall, Port
from graphcore.frontends.torch_reader.arguments import Body, Collected, Named, arguments_of_body, collect
from graphcore.frontends.torch_reader.exported_program import MAX_DEPTH, ROLES
from graphcore.frontends.torch_reader.objects import (
    argument_names,
    device_words,
    is_class,
    literal,
    module_op,
    modules_of,
    op_of,
    plain_fields,
    port_of,
    value_of,
    weight_of_object,
)
from graphcore.frontends.torch_reader.signature import INPUT, STATE, State
from graphcore.frontends.torch_reader.traces import Traces
from graphcore.frontends.unique_names import UniqueNames

if TYPE_CHECKING:
    from graphcore.frontends.foreign import Attr

_GETITEM: Final = ("_operator", "getitem")


class FxReader:
    """Reads a graph and the graphs that it calls.

    Args:
        functions: the table of called graphs.
        states: tensors of the program: what an input of this name is, and its tensor.
        results: names of the results.
    """

    def __init__(
        self,
        module: Any,
        functions: dict[str, ForeignFunction],
        states: Mapping[str, tuple[State, Any]],
        results: Sequence[str],
        depth: int = 0,
    ) -> None:
        if depth > MAX_DEPTH:
            raise InvalidArgumentError(f"The program has graphs that are nested more than {MAX_DEPTH} deep")
        self._module = module
        self._functions = functions
        self._states = states
        self._results = results
        self._depth = depth
        self._traces = Traces()
        self._values: dict[str, tuple[str, int]] = {}
        self._bodies: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        self._nodes: list[ForeignNode] = []
        self._names = UniqueNames()
        self._known: dict[int, str] = {}
        self._has_devices = len({words for node in module.graph.nodes if (words := device_words(value_of(node.meta)))}) > 1

    def read(self, name: str) -> ForeignFunction:
        """The graph as a function."""
        function = ForeignFunction(name)
        outputs: list[InputRef] = []
        for node in self._module.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node)
            elif node.op == "get_attr":
                self._attribute(node)
            elif node.op == "output":
                outputs += [self._ref(value.name) for value in _flat(node.args[0]) if isinstance(value, Named)]
            elif not self._is_part(node):
                self._call(node)
        function.nodes = self._nodes
        function.inputs = tuple([node.outputs[0] for node in self._nodes if node.kind == "input"])
        function.outputs = tuple(outputs)
        function.output_names = tuple(self._results) if len(self._results) == len(outputs) else ("",) * len(outputs)
        return function

    def _placeholder(self, node: Any) -> None:
        value = value_of(node.meta)
        state, tensor = self._states.get(node.name, (None, None))
        if state is None and node.name in self._states:
            return
        self._note_symbol(node.name, value)
        if state is None:
            name = self._names.unique(node.name)
            self._values[node.name] = name, 0
            self._nodes.append(ForeignNode(name, INPUT, outputs=(port_of(node.name, value),), device=self._device(value), kind="input"))
            return
        self._values[node.name] = self._state(state, node.name, tensor, value), 0

    def _state(self, state: State, port: str, tensor: Any, value: object) -> str:
        name = self._names.unique(state.name)
        weight = weight_of_object(tensor) if hasattr(tensor, "dtype") else None
        self._nodes.append(
            ForeignNode(
                name,
                STATE[state.kind],
                outputs=(port_of(port, tensor if value is None else value),),
                device=self._device(value),
                weight=weight,
                kind=state.kind,
                doc=state.note,
            )
        )
        return name

    def _attribute(self, node: Any) -> None:
        attribute = self._at(str(node.target))
        if is_class(attribute, "GraphModule", "torch.fx"):
            self._bodies[node.name] = self._body(str(node.target), attribute)
            return
        self._values[node.name] = self._tensor(str(node.target), attribute, value_of(node.meta)), 0

    def _tensor(self, path: str, tensor: Any, value: object = None) -> str:
        """The node of a tensor of the module, made once."""
        name = self._known.get(id(tensor))
        if name is None:
            kind = "parameter" if is_class(tensor, "Parameter", "torch") else "buffer" if hasattr(tensor, "dtype") else "constant"
            name = self._known[id(tensor)] = self._state(State(kind, path), path, tensor, value)
        return name

    def _at(self, path: str) -> Any:
        """The object at a path of attributes."""
        attribute = self._module
        for part in path.split("."):
            attribute = getattr(attribute, part, None)
        return attribute

    def _body(self, name: str, module: Any) -> str:
        key, number = name, 1
        while key in self._functions:
            number += 1
            key = f"{name}_{number}"
        self._functions[key] = ForeignFunction(key)
        self._functions[key] = FxReader(module, self._functions, {}, (), self._depth + 1).read(key)
        return key

    def _is_part(self, node: Any) -> bool:
        """True iff a node only names one of several results, which it then does."""
        target = node.target
        if (getattr(target, "__module__", ""), getattr(target, "__name__", "")) != _GETITEM or len(node.args) != 2:
            return False
        producer, index = node.args
        if not isinstance(index, int) or not isinstance(value_of(getattr(producer, "meta", {})), tuple | list):
            return False
        if producer.name not in self._values:
            return False
        made, _ = self._values[producer.name]
        self._values[node.name] = made, index
        self._note_symbol(node.name, value_of(node.meta))
        return True

    def _call(self, node: Any) -> None:
        value = value_of(node.meta)
        self._note_symbol(node.name, value)
        target = node.target
        attrs: dict[str, Attr] = {}
        modules = modules_of(node.meta.get("nn_module_stack"))
        named_arguments = [(name, item) for name, item in zip([*argument_names(target), *[""] * len(node.args)], node.args, strict=False)]
        if node.op == "call_module":
            module = self._at(str(target))
            op = module_op(module)
            attrs = plain_fields(module)
            named_arguments = [(name or ("input" if number == 0 else ""), item) for number, (name, item) in enumerate(named_arguments)]
            modules = modules or (ModuleCall(str(target), type(module).__name__),)
            states = [*getattr(module, "_parameters", {}).items(), *getattr(module, "_buffers", {}).items()]
            held = [(name, self._tensor(f"{target}.{name}", tensor)) for name, tensor in states if tensor is not None]
        else:
            op, held = op_of(target), []
        plain = [(name, _plain(item, self._bodies)) for name, item in (*named_arguments, *node.kwargs.items())]
        collected = collect(plain, self._ref, self._shown)
        for argument, state in held:
            collected.inputs.append((state, 0))
            collected.names.append(argument)
        name = self._names.unique(node.name)
        self._values[node.name] = name, 0
        bodies, arguments = self._called(op, collected)
        self._nodes.append(
            ForeignNode(
                name,
                op,
                tuple(collected.inputs),
                self._ports(node, value),
                tuple(collected.names),
                {**attrs, **collected.attrs},
                modules=modules,
                frames=self._traces.frames(node.meta.get("stack_trace")),
                device=self._device(value),
                bodies=bodies,
                arguments=arguments,
            )
        )

    def _ports(self, node: Any, value: object) -> tuple[Port, ...]:
        if not isinstance(value, tuple | list) or hasattr(value, "dtype"):
            is_effect = value is None and "val" in node.meta
            return () if is_effect else (port_of(node.name, value),)
        names = {
            user.args[1]: user.name for user in node.users if len(user.args) == 2 and user.args[0] is node and isinstance(user.args[1], int)
        }
        return tuple([port_of(names.get(index, ""), item) for index, item in enumerate(value)])

    def _called(self, op: str, collected: Collected) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
        if not collected.bodies:
            return {}, {}
        roles: tuple[str, ...] = ROLES.get(op, ())
        if len(roles) != len(collected.bodies):
            roles = tuple(collected.bodies) if len(collected.bodies) > 1 else ("body",)
        bodies = dict(zip(roles, collected.bodies, strict=True))
        return bodies, {role: arguments_of_body(collected, len(self._functions[key].inputs)) for role, key in bodies.items()}

    def _ref(self, name: str) -> tuple[str, int]:
        ref = self._values.get(name)
        if ref is None:
            raise InvalidArgumentError(f"A node takes the value '{name}', which no node before it gives", node=name)
        return ref

    def _device(self, value: object) -> str:
        return device_words(value) if self._has_devices else ""

    def _note_symbol(self, name: str, value: object) -> None:
        if type(value).__name__ in {"SymInt", "SymFloat", "SymBool"}:
            self._shown[name] = str(value)


def _plain(value: Any, bodies: Mapping[str, str]) -> object:
    """An argument as plain data, nodes as `Named`, graphs as `Body`."""
    if is_class(value, "Node", "torch.fx"):
        return Body(bodies[value.name]) if value.name in bodies else Named(value.name)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, bodies) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, bodies) for item in value]
    return literal(value)


def _flat(value: Any) -> list[object]:
    if isinstance(value, Mapping):
        return [item for element in value.values() for item in _flat(element)]
    if isinstance(value, list | tuple):
        return [item for element in value for item in _flat(element)]
    return [_plain(value, {})]
