"""OpDefs between values and messages."""

from __future__ import annotations

import functools
from typing import Any, Final

from graphcore.attrs import AttrValue, NoValue
from graphcore.definitions.types import ArgDef, AttrDef, OpDef, OpDeprecation
from graphcore.definitions.wire.rest import has_unknown_fields, read_each, without
from graphcore.definitions.wire.values import read_attr_value, write_attr_value
from graphcore.dtypes import dtype_from_wire

_ARG_FIELDS: Final = frozenset({"name", "description", "type", "type_attr", "number_attr", "type_list_attr", "is_ref"})
_ATTR_FIELDS: Final = frozenset({"name", "type", "default_value", "description", "has_minimum", "minimum", "allowed_values"})
_ARGS: Final = ("input_arg", "output_arg")
_FLAGS: Final = ("is_commutative", "is_aggregate", "is_stateful", "allows_uninitialized_input", "is_distributed_communication")
_OP_FIELDS: Final = frozenset(
    {"name", "input_arg", "output_arg", "control_output", "attr", "summary", "description", "deprecation", *_FLAGS},
)


def read_op_def(message: Any, *, has_unknown: bool = False) -> OpDef:
    """The OpDef in an OpDef message.

    Raises:
        InvalidArgumentError: a shape in a default is invalid.
    """
    values, rest = _read_fields(message, _OP_FIELDS, has_unknown)
    values.setdefault("name", "")
    for name in _ARGS:
        if name in values:
            values[name] = tuple(read_each(values[name], functools.partial(_read_arg, has_unknown=has_unknown)))
    if "attr" in values:
        values["attr"] = tuple([_read_attr_def(attr, has_unknown) for attr in values["attr"]])
    if "control_output" in values:
        values["control_output"] = tuple(values["control_output"])
    if "deprecation" in values:
        deprecation = values["deprecation"]
        values["deprecation"] = OpDeprecation(deprecation.version, deprecation.explanation)
    return OpDef(**values, other_fields=rest)


def _read_fields(message: Any, readable: frozenset[str], has_unknown: bool) -> tuple[dict[str, Any], bytes]:
    """The fields that are set, and the rest of the message.

    Most fields of most messages are unset, so listing the set ones is faster than testing each.
    """
    values = {field.name: value for field, value in message.ListFields()}
    if values.keys() <= readable and not (has_unknown and has_unknown_fields(message)):
        return values, b""
    return {name: value for name, value in values.items() if name in readable}, without(message, readable)


def _read_arg(message: Any, has_unknown: bool) -> ArgDef:
    values, rest = _read_fields(message, _ARG_FIELDS, has_unknown)
    values.setdefault("name", "")
    if "type" in values:
        values["type"] = dtype_from_wire(values["type"])
    return ArgDef(**values, other_fields=rest)


def _read_attr_def(message: Any, has_unknown: bool) -> AttrDef:
    values, _ = _read_fields(message, _ATTR_FIELDS, has_unknown=False)
    values.setdefault("name", "")
    values.setdefault("type", "")
    if "default_value" in values:
        values["default_value"] = read_attr_value(values["default_value"], has_unknown)
    if "allowed_values" in values:
        values["allowed_values"] = _as_list(read_attr_value(values["allowed_values"], has_unknown))
    return AttrDef(**values)


def _as_list(value: AttrValue) -> tuple[AttrValue, ...]:
    if isinstance(value, tuple):
        return value
    return () if isinstance(value, NoValue) else (value,)


def write_op_def(op_def: OpDef, message: Any) -> None:
    """Set an OpDef message."""
    message.MergeFromString(op_def.other_fields)
    message.name = op_def.name
    for args, messages in ((op_def.input_arg, message.input_arg), (op_def.output_arg, message.output_arg)):
        for arg in args:
            _write_arg(arg, messages.add())
    message.control_output.extend(op_def.control_output)
    for attr in op_def.attr:
        _write_attr_def(attr, message.attr.add())
    message.summary = op_def.summary
    message.description = op_def.description
    if op_def.deprecation is not None:
        message.deprecation.SetInParent()
        message.deprecation.version = op_def.deprecation.version
        message.deprecation.explanation = op_def.deprecation.explanation
    for flag in _FLAGS:
        setattr(message, flag, getattr(op_def, flag))


def _write_arg(arg: ArgDef, message: Any) -> None:
    message.MergeFromString(arg.other_fields)
    if arg.type is not None:
        message.type = arg.type.number
    for field in ("name", "description", "type_attr", "number_attr", "type_list_attr", "is_ref"):
        setattr(message, field, getattr(arg, field))


def _write_attr_def(attr: AttrDef, message: Any) -> None:
    for field in ("name", "type", "description", "has_minimum", "minimum"):
        setattr(message, field, getattr(attr, field))
    if attr.default_value is not None:
        message.default_value.SetInParent()
        write_attr_value(attr.default_value, message.default_value)
    if attr.allowed_values is not None:
        message.allowed_values.SetInParent()
        write_attr_value(attr.allowed_values, message.allowed_values)
