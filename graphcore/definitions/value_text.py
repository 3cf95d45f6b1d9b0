"""Prints attr values in TensorFlow's format, for summaries, error texts and the text form."""

from __future__ import annotations

import math
import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphcore.attrs import AttrValue, Func, NoValue, Placeholder, TensorValue
from graphcore.dtypes import DType, is_valid_dtype
from graphcore.errors import GraphError
from graphcore.shapes import Shape
from graphcore.support.fingerprint64 import fingerprint64

_LONG_STRING: Final = 80
_LONG_LIST: Final = 30
_LARGE_TENSOR: Final = 32 << 20
_ESCAPES: Final = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}
_ASCII_ESCAPED: Final = [_ESCAPES.get(code) or (chr(code) if 32 <= code < 127 else f"\\{code:03o}") for code in range(256)]
_FLOAT32: Final = struct.Struct("<f")


def format_float(value: float) -> str:
    """A float32 as text: six significant digits where they give the same float32 back, nine elsewhere."""
    return _shortest(value, 6, 9, exact=False)


def format_double(value: float) -> str:
    """A float64 as text: 15 significant digits where they give the same number back, 17 elsewhere."""
    return _shortest(value, 15, 17, exact=True)


def _shortest(value: float, few: int, many: int, *, exact: bool) -> str:
    if math.isnan(value):
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    if math.isinf(value):
        return "-inf" if value < 0 else "inf"
    text = f"{value:.{few}g}"
    again = float(text)
    same = again == value if exact else _as_float32(again) == value
    return text if same else f"{value:.{many}g}"


def _as_float32(value: float) -> float:
    try:
        rounded: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def escape_bytes(data: bytes) -> str:
    """C escapes for everything but printable ASCII."""
    return "".join(_ASCII_ESCAPED[byte] for byte in data)


def escape_utf8(data: bytes) -> str:
    """Escape as C does, but only ASCII; other characters are left unchanged."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return escape_bytes(data)
    return "".join(_ASCII_ESCAPED[ord(char)] if char < "\x80" else char for char in text)


def summarize_string(data: bytes) -> str:
    """In quotes, escaped; of 80 or more characters only the first and last ten."""
    escaped = escape_bytes(data)
    return f'"{escaped}"' if len(escaped) < _LONG_STRING else f'"{escaped[:10]}...{escaped[-10:]}"'


def summarize_shape(shape: Shape) -> str:
    """`[2,?]`, or `<unknown>` if the rank is."""
    return "<unknown>" if shape.dims is None else str(shape)


def summarize_func(func: Func) -> str:
    """`Name[k=v, ...]` with sorted attrs, `Name[]` without attrs."""
    entries = sorted(f"{name}={summarize_attr_value(value)}" for name, value in func.attr.items())
    return f"{func.name}[{', '.join(entries)}]"


def summarize_tensor(value: TensorValue, max_entries: int = 3) -> str:
    """`Tensor<type: float shape: [2] values: 1 2>`.

    Args:
        value: the tensor; if its shape is unknown or it takes more than 32 MB, only type and shape are printed.
        max_entries: the number of elements to print before `...`; -1 prints all.
    """
    size = value.num_bytes()
    if is_valid_dtype(value.dtype) and (size < 0 or size > _LARGE_TENSOR):
        return f"<TensorProto: {_declared(value)}>"
    try:
        array = value.array
    except GraphError:
        return f"<Invalid TensorProto: {_declared(value)}>"
    return f"Tensor<type: {value.dtype.text} shape: {value.shape} values: {summarize_elements(array, value.dtype, max_entries)}>"


def _declared(value: TensorValue) -> str:
    dims = value.encoded.dims if value.encoded is not None else value.array.shape
    if dims is None:
        return f"dtype: {value.dtype.enum_name} tensor_shape {{ unknown_rank: true }}"
    shape = " ".join(f"dim {{ size: {size} }}" for size in dims)
    return f"dtype: {value.dtype.enum_name}" + (f" tensor_shape {{ {shape} }}" if shape else "")


def summarize_elements(array: npt.NDArray[Any], dtype: DType, max_entries: int = 3) -> str:
    """The elements in row-major order, inner dimensions in brackets: `[1 2][3...]...`."""
    limit = array.size if max_entries < 0 else min(max_entries, array.size)
    items = (
        [_element(item, dtype) for item in array.reshape(-1)[:limit].tolist()]
        if dtype.text != "bfloat16"
        else [format_float(float(item)) for item in array.reshape(-1)[:limit].astype(np.float32)]
    )
    more = "..." if array.size > limit else ""
    if array.ndim <= 1:
        return " ".join(items) + more
    parts: list[str] = []
    _write_dimension(items, array.shape, 0, parts, 0)
    return "".join(parts) + more


def _element(item: Any, dtype: DType) -> str:
    if isinstance(item, bool):
        return "1" if item else "0"
    if isinstance(item, bytes):
        return escape_utf8(item)
    if isinstance(item, complex):
        number = format_float if dtype.text == "complex64" else format_double
        return f"({number(item.real)},{number(item.imag)})"
    if isinstance(item, float):
        return format_double(item) if dtype.text == "double" else format_float(item)
    return str(item)


def _write_dimension(items: list[str], shape: tuple[int, ...], axis: int, parts: list[str], done: int) -> int:
    """Write the remaining `items` of one index of the outer axes.

    Returns:
        The number of elements written in all.
    """
    if axis == len(shape) - 1:
        end = min(done + shape[axis], len(items))
        parts.append(" ".join(items[done:end]) + ("..." if end < done + shape[axis] else ""))
        return end
    for _ in range(shape[axis]):
        if done >= len(items):
            break
        parts.append("[")
        done = _write_dimension(items, shape, axis + 1, parts, done)
        parts.append("]")
    return done


def _summarize_bool(value: bool) -> str:
    return "true" if value else "false"


_PRINTERS: Final[dict[type, Any]] = {
    int: str,
    float: format_float,
    bool: _summarize_bool,
    bytes: summarize_string,
    DType: lambda value: value.enum_name if is_valid_dtype(value) or value.number == 0 else "",
    Shape: summarize_shape,
    TensorValue: summarize_tensor,
    Func: summarize_func,
    Placeholder: lambda value: f"${value.name}",
    NoValue: lambda _: "<Unknown AttrValue type>",
}
# A list of mixed kinds (possible in a file) prints the first kind in this order.
KIND_ORDER: Final = (bytes, int, float, bool, DType, Shape, TensorValue, Func)
"""The order in which TensorFlow looks at the kinds of a list."""


def summarize_attr_value(value: AttrValue) -> str:
    """The value as TensorFlow prints it: `3`, `"text"`, `DT_FLOAT`, `[1, 2]`, `f[T=DT_FLOAT]`, `$T`."""
    if type(value) is not tuple:
        text: str = _PRINTERS[type(value)](value)
        return text
    if not value:
        return "[]"
    kinds = {type(item) for item in value}
    kind = next(kind for kind in (*KIND_ORDER, *kinds) if kind in kinds)
    show = summarize_attr_value if kind is tuple else _PRINTERS[kind]  # lists of lists are in models of other frameworks only
    items = [show(item) for item in value if type(item) is kind]
    if len(items) < _LONG_LIST:
        return f"[{', '.join(items)}]"
    fingerprint = fingerprint64(",".join(items).encode())
    return f"[{', '.join([*items[:5], '...', *items[-5:]])}]{{attr_hash={fingerprint}}}"
