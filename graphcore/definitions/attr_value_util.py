"""Checks attr values: against a kind, and against the limits that an op sets."""

from __future__ import annotations

from typing import Final

from graphcore.attrs import AttrValue, Func, NoValue, Placeholder, TensorValue
from graphcore.definitions.types import AttrDef
from graphcore.definitions.value_text import KIND_ORDER
from graphcore.dtypes import INVALID, DType, is_valid_dtype
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.shapes import Shape

KIND_NAMES: Final[dict[type, str]] = {
    bytes: "string",
    int: "int",
    float: "float",
    bool: "bool",
    DType: "type",
    Shape: "shape",
    TensorValue: "tensor",
    Func: "func",
}
KIND_TYPES: Final[dict[str, type]] = {name: kind for kind, name in KIND_NAMES.items()}
"""The Python type of each scalar kind."""


def check_attr_kind(value: AttrValue, kind: str) -> None:
    """Require `value` to be of `kind` (`int`, `list(type)`, ...); nothing at all counts as an empty list.

    Raises:
        InvalidArgumentError: it is of another kind, missing, a placeholder, or an illegal data type.
    """
    if type(value) is tuple:
        _check_list_kinds(value, kind)
    elif type(value) is Placeholder:
        raise InvalidArgumentError("AttrValue had value with unexpected type 'placeholder'")
    elif type(value) is not NoValue and KIND_NAMES[type(value)] != kind:
        raise InvalidArgumentError(f"AttrValue had value with type '{KIND_NAMES[type(value)]}' when '{kind}' expected")
    elif type(value) is NoValue and not kind.startswith("list("):
        raise InvalidArgumentError(f"AttrValue missing value with expected type '{kind}'")
    if kind == "type" and isinstance(value, DType):
        _check_dtype(value, "has")
    if kind == "list(type)" and isinstance(value, tuple):
        for dtype in value:
            _check_dtype(dtype, "contains")


def _check_list_kinds(value: tuple[AttrValue, ...], kind: str) -> None:
    kinds = {type(item) for item in value}
    for item_kind in KIND_ORDER:
        if item_kind in kinds and kind != f"list({KIND_NAMES[item_kind]})":
            raise InvalidArgumentError(f"AttrValue had value with type 'list({KIND_NAMES[item_kind]})' when '{kind}' expected")
    if not kind.startswith("list("):
        raise InvalidArgumentError(f"AttrValue missing value with expected type '{kind}'")
    if not kinds <= set(KIND_ORDER):
        raise InvalidArgumentError(f"AttrValue has a list of {', '.join(sorted(cls.__name__ for cls in kinds))} when '{kind}' expected")


def _check_dtype(dtype: DType, verb: str) -> None:
    if dtype is INVALID:
        raise InvalidArgumentError(f"AttrValue {verb} invalid DataType")
    if not is_valid_dtype(dtype):
        raise InvalidArgumentError(f"AttrValue has invalid DataType enum: {dtype.number}")
    if dtype.is_ref:
        raise InvalidArgumentError(f"AttrValue must not have reference type value of {dtype.text}")


def validate_attr_value(value: AttrValue, attr: AttrDef) -> None:
    """Require `value` to be of the attr's kind and within its limits.

    Raises:
        InvalidArgumentError: it is not.
    """
    try:
        check_attr_kind(value, attr.type)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{error.message}\n\t for attr '{attr.name}'", attr=attr.name) from None
    if attr.has_minimum:
        _check_minimum(value, attr)
    if attr.allowed_values is not None:
        _check_allowed(value, attr)


def _check_minimum(value: AttrValue, attr: AttrDef) -> None:
    if isinstance(value, int) and attr.type == "int":
        if value < attr.minimum:
            raise InvalidArgumentError(f"Value for attr '{attr.name}' of {value} must be at least minimum {attr.minimum}", attr=attr.name)
        return
    length = len(value) if isinstance(value, tuple) else 0
    if length < attr.minimum:
        raise InvalidArgumentError(f"Length for attr '{attr.name}' of {length} must be at least minimum {attr.minimum}", attr=attr.name)


def _check_allowed(value: AttrValue, attr: AttrDef) -> None:
    if attr.type not in {"type", "list(type)", "string", "list(string)"}:
        raise UnimplementedError(f"Support for allowed_values not implemented for type {attr.type}", attr=attr.name)
    assert attr.allowed_values is not None
    items = value if isinstance(value, tuple) else () if isinstance(value, NoValue) else (value,)
    for item in items:
        if item not in attr.allowed_values:
            allowed = ", ".join(_plain(allowed_value) for allowed_value in attr.allowed_values)
            raise InvalidArgumentError(
                f"Value for attr '{attr.name}' of {_plain(item)} is not in the list of allowed values: {allowed}", attr=attr.name
            )


def _plain(value: AttrValue) -> str:
    if isinstance(value, bytes):
        return f'"{value.decode(errors="replace")}"'
    return str(value)
