"""Arrays of byte strings: element-wise functions, and arrays of Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np


def strings(values: Iterable[bytes], shape: tuple[int, ...]) -> Any:
    """An array of strings of that shape from its elements in order."""
    flat = list(values)
    made = np.empty(len(flat), np.object_)
    made[:] = flat
    return made.reshape(shape)


def each_string(function: Callable[[Any], bytes]) -> Callable[[Any], Any]:
    """The function of each element, as a function from arrays to arrays of strings."""
    return lambda x: strings([function(value) for value in x.reshape(-1).tolist()], x.shape)


def one_string(x: Any) -> bytes:
    """The only element of an array of strings."""
    found: bytes = x.item()
    return found


def characters(value: bytes) -> list[bytes]:
    """The UTF-8 characters of a string: each begins at a byte that continues none."""
    starts = [at for at, byte in enumerate(value) if byte & 0xC0 != 0x80]
    return [value[start:end] for start, end in pairwise([*starts, len(value)])]
