"""Validation of OpDefs from builders, files and function signatures."""

from __future__ import annotations

import re
from typing import Final

from graphcore.attrs import AttrValue
from graphcore.brief import brief
from graphcore.definitions.attr_spec import type_by_word
from graphcore.definitions.attr_value_util import check_attr_kind, validate_attr_value
from graphcore.definitions.node_names import is_valid_node_name
from graphcore.definitions.op_def_util import summarize_op_def
from graphcore.definitions.types import ArgDef, AttrDef, OpDef
from graphcore.errors import GraphError, InvalidArgumentError, UnimplementedError

_OP_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9_]*(?:>[A-Z][A-Za-z0-9_]*)*", re.ASCII)
_INTERNAL_OP_NAME: Final = re.compile(r"_[A-Za-z0-9_]*(?:>[A-Za-z0-9_]+)*", re.ASCII)
_ARG_NAME: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_ATTR_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_FUNCTION_ATTR_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_KINDS: Final = ("string", "int", "float", "bool", "type", "shape", "tensor", "func")


def validate_op_def(op_def: OpDef) -> None:
    """Check an OpDef for consistency: names, kinds, limits, defaults, and references of its args.

    Raises:
        InvalidArgumentError: it is inconsistent; the message ends in `; in OpDef: ` and the op's summary.
    """
    name_rule = _INTERNAL_OP_NAME if op_def.name.startswith("_") else _OP_NAME
    if name_rule.fullmatch(op_def.name) is None:
        raise _error(f"Invalid name: {op_def.name} (Did you use CamelCase?)", op_def)
    names: set[str] = set()
    for attr in op_def.attr:
        if attr.name in names:
            raise _error(f"Duplicate name: {attr.name}", op_def)
        names.add(attr.name)
        _check_attr(attr, op_def)
    for direction, args in (("input", op_def.input_arg), ("output", op_def.output_arg)):
        for arg in args:
            if arg.name in names:
                raise _error(f"Duplicate name: {arg.name}", op_def)
            names.add(arg.name)
            _check_arg(arg, f" for {direction} '{arg.name}'", op_def)


def validate_function_names(signature: OpDef) -> None:
    """Check the names of a function's arguments and attrs.

    Arguments may have any name of a node, as in TensorFlow.

    Raises:
        InvalidArgumentError: one has characters that no name has.
    """
    for arg in (*signature.input_arg, *signature.output_arg):
        if not is_valid_node_name(arg.name, allow_internal_ops=True):
            raise InvalidArgumentError(f"Invalid name of an argument of function '{signature.name}': {brief(arg.name)}", op=signature.name)
    for attr in signature.attr:
        if _FUNCTION_ATTR_NAME.fullmatch(attr.name) is None:
            raise InvalidArgumentError(f"Invalid name of an attr of function '{signature.name}': {brief(attr.name)}", op=signature.name)


def _error(text: str, op_def: OpDef) -> InvalidArgumentError:
    return InvalidArgumentError(f"{text}; in OpDef: {summarize_op_def(op_def)}", op=op_def.name)


def _check_attr(attr: AttrDef, op_def: OpDef) -> None:
    if _ATTR_NAME.fullmatch(attr.name) is None:
        raise _error(f"Invalid name of an attr: {brief(attr.name)}; required are letters, digits and '_', a letter first", op_def)
    if type_by_word(attr.name) is not None:
        raise _error(f"Attr can't have name {attr.name} that matches a data type", op_def)
    is_list = attr.type.startswith("list(")
    _check_kind(attr, is_list, op_def)
    if attr.has_minimum and attr.type != "int" and not is_list:
        raise _error(f"Attr '{attr.name}' has minimum for unsupported type {attr.type}", op_def)
    if attr.has_minimum and is_list and attr.minimum < 0:
        raise _error(f"Attr '{attr.name}' with list type must have a non-negative minimum, not {attr.minimum}", op_def)
    if not attr.has_minimum and attr.minimum != 0:
        raise _error(f"Attr '{attr.name}' with has_minimum = false but minimum {attr.minimum} not equal to default of 0", op_def)
    if attr.allowed_values is not None:
        _check_allowed_values(attr.allowed_values, attr, is_list, op_def)
    if attr.default_value is not None:
        try:
            validate_attr_value(attr.default_value, attr)
        except GraphError as error:
            raise type(error)(f"{error.message}\n\t in Op '{op_def.name}'", op=op_def.name, attr=attr.name) from None


