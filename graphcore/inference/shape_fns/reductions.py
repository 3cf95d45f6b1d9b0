"""Shape functions of reductions: over axes, to the position of an extreme, by segments."""

from __future__ import annotations

from graphcore.attrs import Array
from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext
from graphcore.inference.handles import UNKNOWN, DimensionHandle, ShapeHandle

_MATRIX_INDICES_ALLOWED_UP_TO = 20
"""Older graphs may give reduction indices as a tensor of any rank."""


def reduction_shape(c: InferenceContext) -> None:
    """Input 0 without the axes in input 1; with keep_dims they are kept with size 1."""
    shape = c.input(0)
    if c.graph_def_version > _MATRIX_INDICES_ALLOWED_UP_TO:
        c.with_rank_at_most(c.input(1), 1)
    keep_dims = bool(c.attr("keep_dims"))
    indices = c.input_tensor(1)
    if indices is None or shape.dims is None:
        c.set_output(0, c.unknown_shape_of_rank(len(shape.dims)) if keep_dims and shape.dims is not None else c.unknown_shape())
        return
    reduced = _axes(indices, len(shape.dims))
    dims = [DimensionHandle(1) if i in reduced else dim for i, dim in enumerate(shape.dims) if keep_dims or i not in reduced]
    c.set_output(0, ShapeHandle(tuple(dims)))


def _axes(indices: Array, rank: int) -> set[int]:
    reduced: set[int] = set()
    for index in indices.reshape(-1).tolist():
        if not -rank <= index < rank:
            raise InvalidArgumentError(f"Invalid reduction dimension {index} for input with {rank} dimensions.").advise(
                f"Choose an axis from 0 to {rank - 1}: the first is axis 0." if rank else "Leave the axis out: a scalar has none.",
                required=f"an axis from 0 to {rank - 1}, or from {-rank} to -1" if rank else "no axis",
                came=str(index),
            )
        reduced.add(index % rank)
    return reduced


def arg_op_shape(c: InferenceContext) -> None:
    """Input 0 without the axis in scalar input 1 (ArgMax, ArgMin)."""
    c.with_rank(c.input(1), 0)
    shape = c.input(0)
    if shape.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    rank = len(shape.dims)
    if rank <= 1:
        c.set_output(0, c.scalar())
        return
    value = c.input_tensor(1)
    if value is None:
        c.set_output(0, c.unknown_shape_of_rank(rank - 1))
        return
    axis = int(value)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"Dimension ({axis}) must be in the range [{-rank}, {rank}), where {rank} is the number of dimensions in the input."
        )
    axis %= rank
    c.set_output(0, ShapeHandle(shape.dims[:axis] + shape.dims[axis + 1 :]))


def segment_reduction_shape(c: InferenceContext) -> None:
    """`data: [n, ...]  segment_ids: [n] -> [?, ...]`."""
    data = c.with_rank_at_least(c.input(0), 1)
    c.with_rank(c.input(1), 1)
    c.set_output(0, c.concatenate(c.vector(UNKNOWN), c.subshape(data, 1)))


def segment_reduction_with_num_segments_shape(c: InferenceContext) -> None:
    """`data: [ids..., rest...]  segment_ids: [ids...]  num_segments: [] -> [num_segments, rest...]`."""
    data, ids = c.input(0), c.input(1)
    c.with_rank(c.input(2), 0)
    if ids.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    data, ids = c.merge_prefix(data, ids)
    count = c.make_dim_for_scalar_input(2)
    c.set_output(0, c.concatenate(c.vector(count), c.subshape(data, c.rank(ids))))


def sparse_segment_reduction_shape(c: InferenceContext) -> None:
    """`data: [m, ...]  indices: [n]  segment_ids: [n] -> [?, ...]`."""
    c.set_output(0, c.concatenate(c.vector(UNKNOWN), _rows_of_sparse_segments(c)))


def sparse_segment_reduction_with_num_segments_shape(c: InferenceContext) -> None:
    """`data: [m, ...]  indices: [n]  segment_ids: [n]  num_segments -> [num_segments, ...]`."""
    rest = _rows_of_sparse_segments(c)
    c.with_rank(c.input(3), 0)
    value = c.input_tensor(3)
    if value is not None and int(value) < 0:
        raise InvalidArgumentError("Cannot specify a negative value for num_segments")
    c.set_output(0, c.concatenate(c.vector(UNKNOWN if value is None else int(value)), rest))


def sparse_segment_reduction_grad_shape(c: InferenceContext) -> None:
    """`grad: [k, ...]  indices: [n]  segment_ids: [n]  output_dim0 -> [output_dim0, ...]`."""
    rest = _rows_of_sparse_segments(c)
    c.with_rank(c.input(3), 0)
    value = c.input_tensor(3)
    if value is not None and int(value) < 0:
        raise InvalidArgumentError("Cannot specify a negative value for output_dim0")
    c.set_output(0, c.concatenate(c.vector(UNKNOWN if value is None else int(value)), rest))


def _rows_of_sparse_segments(c: InferenceContext) -> ShapeHandle:
    data = c.with_rank_at_least(c.input(0), 1)
    indices = c.with_rank(c.input(1), 1)
    c.merge(indices, c.with_rank(c.input(2), 1))
    return c.subshape(data, 1)
