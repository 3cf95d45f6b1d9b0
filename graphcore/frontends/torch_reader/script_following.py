"""TorchScript programs, followed from `forward`: calls are entered, ops become nodes."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError
from graphcore.frontends.foreign import ForeignFunction, ForeignNode, ModuleCall, SourceFrame, WeightRef
from graphcore.frontends.torch_reader.pickles import StoredTensor, Thing
from graphcore.frontends.torch_reader.script_building import (
    AttributeValue,
    Building,
    FunctionValue,
    ListValue,
    Method,
    ModuleValue,
    Ref,
    Unknown,
)
from graphcore.frontends.torch_reader.script_code import NAMES, ScriptCode, ScriptFile
from graphcore.frontends.torch_reader.script_names import argument_name
from graphcore.frontends.torch_reader.script_states import Assigned, States
from graphcore.frontends.torch_reader.script_syntax import Result, assigned_names, only_raises, placed, target_names, type_of
from graphcore.frontends.torch_reader.traces import class_name

MAX_STEPS: Final = 500_000
"""The most statements and expressions that are followed."""
MAX_CALLS: Final = 80
_KNOWN: Final[dict[str, Callable[..., Any]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
}
_CASTS: Final = frozenset({"annotate", "unchecked_cast"})
_MAX_KNOWN: Final = 2**62


@dataclass(slots=True)
class _Frame:
    """A call that is followed.

    Attributes:
        file: the file of its code.
        names: the values of its variables.
        modules: the modules around it.
        result: what it returns.
    """

    file: ScriptFile
    names: dict[str, Any]
    modules: tuple[ModuleCall, ...]
    result: Any = None


class Following:
    """Follows a program.

    Args:
        code: its code.
        constants: its constants, which code names by number.
        weight: gives a tensor that is not yet read.

    Attributes:
        functions: bodies of branches and loops by key.
        has_checks: True iff branches that only raise errors were left out.
        has_choices: True iff branches were chosen by constants of the object.
    """

    def __init__(self, code: ScriptCode, constants: Sequence[Any], weight: Callable[[StoredTensor], WeightRef]) -> None:
        self._code = code
        self._main = Building("main", None)
        self._states = States(code, constants, weight, self._main)
        self._steps = 0
        self._depth = 0
        self._target: tuple[str, ...] = ()
        self.functions: dict[str, ForeignFunction] = {}
        self.has_checks = False
        self.has_choices = False

    @property
    def _building(self) -> Building:
        """The graph that is being built."""
        return self._states.building

    @_building.setter
    def _building(self, building: Building) -> None:
        self._states.building = building

    def program(self, root: Thing, method: str) -> ForeignFunction:
        """The graph of a method of the root module.

        Raises:
            GraphError: the code is damaged, or exceeds a limit.
        """
        value = ModuleValue(root, "")
        located = self._code.class_of(root.kind)
        if located is None or method not in located[1].methods:
            raise InvalidArgumentError(f"Class '{root.kind}' has no method '{method}'")
        file, definition = located[0], located[1].methods[method]
        parameters = definition.args.args
        names: dict[str, Any] = {parameter.arg: self._main.argument(parameter.arg, type_of(parameter)) for parameter in parameters[1:]}
        if parameters:
            names[parameters[0].arg] = value
        frame = _Frame(file, names, (ModuleCall("", class_name(root.kind)),))
        self._block(definition.body, frame)
        for name, ref in self._results(frame.result, ""):
            self._main.results.append((ref.node, ref.index))
            self._main.result_names.append(name)
        return self._main.finished()

    def _results(self, value: Any, name: str) -> list[tuple[str, Ref]]:
        if isinstance(value, ListValue) and value.ref is None:
            value = tuple(value.items)
        if isinstance(value, tuple):
            return [result for item in value for result in self._results(item, name)]
        if isinstance(value, Ref | ListValue):
            return [(name, self._building.ref_of(value))]
        return []

    # statements

    def _block(self, body: Sequence[ast.stmt], frame: _Frame) -> None:
        for statement in body:
            self._count()
            self._statement(statement, frame)

    def _statement(self, statement: ast.stmt, frame: _Frame) -> None:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            if statement.value is not None:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                self._target = target_names(targets[0])
                value = self._value(statement.value, frame)
                self._target = ()
                self._assign(targets[0], value, frame)
        elif isinstance(statement, ast.Expr):
            self._value(statement.value, frame)
        elif isinstance(statement, ast.Return):
            frame.result = None if statement.value is None else self._value(statement.value, frame)
        elif isinstance(statement, ast.If):
            self._branch(statement, frame)
        elif isinstance(statement, ast.For | ast.While):
            self._loop(statement, frame)
        elif isinstance(statement, ast.With):
            self._block(statement.body, frame)
        elif not isinstance(statement, ast.Pass | ast.Import | ast.ImportFrom):
            raise self._unknown(statement, frame)

    def _assign(self, target: ast.expr, value: Any, frame: _Frame) -> None:
        if isinstance(target, ast.Name):
            frame.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            for part, item in zip(target.elts, self._parts(value, len(target.elts), frame), strict=True):
                self._assign(part, item, frame)
        elif isinstance(target, ast.Attribute):
            owner = self._value(target.value, frame)
            if isinstance(owner, ModuleValue):
                owner.thing.state[target.attr] = Assigned(self._building, value)
                self._node("prim.SetAttr", [("name", f"{owner.path}.{target.attr}".strip(".")), ("value", value)], target, frame, 0)
        else:
            raise self._unknown(target, frame)

    def _parts(self, value: Any, count: int, frame: _Frame) -> list[Any]:
        """The parts of a value that is unpacked."""
        if isinstance(value, ListValue) and value.ref is None:
            value = tuple(value.items)
        if isinstance(value, tuple):
            if len(value) != count:
                raise InvalidArgumentError(f"'{frame.file.name}' unpacks {len(value)} values into {count}")
            return list(value)
        if isinstance(value, ModuleValue):
            return [self._states.attribute(value, name) for name in [*value.thing.state][:count]] + [None] * (
                count - len(value.thing.state)
            )
        ref = self._building.ref_of(value, frame.modules)
        node = next((node for node in reversed(ref.building.nodes) if node.name == ref.node), None)
        if node is not None and len(node.outputs) == count and count > 1:
            return [Ref(ref.building, ref.node, index) for index in range(count)]
        made = self._building.add("prim.TupleUnpack", [("", ref)], ("",) * count, frame.modules)
        return [Ref(self._building, made.name, index) for index in range(count)]

    def _branch(self, statement: ast.If, frame: _Frame) -> None:
        condition = self._value(statement.test, frame)
        if isinstance(condition, bool):
            self.has_choices = True
            self._block(statement.body if condition else statement.orelse, frame)
            return
        if only_raises(statement.body) or only_raises(statement.orelse):
            self.has_checks = True
            self._block(statement.orelse if only_raises(statement.body) else statement.body, frame)
            return
        outer = self._building
        sides = []
        for body in (statement.body, statement.orelse):
            side = _Frame(frame.file, dict(frame.names), frame.modules, frame.result)
            self._building = Building(self._key("branch"), outer)
            self._block(body, side)
            sides.append((self._building, side))
            self._building = outer
        (then, one), (other, two) = sides
        merged: list[tuple[str, Any, Any]] = []
        assigned = [name for name in {**one.names, **two.names} if name in one.names and name in two.names]
        for name in assigned:
            first, second = one.names[name], two.names[name]
            if first is not second and not (type(first) is type(second) and not isinstance(first, Ref) and first == second):
                merged.append((name, first, second))
            else:
                frame.names[name] = first
        if one.result is not two.result:
            merged.append(("", one.result, two.result))
        results = {name: self._merged(first, second, then, other, name) for name, first, second in merged}
        node = self._call_bodies("prim.If", [condition], {"then": then, "else": other}, (), statement, frame)
        for name, value in results.items():
            put = placed(value, self._building, node.name)
            if name:
                frame.names[name] = put
            else:
                frame.result = put

    def _merged(self, first: Any, second: Any, then: Building, other: Building, name: str) -> Any:
        """A value that two branches give, with the numbers of their results in its structure."""
        if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
            return tuple([self._merged(one, two, then, other, name) for one, two in zip(first, second, strict=True)])
        if isinstance(first, ModuleValue | FunctionValue | Method):
            return first
        number = len(then.results)
        for building, value in ((then, first), (other, second)):
            ref = building.ref_of(value)
            building.results.append((ref.node, ref.index))
            building.result_names.append(name)
        return Result(number)

    def _loop(self, statement: ast.For | ast.While, frame: _Frame) -> None:
        outer = self._building
        first: list[Any] = []
        if isinstance(statement, ast.For):
            if isinstance(statement.iter, ast.Call) and statement.iter.args:
                first = [self._value(statement.iter.args[-1], frame)]
            else:
                first = [self._value(statement.iter, frame)]
        carried = [name for name in assigned_names(statement.body) if name in frame.names]
        initial = [outer.ref_of(frame.names[name], frame.modules) for name in carried]
        body = Building(self._key("loop"), outer)
        side = _Frame(frame.file, dict(frame.names), frame.modules)
        if isinstance(statement, ast.For):
            self._building = body
            self._assign(
                statement.target, body.argument(target_names(statement.target)[0] if target_names(statement.target) else "i"), side
            )
        for name in carried:
            side.names[name] = body.argument(name)
        self._building = body
        self._block(statement.body, side)
        self._building = outer
        for name in carried:
            ref = body.ref_of(side.names[name])
            body.results.append((ref.node, ref.index))
            body.result_names.append(name)
        start = sum(1 for value in first if isinstance(value, Ref))
        own = (*((-1,) if isinstance(statement, ast.For) else ()), *range(start, start + len(carried)))
        node = self._call_bodies("prim.Loop", [*first, *initial], {"body": body}, own, statement, frame)
        for number, name in enumerate(carried):
            frame.names[name] = Ref(outer, node.name, number)

    def _call_bodies(
        self,
        op: str,
        inputs: list[Any],
        bodies: dict[str, Building],
        own: tuple[int, ...],
        statement: ast.stmt,
        frame: _Frame,
    ) -> ForeignNode:
        """Add the node of a branch or a loop, whose inputs are those given and all that bodies capture.

        Args:
            own: the inputs that are the bodies' own arguments.
        """
        building = self._building
        captured = list(dict.fromkeys([ref for body in bodies.values() for ref in body.captured]))
        refs = [value for value in inputs if isinstance(value, Ref)]
        places = {ref: len(refs) + number for number, ref in enumerate(captured)}
        arguments = {}
        for role, body in bodies.items():
            arguments[role] = (*own, *[places[ref] for ref in body.captured])
            self.functions[body.name] = body.finished()
        named = [("condition" if op == "prim.If" else "", value) for value in inputs]
        return building.add(
            op,
            [*named, *[("", ref) for ref in captured]],
            tuple(next(iter(bodies.values())).result_names),
            frame.modules,
            self._frames(statement, frame),
            bodies={role: body.name for role, body in bodies.items()},
            arguments=arguments,
        )

    def _key(self, word: str) -> str:
        number = sum(1 for key in self.functions if key.startswith(word))
        key = f"{word}_{number}"
        self.functions[key] = ForeignFunction(key)
        return key

    # expressions

    def _value(self, node: ast.expr, frame: _Frame) -> Any:
        self._count()
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str | int | float | bool | None) else str(node.value)
        if isinstance(node, ast.Name):
            return self._named(node.id, frame)
        if isinstance(node, ast.Attribute):
            return self._states.attribute(self._value(node.value, frame), node.attr)
        if isinstance(node, ast.Call):
            return self._call(node, frame)
        if isinstance(node, ast.List):
            return ListValue(self._building, [self._value(item, frame) for item in node.elts])
        if isinstance(node, ast.Tuple):
            return tuple([self._value(item, frame) for item in node.elts])
        if isinstance(node, ast.Subscript):
            return self._item(node, frame)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = self._value(node.operand, frame)
            if isinstance(value, int | float):
                return -value if isinstance(node.op, ast.USub) else value
            return self._op("aten.neg", [("", value)], node, frame)
        if isinstance(node, ast.Dict):
            parts = [part for pair in zip(node.keys, node.values, strict=True) for part in pair if part is not None]
            return self._op("prim.DictConstruct", [("", self._value(part, frame)) for part in parts], node, frame)
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return self._op(f"prim.{type(node).__name__}", [("", self._value(part, frame)) for part in parts], node, frame)

    def _named(self, name: str, frame: _Frame) -> Any:
        if name in frame.names:
            return frame.names[name]
        if name in {NAMES, "torch", "ops", "CONSTANTS"}:
            return FunctionValue(name)
        if name in {"inf", "nan"}:
            return float(name)
        return Unknown(name)

    def _item(self, node: ast.Subscript, frame: _Frame) -> Any:
        owner, index = self._value(node.value, frame), self._value(node.slice, frame)
        items = owner.items if isinstance(owner, ListValue) and owner.ref is None else owner
        if isinstance(items, list | tuple) and isinstance(index, int) and -len(items) <= index < len(items):
            return items[index]
        if isinstance(owner, Unknown | FunctionValue):
            return Unknown("type")
        return self._op("aten.__getitem__", [("", owner), ("index", index)], node, frame)

    def _call(self, node: ast.Call, frame: _Frame) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id not in frame.names:
            built_in = self._built_in(node.func.id, node, frame)
            if built_in is not NotImplemented:
                return built_in
        called = self._value(node.func, frame)
        target, self._target = self._target, ()
        arguments = [self._value(argument, frame) for argument in node.args]
        named = {word.arg or "": self._value(word.value, frame) for word in node.keywords}
        self._target = target
        if isinstance(called, Method):
            return self._method(called, arguments, named, node, frame)
        if isinstance(called, FunctionValue) and called.name.startswith(f"{NAMES}."):
            return self._function(called.name, arguments, named, node, frame)
        if isinstance(called, AttributeValue):
            return self._op(f"prim.{called.name}", [("", called.owner), *[("", value) for value in arguments]], node, frame)
        if not isinstance(called, FunctionValue):
            raise self._unknown(node, frame)
        op = called.name.removeprefix("ops.") if called.name.startswith("ops.") else f"aten.{called.name.removeprefix('torch.')}"
        computed = self._known(op, arguments)
        if computed is not NotImplemented:
            return computed
        if op == "aten.append" and isinstance(arguments[0], ListValue) and arguments[0].ref is None:
            if arguments[0].building is self._building:
                arguments[0].items.append(arguments[1] if len(arguments) > 1 else None)
                return arguments[0]
            self._building.ref_of(arguments[0], frame.modules)
        pairs = [(argument_name(op, number), value) for number, value in enumerate(arguments)]
        return self._op(op, [*pairs, *named.items()], node, frame)

    def _built_in(self, name: str, node: ast.Call, frame: _Frame) -> Any:
        if name in _CASTS and len(node.args) == 2:
            return self._value(node.args[1], frame)
        if name == "uninitialized":
            return Unknown(name)
        if name == "getattr" and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
            return self._states.attribute(self._value(node.args[0], frame), str(node.args[1].value))
        values = [self._value(argument, frame) for argument in node.args]
        if name in {"int", "float", "bool"} and len(values) == 1:
            value = values[0]
            if isinstance(value, int | float) and abs(value) < _MAX_KNOWN:
                return {"int": int, "float": float, "bool": bool}[name](value)
            return self._op(f"aten.{name.capitalize()}", [("", value)], node, frame)
        return self._op(f"prim.{name}", [("", value) for value in values], node, frame)

    def _known(self, op: str, arguments: list[Any]) -> Any:
        """The value of an op whose arguments are known; NotImplemented if it is not known."""
        word = op.removeprefix("aten.")
        first = arguments[0] if arguments else None
        if word in {"__is__", "__isnot__"} and len(arguments) == 2 and arguments[1] is None and not isinstance(first, Ref):
            return (first is None) == (word == "__is__")
        if word == "__not__" and isinstance(first, bool):
            return not first
        if word == "len" and isinstance(first, ListValue) and first.ref is None:
            return len(first.items)
        if word == "device" and isinstance(first, str):
            return first
        is_known = arguments and all(isinstance(value, int | float) and abs(value) < _MAX_KNOWN for value in arguments)
        if word in _KNOWN and is_known and len(arguments) == (1 if word == "neg" else 2):
            return _KNOWN[word](*arguments)
        return NotImplemented

    def _method(self, called: Method, arguments: list[Any], named: dict[str, Any], node: ast.expr, frame: _Frame) -> Any:
        owner = called.owner
        located = self._code.class_of(owner.thing.kind) if owner.thing.kind.startswith(NAMES) else None
        definition = None if located is None else located[1].methods.get(called.name)
        if located is None or definition is None:
            return self._op(f"prim.{called.name}", [("", value) for value in arguments], node, frame)
        modules = frame.modules
        if owner.path and (not modules or modules[-1].path != owner.path):
            modules = self._modules_of(owner, modules)
        return self._enter(located[0], definition, [owner, *arguments], named, modules)

    @staticmethod
    def _modules_of(owner: ModuleValue, modules: tuple[ModuleCall, ...]) -> tuple[ModuleCall, ...]:
        around = [call for call in modules if not call.path or owner.path.startswith(f"{call.path}.")]
        return (*around, ModuleCall(owner.path, class_name(owner.thing.kind)))

    def _function(self, name: str, arguments: list[Any], named: dict[str, Any], node: ast.expr, frame: _Frame) -> Any:
        if name.endswith(".__new__"):
            return ModuleValue(Thing(name.removesuffix(".__new__")), "")
        definition = self._code.function(name)
        if definition is not None:
            return self._enter(*definition, arguments, named, frame.modules)
        located = self._code.class_of(name)
        if located is not None:
            return tuple(arguments)  # a named tuple
        return self._op(f"prim.{class_name(name)}", [("", value) for value in arguments], node, frame)

    def _enter(
        self, file: ScriptFile, definition: ast.FunctionDef, arguments: list[Any], named: dict[str, Any], modules: tuple[ModuleCall, ...]
    ) -> Any:
        if self._depth >= MAX_CALLS:
            raise ResourceExhaustedError(f"Calls are nested more than {MAX_CALLS} deep at '{definition.name}' in '{file.name}'")
        parameters = [parameter.arg for parameter in definition.args.args]
        inner = _Frame(file, {}, modules)
        defaults = definition.args.defaults
        for name, default in zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True):
            inner.names[name] = self._value(default, inner)
        inner.names.update(zip(parameters, arguments, strict=False))
        inner.names.update({name: value for name, value in named.items() if name in parameters})
        target, self._target = self._target, ()
        self._depth += 1
        try:
            self._block(definition.body, inner)
        finally:
            self._depth -= 1
            self._target = target
        return inner.result

    # nodes

    def _op(self, op: str, arguments: list[tuple[str, Any]], node: ast.expr, frame: _Frame) -> Any:
        names = self._target or ("",)
        made = self._node(op, arguments, node, frame, len(names))
        if len(names) > 1:
            return tuple([Ref(self._building, made.name, index) for index in range(len(names))])
        return Ref(self._building, made.name)

    def _node(self, op: str, arguments: list[tuple[str, Any]], node: ast.AST, frame: _Frame, count: int) -> ForeignNode:
        names = self._target if len(self._target) == count else ("",) * count
        return self._building.add(op[:200], arguments, names, frame.modules, self._frames(node, frame))

    @staticmethod
    def _frames(node: ast.AST, frame: _Frame) -> tuple[SourceFrame, ...]:
        line = getattr(node, "lineno", 0)
        text = frame.file.lines[line - 1].strip() if 0 < line <= len(frame.file.lines) else ""
        return (SourceFrame(frame.file.name, line, text[:500]),)

    def _count(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise ResourceExhaustedError(f"The program has more than {MAX_STEPS:,} steps, the limit")

    @staticmethod
    def _unknown(node: ast.AST, frame: _Frame) -> InvalidArgumentError:
        line = getattr(node, "lineno", 0)
        return InvalidArgumentError(f"'{frame.file.name}' has code at line {line} that TorchScript does not write: {type(node).__name__}")
