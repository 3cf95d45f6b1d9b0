"""Attr values between Python values and AttrValue messages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.unknown_fields import UnknownFieldSet

from graphcore.attrs import NO_VALUE, Attrs, AttrValue, Func, NoValue, Placeholder, TensorValue
from graphcore.brief import brief
from graphcore.definitions.wire.rest import read_each
from graphcore.definitions.wire.tensors import read_shape, read_tensor, write_shape, write_tensor
from graphcore.dtypes import DType, dtype_from_wire
from graphcore.errors import InvalidArgumentError
from graphcore.shapes import Shape

_INT64: Final = range(-(2**63), 2**63)
_MOST_NESTED_FUNCS: Final = 33
"""Readers of protobuf take messages nested a hundred deep, and a func in a func is three of them."""


def read_attr_value(message: Any, has_unknown: bool = False) -> AttrValue:
    """Read an AttrValue message.

    Args:
        message: the AttrValue.
        has_unknown: True if unknown fields may be present; they are kept.

    Raises:
        InvalidArgumentError: a shape in it is invalid.
    """
    field = message.WhichOneof("value")
    if field in _PLAIN:
        value: AttrValue = getattr(message, field)
        return value
    if field == "type":
        return dtype_from_wire(message.type)
    if field == "shape":
        return read_shape(message.shape)
    if field == "list":
        return _read_list(message.list, has_unknown)
    if field == "tensor":
        return read_tensor(message.tensor, has_unknown=has_unknown)
    if field == "func":
        return _read_func(message.func, has_unknown)
    if field == "placeholder":
        return Placeholder(message.placeholder)
    return NoValue(message.SerializeToString()) if has_unknown and len(UnknownFieldSet(message)) else NO_VALUE


_PLAIN: Final = frozenset({"i", "b", "s", "f"})


def _read_list(message: Any, has_unknown: bool) -> tuple[AttrValue, ...]:
    values: list[AttrValue] = []
    for field, items in message.ListFields():
        name = field.name
        if name == "type":
            values += map(dtype_from_wire, items)
        elif name == "shape":
            values += read_each(items, read_shape)
        elif name == "tensor":
            values += read_each(items, functools.partial(read_tensor, has_unknown=has_unknown))
        elif name == "func":
            values += read_each(items, functools.partial(_read_func, has_unknown=has_unknown))
        else:
            values += items
    return tuple(values)


def _read_func(message: Any, has_unknown: bool) -> Func:
    return Func(message.name, read_attrs(message.attr, has_unknown))


def read_attrs(attrs: Any, has_unknown: bool = False) -> dict[str, AttrValue]:
    """The attrs in a map of AttrValue messages, by name.

    Protobuf gives the entries of a map in another order in each process.
    """
    return {name: read_attr_value(attrs[name], has_unknown) for name in sorted(attrs)}


def write_attr_value(value: AttrValue, message: Any) -> None:
    """Set an AttrValue message.

    Raises:
        InvalidArgumentError: an int beyond int64, or a list of lists.
    """
    _WRITERS[type(value)](value, message)


def write_attrs(attrs: Attrs, messages: Any) -> None:
    """Fill a map of AttrValue messages."""
    for name, value in attrs.items():
        _WRITERS[type(value)](value, messages[name])


def _write_int(value: int, message: Any) -> None:
    if value not in _INT64:
        raise InvalidArgumentError(f"An int attr is an int64, got {value}")
    message.i = value


def _write_list(values: tuple[AttrValue, ...], message: Any) -> None:
    items = message.list
    items.SetInParent()
    for value in values:
        write = _LIST_WRITERS.get(type(value))
        if write is None:
            raise InvalidArgumentError(f"A list attr cannot hold {brief(value)}")
        write(value, items)


def _append_int(value: int, items: Any) -> None:
    if value not in _INT64:
        raise InvalidArgumentError(f"An int attr is an int64, got {value}")
    items.i.append(value)


def _require_readable(func: Func) -> None:
    """Check that a func's messages do not nest deeper than protobuf's readers allow.

    Raises:
        InvalidArgumentError: they do.
    """
    inner = [func]
    for _ in range(_MOST_NESTED_FUNCS):
        values = [value for function in inner for value in function.attr.values()]
        inner = [item for value in values for item in (value if isinstance(value, tuple) else (value,)) if isinstance(item, Func)]
        if not inner:
            return
    raise InvalidArgumentError(
        f"Func '{func.name}' has no place in a file: funcs may be nested {_MOST_NESTED_FUNCS} deep there, and its are deeper"
    )


def _write_func(value: Func, message: Any) -> None:
    _require_readable(value)
    message.SetInParent()
    message.name = value.name
    write_attrs(value.attr, message.attr)


def _setter(field: str) -> Callable[[Any, Any], None]:
    def write(value: Any, message: Any) -> None:
        setattr(message, field, value)

    return write


def _appender(field: str) -> Callable[[Any, Any], None]:
    def write(value: Any, items: Any) -> None:
        getattr(items, field).append(value)

    return write


def _write_type(value: DType, message: Any) -> None:
    message.type = value.number


def _write_placeholder(value: Placeholder, message: Any) -> None:
    message.placeholder = value.name


def _write_nothing(value: NoValue, message: Any) -> None:
    message.MergeFromString(value.wire)


_WRITERS: Final[Mapping[type, Callable[[Any, Any], None]]] = {
    int: _write_int,
    float: _setter("f"),
    bool: _setter("b"),
    bytes: _setter("s"),
    DType: _write_type,
    Shape: lambda value, message: write_shape(value, message.shape),
    TensorValue: lambda value, message: write_tensor(value, message.tensor),
    Func: lambda value, message: _write_func(value, message.func),
    Placeholder: _write_placeholder,
    NoValue: _write_nothing,
    tuple: _write_list,
}
_LIST_WRITERS: Final[Mapping[type, Callable[[Any, Any], None]]] = {
    int: _append_int,
    float: _appender("f"),
    bool: _appender("b"),
    bytes: _appender("s"),
    DType: lambda value, items: items.type.append(value.number),
    Shape: lambda value, items: write_shape(value, items.shape.add()),
    TensorValue: lambda value, items: write_tensor(value, items.tensor.add()),
    Func: lambda value, items: _write_func(value, items.func.add()),
}
