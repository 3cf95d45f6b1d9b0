"""Shape functions of ops that select parts of an array: slices, gathered and scattered rows."""

from __future__ import annotations

from graphcore.attrs import Array
from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext
from graphcore.inference.handles import UNKNOWN, DimensionHandle, ShapeHandle, shape_of_sizes
from graphcore.inference.strided_slice import SliceSpec, strided_slice


def slice_shape(c: InferenceContext) -> None:
    """`input  begin: [rank]  size: [rank]`: `size` elements from `begin` on, -1 for all that follow."""
    shape = c.input(0)
    ends = c.merge(c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1))
    rank = c.dim(ends, 0).value
    if rank != UNKNOWN:
        shape = c.with_rank(shape, rank)
    begin = c.make_shape_from_shape_tensor(1)  # not a shape, but it may be partially known in the same way
    sizes = c.input_tensor(2)
    if sizes is not None:
        begin = c.with_rank(begin, int(sizes.size))
        c.set_output(0, c.make_shape([_slice_dim(c, i, c.dim(shape, i), begin, size) for i, size in enumerate(sizes.tolist())]))
        return
    partial = c.make_shape_from_shape_tensor(2)
    if partial.dims is None:
        c.set_output(0, c.unknown_shape_of_rank(c.rank(shape)))
        return
    c.with_rank(begin, len(partial.dims))
    c.set_output(0, partial)  # a size of -1 and an unknown size both leave the dimension unknown


def _slice_dim(c: InferenceContext, i: int, dim: DimensionHandle, begin: ShapeHandle, size: int) -> DimensionHandle:
    if size == -1:
        return c.subtract(dim, c.dim(begin, i))
    if size < 0:
        raise InvalidArgumentError(
            f"Out of bounds slicing on dimension {i} of length {dim.value}: sizes vector cannot be < -1, but was {size}"
        )
    return c.make_dim(size)


def strided_slice_shape(c: InferenceContext) -> None:
    """`input  begin, end, strides: [entries]` with five masks as attrs.

    The attrs are begin_mask, end_mask, ellipsis_mask, new_axis_mask and shrink_axis_mask.
    """
    shape = c.input(0)
    entries = c.merge(c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1))
    entries = c.merge(entries, c.with_rank(c.input(3), 1))
    strides = c.input_tensor(3)
    if shape.dims is None or strides is None or c.dim(entries, 0).value == UNKNOWN:
        c.set_output(0, c.unknown_shape())
        return
    spec = slice_spec(c, c.input_tensor(1), c.input_tensor(2), strides)
    c.set_output(0, shape_of_sizes(strided_slice([dim.value for dim in shape.dims], spec).final_shape))
    data = c.input_handle_shapes_and_types(0)
    if data is not None:
        c.set_output_handle_shapes_and_types(0, data)


def slice_spec(c: InferenceContext, begin: Array | None, end: Array | None, strides: Array) -> SliceSpec:
    """The values of begin, end and strides with the masks of the node."""
    return SliceSpec(
        None if begin is None else begin.tolist(),
        None if end is None else end.tolist(),
        strides.tolist(),
        c.int_attr("begin_mask"),
        c.int_attr("end_mask"),
        c.int_attr("ellipsis_mask"),
        c.int_attr("new_axis_mask"),
        c.int_attr("shrink_axis_mask"),
    )


def strided_slice_grad_shape(c: InferenceContext) -> None:
    """The shape given by the value of input 0."""
    c.set_output(0, c.make_shape_from_shape_tensor(0))


def gather_shape(c: InferenceContext) -> None:
    """`params: [n, rest...]  indices -> [indices..., rest...]`."""
    params = c.with_rank_at_least(c.input(0), 1)
    c.set_output(0, c.concatenate(c.input(1), c.subshape(params, 1)))


