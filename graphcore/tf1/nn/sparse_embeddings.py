"""Embeddings of sparse rows of numbers."""

from __future__ import annotations

from typing import Any

from graphcore.dtypes import int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor
from graphcore.tf1.framework import name_scope
from graphcore.tf1.nn.embedding import embedding_lookup
from graphcore.tf1.sparse import SparseTensor, outputs_of, parts_of, sparse_fill_empty_rows, sparse_reshape, sparse_retain


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """The combined rows of `params` for each row of a sparse matrix of numbers: [rows, ...].

    Args:
        params: [n, ...], or several, which share the rows.
        sp_ids: int64 numbers of rows; a row without any gives zeros.
        sp_weights: the weights of the rows, with the same indices; None for 1.
        partition_strategy: "mod" or "div", see `embedding_lookup`.
        name: the name scope.
        combiner: "sum", "mean" (the default; divided by the sum of weights) or "sqrtn" (by the root of the sum of their squares).
        max_norm: rows with a greater norm are scaled down to it.
        allow_fast_lookup: without effect.
    """
    del allow_fast_lookup
    how = combiner or "mean"
    if how not in ("sum", "mean", "sqrtn"):
        raise InvalidArgumentError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {how!r}")
    with name_scope(name or "embedding_lookup_sparse"):
        indices, ids, _ = parts_of(sp_ids)
        rows = outputs_of("StridedSlice", [indices, [0, 0], [0, 1], [1, 1]], None, begin_mask=1, end_mask=1, shrink_axis_mask=2)[0]
        segments = outputs_of("Cast", [rows], None, DstT=int32)[0]
        unique, places = outputs_of("Unique", [ids], None)
        embedded = embedding_lookup(params, unique, partition_strategy=partition_strategy, max_norm=max_norm)
        if sp_weights is None:
            return outputs_of("SparseSegment" + ("SqrtN" if how == "sqrtn" else how.title()), [embedded, places, segments], None)[0]
        weights = outputs_of("Cast", [parts_of(sp_weights)[1]], None, DstT=embedded.dtype.base)[0]
        gathered = outputs_of("GatherV2", [embedded, places, 0], None)[0]
        rank = gathered.shape.rank
        if rank is None:
            raise InvalidArgumentError("embedding_lookup_sparse: required params of known rank")
        column = outputs_of("Reshape", [weights, [-1] + [1] * (rank - 1)], None)[0]
        total = outputs_of("SegmentSum", [gathered * column, segments], None)[0]
        if how == "sum":
            return total
        scale = outputs_of("SegmentSum", [column if how == "mean" else column * column, segments], None)[0]
        divisor = scale if how == "mean" else outputs_of("Sqrt", [scale], None)[0]
        return outputs_of("DivNoNan", [total, divisor], None)[0]  # a row without ids has zeros


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """The combined rows for each row of sparse numbers; rows may be empty, and numbers invalid.

    Args:
        embedding_weights: [n, ...], or several, which share the rows.
        sparse_ids: int64 numbers of rows, of any rank; negative ones are left out, and the last dimension is combined.
        sparse_weights: the weights of the rows, with the same indices; those that are not positive are left out, unless the combiner is "sum".
        combiner: "sum", "mean" or "sqrtn".
        default_id: the number for rows without any; None for zeros in their place.
        name: the name scope.
        partition_strategy: "mod" or "div", see `embedding_lookup`.
        max_norm: rows with a greater norm are scaled down to it.
        allow_fast_lookup: without effect.

    Raises:
        InvalidArgumentError: the rank of `sparse_ids` is unknown, or no such combiner.
    """
    del allow_fast_lookup
    with name_scope(name or "embedding_lookup"):
        _, _, whole = parts_of(sparse_ids)
        rank = whole.shape.num_elements
        if rank is None:
            raise InvalidArgumentError("safe_embedding_lookup_sparse: required sparse_ids of known rank")
        leading = outputs_of("Slice", [whole, [0], [rank - 1]], None)[0]
        flat = [outputs_of("Prod", [leading, [0]], None)[0], whole[rank - 1]]
        ids = sparse_reshape(sparse_ids, outputs_of("Pack", [flat], None)[0])
        weights = None if sparse_weights is None else SparseTensor(ids.indices, parts_of(sparse_weights)[1], ids.dense_shape)
        valid = ids.values >= 0
        if weights is not None and combiner != "sum":
            valid = outputs_of("LogicalAnd", [valid, weights.values > 0.0], None)[0]
        ids, weights = sparse_retain(ids, valid), None if weights is None else sparse_retain(weights, valid)
        ids, empty = sparse_fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = sparse_fill_empty_rows(weights, 1.0)
        embedded = embedding_lookup_sparse(embedding_weights, ids, weights, partition_strategy, None, combiner, max_norm)
        if default_id is None:
            column = outputs_of("Reshape", [empty, [-1] + [1] * ((embedded.shape.rank or 2) - 1)], None)[0]
            embedded = outputs_of("SelectV2", [column, outputs_of("ZerosLike", [embedded], None)[0], embedded], None)[0]
        sizes = [outputs_of("Cast", [leading], None, DstT=int32)[0], outputs_of("Shape", [embedded], None)[0][1:]]
        return outputs_of("Reshape", [embedded, outputs_of("ConcatV2", [sizes, 0], None)[0]], None)[0]
