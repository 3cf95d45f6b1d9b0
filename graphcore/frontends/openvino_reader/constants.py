"""Constants of OpenVINO models, whose elements lie in the .bin file of the same name."""

from __future__ import annotations

from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import WeightRef
from graphcore.frontends.weights_reader.tree import bytes_at, checked_sizes, elements_at
from graphcore.frontends.words import shaped
from graphcore.support.files import is_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphcore.attrs import Array

_WORDS: Final = {
    "boolean": "bool",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e8m0": "float8_e8m0fnu",
    "f4e2m1": "float4_e2m1fn",
}
_HALVES: Final = {"i4": True, "u4": False}
"""Types with two elements in a byte, the first in the lower half, and whether these are signed."""


class Elements:
    """The file with the elements of a model.

    Attributes:
        path: the file; None if it is not beside the model.
    """

    def __init__(self, model: Path) -> None:
        path = model.with_suffix(".bin")
        inside = path.resolve().is_relative_to(model.parent.resolve())
        self.path = path if inside and is_file(path) else None

    def weight(self, data: Mapping[str, str], what: str) -> WeightRef:
        """A constant, not yet read.

        Args:
            data: its attributes in the model.
            what: the constant, for errors.

        Raises:
            InvalidArgumentError: its attributes are damaged.
        """
        kind = data.get("element_type", "")
        shape = checked_sizes([_number(part, what) for part in data.get("shape", "").split(",") if part.strip()], what)
        start, size = _number(data.get("offset", "0"), what), _number(data.get("size", "0"), what)
        if start < 0 or size < 0:
            raise InvalidArgumentError(f"{what} has offset {start} and size {size}")
        dtype = word_of(kind)
        if self.path is None:
            return WeightRef(dtype, shape, size)
        if kind in _HALVES:
            load = partial(_halves, self.path, start, size, what, _HALVES[kind], shape)
        else:
            load = partial(elements_at, self.path, start, size, what, dtype, shape)
        return WeightRef(dtype, shape, size, load, f"{self.path.name}, from byte {start:,}")


def word_of(kind: str) -> str:
    """The word for a type: `f32` for `FP32`, our own where OpenVINO's is unusual."""
    word = kind.lower()
    return _WORDS.get(word, f"f{word[2:]}" if word.startswith("fp") else word)


def _number(text: str, what: str) -> int:
    try:
        return int(text) if len(text) < 30 else -1
    except ValueError:
        raise InvalidArgumentError(f"{what} has '{text}' where a number is required") from None


def _halves(path: Path, start: int, size: int, what: str, is_signed: bool, shape: tuple[int, ...]) -> Array:
    if size != (prod(shape) + 1) // 2:
        raise InvalidArgumentError(f"{what} of shape {list(shape)} has {size:,} bytes for elements of half a byte")
    packed = np.frombuffer(bytes_at(path, start, size, what), np.uint8)
    flat = np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)[: prod(shape)].astype(np.int8)
    halves = np.where(flat > 7, flat - 16, flat).astype(np.int8) if is_signed else flat.astype(np.uint8)
    return shaped(halves, shape, what)
