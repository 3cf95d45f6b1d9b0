"""Arrays of byte strings: element-wise functions, and arrays of Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array, Attrs

_EACH: Final = 48
"""The bytes of a string beside its content."""
_LARGEST_EXPANSION: Final = 3
"""The most bytes of UTF-8 that one byte becomes: by replacing a wrong one, or in the other case."""


def strings(values: Iterable[bytes], shape: tuple[int, ...]) -> Any:
    """An array of strings of that shape from its elements in order."""
    flat = list(values)
    array = np.empty(len(flat), np.object_)
    array[:] = flat
    return array.reshape(shape)


def each_string(function: Callable[[Any], bytes]) -> Callable[[Any], Any]:
    """The function of each element, as a function from arrays to arrays of strings."""
    return lambda x: strings([function(value) for value in x.reshape(-1).tolist()], x.shape)


def one_string(x: Any) -> bytes:
    """The only element of an array of strings."""
    value: bytes = x.item()
    return value


def characters(value: bytes) -> list[bytes]:
    """The UTF-8 characters of a string: each begins at a byte that continues none."""
    starts = [at for at, byte in enumerate(value) if byte & 0xC0 != 0x80]
    return [value[start:end] for start, end in pairwise([*starts, len(value)])]


def content_size(x: Array) -> int:
    """The bytes of the strings in an array; 0 for numbers."""
    return sum([len(value) for value in x.reshape(-1).tolist()]) if x.dtype == object else 0


def bytes_of_strings(count: int, content: int) -> int:
    """The memory of `count` strings of `content` bytes in all."""
    return count * _EACH + content


def bytes_of_parts(_attrs: Attrs, inputs: Sequence[Array]) -> int:
    """The trait `most_bytes` of an op whose strings are parts of those of its first input.

    The first input is broadcast against the others.
    """
    texts = inputs[0]
    count = max([texts.size, *[value.size * texts.size if value.ndim and texts.ndim else value.size for value in inputs[1:]]])
    longest = max([len(text) for text in texts.reshape(-1).tolist()], default=0)
    return bytes_of_strings(count, count * longest)


def bytes_of_letters(_attrs: Attrs, inputs: Sequence[Array]) -> int:
    """The trait `most_bytes` of an op that changes letters."""
    return bytes_of_strings(inputs[0].size, _LARGEST_EXPANSION * content_size(inputs[0]))
