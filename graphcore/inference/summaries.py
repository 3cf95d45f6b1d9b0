"""TensorFlow's short form of a tensor value in error messages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from graphcore.attrs import Array

MAX_VALUES: Final = 256


def summarize_value(value: Array, max_values: int = MAX_VALUES) -> str:
    """The values, with inner rows in brackets: `1 2 3`, `[1 2][3 4]`; `...` after `max_values` values."""
    printed = [_one(item) for item in value.flat[:max_values].tolist()]
    text = _rows(value.shape, iter(printed)) if value.ndim else printed[0]
    return text + "..." if value.size > max_values else text


def _rows(shape: tuple[int, ...], printed: Iterator[str], depth: int = 0) -> str:
    if depth == len(shape) - 1:
        row = list(islice(printed, shape[-1]))
        return " ".join(row) + ("..." if depth and len(row) < shape[-1] else "")
    text = ""
    for _ in range(shape[depth]):
        inner = _rows(shape, printed, depth + 1)
        if inner.strip("[].") == "" and 0 not in shape:
            break  # no values left: the remaining rows are omitted with their brackets
        text += f"[{inner}]"
    return text


def _one(item: object) -> str:
    if isinstance(item, bool):
        return "1" if item else "0"
    if isinstance(item, bytes):
        return item.decode("utf-8", "backslashreplace")
    if isinstance(item, float):
        return f"{item:g}"
    return str(item)
