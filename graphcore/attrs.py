"""Attr values as plain Python values, and the few kinds that Python has no type for.

| attr kind | Python value |
|---|---|
| int, bool | int, bool |
| float | float, rounded to a float32 as everywhere in TensorFlow |
| string | bytes (a str given by a user becomes its UTF-8 bytes) |
| type | DType |
| shape | Shape |
| tensor | TensorValue |
| func | Func |
| list(...) | tuple of these |
| placeholder `$name` | Placeholder |
| nothing (files may hold that) | NO_VALUE |
"""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_float
from typing import Any, Final, cast

import msgspec
import numpy as np
import numpy.typing as npt

from graphcore.brief import brief
from graphcore.dtypes import DType, as_dtype, string
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.shapes import Shape
from graphcore.tensor_encoding import EncodedTensor

Array = npt.NDArray[Any]


class Placeholder(msgspec.Struct, frozen=True, gc=False):
    """An attr of a function body that the instantiation fills in: `$name`."""

    name: str


class NoValue(msgspec.Struct, frozen=True, gc=False):
    """The value of an attr with no field set, or with unknown fields only (`wire` keeps those)."""

    wire: bytes = b""


NO_VALUE: Final = NoValue()


class Func(msgspec.Struct, frozen=True):
    """A function or op name with attrs (TensorFlow's NameAttrList)."""

    name: str
    attr: dict[str, AttrValue] = {}

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self.attr.items())))


class TensorValue:
    """A constant tensor: an immutable array with its dtype.

    Equal if dtype, shape and contents (bit for bit, so that NaN equals itself) are. A value from a file is decoded on the first access to its array.
    """

    __slots__ = ("_array", "_hash", "dtype", "encoded")

    dtype: DType
    encoded: EncodedTensor | None
    _array: Array | None
    _hash: int | None

    def __init__(self, array: npt.ArrayLike, dtype: DType | None = None) -> None:
        self.dtype, self._array = _frozen_array(array, dtype)
        self.encoded = None
        self._hash = None

    @classmethod
    def from_encoded(cls, encoded: EncodedTensor) -> TensorValue:
        """A constant in its encoding in a file. It is checked and decoded on the first access to its array."""
        value = cls.__new__(cls)
        value.dtype = encoded.dtype
        value.encoded = encoded
        value._array = None
        value._hash = None
        return value

    @property
    def array(self) -> Array:
        """The values; they cannot be written to.

        Raises:
            InvalidArgumentError: the file's type, shape and data do not fit together.
            ResourceExhaustedError: the file claims more memory than a constant may take.
        """
        if self._array is None:
            assert self.encoded is not None
            values = self.encoded.decode()
            values.setflags(write=False)
            self._array = values
        return self._array

    @property
    def shape(self) -> Shape:
        """The shape; one from a file may be partly unknown."""
        if self._array is not None or self.encoded is None:
            return Shape(self.array.shape)
        return Shape(self.encoded.dims)

    def num_bytes(self) -> int:
        """The bytes its array takes; -1 if the declared shape is not fully known or too large to count."""
        if self._array is None and self.encoded is not None:
            return self.encoded.num_bytes()
        return self.array.size * (32 if self.dtype is string else self.dtype.size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorValue):
            return NotImplemented
        if self is other:
            return True
        return self.dtype is other.dtype and self._content() == other._content()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.dtype.number, self._content()))
        return self._hash

    def _content(self) -> tuple[object, ...]:
        """Shape and elements. A tensor too large to decode, or malformed, is compared in its encoded form."""
        if self.encoded is not None and not 0 <= self.encoded.num_bytes() <= _MAX_COMPARED_BYTES:
            return self._file_form()
        try:
            array = self.array
        except GraphError:
            return self._file_form()
        return array.shape, (tuple(array.reshape(-1).tolist()) if array.dtype == object else array.tobytes())

    def _file_form(self) -> tuple[object, ...]:
        assert self.encoded is not None
        return "encoded", self.encoded.dims, self.encoded.content, tuple(self.encoded.values), self.encoded.other_fields

    def __repr__(self) -> str:
        try:
            shape = self.shape
            elements = f", {self.array.tolist()!r}" if 0 <= self.num_bytes() <= _MAX_SHOWN_BYTES else ""
        except GraphError as error:
            return f"TensorValue({self.dtype.text}, {error.message})"
        return f"TensorValue({self.dtype.text}, {shape}{elements})"


