"""Lines of code that made the parameters of modules: the call, and the argument that gave a size."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from graphcore.source import SourceLocation

_CONTAINERS: Final = frozenset({"Sequential", "ModuleList", "ModuleDict"})
_ADDING: Final = frozenset({"add_module", "register_module", "register_buffer", "register_parameter"})
_FILLED: Final = frozenset({"zeros", "ones", "randn", "rand", "empty", "full"})
_OF_CONVOLUTION: Final = {"weight": ("out_channels", "in_channels"), "bias": ("out_channels",)}
_OF_NORM: Final = dict.fromkeys(("weight", "bias", "running_mean", "running_var"), ("num_features",))
_ARGUMENTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "Linear": {"weight": ("out_features", "in_features"), "bias": ("out_features",)},
    "Bilinear": {"weight": ("out_features", "in1_features", "in2_features"), "bias": ("out_features",)},
    "Embedding": {"weight": ("num_embeddings", "embedding_dim")},
    **{f"Conv{axes}d": _OF_CONVOLUTION for axes in (1, 2, 3)},
    **{f"ConvTranspose{axes}d": {"weight": ("in_channels", "out_channels"), "bias": ("out_channels",)} for axes in (1, 2, 3)},
    **{f"{kind}{axes}d": _OF_NORM for kind in ("BatchNorm", "InstanceNorm") for axes in (1, 2, 3)},
    **{kind: {"weight": ("normalized_shape",), "bias": ("normalized_shape",)} for kind in ("LayerNorm", "RMSNorm")},
    "GroupNorm": {"weight": ("num_channels",), "bias": ("num_channels",)},
    **{kind: {"weight_ih_l0": ("", "input_size"), "weight_hh_l0": ("", "hidden_size")} for kind in ("LSTM", "GRU", "RNN")},
    "Conv1D": {"weight": ("nx", "nf"), "bias": ("nf",)},
}
"""The arguments of modules of PyTorch that give the sizes of their tensors, by axes."""


@dataclass(frozen=True, slots=True)
class _Made:
    """A call that makes a module or a tensor, and its place."""

    call: ast.expr
    file: str

    @property
    def where(self) -> str:
        """The place: `model.py, line 12`."""
        return SourceLocation(file=self.file, line=self.call.lineno).where


class Constructors:
    """Finds the lines that made the parameters and buffers of modules.

    Args:
        roots: the modules by the names that their tensors begin with, "" for one without a name.
    """

    def __init__(self, roots: Mapping[str, Any]) -> None:
        self._roots = roots

    def words(self, path: str, axis: int, size: int) -> str:
        """The origin of an axis of a tensor in words, as far as it is known.

        They name the tensor, the call that made it, and the argument that gave the size.
        """
        plain = f"axis {axis} of {path}"
        try:
            return self._words(path, axis, size) or plain
        except (AttributeError, KeyError, TypeError, ValueError, IndexError, RecursionError):
            return plain  # the source is not what made the module

    def _words(self, path: str, axis: int, size: int) -> str:
        plain = f"axis {axis} of {path}"
        owner_path, _, name = path.rpartition(".")
        chain = self._chain(owner_path)
        if not chain:
            return plain
        owner = chain[-1][1]
        made = _of_module(chain) if _is_of_library(type(owner)) else None
        if made is None or not isinstance(made.call, ast.Call):
            own = (
                next(iter(_assigned(owner, name)), None)
                if not _is_of_library(type(owner)) and len(list(_assigned(owner, name))) == 1
                else None
            )
            if own is None:
                argument = _known_argument(owner, name, axis, size)
                return f"{plain}, {argument} of {type(owner).__name__}" if argument else plain
            return _said(plain, own, _of_filled(own.call, axis, size))
        return _said(plain, made, _argument_of(owner, made.call, name, axis, size))

    def _chain(self, path: str) -> list[tuple[str, Any]]:
        """The modules on the way to a path, with their names in the ones around them."""
        for name, root in self._roots.items():
            if not name or path == name or path.startswith(f"{name}."):
                rest = path[len(name) :].strip(".")
                chain = [(name, root)]
                for part in rest.split(".") if rest else []:
                    child = chain[-1][1]._modules.get(part)
                    if child is None:
                        break
                    chain.append((part, child))
                else:
                    return chain
        return []


def _said(plain: str, made: _Made, argument: ast.expr | None) -> str:
    call = ast.unparse(made.call)
    call = call if len(call) <= 100 else f"{call[:97]}..."
    if argument is None or isinstance(argument, ast.Constant):
        return f"{plain}, `{call}` at {made.where}"
    return f"{ast.unparse(argument)} at {made.where} ({plain}, `{call}`)"


def _of_module(chain: list[tuple[str, Any]]) -> _Made | None:
    """The call that made the last module of a chain, in the constructor of one around it."""
    if len(chain) < 2:
        return None
    (name, child), parent = chain[-1], chain[-2][1]
    if type(parent).__name__ in _CONTAINERS and _is_of_library(type(parent)):
        around = _of_module(chain[:-1])
        made = [] if around is None else [_Made(item, around.file) for item in _elements(around.call, name)]
        if not made and len(chain) > 2:
            made = list(_appended(chain[-3][1], chain[-2][0]))
    else:
        made = list(_assigned(parent, name))
    fitting = [one for one in made if isinstance(one.call, ast.Call) and _last_name(one.call.func) == type(child).__name__]
    return fitting[0] if len(fitting) == 1 else None


def _elements(call: ast.expr, name: str) -> Iterator[ast.expr]:
    """The expressions of an element of a container, by the call that made the container."""
    if not isinstance(call, ast.Call) or not call.args:
        return
    items: list[ast.expr] = list(call.args)
    if isinstance(items[0], ast.ListComp | ast.GeneratorExp):
        yield items[0].elt
        return
    if isinstance(items[0], ast.Starred) and isinstance(items[0].value, ast.ListComp):
        yield items[0].value.elt
        return
    first = (
        items[0].args[0] if isinstance(items[0], ast.Call) and _last_name(items[0].func) == "OrderedDict" and items[0].args else items[0]
    )
    if isinstance(first, ast.List | ast.Tuple):
        items = list(first.elts)
    if isinstance(first, ast.Dict):
        items = [value for key, value in zip(first.keys, first.values, strict=True) if isinstance(key, ast.Constant) and key.value == name]
        yield from items
        return
    named = [item.elts[1] for item in items if isinstance(item, ast.Tuple) and len(item.elts) == 2 and _is_constant(item.elts[0], name)]
    if named:
        yield from named
    elif name.isdecimal() and int(name) < len(items) and not any(isinstance(item, ast.Starred) for item in items[: int(name) + 1]):
        yield items[int(name)]


def _assigned(owner: Any, name: str) -> Iterator[_Made]:
    """The expressions that a constructor assigns to an attribute."""
    for file, function in _constructors(type(owner)):
        for statement in ast.walk(function):
            value = _value_for(statement, name)
            yield from [] if value is None else [_Made(choice, file) for choice in _choices(value)]


def _value_for(statement: ast.AST, name: str) -> ast.expr | None:
    """The expression that a statement or call assigns to an attribute, None if it does not."""
    if isinstance(statement, ast.Assign):
        return statement.value if any(_is_own(target, name) for target in statement.targets) else None
    if isinstance(statement, ast.AnnAssign):
        return statement.value if _is_own(statement.target, name) else None
    adds = isinstance(statement, ast.Call) and len(statement.args) > 1 and _last_name(statement.func) in _ADDING
    return statement.args[1] if adds and _is_constant(statement.args[0], name) else None  # type: ignore[attr-defined]  # a call


def _appended(owner: Any, name: str) -> Iterator[_Made]:
    """The expressions that a constructor appends to a list of modules."""
    for file, function in _constructors(type(owner)):
        for call in ast.walk(function):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "append"
                and _is_own(call.func.value, name)
            ):
                yield from [_Made(value, file) for value in call.args]


def _choices(value: ast.expr) -> list[ast.expr]:
    return [*_choices(value.body), *_choices(value.orelse)] if isinstance(value, ast.IfExp) else [value]


def _constructors(kind: type) -> Iterator[tuple[str, ast.AST]]:
    for base in kind.__mro__:
        code = getattr(base.__dict__.get("__init__"), "__code__", None)
        if code is not None and not _is_of_library(base):
            function = _functions(code.co_filename, tuple(linecache.getlines(code.co_filename))).get(code.co_firstlineno)
            if function is not None and function.name == "__init__":
                yield code.co_filename, function


@lru_cache(maxsize=64)
def _functions(file: str, lines: tuple[str, ...]) -> dict[int, ast.FunctionDef]:  # noqa: ARG001 - the file tells equal sources apart
    """The functions of a source by their first lines."""
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {min([node.lineno, *[decorator.lineno for decorator in node.decorator_list]]): node for node in functions}


def _argument_of(owner: Any, call: ast.Call, name: str, axis: int, size: int) -> ast.expr | None:
    """The argument of a call that gave an axis of a tensor, None if several may have."""
    bound = _bound(type(owner), call)
    parameter = _known_argument(owner, name, axis, size)
    if parameter:
        return bound.get(parameter)
    if type(owner).__name__ in _ARGUMENTS:
        return None
    fitting = [value for argument, value in bound.items() if _is_size(getattr(owner, argument, None), size)]
    return fitting[0] if len(fitting) == 1 else None


def _known_argument(owner: Any, name: str, axis: int, size: int) -> str:
    """The argument of a module of PyTorch that gives an axis of its tensor, "" if it is not known."""
    arguments = _ARGUMENTS.get(type(owner).__name__, {}).get(name, ())
    argument = arguments[axis] if axis < len(arguments) else ""
    if argument == "normalized_shape":
        return argument if tuple(owner.normalized_shape) == (size,) else ""
    return argument if argument and _is_size(getattr(owner, argument, size), size) else ""


def _bound(kind: type, call: ast.Call) -> dict[str, ast.expr]:
    """The arguments of a call by the names of the parameters."""
    names = list(inspect.signature(kind).parameters)
    bound: dict[str, ast.expr] = {}
    for name, value in zip(names, call.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        bound[name] = value
    return {**bound, **{keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}}


def _of_filled(value: ast.expr, axis: int, size: int) -> ast.expr | None:
    """The size of an axis in `nn.Parameter(torch.zeros(n, m))`."""
    while isinstance(value, ast.Call) and _last_name(value.func) in {"Parameter", "Buffer"} and value.args:
        value = value.args[0]
    while isinstance(value, ast.BinOp):  # torch.randn(n, m) * 0.02
        value = value.left
    if not isinstance(value, ast.Call) or _last_name(value.func) not in _FILLED or not value.args:
        return None
    sizes = value.args[0].elts if isinstance(value.args[0], ast.Tuple | ast.List) else value.args
    if axis >= len(sizes) or any(isinstance(item, ast.Starred) for item in sizes):
        return None
    expression = sizes[axis]
    return None if isinstance(expression, ast.Constant) and expression.value != size else expression


def _is_of_library(kind: type) -> bool:
    return str(kind.__module__).startswith("torch.nn.")


def _is_size(value: Any, size: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value == size


def _is_own(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == name and isinstance(target.value, ast.Name) and target.value.id == "self"


def _is_constant(value: ast.expr, wanted: str) -> bool:
    return isinstance(value, ast.Constant) and value.value == wanted


def _last_name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
