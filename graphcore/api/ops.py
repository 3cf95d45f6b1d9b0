"""Every registered op as a function, such as `gc.ops.mat_mul(a, b)`, with signature and doc."""

from __future__ import annotations

import difflib
import keyword
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NoReturn

from graphcore.attrs import attr_text
from graphcore.definitions import AttrDef, OpDef
from graphcore.dtypes import DType
from graphcore.errors import UnknownNameError
from graphcore.graph import Node, Tensor, apply_op, get_default_graph
from graphcore.graph.model.node import only_output
from graphcore.registry import op_registry
from graphcore.support.generated_code import compile_generated, function_with_parameters
from graphcore.text.describe_traits import describe_traits

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PACKAGE: Final = __name__.partition(".")[0]
_ALIKE: Final = 0.75
"""The least likeness of two names, from 0 to 1, for one to be a misspelling of the other."""
_WORDS: Final = frozenset({"call", "attrs", "finish", "apply", "default_graph", "op"})
"""The words of generated functions."""
_cache: dict[str, Callable[..., Any]] = {}


@lru_cache(None)
def snake_case(name: str) -> str:
    """`MatMul` -> `mat_mul`, `AddN` -> `add_n`, `Conv2D` -> `conv2d`."""
    return re.sub(r"(\d)_d(?=_|$)", r"\1d", _WORD_START.sub("_", name).lower())


def _names() -> dict[str, str]:
    return {snake_case(name).replace(">", "_"): name for name in op_registry.names() if not name.startswith("_")}


def __dir__() -> list[str]:
    return sorted(_names())


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_"):
        raise AttributeError(name)
    wrapper = _cache.get(name)
    if wrapper is None:
        op = _names().get(name)
        if op is None:
            raise UnknownNameError(f"No op is registered that would be called gc.ops.{name}{_advice(name, 'ops.')}; dir(gc.ops) lists them")
        wrapper = _cache[name] = _wrapper(op_registry.look_up_op_def(op), name)
    return wrapper


def raise_missing(name: str, names: Iterable[str] = ()) -> NoReturn:
    """Raise an error that suggests an op or a similar name for an attribute that the package lacks.

    Args:
        name: the attribute.
        names: names of the package besides those that are loaded.

    Raises:
        AttributeError: always.
    """
    text = f"module {_PACKAGE!r} has no attribute {name!r}"
    if name.startswith("_"):
        raise AttributeError(text, name=name, obj=sys.modules[_PACKAGE])
    raise UnknownNameError(text + _advice(name, "", names))


def _advice(name: str, prefix: Literal["", "ops."], more: Iterable[str] = ()) -> str:
    """Suggest the right place of an op, or else the most similar name."""
    ops = _names()
    op = name if name in ops else next((snake for snake, camel in ops.items() if camel == name), None)
    if op is not None:
        return f": the op {ops[op]} is called as gc.ops.{op}(...)"
    texts = {public_name: f"gc.{public_name}" for public_name in [*vars(sys.modules[_PACKAGE]), *more] if not public_name.startswith("_")}
    places = [texts, {op: f"gc.ops.{op}" for op in ops}]
    for place in reversed(places) if prefix else places:
        near = difflib.get_close_matches(name, place, 1, _ALIKE)
        if near:
            return f": did you mean {place[near[0]]}?"
    return ""


def _wrapper(op_def: OpDef, name: str) -> Callable[..., Any]:
    """A function with the op's own signature.

    Its text is generated, so that the wrapper adds no cost. It contains no names of the OpDef, which may be from a file.
    """
    inferred = _inferred(op_def)
    attrs = [attr for attr in op_def.attr if attr.name not in inferred]
    required = [attr for attr in attrs if attr.default_value is None]
    optional = [attr for attr in attrs if attr.default_value is not None]
    names = [arg.name for arg in op_def.input_arg] + [attr.name for attr in (*required, *optional)]
    parameters = _distinct(names)
    defaults = [*[_default(attr) for attr in optional], None]
    function = function_with_parameters(
        _generated(
            len(op_def.input_arg),
            len(required),
            len(optional),
            {
                "finish": only_output if _has_one_output(op_def) else _finish,
                "default_graph": get_default_graph,
                "apply": apply_op,
                "op": op_def.name,
                **{f"n{place}": own_name for place, own_name in enumerate(names)},
                **{f"d{place}": default for place, default in enumerate(defaults, len(names) - len(optional))},
            },
        ),
        _safe(name),
        parameters,
        defaults,
        f"{__file__}<{name}>",  # inside this package, so that the user's line is taken for the one that made a node
    )
    call: Any = function  # mypy knows no attributes of functions
    call.__module__ = __name__
    call.__doc__ = _doc(op_def)
    call.op_name = op_def.name
    call.getdoc = lambda: _help(op_def, name)  # IPython's `?` asks for this text
    return function


