"""Turns the protobuf text of an attr's default into its value."""

from __future__ import annotations

import re
from ctypes import c_float
from typing import Any, Final

from graphcore import dtypes
from graphcore.attrs import NO_VALUE, AttrValue, Func, Placeholder, TensorValue
from graphcore.definitions.proto_text import Message, Value, Word, parse_values
from graphcore.dtypes import DType, dtype_by_name, dtype_from_wire
from graphcore.errors import InvalidArgumentError
from graphcore.shapes import Shape
from graphcore.tensor_encoding import EncodedTensor

_INTEGER: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]*|0[1-9][0-9]*)", re.ASCII)
_ENUM: Final = re.compile(r"-?[0-9]+", re.ASCII)
_LEADING_ZEROS: Final = re.compile(r"-*00")
MOST_DIGITS: Final = 100
"""Python converts no integer of thousands of digits; an int64 has 19."""
_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)


def parse_attr_value(kind: str, text: str) -> AttrValue:
    """Parse a value of kind `int`, `list(type)`, ... from protobuf's text form.

    Raises:
        InvalidArgumentError: the text is no such value.
    """
    is_list = kind.startswith("list(") and kind.endswith(")")
    item_kind = kind[5:-1] if is_list else kind
    if item_kind not in _CONVERTERS:
        raise InvalidArgumentError(f"Unrecognized type '{kind}'")
    values = [_CONVERTERS[item_kind](value) for value in parse_values(text, is_list=is_list)]
    return tuple(values) if is_list else values[0]


def _word(value: Value) -> str:
    if not isinstance(value, Word):
        raise InvalidArgumentError(f"Expected a number or a word, got {value!r}")
    return value


def _message(value: Value, *single: str) -> Message:
    """The fields of a message; those named in `single` may occur only once."""
    if not isinstance(value, list):
        raise InvalidArgumentError(f"Expected a message, got {value!r}")
    names = [name for name, _ in value]
    for name in single:
        if names.count(name) > 1:
            raise InvalidArgumentError(f"Field {name} occurs more than once")
    return value


def _string(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise InvalidArgumentError(f"Expected a quoted string, got {value!r}")
    return value


def _int(value: Value) -> int:
    text = _word(value)
    if _INTEGER.fullmatch(text) is None or len(text) > MOST_DIGITS or int(text) not in _INT64:
        raise InvalidArgumentError(f"Expected an int64, got {text}")
    return int(text)


def _double(value: Value) -> float:
    text = _word(value)
    if _LEADING_ZEROS.match(text) is not None:
        raise InvalidArgumentError(f"Expected a number, got {text}")
    try:
        return float.fromhex(text) if "x" in text.lower() else float(text)
    except (ValueError, OverflowError):
        raise InvalidArgumentError(f"Expected a number, got {text}") from None


def _float(value: Value) -> float:
    return c_float(_double(value)).value


def _bool(value: Value) -> bool:
    text = _word(value)
    if text not in {"true", "True", "1", "false", "False", "0"}:
        raise InvalidArgumentError(f"Expected true or false, got {text}")
    return text in {"true", "True", "1"}


def _type(value: Value) -> DType:
    text = _word(value)
    if _ENUM.fullmatch(text) is not None and len(text) <= MOST_DIGITS and int(text) in _INT32:
        return dtype_from_wire(int(text))
    dtype = dtype_by_name(text[3:].lower()) if text.startswith("DT_") and text == text.upper() else None
    if text == "DT_INVALID":
        return dtypes.INVALID
    if dtype is None:
        raise InvalidArgumentError(f"Expected a data type, got {text}")
    return dtype


def _dims(value: Value) -> tuple[int, ...] | None:
    sizes = []
    for name, item in _message(value, "unknown_rank"):
        if name == "unknown_rank" and _bool(item):
            return None
        if name == "dim":
            fields = dict(_message(item, "size", "name"))
            sizes.append(_int(fields.pop("size", Word("0"))))
            _string(fields.pop("name", b""))
            _require_no_other(fields)
        elif name != "unknown_rank":
            raise InvalidArgumentError(f"Unknown field {name} in a shape")
    return tuple(sizes)


def _shape(value: Value) -> Shape:
    return Shape(_dims(value))


def _func(value: Value) -> Func:
    name, attrs = "", {}
    for field, item in _message(value, "name"):
        if field == "name":
            name = _string(item).decode(errors="surrogateescape")
        elif field == "attr":
            entry = dict(_message(item, "key", "value"))
            attrs[_string(entry.pop("key", b"")).decode(errors="surrogateescape")] = _attr_value(entry.pop("value", []))
            _require_no_other(entry)
        else:
            raise InvalidArgumentError(f"Unknown field {field} in a func")
    return Func(name, attrs)


def _attr_value(value: Value) -> AttrValue:
    fields = _message(value)
    if not fields:
        return NO_VALUE
    if len(fields) > 1:
        raise InvalidArgumentError(f"An attr value has one field, got {len(fields)}")
    name, item = fields[0]
    if name == "list":
        return tuple(_field(field, element) for field, element in _message(item))
    if name == "placeholder":
        return Placeholder(_string(item).decode(errors="surrogateescape"))
    return _field(name, item)


def _field(name: str, item: Value) -> AttrValue:
    if name not in _FIELD_KINDS:
        raise InvalidArgumentError(f"Unknown field {name} in an attr value")
    value: AttrValue = _CONVERTERS[_FIELD_KINDS[name]](item)
    return value


def _require_no_other(fields: dict[str, Value]) -> None:
    if fields:
        raise InvalidArgumentError(f"Unknown field {next(iter(fields))}")


_VALUE_FIELDS: Final[dict[str, Any]] = {
    "half_val": _int,
    "float_val": _float,
    "double_val": _double,
    "int_val": _int,
    "string_val": _string,
    "scomplex_val": _float,
    "int64_val": _int,
    "bool_val": _bool,
    "dcomplex_val": _double,
    "uint32_val": _int,
    "uint64_val": _int,
    "float8_val": _string,
}


def _tensor(value: Value) -> TensorValue:
    dtype = dtypes.INVALID
    dims: tuple[int, ...] | None = ()
    content = b""
    values: list[Any] = []
    for name, item in _message(value, "dtype", "tensor_shape", "tensor_content", "version_number"):
        if name == "dtype":
            dtype = _type(item)
        elif name == "tensor_shape":
            dims = _dims(item)
        elif name == "tensor_content":
            content = _string(item)
        elif name in _VALUE_FIELDS:
            values.append(_VALUE_FIELDS[name](item))
        elif name != "version_number":
            raise InvalidArgumentError(f"Unknown field {name} in a tensor")
    return TensorValue.from_encoded(EncodedTensor(dtype, dims, content, values))


_FIELD_KINDS: Final = {
    "s": "string",
    "i": "int",
    "f": "float",
    "b": "bool",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}
_CONVERTERS: Final[dict[str, Any]] = {
    "string": _string,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "type": _type,
    "shape": _shape,
    "tensor": _tensor,
    "func": _func,
}
