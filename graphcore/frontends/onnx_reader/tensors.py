"""Tensors of ONNX models: types, shapes, and elements that are read when they are asked for."""

from __future__ import annotations

from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.frontends.foreign import Port, WeightRef
from graphcore.frontends.reading import part_of
from graphcore.frontends.words import dtype_of
from graphcore.support.files import file_errors, open_file
from graphcore.support.memory_limits import check_claim

if TYPE_CHECKING:
    from graphcore.attrs import Array
    from graphcore.frontends.foreign import Size

_WORDS: Final = {"FLOAT": "float32", "DOUBLE": "float64", "UNDEFINED": ""}
_EXTERNAL: Final = 1
MAX_SIZE: Final = 2**62


class Tensors:
    """Reads tensors of one model.

    Args:
        onnx: the library.
        folder: the folder of the model's file, None for an object.
        data: the file, or its bytes if it is gzipped.
        token: the key of tensors that are left in `data`.
    """

    def __init__(self, onnx: Any, folder: Path | None, data: bytes | Path, token: str) -> None:
        self.onnx = onnx
        self.folder = folder
        self.data = data
        self.token = token
        self._types: dict[bytes, tuple[str, tuple[Size, ...] | None, str]] = {}
        names = onnx.TensorProto.DataType.items()
        self.words = {number: _WORDS.get(name, self._word(name)) for name, number in names}

    def _word(self, name: str) -> str:
        """The word for a type: in small letters where we know it, else ONNX's own."""
        return name.lower() if dtype_of(name.lower()).as_numpy is not None else name

    def word(self, number: int) -> str:
        """The word for the number of a type."""
        return self.words.get(number, f"type {number}")

    def weight(self, tensor: Any) -> WeightRef:
        """A tensor, whose elements stay where they are."""
        shape = tuple([int(size) for size in tensor.dims])
        dtype = self.word(tensor.data_type)
        numpy = dtype_of(dtype).as_numpy
        count = prod(shape) if all(size >= 0 for size in shape) else MAX_SIZE
        nbytes = -1 if numpy is None or dtype.lower() == "string" or count >= MAX_SIZE else count * numpy.itemsize
        where = ""
        if tensor.data_location == _EXTERNAL:
            external = {entry.key: entry.value for entry in tensor.external_data}
            if not (self.token and self.token in external):
                where = f"{external.get('location', '?')}, from byte {external.get('offset', '0')}"
        return WeightRef(dtype, shape, nbytes, partial(self.array, tensor), where)

    def array(self, tensor: Any) -> Array:
        """The elements of a tensor.

        Raises:
            GraphError: they are not there, or do not fit the shape.
        """
        whole = self.whole(tensor)
        try:
            return np.asarray(self.onnx.numpy_helper.to_array(whole))
        except Exception as error:  # noqa: BLE001 - the library raises errors of many classes on damaged tensors
            raise InvalidArgumentError(f"Tensor '{tensor.name}' cannot be read: {str(error)[:200]}") from None

    def whole(self, tensor: Any) -> Any:
        """The tensor with its elements; itself if it has them.

        Raises:
            GraphError: they are not there.
        """
        external = {entry.key: entry.value for entry in tensor.external_data}
        if self.token and self.token in external:
            first, _, end = external[self.token].partition(":")
            part, whole = part_of(self.data, int(first), int(end) - int(first)), self.onnx.TensorProto()
            changed = InvalidArgumentError(f"Tensor '{tensor.name}' cannot be read: the file has changed since it was opened")
            if len(part) != int(end) - int(first):
                raise changed
            try:
                whole.ParseFromString(part)
            except Exception:  # noqa: BLE001 - protobuf's implementations raise errors of different classes
                raise changed from None
            if list(whole.dims) != list(tensor.dims) or whole.name != tensor.name:
                raise changed
            return self.whole(whole)
        return self._with_external(tensor, external) if tensor.data_location == _EXTERNAL else tensor

    def _with_external(self, tensor: Any, external: dict[str, str]) -> Any:
        """The tensor with the elements that lie in another file of the model's folder."""
        location = external.get("location", "")
        path = self._inside(location, tensor.name)
        try:
            offset, length = int(external.get("offset", "0") or 0), int(external.get("length", "-1") or -1)
        except ValueError:
            raise InvalidArgumentError(f"Tensor '{tensor.name}' has external data at {external!r}, which is no place in a file") from None
        with open_file(path) as file, file_errors(path):
            size = file.seek(0, 2)
            if offset < 0 or offset > size or length > size - offset:
                raise InvalidArgumentError(
                    f"Tensor '{tensor.name}' has bytes {offset:,} to {offset + length:,} of '{location}', which has {size:,}"
                )
            file.seek(offset)
            check_claim(size - offset if length < 0 else length, f"tensor '{tensor.name}'")
            data = file.read(length)
        whole = self.onnx.TensorProto()
        whole.CopyFrom(tensor)
        del whole.external_data[:]
        whole.data_location = 0
        whole.raw_data = data
        return whole

    def _inside(self, location: str, name: str) -> Path:
        """The file of external data, which must lie in the folder of the model, links followed."""
        if self.folder is None:
            raise FailedPreconditionError(f"The elements of tensor '{name}' lie in '{location}' beside a file, and this is an object")
        folder = self.folder.resolve()
        try:
            path = (folder / location).resolve()
        except (OSError, ValueError, RuntimeError):
            path = folder
        if not location or path == folder or not path.is_relative_to(folder):
            raise InvalidArgumentError(
                f"The elements of tensor '{name}' lie in '{location}', outside of the model's folder; it is not read"
            )
        return path

    def port(self, name: str, kind: Any) -> Port:
        """A value with its type: a tensor, or a sequence, map or optional of some."""
        if kind is None:
            return Port(name)
        key = kind.SerializeToString()  # the fields of a message are slow to read, and most values have one of a few types
        if key not in self._types:
            self._types[key] = self._type(kind)
        return Port(name, *self._types[key])

    def _type(self, kind: Any) -> tuple[str, tuple[Size, ...] | None, str]:
        """The word of a type, the sizes, and a note."""
        which = kind.WhichOneof("value")
        if which in {"tensor_type", "sparse_tensor_type"}:
            tensor = getattr(kind, which)
            shape = self.sizes(tensor.shape) if tensor.HasField("shape") else None
            return self.word(tensor.elem_type), shape, "sparse" if which != "tensor_type" else ""
        return self.kind_text(kind, 0), None, ""

    def kind_text(self, kind: Any, depth: int) -> str:
        """A type in words: `seq(float32)`."""
        which = kind.WhichOneof("value")
        if which is None or depth > 8:
            return ""
        inner = getattr(kind, which)
        if which in {"tensor_type", "sparse_tensor_type"}:
            return self.word(inner.elem_type)
        if which == "map_type":
            return f"map({self.word(inner.key_type)}, {self.kind_text(inner.value_type, depth + 1)})"
        word = {"sequence_type": "seq", "optional_type": "optional"}.get(which)
        return which.removesuffix("_type") if word is None else f"{word}({self.kind_text(inner.elem_type, depth + 1)})"

    @staticmethod
    def sizes(shape: Any) -> tuple[Size, ...]:
        """The sizes of a shape."""
        return tuple([dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in shape.dim])
