"""Attr values as plain Python values, and the few kinds that Python has no type for.

| attr kind | Python value |
|---|---|
| int, float, bool | int, float, bool |
| string | bytes (a str given by a user becomes its UTF-8 bytes) |
| type | DType |
| shape | Shape |
| tensor | TensorValue |
| func | Func |
| list(...) | tuple of these |
| placeholder `$name` | Placeholder |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from graphcore.dtypes import DType, as_dtype, string
from graphcore.errors import InvalidArgumentError
from graphcore.shapes import Shape

Array = npt.NDArray[Any]


class Placeholder(msgspec.Struct, frozen=True, gc=False):
    """An attr of a function body that the instantiation fills in: `$name`."""

    name: str


class Func(msgspec.Struct, frozen=True):
    """A function or op name with attrs (the reference's NameAttrList)."""

    name: str
    attr: dict[str, AttrValue] = {}

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self.attr.items())))


class TensorValue:
    """A constant tensor: an immutable array with its dtype.

    Equal if dtype, shape and contents (bit for bit, so that NaN equals itself) are.
    """

    __slots__ = ("_hash", "array", "dtype")

    dtype: DType
    array: Array
    _hash: int | None

    def __init__(self, array: npt.ArrayLike, dtype: DType | None = None) -> None:
        self.dtype, self.array = _frozen_array(array, dtype)
        self._hash = None

    @property
    def shape(self) -> Shape:
        """The full shape."""
        return Shape(self.array.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorValue):
            return NotImplemented
        if self is other:
            return True
        if self.dtype is not other.dtype or self.array.shape != other.array.shape:
            return False
        return _content(self.array) == _content(other.array)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.dtype.number, self.array.shape, _content(self.array)))
        return self._hash

    def __repr__(self) -> str:
        return (
            f"TensorValue({self.dtype.name}, {self.shape}, {self.array.tolist()!r})"
            if self.array.size <= 8
            else (f"TensorValue({self.dtype.name}, {self.shape})")
        )


AttrValue = int | float | bool | bytes | DType | Shape | TensorValue | Func | Placeholder | tuple[Any, ...]
Attrs = Mapping[str, AttrValue]

_KINDS: Final[dict[type, str]] = {
    int: "int",
    float: "float",
    bool: "bool",
    bytes: "string",
    DType: "type",
    Shape: "shape",
    TensorValue: "tensor",
    Func: "func",
    Placeholder: "placeholder",
}


def attr_kind(value: AttrValue) -> str:
    """The kind of a value: `int`, ..., `list(int)`, `placeholder`; `list` for an empty list, whose kind is open."""
    if type(value) is tuple:
        return f"list({attr_kind(value[0])})" if value else "list"
    return _KINDS[type(value)]


def as_attr_value(value: object, kind: str | None = None) -> AttrValue:
    """Turn what a user may give (str, list, NumPy scalar, dtype name, array) into an attr value of `kind`.

    Without a kind the natural one is taken. No cast between kinds: an int is not accepted for a float.

    Raises:
        InvalidArgumentError: it is no attr value of that kind.
    """
    if kind is not None and kind.startswith("list(") and isinstance(value, list | tuple):
        return tuple(as_attr_value(item, kind[5:-1]) for item in value)
    if kind == "type" and not isinstance(value, bytes | int | float | Placeholder):
        return as_dtype(value)
    if kind == "shape" and (value is None or isinstance(value, list | tuple)):
        return Shape(value)
    if kind == "tensor" and not isinstance(value, TensorValue | Placeholder | DType | Func):
        return TensorValue(np.asarray(value))
    return _natural_value(value)


def _natural_value(value: object) -> AttrValue:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool | bytes | DType | Shape | TensorValue | Func | Placeholder):
        return value
    if isinstance(value, np.generic) and not isinstance(value, np.bytes_ | np.str_):
        value = value.item()
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return tuple(_natural_value(item) for item in value)
    if isinstance(value, np.ndarray):
        return TensorValue(value)
    raise InvalidArgumentError(f"Not an attr value: {value!r} of type {type(value).__name__}")


def _frozen_array(array: npt.ArrayLike, dtype: DType | None) -> tuple[DType, Array]:
    values: Array = np.asarray(array) if dtype is None or dtype is string else np.asarray(array, dtype=dtype.as_numpy)
    actual = as_dtype(values.dtype) if dtype is None else dtype
    if actual is string:
        values = _as_bytes(values)
    elif values is array or values.base is not None:
        values = values.copy()
    values.setflags(write=False)
    return actual, values


def _as_bytes(values: Array) -> Array:
    result = np.empty(values.shape, dtype=object)
    flat = result.reshape(-1)
    for i, item in enumerate(values.reshape(-1).tolist()):
        if not isinstance(item, str | bytes):
            raise InvalidArgumentError(f"A string tensor holds str or bytes, got {item!r}")
        flat[i] = item.encode() if isinstance(item, str) else item
    return result


def _content(array: Array) -> object:
    return tuple(array.reshape(-1).tolist()) if array.dtype == object else array.tobytes()
