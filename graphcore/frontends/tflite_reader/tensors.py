"""Tensors of TFLite models: types, shapes, quantisation, and elements, which are read on demand."""

from __future__ import annotations

import mmap
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import Port, WeightRef
from graphcore.frontends.tflite_reader.options import word_of
from graphcore.frontends.words import dtype_of, shaped
from graphcore.shapes import MAX_RANK

if TYPE_CHECKING:
    from graphcore.attrs import Array
    from graphcore.frontends.foreign import Size
    from graphcore.frontends.tflite_reader.budget import Budget

_FEW: Final = 4
_MAX_NAME: Final = 2000
_HALF_BYTES: Final = {"int4": True, "uint4": False}
"""Types with two elements in a byte, and whether these are signed."""


def text_of(data: bytes | None) -> str:
    """A text of the file, "" if it is left out."""
    return "" if data is None else data[:_MAX_NAME].decode(errors="replace")


class Buffers:
    """The bytes of constants.

    Args:
        model: the model.
        data: the bytes of the file.
        budget: limits what is read.
    """

    def __init__(self, model: Any, data: mmap.mmap | bytes, budget: Budget) -> None:
        self._data = data
        self._places: list[tuple[int, int]] = []
        for number in range(budget.take(model.BuffersLength())):
            buffer = model.Buffers(number)
            length, start = buffer.DataLength(), 0
            if length:
                start = buffer._tab.Vector(buffer._tab.Offset(4))
            elif buffer.Offset() > 1:
                start, length = buffer.Offset(), buffer.Size()
            self._places.append((start, length))

    def place(self, number: int) -> tuple[int, int]:
        """The first byte and the length of a buffer; 0 for an empty one.

        Raises:
            InvalidArgumentError: there is no such buffer, or it is not within the file.
        """
        if not 0 <= number < len(self._places):
            raise InvalidArgumentError(f"A tensor is in buffer {number}; there are {len(self._places)}")
        start, length = self._places[number]
        if start < 0 or start + length > len(self._data):
            raise InvalidArgumentError(f"Buffer {number} has bytes {start:,} to {start + length:,} of a file of {len(self._data):,}")
        return start, length

    def bytes_of(self, number: int) -> bytes:
        """The bytes of a buffer."""
        start, length = self.place(number)
        return self._data[start : start + length]


class FileTensor:
    """A tensor of a subgraph: its name, type, shape, quantisation and buffer."""

    def __init__(self, tensor: Any, buffers: Buffers, budget: Budget) -> None:
        self.name = text_of(tensor.Name())
        self.dtype = word_of("TensorType", tensor.Type()).lower()
        budget.take(len(self.name) // 16)
        shape = _sizes(tensor, "Shape", budget)
        signature = _sizes(tensor, "ShapeSignature", budget)
        _, self.length = buffers.place(tensor.Buffer())
        self.is_variable = bool(tensor.IsVariable())
        self.is_constant = self.length > 0
        has_shape = len(shape) > 0 or tensor.HasRank() or self.is_constant
        self.fixed = tuple(shape)
        self.shape: tuple[Size, ...] | None = None
        if has_shape:
            sizes = signature if len(signature) == len(shape) else shape
            self.shape = tuple([None if size < 0 else size for size in sizes])
        self.quantization = _quantization(tensor.Quantization(), budget)
        self.is_sparse = tensor.Sparsity() is not None
        self._buffer = tensor.Buffer()
        self._buffers = buffers

    def port(self, name: str = "") -> Port:
        """The tensor as a port."""
        return Port(name or self.name, self.dtype, self.shape, "sparse" if self.is_sparse else "", self.quantization)

    def weight(self) -> WeightRef:
        """The elements, not yet read."""
        has_elements = self.is_constant or 0 in self.fixed
        load = partial(self._load) if has_elements and not self.is_sparse else None
        start, _ = self._buffers.place(self._buffer)
        return WeightRef(self.dtype, self.fixed, self.length, load, f"buffer {self._buffer}, from byte {start}" if self.length else "")

    def _load(self) -> Array:
        data = self._buffers.bytes_of(self._buffer)
        if self.dtype == "string":
            return _strings(data, self.fixed, self.name)
        if self.dtype in _HALF_BYTES:
            return _fitted(_halves(np.frombuffer(data, np.uint8), _HALF_BYTES[self.dtype]), self.fixed, self.name)
        kind = dtype_of(self.dtype).as_numpy
        if kind is None:
            raise InvalidArgumentError(f"Tensor '{self.name}' has type {self.dtype}, whose elements NumPy cannot hold")
        if len(data) % kind.itemsize:
            raise InvalidArgumentError(f"Tensor '{self.name}' of type {self.dtype} has {len(data):,} bytes, no multiple of {kind.itemsize}")
        return _fitted(np.frombuffer(data, kind), self.fixed, self.name)


def _fitted(flat: Array, shape: tuple[int, ...], name: str) -> Array:
    count = 1
    for size in shape:
        count *= size
    extra = 1 if flat.size == count + 1 else 0  # half bytes come in pairs
    if any(size < 0 for size in shape) or len(shape) > MAX_RANK or flat.size - extra != count:
        raise InvalidArgumentError(f"Tensor '{name}' has shape {list(shape)[:9]} and {flat.size:,} elements")
    return shaped(flat[:count], shape, f"Tensor '{name}'")


def _halves(packed: Array, is_signed: bool) -> Array:
    flat = np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1).astype(np.int8)
    return np.where(flat > 7, flat - 16, flat).astype(np.int8) if is_signed else flat.astype(np.uint8)


def _strings(data: bytes, shape: tuple[int, ...], name: str) -> Array:
    """Strings: their number, the places where they begin and the last one ends, and their bytes."""
    words = np.frombuffer(data[: len(data) // 4 * 4], "<i4")
    count = int(words[0]) if words.size else 0
    if not 0 <= count <= words.size - 2:
        raise InvalidArgumentError(f"Tensor '{name}' claims {count:,} strings in {len(data):,} bytes")
    places = words[1 : count + 2].tolist()
    texts = [data[max(start, 0) : max(end, 0)] for start, end in pairwise(places)]
    if sum(map(len, texts)) > len(data):
        raise InvalidArgumentError(f"Tensor '{name}' has strings that lie within each other")
    flat = np.empty(count, object)
    flat[:] = texts
    return _fitted(flat, shape, name)


def _sizes(tensor: Any, field: str, budget: Budget) -> list[int]:
    count = budget.take(getattr(tensor, f"{field}Length")())
    return getattr(tensor, f"{field}AsNumpy")().tolist() if count else []


def _quantization(table: Any, budget: Budget) -> str:
    """The scale and the zero point, or for how many channels there are some; "" if there are none."""
    if table is None or not table.ScaleLength():
        return ""
    scales, zeros = _numbers(table, "Scale", budget), _numbers(table, "ZeroPoint", budget)
    if len(scales) == 1:
        return f"scale {scales[0]:.6g}, zero point {zeros[0] if zeros else 0}"
    several = f"for each of {len(scales):,} channels of dimension {table.QuantizedDimension()}"
    some = ", ".join([f"{scale:.6g}" for scale in scales[:_FEW]])
    points = sorted(set(zeros))
    words = "zero point " + (str(points[0]) if len(points) == 1 else f"{points[0]} to {points[-1]}" if points else "0")
    return f"scale {several} ({some}{', …' if len(scales) > _FEW else ''}), {words}"


def _numbers(table: Any, field: str, budget: Budget) -> list[Any]:
    count = budget.take(getattr(table, f"{field}Length")())
    return getattr(table, f"{field}AsNumpy")().tolist() if count else []
