"""The features in `tf.train.Example` messages: sparse and dense values of one, and of a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from graphcore.attrs import Array
from graphcore.definitions.wire import schema
from graphcore.dtypes import DType, float32, int64, string
from graphcore.kernel_context import KernelContext
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.framework.listed_attrs import listed
from graphcore.opset.numerics.string_arrays import strings
from graphcore.registry import Kernel
from graphcore.shapes import Shape
from graphcore.support.memory_limits import check_allocation

_LISTS: Final = {"float_list": float32, "int64_list": int64, "bytes_list": string}
_INT64: Final = np.dtype(np.int64)


class _Sparse(NamedTuple):
    key: str
    dtype: DType


class _Dense(NamedTuple):
    """A dense feature.

    Args:
        sizes: of one value; the first is unknown where the number of rows varies.
        default: the value of examples without the feature, without elements if there is none; the padding where the number of rows varies.
    """

    key: str
    dtype: DType
    sizes: tuple[int | None, ...]
    default: Array

    @property
    def varies(self) -> bool:
        return bool(self.sizes) and self.sizes[0] is None

    @property
    def stride(self) -> int:
        """The number of values in a row, or in the whole value where no number varies."""
        return math.prod([size for size in self.sizes if size is not None])

    def of_rows(self, count: int) -> tuple[int, ...]:
        """The shape of a value with so many rows."""
        return tuple([count if size is None else size for size in self.sizes])


def _check_different(k: KernelContext, keys: Sequence[bytes]) -> None:
    if len(set(keys)) < len(keys):
        raise invalid(k, f"required different sparse_keys and dense_keys, got {sorted(keys)}")


def _dense_features(k: KernelContext, keys: Sequence[bytes], defaults: Sequence[Array]) -> list[_Dense]:
    """The dense features of a node, whose default values are checked."""
    types, shapes = listed(k, "Tdense", DType), listed(k, "dense_shapes", Shape)
    features = []
    for number, (key, dtype, shape, default) in enumerate(zip(keys, types, shapes, defaults, strict=True)):
        feature = _Dense(_text(k, key), dtype, tuple(shape.dims or ()), default)
        if feature.varies:
            if default.size != 1:
                raise invalid(
                    k,
                    f"dense_shape[{number}] is a variable length shape: {shape}, therefore def_value[{number}] must contain a single "
                    f"element (the padding element).  But its shape is: {list(default.shape)}",
                )
        elif default.size and default.shape != feature.sizes:
            text = f"def_value[{number}].shape() == {list(default.shape)} is not compatible with dense_shapes_[{number}] == {shape}"
            raise invalid(k, text)
        features.append(feature)
    return features


def _text(k: KernelContext, key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise invalid(k, f"required keys in UTF-8, got {key!r}") from None


def _features(k: KernelContext, record: bytes) -> Mapping[str, Any]:
    """The features of an example by their keys."""
    try:
        features: Mapping[str, Any] = schema.Example.FromString(record).features.feature
    except DecodeError:
        raise invalid(k, f"Could not parse example input, value: '{record[:60]!r}'") from None
    return features


def _values(k: KernelContext, features: Mapping[str, Any], key: str, dtype: DType, where: str) -> Array | None:
    """The values of a feature, a vector; None without the feature."""
    feature = features.get(key)
    kind = None if feature is None else feature.WhichOneof("kind")
    if kind is None:
        return None
    if _LISTS[kind] is not dtype:
        raise invalid(k, f"{where}Data types don't match. Expected type: {dtype.text}, Actual type: {_LISTS[kind].text}")
    values = getattr(feature, kind).value
    wanted = _numpy(dtype)
    check_allocation((len(values),), wanted)
    return strings(values, (len(values),)) if dtype is string else np.fromiter(values, wanted, len(values))


def _numpy(dtype: DType) -> np.dtype[Any]:
    assert dtype.as_numpy is not None
    return np.dtype(dtype.as_numpy)


def _dense_values(k: KernelContext, features: Mapping[str, Any], feature: _Dense, name: str, where: str) -> Array:
    """The values of a dense feature in one example, a vector."""
    values = _values(k, features, feature.key, feature.dtype, where)
    kind = feature.dtype.text
    if values is None:
        if not feature.varies and not feature.default.size:
            raise invalid(k, f"{name}Feature: {feature.key} (data type: {kind}) is required but could not be found.")
        return feature.default.reshape(-1)[: 0 if feature.varies else None]
    shape = Shape(feature.sizes)
    if feature.varies and values.size and (not feature.stride or values.size % feature.stride):
        raise invalid(
            k,
            f"{where}Number of {kind} values is not a multiple of stride length. Saw {values.size} values but output shape is: {shape}",
        )
    if not feature.varies and values.size != feature.stride:
        raise invalid(k, f"{where}Number of {kind} values != expected.  Values size: {values.size} but output shape: {shape}")
    return values


def _rows(values: Array, feature: _Dense) -> int:
    return values.size // feature.stride if feature.varies and feature.stride else 0


def _joined(parts: Sequence[Array], dtype: DType) -> Array:
    """Vectors one after another."""
    check_allocation((sum(map(len, parts)),), _numpy(dtype))
    return np.concatenate(parts) if parts else np.empty(0, _numpy(dtype))


def _batch_of_sparse(parts: Sequence[Array], dtype: DType) -> tuple[Array, Array, Array]:
    """Indices, values and shape of a matrix whose rows are the parts."""
    sizes = np.array([len(part) for part in parts], np.int64)
    check_allocation((int(sizes.sum()), 2), _INT64)
    indices = np.empty((int(sizes.sum()), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(parts)), sizes)
    indices[:, 1] = np.arange(len(indices)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return indices, _joined(parts, dtype), np.array([len(parts), sizes.max(initial=0)], np.int64)


def _batch_of_dense(parts: Sequence[Array], feature: _Dense) -> Array:
    """The values of all examples, padded to the most rows."""
    shape = (len(parts), *feature.of_rows(max([_rows(part, feature) for part in parts], default=0)))
    dtype = _numpy(feature.dtype)
    check_allocation(shape, dtype)
    width = math.prod(shape[1:])
    rows = np.full((len(parts), width), feature.default.item(), dtype) if feature.varies else np.empty((len(parts), width), dtype)
    for row, part in zip(rows, parts, strict=True):
        row[: part.size] = part
    return rows.reshape(shape)


def _in_order(sparse: Sequence[tuple[Array, Array, Array]], dense: Sequence[Array]) -> tuple[Array, ...]:
    """All outputs: the indices, values and shapes of the sparse features, then the dense ones."""
    return (*[part for parts in zip(*sparse, strict=True) for part in parts], *dense)


def parse_batch(k: KernelContext) -> Kernel:
    """The kernel of ParseExample."""
    types = listed(k, "sparse_types", DType)
    count = len(listed(k, "Tdense", DType))

    def parse(serialized: Any, names: Any, *more: Any) -> Any:
        if serialized.ndim != 1 or names.ndim != 1 or (names.size and names.shape != serialized.shape):
            text = f"Expected names have the same shape as serialized: name.shape={list(names.shape)}, "
            raise invalid(k, f"{text}serialized.shape={list(serialized.shape)}")
        texts = more[: len(types) + count]
        if any(text.ndim for text in texts):
            raise invalid(k, "required sparse_keys and dense_keys that are scalars")
        keys = [text.item() for text in texts]
        _check_different(k, keys)
        sparse = [_Sparse(_text(k, key), dtype) for key, dtype in zip(keys, types, strict=False)]
        dense = _dense_features(k, keys[len(types) :], more[len(texts) :])
        wanted: list[_Sparse | _Dense] = [*sparse, *dense]
        parts: list[list[Array]] = [[] for _ in wanted]
        for number, record in enumerate(serialized.tolist()):
            features = _features(k, record)
            name = f"Name: {names[number].decode(errors='backslashreplace') if names.size else '<unknown>'}, "
            for feature, column in zip(wanted, parts, strict=True):
                where = f"{name}Key: {feature.key}, Index: {number}.  "
                if isinstance(feature, _Dense):
                    column.append(_dense_values(k, features, feature, name, where))
                else:
                    part_values = _values(k, features, feature.key, feature.dtype, where)
                    column.append(np.empty(0, _numpy(feature.dtype)) if part_values is None else part_values)
        return _in_order(
            [_batch_of_sparse(column, feature.dtype) for feature, column in zip(sparse, parts, strict=False)],
            [_batch_of_dense(column, feature) for feature, column in zip(dense, parts[len(sparse) :], strict=True)],
        )

    return parse


def parse_single(k: KernelContext) -> Kernel:
    """The kernel of ParseSingleExample."""
    types, keys = listed(k, "sparse_types", DType), listed(k, "sparse_keys", bytes)
    dense_keys = listed(k, "dense_keys", bytes)
    _check_different(k, [*keys, *dense_keys])
    sparse = [_Sparse(_text(k, key), dtype) for key, dtype in zip(keys, types, strict=True)]

    def parse(serialized: Any, *defaults: Any) -> Any:
        if serialized.ndim:
            raise invalid(k, f"required one serialized message, got shape {list(serialized.shape)}")
        features = _features(k, serialized.item())
        sparse_parts = []
        for feature in sparse:
            values = _values(k, features, feature.key, feature.dtype, f"Key: {feature.key}.  ")
            values = np.empty(0, _numpy(feature.dtype)) if values is None else values
            check_allocation((values.size, 1), _INT64)
            sparse_parts.append((np.arange(values.size, dtype=np.int64)[:, None], values, np.array([values.size], np.int64)))
        dense = []
        for dense_feature in _dense_features(k, dense_keys, defaults):
            values = _dense_values(k, features, dense_feature, "", f"Key: {dense_feature.key}.  ")
            dense.append(values.reshape(dense_feature.of_rows(_rows(values, dense_feature))))
        return _in_order(sparse_parts, dense)

    return parse
