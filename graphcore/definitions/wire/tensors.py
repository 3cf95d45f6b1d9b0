"""Shapes and constant tensors between values and messages."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import TensorValue
from graphcore.definitions.wire import schema
from graphcore.definitions.wire.rest import has_unknown_fields, without
from graphcore.dtypes import DType, dtype_from_wire
from graphcore.shapes import Shape
from graphcore.tensor_encoding import EncodedTensor

_VALUE_FIELDS: Final = {
    "float": "float_val",
    "double": "double_val",
    "string": "string_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "half": "half_val",
    "bfloat16": "half_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "int32": "int_val",
    "int16": "int_val",
    "int8": "int_val",
    "uint8": "int_val",
    "uint16": "int_val",
    "qint8": "int_val",
    "quint8": "int_val",
    "qint16": "int_val",
    "quint16": "int_val",
    "qint32": "int_val",
    "int4": "int_val",
    "uint4": "int_val",
    "int2": "int_val",
    "uint2": "int_val",
    "float8_e5m2": "float8_val",
    "float8_e4m3fn": "float8_val",
    "float8_e4m3fnuz": "float8_val",
    "float8_e4m3b11fnuz": "float8_val",
    "float8_e5m2fnuz": "float8_val",
}
_ALWAYS: Final = frozenset({"dtype", "tensor_shape", "tensor_content"})
_KNOWN: Final = {name: _ALWAYS | {field} for name, field in _VALUE_FIELDS.items()}
_MAX_SHAPES: Final = 1 << 14
_shapes: dict[tuple[int, ...], Shape] = {}


def read_shape(message: Any) -> Shape:
    """The Shape of a TensorShapeProto.

    Raises:
        InvalidArgumentError: a size below -1, too many dimensions, or too many elements.
    """
    if message.unknown_rank:
        return Shape(None)
    dims = tuple([dim.size for dim in message.dim])
    names = tuple([dim.name for dim in message.dim])
    if any(names):
        return Shape(dims).with_names(names)
    shape = _shapes.get(dims)
    if shape is None:
        if len(_shapes) >= _MAX_SHAPES:
            _shapes.clear()
        shape = _shapes[dims] = Shape(dims)
    return shape


def write_shape(shape: Shape, message: Any) -> None:
    """Set a TensorShapeProto."""
    message.SetInParent()
    if shape.dims is None:
        message.unknown_rank = True
        return
    names = shape.names or ("",) * len(shape.dims)
    for size, name in zip(shape.dims, names, strict=True):
        message.dim.add(size=-1 if size is None else size, name=name)


def read_tensor(message: Any, *, has_unknown: bool = False) -> TensorValue:
    """Read a TensorProto. Its parts are checked against each other when the array is first accessed."""
    set_fields = {field.name: value for field, value in message.ListFields()}
    dtype = dtype_from_wire(set_fields.get("dtype", 0))
    dims: tuple[int, ...] | None = ()
    if "tensor_shape" in set_fields:
        shape = set_fields["tensor_shape"]
        dims = None if shape.unknown_rank else tuple([dim.size for dim in shape.dim])
    content = set_fields.get("tensor_content", b"")
    field = _VALUE_FIELDS.get(dtype.text)
    values: Any = ()
    if field in set_fields:
        values = (message.float8_val,) if field == "float8_val" else set_fields[field][:]
    field_names = _KNOWN.get(dtype.text, _ALWAYS)
    complete = set_fields.keys() <= field_names and not (has_unknown and has_unknown_fields(message))
    return TensorValue.from_encoded(EncodedTensor(dtype, dims, content, values, b"" if complete else without(message, field_names)))


def write_tensor(value: TensorValue, message: Any) -> None:
    """Set a TensorProto: in its file's encoding, else a single element as a value and more as raw bytes."""
    message.SetInParent()
    if value.encoded is not None:
        _write_encoded(value.encoded, message)
        return
    message.dtype = value.dtype.number
    write_shape(value.shape, message.tensor_shape)
    array = value.array
    if value.dtype.text == "string":
        message.string_val.extend(array.reshape(-1).tolist())
    elif array.size == 1:
        _write_element(array.reshape(1), value.dtype, message)
    elif array.size > 1:
        message.tensor_content = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _write_encoded(encoded: EncodedTensor, message: Any) -> None:
    if encoded.other_fields:
        message.MergeFromString(encoded.other_fields)
    message.dtype = encoded.dtype.number
    if encoded.dims is None:
        message.tensor_shape.unknown_rank = True
    else:
        message.tensor_shape.SetInParent()
        for size in encoded.dims:
            message.tensor_shape.dim.add(size=size)
    message.tensor_content = encoded.content
    field = _VALUE_FIELDS.get(encoded.dtype.text)
    if field == "float8_val":
        message.float8_val = b"".join(encoded.values)
    elif field is not None:
        getattr(message, field).extend(encoded.values)


def _write_element(array: np.ndarray[Any, Any], dtype: DType, message: Any) -> None:
    field = _VALUE_FIELDS.get(dtype.text)
    if field is None:
        message.tensor_content = array.tobytes()
    elif field == "float8_val":
        message.float8_val = array.tobytes()
    elif field == "half_val":
        message.half_val.append(int(array.view(np.uint16)[0]))
    elif dtype.is_complex:
        getattr(message, field).extend([array[0].real.item(), array[0].imag.item()])
    elif array.dtype.kind in "iufb":
        getattr(message, field).append(array[0].item())
    else:
        getattr(message, field).append(int(array[0]))


def tensor_from_bytes(data: bytes) -> TensorValue:
    """The constant in a serialised TensorProto."""
    message = schema.TensorProto.FromString(data)
    return read_tensor(message, has_unknown=True)


def tensor_to_bytes(value: TensorValue) -> bytes:
    """The constant as a serialised TensorProto."""
    message = schema.TensorProto()
    write_tensor(value, message)
    data: bytes = message.SerializeToString(deterministic=True)
    return data
