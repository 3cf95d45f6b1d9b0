"""Expressions in `%graph model(x)`: each part is evaluated once until something in it has changed."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature
from types import ModuleType
from typing import Any, Final

from graphcore.errors import GraphError
from graphcore.frontends.frontend import Call, Source
from graphcore.frontends.sources import frontend_for
from graphcore.frontends.torch_call import imports_torch, uses_torch
from graphcore.frontends.torch_reader.objects import is_class
from graphcore.support.random_states import kept_random_states
from kernelext.call_state import Same, state_of

_OPERATIONS: Final = (ast.BinOp, ast.UnaryOp, ast.Compare)
"""Expressions that give no models."""
_ARITHMETIC: Final[dict[type, Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_MAX_TEXT: Final = 80
_PLAIN: Final = (bool, int, float, str, bytes, type(None))


class _ComputesError(Exception):
    """An expression does more than to look values up."""


class Part:
    """A part of an expression: the function of a call, or an argument.

    One that only looks values up, such as `batch["x"]` of a dict, has its value now. One that computes something, such as `make_batch()`, keeps
    its value until a name in it stands for something else. Whatever random numbers it draws, the generators of Python, NumPy and PyTorch are
    as before.

    Args:
        tree: the expression.
    """

    def __init__(self, tree: ast.expr) -> None:
        self._tree = tree
        self._code = compile(ast.fix_missing_locations(ast.Expression(tree)), "<%graph>", "eval")
        self._names = list(dict.fromkeys([node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]))
        self._kept: tuple[list[object], Any, Exception | None] | None = None

    def value(self, variables: Mapping[str, Any]) -> Any:
        """The value now.

        Raises:
            Exception: what evaluation raises; one that was raised before, as long as the names stand for the same.
        """
        try:
            return _looked_up(self._tree, variables)
        except _ComputesError:
            pass
        names = [_meaning(name, variables) for name in self._names]
        if self._kept is None or self._kept[0] != names:
            self._kept = names, *self._outcome(variables)
        _, value, error = self._kept
        if error is not None:
            raise error.with_traceback(None)
        return value

    def _outcome(self, variables: Mapping[str, Any]) -> tuple[Any, Exception | None]:
        with kept_random_states():
            try:
                return eval(self._code, dict(variables)), None  # noqa: S307 - the user has typed it, as in a cell
            except Exception as error:  # noqa: BLE001 - the user's code may raise anything
                return None, error


class _GivesTensors(Part):
    """Says of an expression that it gives tensors, from a trace of it: nothing is computed."""

    def _outcome(self, variables: Mapping[str, Any]) -> tuple[Any, Exception | None]:
        source = Source(value=Whole(self._tree, variables).call(gradients=False))
        frontend = frontend_for(source)
        if frontend is None:
            return False, None
        try:
            main = frontend.read(source).main
        except GraphError:
            return True, None  # it fails, which its picture says
        return bool(main.outputs) or any(node.error for node in main.nodes), None


class Whole:
    """An expression of the user as a function of the variables in it.

    Args:
        tree: the expression.
        variables: the variables of the user.

    Attributes:
        values: the variables in it that are neither modules nor classes.
        variables: the variables of the user.
    """

    __slots__ = ("__signature__", "_code", "_used", "values", "variables")
    __name__ = "expression"

    def __init__(self, tree: ast.expr, variables: Mapping[str, Any]) -> None:
        names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in variables]
        self._used = {name: variables[name] for name in dict.fromkeys(names)}
        self.values = {name: value for name, value in self._used.items() if not isinstance(value, ModuleType | type)}
        self.__signature__ = Signature([Parameter(name, Parameter.KEYWORD_ONLY) for name in self.values])
        self._code = compile(ast.Expression(tree), f"<%graph {ast.unparse(tree)[:_MAX_TEXT]}>", "eval")
        self.variables = variables

    def __call__(self, **values: Any) -> Any:
        """Evaluate it with other values of its variables."""
        return eval(self._code, {**self.variables, **values})  # noqa: S307 - the user has typed it, as in a cell

    def call(self, *, gradients: bool) -> Call:
        """Its evaluation, to be traced."""
        return Call(self, (), self.values, gradients=gradients)

    def state(self) -> tuple[object, ...]:
        """A key that changes with the variables in it."""
        return state_of(Call(None, (), self._used))


def key_of(call: Call) -> tuple[object, ...]:
    """A key that changes with all that a picture of a call depends on."""
    return call.function.state() if isinstance(call.function, Whole) else state_of(call)


class Expression:
    """An expression of the user: a call, or another one.

    Args:
        text: the expression.

    Raises:
        SyntaxError: it is none.
    """

    def __init__(self, text: str) -> None:
        tree = ast.parse(text.strip(), mode="eval").body
        self._tree = tree
        self._part = Part(tree)
        self._function: Part | None = None
        self._inner = [{node.id for node in ast.walk(call) if isinstance(node, ast.Name)} for call in _calls_in(tree)]
        self._owner: _GivesTensors | None = None
        self._made: _GivesTensors | None = None
        if isinstance(tree, ast.Call):
            self._function = Part(tree.func)
            self._args = [(Part(arg.value), True) if isinstance(arg, ast.Starred) else (Part(arg), False) for arg in tree.args]
            owner = tree.func.value if isinstance(tree.func, ast.Attribute) else tree.func
            if any(isinstance(node, ast.Call | ast.BinOp | ast.UnaryOp) for node in _outside_of_indexes(owner)):
                self._owner = _GivesTensors(owner)
            elif isinstance(owner, ast.Name) and hasattr(builtins, owner.id):
                self._owner = _GivesTensors(tree)  # such as sum(model(x) for model in models)
            self._kwargs = [(keyword.arg, Part(keyword.value)) for keyword in tree.keywords]
        elif not isinstance(tree, _OPERATIONS):
            self._owner = _GivesTensors(tree)
        self._result: tuple[Call, Any] | None = None

    def value(self, variables: Mapping[str, Any], *, gradients: bool = False) -> Any:
        """The value now; for a call the call itself, which has not been made.

        What an expression of operators and calls gives is computed by the whole of it, which is then what is called: `loss(x) + reg`,
        `model(x)[0]`. So it is where the arguments would call a module of PyTorch, as in `loss(model(x), y)`, and for a method of what a call
        gives, as in `torch.log(f(x)).mean()`.

        Args:
            variables: the variables of the user.
            gradients: True to trace the gradients, too: of the whole.

        Raises:
            Exception: what evaluation raises.
        """
        try:
            return _looked_up(self._tree, variables)
        except _ComputesError:
            pass
        whole = Whole(self._tree, variables)
        if self._is_whole(whole, variables, gradients=gradients):
            return whole.call(gradients=gradients)
        if self._function is None:
            return self._part.value(variables)
        function = self._function.value(variables)
        if self._owner is not None and hasattr(getattr(function, "__self__", None), "dtype"):
            return whole.call(gradients=gradients)  # a method of a tensor that the expression computes
        args: list[Any] = []
        for part, is_starred in self._args:
            value = part.value(variables)
            args += value if is_starred else [value]
        kwargs: dict[str, Any] = {}
        for name, part in self._kwargs:
            kwargs.update(part.value(variables) if name is None else {name: part.value(variables)})
        return Call(function, tuple(args), kwargs, gradients)

    def is_traced(self, call: Call, variables: Mapping[str, Any]) -> bool:
        """True for a call that a framework traces. One that only makes something with PyTorch, such as a model, is made."""
        if frontend_for(Source(value=call)) is None:
            return False
        if isinstance(call.function, Whole) or uses_torch(call) or not imports_torch(call):
            return True
        self._made = self._made or _GivesTensors(self._tree)
        return bool(self._made.value(variables))

    def _is_whole(self, whole: Whole, variables: Mapping[str, Any], *, gradients: bool) -> bool:
        """True iff the whole expression is what is called."""
        names = {name for name, value in whole.values.items() if is_class(value, "Module", "torch.nn")}
        if self._function is not None:
            if any(names & inner for inner in self._inner) or (gradients and uses_torch(whole.call(gradients=True))):
                return True
        elif self._owner is None:
            return True
        return self._owner is not None and bool(self._owner.value(variables))

    def result(self, call: Call) -> Any:
        """The result of a call, made once as long as its function and arguments are the same objects."""
        if isinstance(call.function, Whole):
            return self._part.value(call.function.variables)
        if self._result is None or not _is_same(self._result[0], call):
            self._result = call, call.function(*call.args, **call.kwargs)
        return self._result[1]


def _calls_in(tree: ast.expr) -> list[ast.Call]:
    """The calls within an expression, itself excluded."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node is not tree]


