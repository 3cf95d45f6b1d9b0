"""OpDefs between values and messages."""

from __future__ import annotations

from typing import Any, Final

from graphcore.attrs import AttrValue, NoValue
from graphcore.definitions.types import ArgDef, AttrDef, OpDef, OpDeprecation
from graphcore.definitions.wire.rest import rest_of
from graphcore.definitions.wire.values import read_attr_value, write_attr_value
from graphcore.dtypes import dtype_from_wire

_ARG_FIELDS: Final = frozenset({"name", "description", "type", "type_attr", "number_attr", "type_list_attr", "is_ref"})
_FLAGS: Final = ("is_commutative", "is_aggregate", "is_stateful", "allows_uninitialized_input", "is_distributed_communication")
_OP_FIELDS: Final = frozenset(
    {"name", "input_arg", "output_arg", "control_output", "attr", "summary", "description", "deprecation", *_FLAGS},
)


def read_op_def(message: Any, *, has_unknown: bool = False) -> OpDef:
    """The OpDef in an OpDef message.

    Raises:
        InvalidArgumentError: a shape in a default is none.
    """
    deprecation = message.deprecation
    return OpDef(
        name=message.name,
        input_arg=tuple([_read_arg(arg, has_unknown) for arg in message.input_arg]),
        output_arg=tuple([_read_arg(arg, has_unknown) for arg in message.output_arg]),
        control_output=tuple(message.control_output),
        attr=tuple([_read_attr_def(attr, has_unknown) for attr in message.attr]),
        summary=message.summary,
        description=message.description,
        deprecation=OpDeprecation(deprecation.version, deprecation.explanation) if message.HasField("deprecation") else None,
        other_fields=rest_of(message, _OP_FIELDS, has_unknown=has_unknown),
        **{flag: getattr(message, flag) for flag in _FLAGS},
    )


def _read_arg(message: Any, has_unknown: bool) -> ArgDef:
    return ArgDef(
        name=message.name,
        description=message.description,
        type=dtype_from_wire(message.type) if message.type else None,
        type_attr=message.type_attr,
        number_attr=message.number_attr,
        type_list_attr=message.type_list_attr,
        is_ref=message.is_ref,
        other_fields=rest_of(message, _ARG_FIELDS, has_unknown=has_unknown),
    )


def _read_attr_def(message: Any, has_unknown: bool) -> AttrDef:
    return AttrDef(
        name=message.name,
        type=message.type,
        default_value=read_attr_value(message.default_value, has_unknown) if message.HasField("default_value") else None,
        description=message.description,
        has_minimum=message.has_minimum,
        minimum=message.minimum,
        allowed_values=_as_list(read_attr_value(message.allowed_values, has_unknown)) if message.HasField("allowed_values") else None,
    )


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
