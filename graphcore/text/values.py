"""The text form of attr values: TensorFlow's format, without truncation.

A float always shows that it is one (`1.0`). A shape of one dimension looks like a list of one int; the op's OpDef decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from graphcore.attrs import AttrValue, Func, NoValue, Placeholder, TensorValue
from graphcore.definitions.value_text import escape_utf8, format_float, summarize_shape, summarize_tensor
from graphcore.dtypes import INVALID, DType, dtype_by_name, string
from graphcore.shapes import Shape
from graphcore.text.scanner import name_text, quote

FUNC_NAME: Final = re.compile(r"[A-Za-z_][\w.\-/>]*", re.ASCII)
_PLAIN_ELEMENT: Final = re.compile(r"[^\s\[\](){}<>,\"'#]+")
NO_VALUE_TEXT: Final = "<Unknown AttrValue type>"
_WORDS: Final = frozenset({"true", "false", "inf", "nan"})


def attr_value_text(value: AttrValue) -> str:
    """Print a value of an attr: `float`, `{float, int32}`, `$T`, `Square[T=$T]`, `[1,?]`."""
    kind = type(value)
    if kind is DType:
        return value.text  # type: ignore[union-attr]  # mypy does not narrow on `kind`
    if isinstance(value, Func):
        return _func_text(value)
    if isinstance(value, tuple):
        if value and all(type(item) is DType for item in value):
            return "{" + ", ".join([item.text for item in value]) + "}"
        return "[" + ", ".join([_summary(item) for item in value]) + "]"
    return _simple_text(value)


def attrs_text(attrs: Mapping[str, AttrValue]) -> list[str]:
    """The entries `k=v`, sorted as text."""
    return sorted([f"{name_text(key)}={attr_value_text(value)}" for key, value in attrs.items()])


def float_text(value: float) -> str:
    """Print a float attr: the fewest digits that give the same float32, recognisable as a float."""
    text = format_float(value)
    return text + ".0" if text.lstrip("-").isdigit() else text


def reads_as_word(name: str) -> bool:
    """True iff a bare `name` among values is not read as a function."""
    return name in _WORDS or word_dtype(name) is not None


def word_dtype(word: str) -> DType | None:
    """The type of the name `float` or `DT_FLOAT`."""
    if word in {"INVALID", "DT_INVALID"}:
        return INVALID
    return dtype_by_name(word[3:].lower() if word.startswith("DT_") else word)


def tensor_text(tensor: TensorValue) -> str:
    """`Tensor<type: float shape: [2] values: 1 2>` with all values.

    Tensors that exceed 32 MB, or are malformed, are printed without values.
    """
    if tensor.dtype is not string:
        return summarize_tensor(tensor, max_entries=-1)
    texts = _string_texts(tensor)
    return f"Tensor<type: string shape: {tensor.shape} values: {_nested_text(texts, tensor.array.shape)}>"


def _simple_text(value: AttrValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, bytes):
        return quote(value)
    if isinstance(value, Placeholder):
        return "$" + name_text(value.name)
    if isinstance(value, Shape):
        return summarize_shape(value)
    if isinstance(value, NoValue):
        return NO_VALUE_TEXT
    assert isinstance(value, TensorValue)
    return tensor_text(value)


def _summary(value: Any) -> str:
    """Print an item of a list: types as `DT_FLOAT`, functions always with brackets."""
    if isinstance(value, DType):
        return value.enum_name
    if isinstance(value, Func):
        return _name(value.name) + "[" + ", ".join(sorted([f"{name_text(key)}={_summary(item)}" for key, item in value.attr.items()])) + "]"
    if isinstance(value, tuple):
        return "[" + ", ".join([_summary(item) for item in value]) + "]"
    return _simple_text(value)


def _func_text(func: Func) -> str:
    if func.attr:
        return f"{_name(func.name)}[{', '.join(attrs_text(func.attr))}]"
    bare = FUNC_NAME.fullmatch(func.name) is not None and not reads_as_word(func.name)
    return func.name if bare else _name(func.name) + "[]"


def _name(name: str) -> str:
    return name if FUNC_NAME.fullmatch(name) else quote(name.encode(errors="surrogatepass"))


def _nested_text(texts: list[str], shape: tuple[int, ...]) -> str:
    """Print elements with the inner dimensions in brackets: `[a b][c d]`."""
    for size in reversed(shape[1:]):
        texts = [f"[{' '.join(texts[start : start + size])}]" for start in range(0, len(texts), size)] if size else []
    return " ".join(texts).replace("] [", "][")


def _string_texts(tensor: TensorValue) -> list[str]:
    values: list[bytes] = tensor.array.reshape(-1).tolist()
    escaped = [escape_utf8(value) for value in values]
    return [text if _PLAIN_ELEMENT.fullmatch(text) else f'"{text}"' for text in escaped]
