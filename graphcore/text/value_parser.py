"""Reads attr values back from text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from ctypes import c_float
from typing import Any, Final

import numpy as np

from graphcore.attrs import NO_VALUE, AttrValue, Func, Placeholder, TensorValue
from graphcore.dtypes import DType, dtype_by_name, string
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.shapes import Shape
from graphcore.text.scanner import Scanner
from graphcore.text.values import FUNC_NAME, NO_VALUE_TEXT, word_dtype

_NUMBER: Final = re.compile(r"-?(?:\d+(?P<fraction>\.\d*)?|\.\d+)(?P<exponent>[eE][+-]?\d+)?(?![\w.])|-(?:inf|nan)\b", re.ASCII)
_TENSOR: Final = re.compile(r"Tensor<type:\s*(\w+)\s+shape:\s*(\[[\d,\s]*\])\s+values:", re.ASCII)
_PLAIN_VALUES: Final = re.compile(r"[^>]*")
_STRING_VALUE: Final = re.compile(r"[^\s\[\]\"<>]+")
_SHAPE_ITEM: Final = re.compile(r"\?|-?\d+")
_PURE_SHAPE: Final = re.compile(r"\[(?:\?|\d+)(?:,(?:\?|\d+))*\]", re.ASCII)
_CONSTANTS: Final[dict[str, bool | float]] = {"true": True, "false": False, "inf": math.inf, "nan": math.nan}
_MOST_DIGITS: Final = 400
_MOST_DEPTH: Final = 50
_A_VALUE: Final = 'an attr value (a type, number, true, false, "string", $name, {types}, [list], Tensor<...> or function)'


def parse_attr_text(text: str, kind: str | None = None) -> AttrValue:
    """Parse the whole `text` to a value of kind `kind` (`int`, `list(shape)`, ...), if given.

    Raises:
        InvalidArgumentError: it is not a value; the message has line and column.
    """
    scanner = Scanner(text)
    value = read_value(scanner)
    if not scanner.at_end():
        scanner.fail("the end of the value")
    return value if kind is None else as_kind(value, kind)


def read_value(scanner: Scanner, depth: int = 0) -> AttrValue:
    """Read one value."""
    start = scanner.skip()
    if depth > _MOST_DEPTH:
        scanner.fail(f"values nested at most {_MOST_DEPTH} deep")
    first = scanner.text[start : start + 1]
    reader = _READERS.get(first)
    if reader is not None:
        return reader(scanner, depth)
    number = scanner.match(_NUMBER)
    if number is not None:
        return _number(scanner, number, start)
    if scanner.text.startswith("Tensor<", start):
        return _tensor(scanner, start)
    word = scanner.match(FUNC_NAME)
    if word is None:
        scanner.fail(_A_VALUE)
    return _word(scanner, word.group(), depth)


def read_attrs(scanner: Scanner, close: str, depth: int = 0) -> dict[str, AttrValue]:
    """Read `k=v, ...` and the closing mark."""
    attrs: dict[str, AttrValue] = {}
    while not scanner.take(close):
        start = scanner.skip()
        key = scanner.name("an attr name")
        if key in attrs:
            scanner.fail(f"each attr once, but '{key}' comes again", start)
        scanner.expect("=")
        attrs[key] = read_value(scanner, depth + 1)
        if not scanner.take(",") and not scanner.sees(close):
            scanner.fail(f"',' or '{close}'")
    return attrs


def as_kind(value: AttrValue, kind: str) -> AttrValue:
    """Convert an ambiguous value (`[10]`, `[]`, `1`) to `kind`; return any other value unchanged."""
    if kind == "float" and type(value) is int:
        return c_float(value).value
    if kind == "shape" and isinstance(value, tuple):
        return _as_shape(value)
    if not kind.startswith("list("):
        return value
    if isinstance(value, Shape) and kind == "list(int)" and value.dims is not None and None not in value.dims:
        return value.dims
    if isinstance(value, Shape) and kind == "list(float)" and value.dims is not None and None not in value.dims:
        return tuple(c_float(size).value for size in value.dims if size is not None)
    if isinstance(value, tuple):
        return tuple([as_kind(item, kind[5:-1]) for item in value])
    return value


def _as_shape(value: tuple[Any, ...]) -> AttrValue:
    return Shape(value) if all(type(size) is int and size >= 0 for size in value) else value


def _number(scanner: Scanner, match: re.Match[str], start: int) -> int | float:
    text = match.group()
    if len(text) > _MOST_DIGITS:
        scanner.fail(f"a number of at most {_MOST_DIGITS} digits", start)
    if match["fraction"] is None and match["exponent"] is None and text.lstrip("-").isdigit():
        return int(text)
    return c_float(float(text)).value


def _placeholder(scanner: Scanner, _depth: int) -> Placeholder:
    scanner.expect("$")
    return Placeholder(scanner.name("the name of an attr after '$'"))


def _string_or_func(scanner: Scanner, depth: int) -> AttrValue:
    start = scanner.pos
    value = scanner.quoted("a closed string")
    if not scanner.text.startswith("[", scanner.pos):
        return value
    scanner.pos = start
    name = scanner.name("a function name")
    scanner.expect("[")
    return Func(name, read_attrs(scanner, "]", depth))


def _types(scanner: Scanner, _depth: int) -> AttrValue:
    scanner.expect("{")
    types: list[DType] = []
    while not scanner.take("}"):
        start = scanner.skip()
        word = scanner.match(FUNC_NAME)
        dtype = None if word is None else word_dtype(word.group())
        if dtype is None:
            scanner.fail("a data type", start)
        types.append(dtype)
        if not scanner.take(",") and not scanner.sees("}"):
            scanner.fail("',' or '}'")
    return tuple(types)


def _unknown(scanner: Scanner, _depth: int) -> AttrValue:
    if scanner.take(NO_VALUE_TEXT):
        return NO_VALUE
    if not scanner.take("?"):
        scanner.expect("<unknown>", _A_VALUE)
    return Shape(None)


def _list_or_shape(scanner: Scanner, depth: int) -> AttrValue:
    # As in TensorFlow, `[1,2]` is a shape and `[1, 2]` a list.
    pure = _PURE_SHAPE.match(scanner.text, scanner.pos)
    start = scanner.pos
    scanner.expect("[")
    if pure is not None and ("?" in pure.group() or "," in pure.group()):
        scanner.pos = pure.end()
        return _shape(scanner, pure.group(), start)
    items: list[Any] = []
    while not scanner.take("]"):
        items.append(None if scanner.text.startswith("?", scanner.skip()) else read_value(scanner, depth + 1))
        if items[-1] is None:
            scanner.pos += 1
        if not scanner.take(",") and not scanner.sees("]"):
            scanner.fail("',' or ']'")
    if None in items:
        return _shape(scanner, scanner.text[start : scanner.pos], start)
    if any(isinstance(item, Shape) for item in items):
        # In a list of shapes `[]` and `[3]` are shapes too.
        items = [_as_shape(item) if isinstance(item, tuple) else item for item in items]
    elif items and all(isinstance(item, tuple) for item in items):
        items = [_as_shape(item) for item in items]
    return tuple(items)


def _shape(scanner: Scanner, text: str, start: int) -> Shape:
    sizes = [size.strip() for size in text[1:-1].split(",")]
    if sizes and not sizes[-1]:
        sizes.pop()
    if any(not (size == "?" or (size.isdigit() and len(size) < 20)) for size in sizes):
        scanner.fail("a shape of numbers and '?'", start)
    try:
        return Shape([None if size == "?" else int(size) for size in sizes])
    except InvalidArgumentError as error:
        scanner.fail(f"a shape ({error.message})", start)


def _word(scanner: Scanner, word: str, depth: int) -> AttrValue:
    if scanner.text.startswith("[", scanner.pos):
        scanner.pos += 1
        return Func(word, read_attrs(scanner, "]", depth))
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    dtype = word_dtype(word)
    return Func(word) if dtype is None else dtype


def _tensor(scanner: Scanner, start: int) -> TensorValue:
    head = scanner.match(_TENSOR)
    dtype = None if head is None else dtype_by_name(head.group(1))
    if head is None or dtype is None or dtype.as_numpy is None:
        scanner.fail("Tensor<type: TYPE shape: [SIZES] values: VALUES>", start)
    shape = _shape(scanner, head.group(2), start) if head.group(2).strip("[] ") else Shape([])
    if not shape.is_fully_defined or shape.num_elements > len(scanner.text):
        scanner.fail("a full shape and as many values", start)
    values = _string_values(scanner) if dtype is string else _plain_values(scanner, dtype, start)
    if len(values) != shape.num_elements:
        scanner.fail(f"{shape.num_elements} values for shape {shape}, got {len(values)}", start)
    with np.errstate(over="ignore"):  # a value beyond the type's range is infinite, as for a float attr
        array = np.empty(len(values), dtype=object) if dtype is string else np.array(values, dtype=dtype.as_numpy)
    if dtype is string:
        array[:] = values
    return TensorValue(array.reshape(shape.as_list()), dtype)


def _string_values(scanner: Scanner) -> list[Any]:
    values: list[Any] = []
    while not scanner.take(">"):
        if scanner.take("[") or scanner.take("]"):
            continue
        if scanner.sees('"'):
            values.append(scanner.quoted("a closed string"))
            continue
        match = scanner.match(_STRING_VALUE)
        if match is None:
            scanner.fail("a string or '>'")
        values.append(scanner.unescape(match.group(), match.start()))
    return values


def _plain_values(scanner: Scanner, dtype: DType, start: int) -> list[Any]:
    match = scanner.match(_PLAIN_VALUES)
    texts = [] if match is None else match.group().replace("[", " ").replace("]", " ").split()
    scanner.expect(">")
    convert = _element_reader(dtype)
    try:
        with np.errstate(all="ignore"):
            return [convert(text) for text in texts]
    except (ValueError, OverflowError, GraphError):
        scanner.fail(f"values of type {dtype.text}", start)


def _element_reader(dtype: DType) -> Callable[[str], Any]:
    if dtype.is_complex:
        return _complex
    if dtype.is_floating:
        return float
    if dtype.text == "bool":
        return _boolean
    bits = int(dtype.text.lstrip("quint"))
    low, high = (0, 1 << bits) if "u" in dtype.text.partition("int")[0] else (-1 << bits - 1, 1 << bits - 1)
    return lambda text: _integer(text, low, high)


def _integer(text: str, low: int, high: int) -> int:
    number = int(text[:_MOST_DIGITS])
    if not low <= number < high:
        raise ValueError(text)
    return number


def _boolean(text: str) -> bool:
    if text not in {"0", "1", "true", "false"}:
        raise ValueError(text)
    return text in {"1", "true"}


def _complex(text: str) -> complex:
    if not (text.startswith("(") and text.endswith(")")):
        raise ValueError(text)
    real, imaginary = text[1:-1].split(",")
    return complex(float(real), float(imaginary))


_READERS: Final[dict[str, Callable[[Scanner, int], AttrValue]]] = {
    "$": _placeholder,
    '"': _string_or_func,
    "{": _types,
    "[": _list_or_shape,
    "<": _unknown,
    "?": _unknown,
}