def _outside_of_indexes(tree: ast.expr) -> list[ast.AST]:
    """The parts of an expression, those within indexes excluded."""
    within = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Subscript) for part in ast.walk(node.slice)}
    return [node for node in ast.walk(tree) if id(node) not in within]


def _looked_up(tree: ast.expr, variables: Mapping[str, Any]) -> Any:
    """The value of names, attributes, and items of lists, tables and modules.

    Raises:
        _ComputesError: the expression does something else.
    """
    match tree:
        case ast.Constant():
            return tree.value
        case ast.Name():
            if tree.id not in variables and not hasattr(builtins, tree.id):
                raise NameError(f"name '{tree.id}' is not defined")
            return variables.get(tree.id, getattr(builtins, tree.id, None))
        case ast.Attribute():
            return getattr(_looked_up(tree.value, variables), tree.attr)
        case ast.Subscript():
            items: Any = _looked_up(tree.value, variables)
            if isinstance(items, list | tuple | dict) or "_modules" in getattr(items, "__dict__", ()) or _is_list_of_nnx(items):
                return items[_index(tree.slice, variables)]
        case ast.Tuple() | ast.List():
            values = [_looked_up(element, variables) for element in tree.elts]
            return tuple(values) if isinstance(tree, ast.Tuple) else values
    raise _ComputesError


