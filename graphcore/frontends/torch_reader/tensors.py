"""Tensors of PyTorch files: words of types, and elements from the bytes of storages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import WeightRef
from graphcore.frontends.words import dtype_of, shaped
from graphcore.shapes import MAX_RANK
from graphcore.support.memory_limits import check_claim

if TYPE_CHECKING:
    from graphcore.attrs import Array
    from graphcore.frontends.torch_reader.archive import Archive

_WORDS: Final = {
    **dict(
        enumerate(("", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128"))
    ),
    12: "bool",
    13: "bfloat16",
    **dict(enumerate(("uint16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"), 28)),
    34: "uint32",
    35: "uint64",
}
"""The types by their numbers in exported programs."""
STORAGES: Final = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8",
    "QInt8Storage": "qint8",
    "QUInt8Storage": "quint8",
    "QInt32Storage": "qint32",
}
"""The types by the classes of storages in pickles."""
_STORED: Final = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}
"""The types in which quantised elements are stored."""
MAX_BYTES: Final = 1 << 60


def dtype_word(number: object) -> str:
    """The word for the number of a type."""
    return _WORDS.get(number, f"type {number}") if isinstance(number, int) else ""


def item_type(word: str) -> np.dtype[Any] | None:
    """The type of a tensor's stored elements, None for one that NumPy lacks."""
    return dtype_of(_STORED.get(word, word)).as_numpy


def bytes_of(word: str, shape: Sequence[int]) -> int:
    """The bytes of a tensor, -1 if they are unknown."""
    kind = item_type(word)
    size = -1 if kind is None or any(size < 0 for size in shape) else prod(shape) * kind.itemsize
    return size if size < MAX_BYTES else -1


def stored_tensor(
    archive: Archive, member: str, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, where: str = ""
) -> WeightRef:
    """A tensor in a member of an archive, not yet read. It holds no elements where the member is missing."""
    if member not in archive or (archive.sizes[member] == 0 and bytes_of(dtype, shape) != 0):
        return WeightRef(dtype, shape, bytes_of(dtype, shape))
    part = partial(archive.part, member)
    load = partial(strided, part, dtype, shape, strides, offset, archive.is_big_endian)
    return WeightRef(dtype, shape, bytes_of(dtype, shape), load, where or f"{member} in {archive.path.name}")


def strided(
    part: Callable[[int, int], bytes],
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    is_big_endian: bool = False,
) -> Array:
    """The elements of a tensor in a storage.

    Args:
        part: gives some bytes of the storage, by offset and length.
        dtype: the type in PyTorch's words.
        shape, strides, offset: as in PyTorch, in elements.

    Raises:
        GraphError: the storage has fewer elements, or the tensor does not fit into memory.
    """
    kind = item_type(dtype)
    if kind is None:
        raise InvalidArgumentError(f"A tensor has type {dtype}, whose elements NumPy cannot hold")
    fits = len(shape) == len(strides) <= MAX_RANK and offset >= 0
    if not fits or any(size < 0 for size in shape) or any(stride < 0 for stride in strides):
        raise InvalidArgumentError(f"A tensor has shape {list(shape)[:9]}, strides {list(strides)[:9]} and offset {offset}; none fits")
    if 0 in shape:
        return shaped(np.zeros(0, kind), shape, "A tensor")
    check_claim(prod(shape) * kind.itemsize, f"a tensor of shape {list(shape)}")
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    data = part(offset * kind.itemsize, (last + 1) * kind.itemsize)
    flat = np.frombuffer(data, kind)
    if is_big_endian:
        flat = flat.byteswap()
    steps = [stride * kind.itemsize for stride in strides]
    return np.array(np.lib.stride_tricks.as_strided(flat, shape, steps))
