"""Tensors of CoreML models: within the model, or in the weight file of a package."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.coreml_reader.messages import Message, unpacked
from graphcore.frontends.foreign import Port, WeightRef
from graphcore.frontends.weights_reader.tree import bytes_at, elements_at
from graphcore.support.files import is_file

if TYPE_CHECKING:
    from pathlib import Path

    from graphcore.attrs import Array
    from graphcore.frontends.foreign import Size

_TYPES: Final = {
    1: "bool",
    2: "string",
    10: "float16",
    11: "float32",
    12: "float64",
    13: "bfloat16",
    21: "int8",
    22: "int16",
    23: "int32",
    24: "int64",
    25: "int4",
    31: "uint8",
    32: "uint16",
    33: "uint32",
    34: "uint64",
    35: "uint4",
    36: "uint2",
    37: "uint1",
    38: "uint6",
    39: "uint3",
    40: "float8_e4m3fn",
    41: "float8_e5m2",
}
_FEW: Final = 8
_MARK: Final = 0xDEADBEEF
_HEAD: Final = 24
_FIRST: Final = "@model_path/"
_MAX_SIZE: Final = 2**63


def port_of(name: str, data: bytes) -> Port:
    """A port by the type of a value."""
    tensor = Message(data).message(1)
    if tensor is None:
        kind = Message(data)
        word = next((word for field, word in ((2, "list"), (3, "tuple"), (4, "dictionary"), (5, "state")) if field in kind.fields), "")
        return Port(name, word)
    return Port(name, _TYPES.get(tensor.number(1), ""), _shape(tensor))


def _shape(tensor: Message) -> tuple[Size, ...] | None:
    if tensor.number(2) >> 63:  # a rank of -1 is unknown
        return None
    sizes: list[Size] = []
    for part in tensor.parts(3):
        dimension = Message(part)
        constant, unknown = dimension.message(1), dimension.message(2)
        if unknown is not None and unknown.number(1):
            return None
        sizes.append(None if constant is None else constant.number(1))
    return tuple(sizes)


class Values:
    """The values of a model, and the folder of its weights."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def weight(self, data: bytes, what: str) -> WeightRef:
        """A value as a tensor that is read later."""
        value = Message(data)
        port = port_of("", value.raw(2))
        shape = tuple([size for size in port.shape or () if isinstance(size, int)])
        if any(size >= _MAX_SIZE for size in shape) or prod(shape) >= _MAX_SIZE:
            raise InvalidArgumentError(f"{what} has shape {list(shape)[:8]}, which is too large")
        blob, here = value.message(5), value.message(3)
        if blob is not None:
            name, offset = blob.text(1), blob.number(2)
            path = self._file(name)
            load = None if path is None else partial(_load_blob, path, offset, what, port.dtype, shape)
            return WeightRef(port.dtype, shape, -1, load, f"{name.removeprefix(_FIRST)}, from byte {offset:,}")
        tensor = None if here is None else here.message(1)
        if tensor is None:
            return WeightRef(port.dtype, shape)
        return WeightRef(port.dtype, shape, len(data), partial(_load_here, tensor, what, port.dtype, shape))

    def _file(self, name: str) -> Path | None:
        """A file of weights of the package; None if it is not there.

        Raises:
            InvalidArgumentError: the name leads out of the package.
        """
        parts = name.removeprefix(_FIRST).split("/")
        if any(part in {"", ".", ".."} or "\\" in part or "\0" in part for part in parts):
            raise InvalidArgumentError(f"The model names the weight file '{name[:200]}', which is not in its own folder")
        if self._folder is None:
            return None
        path = self._folder.joinpath(*parts)
        is_inside = path.resolve().is_relative_to(self._folder.resolve())
        return path if is_inside and is_file(path) else None

    def text(self, data: bytes) -> str | None:
        """A short value in words, None if it is long or elsewhere."""
        value = Message(data)
        tensor = (value.message(3) or Message(b"")).message(1)
        if tensor is None:
            return None
        dtype, count = (
            port_of("", value.raw(2)).dtype,
            prod([size for size in (port_of("", value.raw(2)).shape or ()) if isinstance(size, int)]),
        )
        if count > _FEW:
            return None
        try:
            items = _load_here(tensor, "A value", dtype, (count,)).tolist()
        except InvalidArgumentError:
            return None
        words = [item.decode(errors="replace")[:200] if isinstance(item, bytes) else str(item) for item in items]
        return words[0] if len(words) == 1 else f"[{', '.join(words)}]"


def _load_here(tensor: Message, what: str, dtype: str, shape: tuple[int, ...]) -> Array:
    """The elements of a value within the model."""
    field = next(iter(tensor.fields), 0)
    inner = tensor.message(field) or Message(b"")
    from graphcore.frontends.words import dtype_of, shaped  # noqa: PLC0415 - needed for elements only

    kind = dtype_of(dtype).as_numpy
    if field == 4:
        flat = np.empty(len(inner.parts(1)), object)
        flat[:] = inner.parts(1)
    elif kind is None or kind.hasobject:
        raise InvalidArgumentError(f"{what} has type {dtype}, whose elements NumPy cannot hold")
    elif field in {1, 6, 7}:
        data = b"".join(inner.parts(1))
        stored: np.dtype[Any] = np.dtype("<f4") if field == 1 else np.dtype("<f8") if field == 6 else kind
        if len(data) % stored.itemsize:
            raise InvalidArgumentError(f"{what} has {len(data):,} bytes, no multiple of {stored.itemsize}")
        flat = np.frombuffer(data, stored).astype(kind)
    else:
        numbers = [number for value in inner.fields.get(1, ()) for number in ([value] if isinstance(value, int) else unpacked(value))]
        flat = np.asarray(numbers, np.int64).astype(kind)
    if flat.size != prod(shape):
        raise InvalidArgumentError(f"{what} has {flat.size:,} elements for shape {list(shape)}")
    return shaped(flat, shape, what)


def _load_blob(path: Path, offset: int, what: str, dtype: str, shape: tuple[int, ...]) -> Array:
    """The elements of a value in a weight file: at the offset is a head, which says where they are."""
    if offset >= _MAX_SIZE:
        raise InvalidArgumentError(f"{what} is at byte {offset:,} of '{path.name}', which is too far")
    head = bytes_at(path, offset, _HEAD, what)
    mark, size, start = (int.from_bytes(head[place : place + width], "little") for place, width in ((0, 4), (8, 8), (16, 8)))
    if mark != _MARK or max(size, start) >= _MAX_SIZE:
        raise InvalidArgumentError(f"{what}: at byte {offset:,} of '{path.name}' is no head of a tensor")
    return elements_at(path, start, size, what, dtype, shape)
