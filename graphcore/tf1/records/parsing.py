"""Parsers of serialized examples and of records with separators, with TensorFlow 1's signatures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from graphcore.brief import brief
from graphcore.dtypes import DType, as_dtype, string
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.framework import convert_to_tensor, name_scope
from graphcore.tf1.sparse import SparseTensor


class FixedLenFeature(NamedTuple):
    """A feature that has the same shape in each example, and is parsed to a dense tensor.

    Args:
        shape: of the values of one example.
        dtype: float32, int64 or string.
        default_value: for examples without the feature; None if each must have it.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values, which is parsed to a sparse tensor.

    Args:
        dtype: float32, int64 or string.
    """

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of rows of one shape, which is parsed to a dense tensor.

    Args:
        shape: of a row.
        dtype: float32, int64 or string.
        allow_missing: must be True: an example without the feature has no rows.
        default_value: the padding of examples with fewer rows than others in a batch; None for 0 or the empty string.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class _Parsed:
    """The features that a parser is asked for, in the order of its inputs and outputs.

    Raises:
        InvalidArgumentError: there are none, or one is no feature.
    """

    def __init__(self, features: Any) -> None:
        if not isinstance(features, Mapping) or not features:
            raise InvalidArgumentError(f"features: required a dict of names and features, got {brief(features)}")
        self.sparse_keys: list[str] = []
        self.sparse_types: list[DType] = []
        self.dense_keys: list[str] = []
        self.dense_shapes: list[Shape] = []
        self.defaults: list[Tensor] = []
        for key in sorted(features):
            feature = features[key]
            if isinstance(feature, VarLenFeature):
                self.sparse_keys.append(key)
                self.sparse_types.append(as_dtype(feature.dtype))
            elif isinstance(feature, FixedLenFeature | FixedLenSequenceFeature):
                self._add_dense(key, feature)
            else:
                required = "a FixedLenFeature, a VarLenFeature or a FixedLenSequenceFeature"
                raise InvalidArgumentError(f"features[{key!r}]: required {required}, got {brief(feature)}")

    def _add_dense(self, key: str, feature: FixedLenFeature | FixedLenSequenceFeature) -> None:
        dtype, shape, default = as_dtype(feature.dtype), as_shape(feature.shape), feature.default_value
        if not shape.is_fully_defined:
            raise InvalidArgumentError(f"features[{key!r}]: required a shape with known sizes, got {shape}")
        varies = isinstance(feature, FixedLenSequenceFeature)
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise InvalidArgumentError(f"features[{key!r}]: FixedLenSequenceFeature requires allow_missing to be True.")
        if default is None:
            empty = b"" if dtype is string else 0
            tensor = convert_to_tensor(empty if varies else np.zeros([0], dtype.as_numpy), dtype)
        else:
            default_tensor = convert_to_tensor(default, dtype, name="key_" + re.sub(r"[^A-Za-z0-9_.\-/]", "_", key))
            sizes = np.array([] if varies else shape.as_list(), np.int32)
            tensor = get_default_graph().apply_op("Reshape", [default_tensor, sizes]).outputs[0]
        self.dense_keys.append(key)
        self.dense_shapes.append(Shape([None]).concatenate(shape) if varies else shape)
        self.defaults.append(tensor)

    def named(self, outputs: Sequence[Tensor]) -> dict[str, Any]:
        """The outputs of a parser by the names of features."""
        count = len(self.sparse_keys)
        triples = zip(outputs[:count], outputs[count : 2 * count], outputs[2 * count : 3 * count], strict=True)
        sparse = [SparseTensor(*parts) for parts in triples]
        return dict(zip([*self.sparse_keys, *self.dense_keys], [*sparse, *outputs[3 * count :]], strict=True))


def parse_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Tensor | SparseTensor]:
    """The features of a batch of serialized `gc.train.Example` messages.

    Args:
        serialized: string [n].
        features: for each name a `FixedLenFeature`, which gives a tensor [n, ...] of its shape, a `FixedLenSequenceFeature`, which gives
            [n, most rows, ...], or a `VarLenFeature`, which gives a sparse tensor [n, most values].
        name: the name of the scope of the nodes.
        example_names: string [n], names of the messages for errors.

    Returns:
        A tensor or sparse tensor for each name. A run raises InvalidArgumentError for a message without a required feature, or with a
        feature of another type or number of values.

    Raises:
        InvalidArgumentError: `features` is empty, or has something else than features.
    """
    with name_scope(name, "ParseExample"):
        records = convert_to_tensor(serialized, string, name="serialized")
        names = convert_to_tensor(np.array([], object) if example_names is None else example_names, string, name="names")
        parsed = _Parsed(features)
        inputs = [records, names, list(parsed.sparse_keys), list(parsed.dense_keys), parsed.defaults]
        attrs = {
            "sparse_types": parsed.sparse_types,
            "dense_shapes": parsed.dense_shapes,
            "Tdense": [default.dtype for default in parsed.defaults],
        }
        return parsed.named(get_default_graph().apply_op("ParseExample", inputs, attrs).outputs)


def parse_single_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Tensor | SparseTensor]:
    """The features of one serialized `gc.train.Example` message.

    Args:
        serialized: a string scalar.
        features: as in `parse_example`; a `VarLenFeature` gives a sparse vector, and a `FixedLenSequenceFeature` a tensor [rows, ...].
        name: the name of the scope of the nodes.
        example_names: a string scalar, the name of the message; must be None, as errors name the node.

    Raises:
        InvalidArgumentError: as in `parse_example`.
    """
    if example_names is not None:
        raise InvalidArgumentError("parse_single_example: example_names must be None; use parse_example for messages with names")
    with name_scope(name, "ParseSingleExample"):
        record = convert_to_tensor(serialized, string, name="serialized")
        parsed = _Parsed(features)
        attrs = {
            "num_sparse": len(parsed.sparse_keys),
            "sparse_keys": parsed.sparse_keys,
            "sparse_types": parsed.sparse_types,
            "dense_keys": parsed.dense_keys,
            "dense_shapes": parsed.dense_shapes,
            "Tdense": [default.dtype for default in parsed.defaults],
        }
        return parsed.named(get_default_graph().apply_op("ParseSingleExample", [record, parsed.defaults], attrs).outputs)


def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """The fields of records with separators (RFC 4180), one tensor a column.

    Args:
        records: strings of any shape, each a record.
        record_defaults: for each column the value of empty fields, of float32, float64, int32, int64 or string, which is the dtype of the
            column; a tensor without elements where the field is required.
        field_delim: the character between fields.
        use_quote_delim: read fields in double quotes, in which separators may occur.
        name: the name of the node.
        na_value: a text that stands for an empty field.
        select_cols: the columns to read, in ascending order; None for all.

    Returns:
        A tensor of the shape of `records` for each column. A run raises InvalidArgumentError for another number of fields, an empty field
        that is required, and a text that is no number of its column.

    Raises:
        InvalidArgumentError: `select_cols` are not in ascending order, or not as many as `record_defaults`.
    """
    columns = list(select_cols or [])
    if any(later <= earlier for earlier, later in pairwise(columns)):
        raise InvalidArgumentError(f"select_cols is not strictly increasing: {brief(columns)}")
    if columns and columns[0] < 0:
        raise InvalidArgumentError(f"select_cols contains negative values: {brief(columns)}")
    if columns and len(columns) != len(record_defaults):
        raise InvalidArgumentError(f"Length of select_cols and record_defaults do not match: {len(columns)} and {len(record_defaults)}")
    defaults = [convert_to_tensor(default) for default in record_defaults]
    attrs = {"field_delim": field_delim, "use_quote_delim": use_quote_delim, "na_value": na_value, "select_cols": columns}
    attrs["OUT_TYPE"] = [default.dtype for default in defaults]
    return list(get_default_graph().apply_op("DecodeCSV", [convert_to_tensor(records, string), defaults], attrs, name).outputs)
