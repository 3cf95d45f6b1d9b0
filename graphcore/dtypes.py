"""Data types: the numbers and names of TensorFlow's `types.proto`, with their NumPy counterparts."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError

_REF_OFFSET: Final = 100


class DType:
    """A data type. There is one object a type, so `is` compares.

    Attributes:
        text: as texts and pictures print it (`float`, `double`, `int32`, `float_ref`).
        number: the value in `types.proto` (reference types are 100 above their base).
        as_numpy: the NumPy dtype, None where there is none (resource, variant, quantised types have their storage type).
        is_ref, base, ref: the reference flag, the type without it, the type with it.
    """

    __slots__ = ("as_numpy", "base", "enum_name", "is_complex", "is_floating", "is_integer", "is_ref", "number", "ref", "size", "text")

    text: str
    number: int
    enum_name: str
    as_numpy: np.dtype | None
    is_ref: bool
    base: DType
    ref: DType
    is_floating: bool
    is_integer: bool
    is_complex: bool
    size: int

    def __init__(self, text: str, number: int, scalar: type | None) -> None:
        self.text = text
        self.number = number
        self.enum_name = "DT_" + text.upper()
        self.as_numpy = None if scalar is None else np.dtype(scalar)
        self.is_ref = number > _REF_OFFSET
        self.base = self
        self.ref = self
        self.is_floating = text in {"double", "half", "bfloat16"} or text.startswith("float")
        self.is_complex = text in {"complex64", "complex128"}
        self.is_integer = text.startswith(("int", "uint"))
        self.size = 0 if self.as_numpy is None else self.as_numpy.itemsize

    @property
    def name(self) -> str:
        """The name in Python, such as `float32` for the type that texts print as `float`.

        A reference to one is `float32_ref`.
        """
        return self.public_name + ("_ref" if self.is_ref else "")

    @property
    def public_name(self) -> str:
        """The name in the package, without the mark of references."""
        return _PYTHON_NAMES.get(self.base.text, self.base.text)

    @property
    def as_numpy_dtype(self) -> Any:
        """The type of its NumPy scalars, such as `np.float32` (TF1's name); None where there is none."""
        return None if self.as_numpy is None else self.as_numpy.type

    @property
    def base_dtype(self) -> DType:
        """The type without the reference (TF1's name)."""
        return self.base

    @property
    def real_dtype(self) -> DType:
        """The type of the real part."""
        return {"complex64": float32, "complex128": float64}.get(self.base.text, self.base)

    @property
    def is_bool(self) -> bool:
        """True for bool."""
        return self.base.text == "bool"

    @property
    def is_unsigned(self) -> bool:
        """True for unsigned integers."""
        return self.base.text.startswith("uint")

    @property
    def as_datatype_enum(self) -> int:
        """The value in `types.proto` (TF1's name)."""
        return self.number

    @property
    def min(self) -> Any:
        """The least value: a NumPy scalar."""
        return self._limits().min

    @property
    def max(self) -> Any:
        """The greatest value: a NumPy scalar."""
        return self._limits().max

    @property
    def limits(self) -> tuple[Any, Any]:
        """The least value that images of this type hold, and the greatest: 0 and 1 for floats (TF1's name)."""
        return (0, 1) if self.is_floating else (0, self.max)

    def _limits(self) -> Any:
        if self.is_floating:
            return ml_dtypes.finfo(self.as_numpy)  # type: ignore[no-untyped-call]  # its stub
        if self.is_integer:
            return ml_dtypes.iinfo(self.as_numpy)  # type: ignore[no-untyped-call]  # its stub
        raise InvalidArgumentError(f"{self.text} has no least and no greatest value")

    def is_compatible_with(self, other: object) -> bool:
        """True iff a tensor of type `other`, or a reference to it, serves where this type is required."""
        dtype = as_dtype(other)
        return dtype is self or dtype.base is self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is DType or other is None or isinstance(other, bytes):  # bytes are a string attr of a file, never a type
            return False
        try:
            return as_dtype(other) is self
        except InvalidArgumentError:
            return False

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"gc.{'bool_' if self is bool_ else _PYTHON_NAMES.get(self.text, self.text)}"

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[object, ...]:
        return dtype_from_wire, (self.number,)


_PYTHON_NAMES: Final = {"float": "float32", "double": "float64", "half": "float16"}
_TABLE: Final[list[tuple[str, int, type | None]]] = [
    ("float", 1, np.float32),
    ("double", 2, np.float64),
    ("int32", 3, np.int32),
    ("uint8", 4, np.uint8),
    ("int16", 5, np.int16),
    ("int8", 6, np.int8),
    ("string", 7, np.object_),
    ("complex64", 8, np.complex64),
    ("int64", 9, np.int64),
    ("bool", 10, np.bool_),
    ("qint8", 11, np.int8),
    ("quint8", 12, np.uint8),
    ("qint32", 13, np.int32),
    ("bfloat16", 14, ml_dtypes.bfloat16),
    ("qint16", 15, np.int16),
    ("quint16", 16, np.uint16),
    ("uint16", 17, np.uint16),
    ("complex128", 18, np.complex128),
    ("half", 19, np.float16),
    ("resource", 20, None),
    ("variant", 21, None),
    ("uint32", 22, np.uint32),
    ("uint64", 23, np.uint64),
    ("float8_e5m2", 24, ml_dtypes.float8_e5m2),
    ("float8_e4m3fn", 25, ml_dtypes.float8_e4m3fn),
    ("float8_e4m3fnuz", 26, ml_dtypes.float8_e4m3fnuz),
    ("float8_e4m3b11fnuz", 27, ml_dtypes.float8_e4m3b11fnuz),
    ("float8_e5m2fnuz", 28, ml_dtypes.float8_e5m2fnuz),
    ("int4", 29, ml_dtypes.int4),
    ("uint4", 30, ml_dtypes.uint4),
    ("int2", 31, ml_dtypes.int2),
    ("uint2", 32, ml_dtypes.uint2),
    ("float4_e2m1fn", 33, ml_dtypes.float4_e2m1fn),
]

_by_name: dict[str, DType] = {}
_by_number: dict[int, DType] = {}
for _name, _number, _scalar in _TABLE:
    _base = DType(_name, _number, _scalar)
    _ref = DType(_name + "_ref", _number + _REF_OFFSET, _scalar)
    _base.ref = _ref
    _ref.base = _base
    for _dtype in (_base, _ref):
        _by_name[_dtype.text] = _dtype
        _by_number[_dtype.number] = _dtype

float32: Final = _by_name["float"]
float64: Final = _by_name["double"]
float16: Final = _by_name["half"]
half: Final = float16
double: Final = float64
bfloat16: Final = _by_name["bfloat16"]
int8: Final = _by_name["int8"]
int16: Final = _by_name["int16"]
int32: Final = _by_name["int32"]
int64: Final = _by_name["int64"]
uint8: Final = _by_name["uint8"]
uint16: Final = _by_name["uint16"]
uint32: Final = _by_name["uint32"]
uint64: Final = _by_name["uint64"]
bool_: Final = _by_name["bool"]
string: Final = _by_name["string"]
complex64: Final = _by_name["complex64"]
complex128: Final = _by_name["complex128"]
qint8: Final = _by_name["qint8"]
quint8: Final = _by_name["quint8"]
qint16: Final = _by_name["qint16"]
quint16: Final = _by_name["quint16"]
qint32: Final = _by_name["qint32"]
resource: Final = _by_name["resource"]
variant: Final = _by_name["variant"]

INVALID: Final = DType("INVALID", 0, None)
"""The type number 0 of files. It is no type: look-ups by name or number never give it."""
# There are no references to references, nor to INVALID.
INVALID.ref = DType(f"unknown dtype enum ({_REF_OFFSET})", _REF_OFFSET, None)
_unknown: dict[int, DType] = {0: INVALID, _REF_OFFSET: INVALID.ref}

ALL_TYPES: Final[tuple[DType, ...]] = tuple(_by_name[name] for name, _, _ in _TABLE)

_aliases: dict[str, DType] = {
    "float32": float32,
    "float64": float64,
    "float16": float16,
    **{f"{dtype.name}_ref": dtype.ref for dtype in (float32, float64, float16)},
    "bool_": bool_,
    "str": string,
    "bytes": string,
}
_from_numpy: dict[np.dtype, DType] = {}
for _dtype in (
    float32,
    float64,
    float16,
    bfloat16,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    bool_,
    complex64,
    complex128,
    string,
):
    assert _dtype.as_numpy is not None
    _from_numpy[_dtype.as_numpy] = _dtype


def dtype_by_number(number: int) -> DType | None:
    """The type with this `types.proto` number, None if there is none."""
    return _by_number.get(number)


def dtype_from_wire(number: int) -> DType:
    """The type with a number read from a file. Unknown numbers get a type that no validation accepts."""
    dtype = _by_number.get(number) or _unknown.get(number)
    if dtype is None:
        dtype = _unknown[number] = DType(f"unknown dtype enum ({number})", number, None)
    return dtype


def is_valid_dtype(dtype: DType) -> bool:
    """False for `INVALID` and for numbers that stand for no type."""
    return dtype.number in _by_number


def dtype_by_name(name: str) -> DType | None:
    """The type that TensorFlow prints as `name` (`float`, `int32_ref`), None if there is none."""
    return _by_name.get(name)


def as_dtype(type_value: object) -> DType:
    """Convert a name, a number, a NumPy or a Python type to a DType.

    Names are `"float32"`, `"float"` or `"DT_FLOAT"`; a DType stays as it is.

    Raises:
        InvalidArgumentError: no type corresponds to the value.
    """
    value = type_value
    if type(value) is DType:
        return value
    if isinstance(value, str):
        name = value[3:].lower() if value.startswith("DT_") else value
        dtype = _by_name.get(name) or _aliases.get(name)
        if dtype is not None:
            return dtype
    elif type(value) is int:  # its number, as in TensorFlow
        dtype = _by_number.get(value)
        if dtype is not None:
            return dtype
    elif value is not None:
        dtype = _numpy_dtype(value)
        if dtype is not None:
            return dtype
    raise InvalidArgumentError(f"Not a data type: {brief(value)}; required a gc dtype, its name, or a NumPy dtype")


def _numpy_dtype(value: object) -> DType | None:
    try:
        dtype = np.dtype(value)  # type: ignore[call-overload]  # np.dtype raises errors for unsuitable values
    except Exception:  # noqa: BLE001 - of any kind: it evaluates texts, looks up attributes, and indexes what it is given
        return None
    if dtype.kind in "SU":
        return string
    return _from_numpy.get(dtype)