def gather_v2_shape(c: InferenceContext) -> None:
    """`params: [before..., n, after...]  indices  axis: [] -> [before..., indices..., after...]`.

    The first batch_dims dimensions of params and indices are shared.
    """
    params = c.with_rank_at_least(c.input(0), 1)
    indices = c.input(1)
    c.with_rank(c.input(2), 0)
    value = c.input_tensor(2)
    batch_dims = c.int_attr("batch_dims")
    if value is None:
        ranks_are_known = params.dims is not None and indices.dims is not None
        shared = batch_dims + c.rank(indices) if batch_dims < 0 else batch_dims
        c.set_output(0, c.unknown_shape_of_rank(c.rank(params) + c.rank(indices) - 1 - shared if ranks_are_known else UNKNOWN))
        return
    axis = int(value)
    c.with_rank_at_least(params, -axis if axis < 0 else axis + 1)
    c.with_rank_at_least(indices, abs(batch_dims))
    if batch_dims < 0:
        if indices.dims is None:
            c.set_output(0, c.unknown_shape())
            return
        batch_dims += len(indices.dims)
    c.with_rank_at_least(params, batch_dims + 1)
    before = c.concatenate(c.subshape(params, 0, axis), c.subshape(indices, batch_dims))
    c.set_output(0, before if axis == -1 else c.concatenate(before, c.subshape(params, axis + 1)))


def gather_nd_shape(c: InferenceContext) -> None:
    """`params  indices: [..., k] -> [..., params after its first k dimensions]`."""
    params = c.input(0)
    indices = c.with_rank_at_least(c.input(1), 1)
    depth = c.dim(indices, -1).value
    if params.dims is None or depth == UNKNOWN:
        c.set_output(0, c.unknown_shape())
        return
    if depth > len(params.dims):
        raise InvalidArgumentError(f"indices.shape[-1] must be <= params.rank, but saw indices shape: {indices} and params shape: {params}")
    c.set_output(0, c.concatenate(c.subshape(indices, 0, -1), c.subshape(params, depth)))


def scatter_nd_shape(c: InferenceContext) -> None:
    """`indices: [..., k]  updates: [..., rest...]  shape`: the shape given by input 2."""
    out = c.make_shape_from_shape_tensor(2)
    _check_scatter(c, c.with_rank_at_least(c.input(0), 1), c.with_rank_at_least(c.input(1), 1), out)
    c.set_output(0, out)


def tensor_scatter_shape(c: InferenceContext) -> None:
    """`tensor  indices: [..., k]  updates: [..., rest...]`: the shape of `tensor`.

    For TensorScatterUpdate, TensorScatterAdd and the like.
    """
    shape = c.with_rank_at_least(c.input(0), 1)
    _check_scatter(c, c.with_rank_at_least(c.input(1), 1), c.input(2), shape)
    c.set_output(0, shape)


def _check_scatter(c: InferenceContext, indices: ShapeHandle, updates: ShapeHandle, out: ShapeHandle) -> None:
    if c.num_elements(out).value == 0 and (c.num_elements(indices).value > 0 or c.num_elements(updates).value > 0):
        raise InvalidArgumentError("Indices and updates specified for empty input")
    if indices.dims is None or not indices.dims or not updates.dims or indices.dims[-1].value == UNKNOWN:
        return
    outer, depth = len(indices.dims) - 1, indices.dims[-1].value
    _check_same(c, (indices, "indices", 0, outer), (updates, "updates", 0, outer))
    if out.dims is not None:
        _check_same(c, (out, "input", depth, len(out.dims)), (updates, "updates", outer, len(updates.dims)))


def _check_same(c: InferenceContext, first: tuple[ShapeHandle, str, int, int], second: tuple[ShapeHandle, str, int, int]) -> None:
    parts = [c.subshape(shape, begin, end) for shape, _, begin, end in (first, second)]
    try:
        c.merge(*parts)
    except InvalidArgumentError as error:
        texts = [
            f"imensions [{begin},{end}) of {name}[shape={shape}] = {part}"
            for (shape, name, begin, end), part in zip((first, second), parts, strict=True)
        ]
        raise InvalidArgumentError(f"D{texts[0]} must match d{texts[1]}: {error.message}") from error
