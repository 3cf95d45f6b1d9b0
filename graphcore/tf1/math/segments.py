"""Sums and means of segments, and counts of values, under TensorFlow 1's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcore.dtypes import as_dtype, int32, int64
from graphcore.graph import Tensor
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import cast, maximum, where
from graphcore.tf1.math.reductions import reduction


def bincount(arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: object = int32) -> Tensor:
    """The number of times that each integer from 0 on occurs, or the sums of their weights."""
    arr = convert_to_tensor(arr, int32)
    is_empty = apply_one("Equal", [apply_one("Size", [arr], None), 0], None)
    longest = where(is_empty, constant(0), reduction("Max", arr) + 1)
    if minlength is not None:
        longest = maximum(convert_to_tensor(minlength, int32), longest)
    if maxlength is not None:
        longest = apply_one("Minimum", [convert_to_tensor(maxlength, int32), longest], None)
    counted = as_dtype(dtype)
    factors = constant(np.zeros(0, counted.as_numpy), counted) if weights is None else convert_to_tensor(weights)
    return apply_one("Bincount", [arr, longest, factors], None)


def confusion_matrix(
    labels: Any, predictions: Any, num_classes: Any = None, dtype: object = int32, name: str | None = None, weights: Any = None
) -> Tensor:
    """The number of times that each class was predicted for each label. labels, predictions: [n] -> y: [classes, classes]."""
    with name_scope(name or "confusion_matrix"):
        labels, predictions = (cast(convert_to_tensor(tensor), int64) for tensor in (labels, predictions))
        if num_classes is None:
            num_classes = maximum(reduction("Max", labels), reduction("Max", predictions)) + 1
        classes = cast(convert_to_tensor(num_classes), int64)
        wanted = as_dtype(dtype)
        values = apply_one("OnesLike", [cast(predictions, wanted)], None) if weights is None else cast(weights, wanted)
        places = apply_one("Pack", [[labels, predictions]], None, {"axis": 1})
        return apply_one("ScatterNd", [places, values, apply_one("Pack", [[classes, classes]], None)], None)


def histogram_fixed_width(values: Any, value_range: Any, nbins: Any = 100, dtype: object = int32, name: str | None = None) -> Tensor:
    """The number of values in each of `nbins` equal parts of a range [2].

    Outliers count in the end parts.
    """
    tensor = convert_to_tensor(values)
    return apply_one(
        "HistogramFixedWidth", [tensor, convert_to_tensor(value_range, tensor.dtype.base), nbins], name, {"dtype": as_dtype(dtype)}
    )


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The means of the rows with the same id."""
    with name_scope(name or "UnsortedSegmentMean"):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        return apply_one("UnsortedSegmentSum", [data, ids, num_segments], None) / _segment_sizes(data, ids, num_segments)


def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The sums of the rows with the same id, divided by the roots of their numbers."""
    with name_scope(name or "UnsortedSegmentSqrtN"):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        sizes = _segment_sizes(data, ids, num_segments)
        return apply_one("UnsortedSegmentSum", [data, ids, num_segments], None) / apply_one("Sqrt", [sizes], None)


def _segment_sizes(data: Tensor, ids: Tensor, num_segments: Any) -> Tensor:
    """The number of rows of each id, at least 1, as numbers that divide the sums of the rows of `data`."""
    counts = apply_one("UnsortedSegmentSum", [apply_one("OnesLike", [ids], None), ids, num_segments], None)
    whole = maximum(cast(counts, data.dtype.base), 1)
    for _ in range((data.shape.rank or 1) - (ids.shape.rank or 1)):
        whole = apply_one("ExpandDims", [whole, -1], None)
    return whole


def sparse_segment_sum(data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None) -> Tensor:
    """The sums of the rows `indices` with the same id."""
    return _sparse_segment("SparseSegmentSum", [data, indices, segment_ids], num_segments, name)


def sparse_segment_mean(data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None) -> Tensor:
    """The means of the rows `indices` with the same id."""
    return _sparse_segment("SparseSegmentMean", [data, indices, segment_ids], num_segments, name)


def sparse_segment_sqrt_n(data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None) -> Tensor:
    """The sums of the rows `indices` with the same id, divided by the roots of their numbers."""
    return _sparse_segment("SparseSegmentSqrtN", [data, indices, segment_ids], num_segments, name)


def _sparse_segment(op: str, inputs: list[Any], num_segments: Any, name: str | None) -> Tensor:
    if num_segments is None:
        return apply_one(op, inputs, name)
    return apply_one(f"{op}WithNumSegments", [*inputs, num_segments], name)
