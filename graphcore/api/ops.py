"""Every registered op as a function: `gc.ops.mat_mul(a, b)`, with the signature and the doc of its OpDef."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable
from typing import Any

from graphcore.definitions import AttrDef, OpDef
from graphcore.errors import InvalidArgumentError
from graphcore.graph import get_default_graph
from graphcore.registry import op_registry

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_cache: dict[str, Callable[..., Any]] = {}


def snake_case(name: str) -> str:
    """`MatMul` -> `mat_mul`, `AddN` -> `add_n`, `Conv2D` -> `conv2d`."""
    return re.sub(r"(\d)_d\b", r"\1d", _WORD_START.sub("_", name).lower())


def _names() -> dict[str, str]:
    return {snake_case(entry.op_def.name): entry.op_def.name for entry in op_registry if not entry.op_def.name.startswith("_")}


def __dir__() -> list[str]:
    return sorted(_names())


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_"):
        raise AttributeError(name)
    found = _cache.get(name)
    if found is None:
        op = _names().get(name)
        if op is None:
            raise AttributeError(f"No op is registered that would be called gc.ops.{name}; dir(gc.ops) lists them")
        found = _cache[name] = _wrapper(op_registry.look_up_op_def(op), name)
    return found


def _wrapper(op_def: OpDef, name: str) -> Callable[..., Any]:
    signature = _signature(op_def)
    arg_names = [arg.name for arg in op_def.input_arg]

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidArgumentError(f"gc.ops.{name}{signature}: {error}", op=op_def.name) from None
        values = dict(bound.arguments)
        node_name = values.pop("name", None)
        inputs = [values.pop(_safe(arg)) for arg in arg_names]
        attrs = {key.rstrip("_") if keyword.iskeyword(key.rstrip("_")) else key: value for key, value in values.items()}
        node = get_default_graph().apply_op(op_def.name, inputs, attrs, node_name)
        if not node.outputs:
            return node
        return node.outputs[0] if len(op_def.output_arg) == 1 and len(node.outputs) == 1 else list(node.outputs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = _doc(op_def)
    call.__signature__ = signature  # type: ignore[attr-defined]  # inspect and IPython read it
    return call


def _safe(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) else name


def _signature(op_def: OpDef) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    inferred = {item for arg in op_def.input_arg for item in (arg.type_attr, arg.number_attr, arg.type_list_attr) if item}
    attrs = [attr for attr in op_def.attr if attr.name not in inferred]
    required = [attr for attr in attrs if attr.default_value is None]
    optional = [attr for attr in attrs if attr.default_value is not None]
    parameters = [inspect.Parameter(_safe(arg.name), kind) for arg in op_def.input_arg]
    parameters += [inspect.Parameter(_safe(attr.name), kind) for attr in required]
    parameters += [inspect.Parameter(_safe(attr.name), kind, default=_default(attr)) for attr in optional]
    if all(parameter.name != "name" for parameter in parameters):
        parameters.append(inspect.Parameter("name", kind, default=None))
    return inspect.Signature(parameters)


def _default(attr: AttrDef) -> Any:
    value = attr.default_value
    return value.decode() if isinstance(value, bytes) else value


def _doc(op_def: OpDef) -> str:
    lines = [op_def.summary, ""]
    if op_def.description:
        lines += [op_def.description, ""]
    if op_def.input_arg or op_def.attr:
        lines.append("Args:")
    lines += [f"    {arg.name}: {_arg_type(arg)}. {arg.description}".rstrip() for arg in op_def.input_arg]
    inferred = {item for arg in op_def.input_arg for item in (arg.type_attr, arg.number_attr, arg.type_list_attr) if item}
    lines += [f"    {attr.name}: {attr.type}. {attr.description}".rstrip() for attr in op_def.attr if attr.name not in inferred]
    lines += ["    name: the node's name, made unique.", ""]
    if op_def.output_arg:
        lines.append("Returns:")
    lines += [f"    {arg.name}: {_arg_type(arg)}. {arg.description}".rstrip() for arg in op_def.output_arg]
    return "\n".join(lines).rstrip() + "\n"


def _arg_type(arg: Any) -> str:
    kind = arg.type.name if arg.type is not None else arg.type_attr or arg.type_list_attr
    return f"{arg.number_attr} * {kind}" if arg.number_attr else kind