def _generated(inputs: int, required: int, optional: int, scope: dict[str, Any]) -> Any:
    """A function of parameters `p0`, `p1`, ... that makes a node: inputs, attrs without and with defaults, and the node's name."""
    count = inputs + required + optional
    places = [f"p{place}" for place in range(count + 1)]
    attrs = ", ".join([f"n{place}: p{place}" for place in range(inputs, inputs + required)])
    lines = [f"def call({', '.join(places)}):", f"    attrs = {{{attrs}}}" if required else "    attrs = None"]
    lines += [
        f"    if p{place} is not d{place}: attrs = {{**(attrs or {{}}), n{place}: p{place}}}" for place in range(inputs + required, count)
    ]
    lines.append(f"    return finish(apply(default_graph(), op, [{', '.join(places[:inputs])}], attrs, p{count}))")
    compile_generated("\n".join(lines), __file__, scope, _WORDS)
    return scope["call"]


def _help(op_def: OpDef, name: str) -> str:
    """The documentation of an op, formulas of its shapes, and an example."""
    from graphcore.api.op_help import help_sections  # noqa: PLC0415 - few programs ask for help

    return _doc(op_def, help_sections(op_def, name))


def _finish(node: Node) -> Node | list[Tensor]:
    return list(node.outputs) if node.outputs else node


def _has_one_output(op_def: OpDef) -> bool:
    return len(op_def.output_arg) == 1 and not (op_def.output_arg[0].number_attr or op_def.output_arg[0].type_list_attr)


def _inferred(op_def: OpDef) -> set[str]:
    """The attrs that are inferred from the inputs."""
    return {item for arg in op_def.input_arg for item in (arg.type_attr, arg.number_attr, arg.type_list_attr) if item}


def _safe(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) else name


def _distinct(names: Sequence[str]) -> list[str]:
    """The parameters for inputs and attrs, and that for the node's name."""
    parameters: list[str] = []
    for own_name in [*names, "node_name" if "name" in names else "name"]:
        name = _safe(own_name)
        while name in parameters:
            name += "_"
        parameters.append(name)
    return parameters


def _default(attr: AttrDef) -> Any:
    value = attr.default_value
    return attr_text(value) if isinstance(value, bytes) else value


def _doc(op_def: OpDef, sections: str = "") -> str:
    lines = [op_def.summary, ""]
    if op_def.description:
        lines += [op_def.description, ""]
    if sections:
        lines.append(sections)
    traits = describe_traits(op_registry.look_up(op_def.name))
    if traits:
        lines += [f"Traits: {traits}.", ""]
    if op_def.input_arg or op_def.attr:
        lines.append("Args:")
    lines += [f"    {arg.name}: {_arg_type(arg)}. {arg.description}".rstrip() for arg in op_def.input_arg]
    inferred = _inferred(op_def)
    attrs = [attr for attr in op_def.attr if attr.name not in inferred]
    lines += [f"    {attr.name}: {attr.type}{_one_of(attr)}. {attr.description}".rstrip() for attr in attrs]
    lines += ["    name: the node's name, made unique.", ""]
    types = [f"{attr.name} is{_one_of(attr).lstrip(',')}." for attr in op_def.attr if attr.name in inferred and attr.allowed_values]
    lines += [*types, ""] if types else []
    if op_def.output_arg:
        lines.append("Returns:")
    lines += [f"    {arg.name}: {_arg_type(arg)}. {arg.description}".rstrip() for arg in op_def.output_arg]
    return "\n".join(lines).rstrip() + "\n"


def _one_of(attr: AttrDef) -> str:
    """`, one of float, double`: the allowed values of an attr; "" if any value is allowed."""
    allowed = [value.text if isinstance(value, DType) else repr(value).lstrip("b") for value in attr.allowed_values or ()]
    return f", one of {', '.join(allowed)}" if allowed else ""


def _arg_type(arg: Any) -> str:
    kind = arg.type.name if arg.type is not None else arg.type_attr or arg.type_list_attr
    return f"{arg.number_attr} * {kind}" if arg.number_attr else kind
