"""GGUF files: metadata by key, then tensors, most of them quantised by blocks."""

from __future__ import annotations

import mmap
import struct
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from graphcore.frontends.foreign import ForeignGraph, WeightRef
from graphcore.frontends.libraries import library
from graphcore.frontends.reading import mapped_bytes
from graphcore.frontends.weights_reader.tree import bytes_at, checked_sizes, file_label, tensor_tree
from graphcore.support.memory_limits import check_claim

if TYPE_CHECKING:
    from pathlib import Path

    from graphcore.attrs import Array
    from graphcore.frontends.frontend import Source

MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_NUMBERS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT: Final = 8
_LIST: Final = 9
_SHOWN: Final = 8
_MAX_RANK: Final = 8
_MAX_DEPTH: Final = 4
_PLAIN: Final = {0: "f32", 1: "f16", 24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "f64", 30: "bf16"}
"""Types of elements that are not in blocks."""


def read_gguf(source: Source) -> ForeignGraph:
    """Read the metadata and the list of tensors. No elements are read.

    Raises:
        GraphError: it is damaged, of an unknown version, or `gguf` is missing.
    """
    path = source.path
    assert path is not None  # files only are sniffed
    gguf = library("gguf", "frontends", "a GGUF file of weights")
    cursor = _Cursor(mapped_bytes(source), path.name)
    cursor.skip(len(MAGIC))
    version = cursor.number("I")
    if version not in _VERSIONS:
        raise UnimplementedError(f"'{path.name}' has version {version} of GGUF; versions {_VERSIONS} with the lowest byte first are read")
    tensors, pairs = cursor.number("Q"), cursor.number("Q")
    facts: dict[str, str] = {}
    alignment = 32
    for _ in range(pairs):
        key, kind = cursor.text(), cursor.number("I")
        value = cursor.value(kind, 0)
        facts[key] = value if isinstance(value, str) else str(value)
        if key == "general.alignment" and isinstance(value, int):
            alignment = value
    if alignment < 1:
        raise InvalidArgumentError(f"'{path.name}' is damaged: its alignment is {alignment}")
    entries = [_entry(cursor) for _ in range(tensors)]
    start = -(-cursor.place // alignment) * alignment
    weights = {}
    for name, shape, kind, offset in entries:
        if name in weights:
            raise InvalidArgumentError(f"'{path.name}' has two tensors '{name[:200]}'")
        weights[name] = _weight(gguf, path, f"tensor '{name[:200]}' of '{path.name}'", shape, kind, start + offset)
    facts = {"version": str(version), **facts}
    label = facts.get("general.name") or file_label(path)
    return tensor_tree("GGUF weights", "gguf", weights, facts, producer=facts.get("general.architecture", ""), name=label)


def _entry(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    """The name, shape, type and place of a tensor; the file gives the innermost size first."""
    name, rank = cursor.text(), cursor.number("I")
    if rank > _MAX_RANK:
        raise InvalidArgumentError(f"Tensor '{name[:200]}' has {rank:,} dimensions; GGUF has at most {_MAX_RANK}")
    sizes = [cursor.number("Q") for _ in range(rank)][::-1]
    return name, checked_sizes(sizes, f"Tensor '{name[:200]}'"), cursor.number("I"), cursor.number("Q")


def _weight(gguf: Any, path: Path, what: str, shape: tuple[int, ...], kind: int, start: int) -> WeightRef:
    try:
        quantised = gguf.GGMLQuantizationType(kind)
        block, width = gguf.GGML_QUANT_SIZES[quantised]
    except (ValueError, KeyError):
        return WeightRef(f"type {kind}", shape, -1, None, f"from byte {start:,}")
    size = prod(shape) * width // block
    if shape and shape[-1] % block:
        raise InvalidArgumentError(f"The rows of {what} have {shape[-1]:,} elements, no multiple of a block's {block}")
    load = partial(_load, gguf, path, what, shape, quantised, start, size)
    return WeightRef(_PLAIN.get(kind, quantised.name), shape, size, load, f"from byte {start:,}")


def _load(gguf: Any, path: Path, what: str, shape: tuple[int, ...], kind: Any, start: int, size: int) -> Array:
    """The elements, quantised ones as float32."""
    import numpy as np  # noqa: PLC0415 - loaded with the elements

    from graphcore.frontends.words import dtype_of, shaped  # noqa: PLC0415 - needed for elements only

    check_claim(prod(shape) * 8, what)
    data = bytes_at(path, start, size, what)
    word = _PLAIN.get(int(kind))
    plain = dtype_of(word).as_numpy if word else None
    if plain is not None:
        return shaped(np.frombuffer(data, plain), shape, what)
    rows = shape[:-1] if shape else ()
    try:
        packed = np.frombuffer(data, np.uint8).reshape(*rows, -1)
        array: Array = gguf.quants.dequantize(packed, kind).reshape(shape)
    except NotImplementedError as error:
        raise UnimplementedError(f"The elements of {what} cannot be read: {error}") from None
    except (ValueError, TypeError, IndexError) as error:
        raise InvalidArgumentError(f"The elements of {what} cannot be read: {error}") from None
    return array


class _Cursor:
    """A place in the bytes of a file."""

    def __init__(self, data: mmap.mmap | bytes, name: str) -> None:
        self._data = data
        self._name = name
        self.place = 0

    def skip(self, size: int) -> int:
        """Move on, and give the place before.

        Raises:
            InvalidArgumentError: the file ends before.
        """
        place = self.place
        if size > len(self._data) - place:
            raise InvalidArgumentError(f"'{self._name}' is damaged: required {size:,} bytes at {place:,} of {len(self._data):,}")
        self.place += size
        return place

    def number(self, code: str) -> Any:
        """A number, by the code that `struct` has for its type."""
        return struct.unpack_from(f"<{code}", self._data, self.skip(struct.calcsize(f"<{code}")))[0]

    def text(self) -> str:
        """A text after its length."""
        size = self.number("Q")
        start = self.skip(size)
        return self._data[start : start + min(size, 10_000)].decode(errors="replace")

    def value(self, kind: int, depth: int) -> Any:
        """A value of the metadata; the first items of a list, in words.

        Raises:
            InvalidArgumentError: its type is unknown.
            ResourceExhaustedError: lists are within each other too deeply.
        """
        if kind == _TEXT:
            return self.text()
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind != _LIST:
            raise InvalidArgumentError(f"'{self._name}' is damaged: a value has type {kind}")
        if depth > _MAX_DEPTH:
            raise ResourceExhaustedError(f"'{self._name}' has lists within each other, more than {_MAX_DEPTH} deep")
        inner, count = self.number("I"), self.number("Q")
        first = min(count, _SHOWN)
        shown = [self.value(inner, depth + 1) for _ in range(first)]
        if inner in _NUMBERS:
            self.skip((count - first) * struct.calcsize(f"<{_NUMBERS[inner]}"))
        else:
            for _ in range(count - first):
                self.skip(self.number("Q")) if inner == _TEXT else self.value(inner, depth + 1)
        words = ", ".join([str(item)[:40] for item in shown])
        return f"{count:,} values: {words}{', …' if count > first else ''}"