AttrValue = int | float | bool | bytes | DType | Shape | TensorValue | Func | Placeholder | NoValue | tuple[Any, ...]
Attrs = Mapping[str, AttrValue]

_MAX_SHOWN_BYTES: Final = 256
_MAX_COMPARED_BYTES: Final = 1 << 25
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
    NoValue: "nothing",
}


def attr_kind(value: AttrValue) -> str:
    """The kind of a value: `int`, ..., `list(int)`, `placeholder`; an empty list is a `list`."""
    if type(value) is tuple:
        return f"list({attr_kind(value[0])})" if value else "list"
    return _KINDS[type(value)]


_PLAIN: Final = frozenset({bool, int, bytes, DType, Shape, TensorValue, Func, Placeholder, NoValue})


def as_attr_value(value: object, kind: str | None = None) -> AttrValue:
    """Convert user input (str, list, NumPy scalar, dtype name, array) to an attr value of `kind`.

    Without a kind, the natural one is chosen. Kinds are never cast: an int is not accepted for a float.

    Raises:
        InvalidArgumentError: the value has no form of that kind.
    """
    if kind is not None and kind.startswith("list(") and isinstance(value, list | tuple):
        return tuple(as_attr_value(item, kind[5:-1]) for item in value)
    if kind == "type" and not isinstance(value, bytes | int | float | list | tuple | Placeholder):
        return as_dtype(value)
    if kind == "shape" and (value is None or isinstance(value, list | tuple)):
        return Shape(value)
    if kind == "tensor" and not isinstance(value, TensorValue | Placeholder | DType | Func):
        return TensorValue(cast("npt.ArrayLike", value))
    return _natural_value(value)


def _natural_value(value: object) -> AttrValue:
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[return-value]  # _PLAIN lists exactly these types
    if kind is float:
        return c_float(value).value  # type: ignore[arg-type]  # a float, as just seen
    if isinstance(value, str):
        return utf8(value)
    if isinstance(value, np.generic) and not isinstance(value, np.bytes_):
        return _natural_value(value.item())
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else c_float(value).value
    if isinstance(value, list | tuple):
        return tuple(_natural_value(item) for item in value)
    if isinstance(value, np.ndarray):
        return TensorValue(value)
    raise InvalidArgumentError(f"Not an attr value: {brief(value)} of type {type(value).__name__}")


def _frozen_array(array: npt.ArrayLike, dtype: DType | None) -> tuple[DType, Array]:
    values: Array = np.asarray(array) if dtype is None or dtype is string else np.asarray(array, dtype=dtype.as_numpy)
    actual = as_dtype(values.dtype) if dtype is None else dtype
    if actual is string:
        values = _as_bytes(texts_in(array, values))
    elif values is array or values.base is not None:
        values = values.copy()
    values.setflags(write=False)
    return actual, values


def texts_in(value: object, array: Array) -> Array:
    """The array of a value of texts, as objects: NumPy's own texts lose null characters at their end."""
    is_lossy = array.dtype.kind in "SU" and not isinstance(value, np.ndarray | np.generic)
    return np.asarray(value, dtype=object) if is_lossy else array


def _as_bytes(values: Array) -> Array:
    result = np.empty(values.shape, dtype=object)
    flat = result.reshape(-1)
    for i, item in enumerate(values.reshape(-1).tolist()):
        if not isinstance(item, str | bytes):
            raise InvalidArgumentError(f"A string tensor holds str or bytes, got {brief(item)}")
        flat[i] = utf8(item) if isinstance(item, str) else item
    return result


def utf8(text: str) -> bytes:
    """Encode a text.

    Raises:
        InvalidArgumentError: UTF-8 cannot encode it.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"Required text that UTF-8 can encode, or bytes; got {brief(text)} with half a surrogate pair at {error.start}"
        ) from None


def attr_text(value: object) -> str:
    """The text of a string attr, "" for a value of another kind.

    A file may hold any bytes, which TensorFlow takes as they are. Those that are not UTF-8 are written as escapes.
    """
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else ""
