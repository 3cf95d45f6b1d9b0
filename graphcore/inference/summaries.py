"""TensorFlow's short form of a tensor value in error messages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import numpy as np

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


def summarize_printed(value: Array, at_ends: int) -> str:
    """The values as the newer printing ops write them: `[[1 2 ... 8 9]` and so on, a line for each row.

    Args:
        value: the values.
        at_ends: the number of values to show at both ends of each dimension; -1 for all.
    """
    return _printed_rows(value, at_ends, 0, value.ndim)


def _printed_rows(value: Array, at_ends: int, depth: int, rank: int) -> str:
    if depth == rank:
        return _printed_item(value)
    count = value.shape[0]
    ends = count if at_ends < 0 else at_ends
    first, last = min(ends, count), max(ends, count - ends)
    parts = [_printed_rows(np.asarray(value[i]), at_ends, depth + 1, rank) for i in range(first)]
    parts += ["..."] * (count > 2 * ends) + [_printed_rows(np.asarray(value[i]), at_ends, depth + 1, rank) for i in range(last, count)]
    between = " " if depth == rank - 1 else "\n" * (rank - 1 - depth) + " " * (depth + 1)
    return f"[{between.join(parts)}]"


def _printed_item(value: Array) -> str:
    item = value.item()
    if isinstance(item, bytes):
        return f'"{_one(item)}"'
    if not isinstance(item, float):
        return _one(item)
    digits = 15 if value.dtype.itemsize == 8 else 6
    short = f"{item:.{digits}g}"
    return short if np.isnan(item) or value.dtype.type(short) == value else f"{item:.{digits + (2 if digits == 15 else 3)}g}"
