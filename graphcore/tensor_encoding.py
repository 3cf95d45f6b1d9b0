"""The encodings of a constant in a file: raw bytes, or values of which the last one repeats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphcore.dtypes import DType, is_valid_dtype
from graphcore.errors import InvalidArgumentError, ResourceExhaustedError

MAX_DECODED_BYTES: Final = 1 << 31
"""The most memory of a constant: a few bytes of a file must not claim all memory."""
_MAX_REPEATED_BYTES: Final = 1 << 40
"""One repeated value takes no memory, but nothing can be done with more than this either."""
_BIT_FIELDS: Final = {"half": np.uint16, "bfloat16": np.uint16}


class EncodedTensor:
    """A constant as encoded in a file; nothing is computed before `decode`.

    Attributes:
        dtype: its type.
        dims: its sizes (-1 unknown), None for unknown rank.
        content: the elements' bytes in row-major order, little endian; empty if `values` hold them.
        values: the first elements; the last one stands for all that follow. Half and bfloat16 are given by their bits, complex
            numbers as real and imaginary part in a row, the 8-bit floats as one bytes value.
        other_fields: further fields of the file (resource handles, variants, unknown fields), serialised, to be written back.
    """

    __slots__ = ("content", "dims", "dtype", "other_fields", "values")

    def __init__(
        self, dtype: DType, dims: tuple[int, ...] | None, content: bytes = b"", values: Sequence[Any] = (), other_fields: bytes = b""
    ) -> None:
        self.dtype = dtype
        self.dims = dims
        self.content = content
        self.values = values
        self.other_fields = other_fields

    def num_elements(self) -> int:
        """The number of elements, -1 if the shape is not fully known or the number exceeds int64."""
        if self.dims is None or any(size < 0 for size in self.dims):
            return -1
        count = math.prod(self.dims)
        return count if count < 2**63 else -1

    def num_bytes(self) -> int:
        """The bytes of the decoded tensor, -1 if unknown or beyond int64. Strings count 32 each."""
        count = self.num_elements()
        if count < 0:
            return -1
        size = 32 if self.dtype.text == "string" else self.dtype.size
        return count * size if count * size < 2**63 else -1

    def decode(self) -> npt.NDArray[Any]:
        """Decode to an array; a single repeated value is broadcast, not copied.

        Raises:
            InvalidArgumentError: type, shape and data do not fit together.
            ResourceExhaustedError: it would take more than `MAX_DECODED_BYTES`.
        """
        count = self.num_elements()
        if not is_valid_dtype(self.dtype) or self.dtype.as_numpy is None or self.dtype.is_ref:
            raise InvalidArgumentError(f"A constant cannot have type {self.dtype.text}")
        if count < 0 or self.dims is None:
            raise InvalidArgumentError(f"A constant needs a full shape within int64, got {_dims_text(self.dims)}")
        if count * self.dtype.as_numpy.itemsize > _MAX_REPEATED_BYTES:
            raise ResourceExhaustedError(f"A constant of shape {_dims_text(self.dims)} and type {self.dtype.text} is too large")
        if len(self.dims) > 64:
            raise InvalidArgumentError(f"A constant has at most 64 dimensions, got {len(self.dims)}")
        flat = self._flat(count)
        return np.broadcast_to(flat, self.dims) if flat.size == 1 and count != 1 else flat.reshape(self.dims)

    def _flat(self, count: int) -> npt.NDArray[Any]:
        """All elements in a row, or the single element that all are equal to."""
        dtype = self.dtype.as_numpy
        assert dtype is not None
        if self.content:
            return self._from_content(count)
        values = self._given()[:count]
        if values.size == 0:
            values = _default(dtype)
        if values.size in {1, count}:
            return values if count else values[:0]
        if count * dtype.itemsize > MAX_DECODED_BYTES:
            raise ResourceExhaustedError(
                f"A constant of shape {_dims_text(self.dims)} and type {self.dtype.text} would take {count * dtype.itemsize} bytes "
                f"from {values.size} given values; at most {MAX_DECODED_BYTES} are decoded"
            )
        result = np.empty(count, dtype)
        result[: values.size] = values
        result[values.size :] = values[-1]
        return result

    def _from_content(self, count: int) -> npt.NDArray[Any]:
        dtype = self.dtype.as_numpy
        assert dtype is not None
        if dtype.kind == "O":
            return _strings_of_content(self.content, count)
        if len(self.content) != count * dtype.itemsize:
            raise InvalidArgumentError(
                f"A constant of shape {_dims_text(self.dims)} and type {self.dtype.text} needs {count * dtype.itemsize} bytes of content, "
                f"got {len(self.content)}"
            )
        return np.frombuffer(self.content, dtype)

    def _given(self) -> npt.NDArray[Any]:
        dtype = self.dtype.as_numpy
        assert dtype is not None
        name = self.dtype.text
        if dtype.kind == "O":
            result = np.empty(len(self.values), object)
            result[:] = self.values
            return result
        if name in _BIT_FIELDS:
            return np.asarray(self.values, np.int64).astype(_BIT_FIELDS[name]).view(dtype)
        if name.startswith("float8"):
            return np.frombuffer(b"".join(self.values), dtype)
        if self.dtype.is_complex:
            parts = np.asarray(self.values, np.float32 if name == "complex64" else np.float64)
            return parts[: parts.size // 2 * 2].view(dtype)
        if dtype.kind in "iu":
            exact = np.asarray(self.values, np.uint64 if name == "uint64" else np.int64)
            return exact.astype(dtype)
        if dtype.kind == "f" or dtype == np.bool_:
            return np.asarray(self.values, dtype)
        return np.asarray(self.values, np.int64).astype(dtype)


def _default(dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if dtype.kind != "O":
        return np.zeros(1, dtype)
    result = np.empty(1, object)
    result[0] = b""
    return result


def _strings_of_content(content: bytes, count: int) -> npt.NDArray[Any]:
    """Decode `count` strings: their lengths as varints, then all the bytes."""
    if count > len(content):
        raise InvalidArgumentError(f"A constant of {count} strings has only {len(content)} bytes of content")
    position = 0
    lengths = []
    for _ in range(count):
        length, position = _varint(content, position)
        lengths.append(length)
    if sum(lengths) != len(content) - position:
        raise InvalidArgumentError(f"A constant's strings need {sum(lengths)} bytes, {len(content) - position} are there")
    result = np.empty(count, object)
    for i, length in enumerate(lengths):
        result[i] = content[position : position + length]
        position += length
    return result


def _varint(content: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if position >= len(content):
            raise InvalidArgumentError("A constant's string lengths are cut off")
        byte = content[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise InvalidArgumentError("A constant's string length is no 32-bit varint")


def _dims_text(dims: tuple[int, ...] | None) -> str:
    return (
        "?" if dims is None else "[" + ",".join("?" if size < 0 else str(size) for size in dims[:16]) + ("...]" if len(dims) > 16 else "]")
    )