def _check_kind(attr: AttrDef, is_list: bool, op_def: OpDef) -> None:
    rest = attr.type[5:] if is_list else attr.type
    kind = next((kind for kind in _KINDS if rest.startswith(kind)), None)
    if kind is None:
        raise _error(f"Unrecognized type '{rest}' in attr '{attr.name}'", op_def)
    rest = rest[len(kind) :]
    if is_list and not rest.startswith(")"):
        raise _error(f"'list(' is missing ')' in attr {attr.name}'s type {attr.type}", op_def)
    rest = rest[1:] if is_list else rest
    if rest:
        raise _error(f"Extra '{rest}' at the end of attr {attr.name}'s type {attr.type}", op_def)


def _check_allowed_values(allowed: tuple[AttrValue, ...], attr: AttrDef, is_list: bool, op_def: OpDef) -> None:
    try:
        check_attr_kind(allowed, attr.type if is_list else f"list({attr.type})")
    except InvalidArgumentError as error:
        text = f"{error.message}\n\t for attr '{attr.name}' in Op '{op_def.name}'"
        raise InvalidArgumentError(text, op=op_def.name, attr=attr.name) from None


def _check_arg(arg: ArgDef, where: str, op_def: OpDef) -> None:
    if _ARG_NAME.fullmatch(arg.name) is None:
        raise _error(
            f"Invalid name of an argument: {brief(arg.name)}; required are lower-case letters, digits and '_', a letter first", op_def
        )
    if arg.type is None and not arg.type_attr and not arg.type_list_attr:
        raise _error(f"Missing type{where}", op_def)
    if arg.number_attr:
        _check_number_attr(arg, where, op_def)
    elif (arg.type is not None) + bool(arg.type_attr) + bool(arg.type_list_attr) != 1:
        raise _error(f"Exactly one of type, type_attr, type_list_attr must be set{where}", op_def)
    if arg.type_attr:
        _require_kind(arg.type_attr, "type", f"used as type_attr{where}", where, op_def)
    elif arg.type_list_attr:
        _require_kind(arg.type_list_attr, "list(type)", f"used as type_list_attr{where}", where, op_def)
    elif arg.type is not None and arg.type.is_ref:
        raise _error(f"Illegal use of ref type '{arg.type.text}'. Use 'Ref(type)' instead{where}", op_def)


def _check_number_attr(arg: ArgDef, where: str, op_def: OpDef) -> None:
    attr = _require_kind(arg.number_attr, "int", f"used as length{where}", where, op_def)
    if not attr.has_minimum:
        raise _error(f"Attr '{attr.name}' used as length{where} must have minimum", op_def)
    if attr.minimum < 0:
        raise _error(f"Attr '{attr.name}' used as length{where} must have minimum >= 0", op_def)
    if arg.type_list_attr:
        raise _error(f"Can't have both number_attr and type_list_attr{where}", op_def)
    if (arg.type is not None) + bool(arg.type_attr) != 1:
        raise _error(f"Exactly one of type, type_attr must be set{where}", op_def)


def _require_kind(name: str, kind: str, use: str, where: str, op_def: OpDef) -> AttrDef:
    attr = op_def.find_attr(name)
    if attr is None:
        raise _error(f"No attr with name '{name}'{where}", op_def)
    if attr.type != kind:
        raise _error(f"Attr '{name}' {use} has type {attr.type}", op_def)
    return attr


def check_op_deprecation(op_def: OpDef, graph_def_version: int) -> None:
    """Check that the op is still available in graphs of GraphDef version `graph_def_version`.

    Raises:
        UnimplementedError: it was removed at that version or before.
    """
    removed = op_def.deprecation
    if removed is None or graph_def_version < removed.version:
        return
    raise UnimplementedError(
        f"Op {op_def.name} is not available in GraphDef version {graph_def_version}. "
        f"It has been removed in version {removed.version}. {removed.explanation}.",
        op=op_def.name,
    )