def _index(tree: ast.expr, variables: Mapping[str, Any]) -> Any:
    """The value of an index, which may compute with whole numbers, as in `layers[len(layers) - 1]`.

    Raises:
        _ComputesError: it computes something else.
    """
    match tree:
        case ast.BinOp() if type(tree.op) in _ARITHMETIC:
            numbers = _index(tree.left, variables), _index(tree.right, variables)
            if all(type(number) is int for number in numbers):
                return _ARITHMETIC[type(tree.op)](*numbers)
        case ast.UnaryOp(op=ast.USub()):
            number = _index(tree.operand, variables)
            if type(number) is int:
                return -number
        case ast.Slice():
            return slice(*[None if part is None else _index(part, variables) for part in (tree.lower, tree.upper, tree.step)])
        case ast.Call(func=ast.Name(id="len"), args=[counted], keywords=[]) if "len" not in variables:
            items = _looked_up(counted, variables)
            if isinstance(items, list | tuple | dict) or _is_list_of_nnx(items):
                return len(items)
        case _:
            return _looked_up(tree, variables)
    raise _ComputesError


def _is_list_of_nnx(value: object) -> bool:
    """True for the lists and tables of Flax's NNX."""
    return type(value).__module__.startswith("flax.nnx") and isinstance(value, Sequence | Mapping)


def _meaning(name: str, variables: Mapping[str, Any]) -> object:
    """The meaning of a name: equal for the same object, and for equal plain values."""
    value = variables.get(name, getattr(builtins, name, Part))
    return (type(value), value) if isinstance(value, _PLAIN) else Same(value)


def _is_same(one: Call, other: Call) -> bool:
    if one.function is not other.function or len(one.args) != len(other.args) or list(one.kwargs) != list(other.kwargs):
        return False
    return all(
        first is second or (isinstance(first, _PLAIN) and type(first) is type(second) and first == second)
        for first, second in zip((*one.args, *one.kwargs.values()), (*other.args, *other.kwargs.values()), strict=True)
    )
