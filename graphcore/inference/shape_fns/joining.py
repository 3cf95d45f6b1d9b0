"""Shape functions of ops that join, split, repeat or pad arrays."""

from __future__ import annotations

from graphcore.errors import InvalidArgumentError
from graphcore.inference.context import InferenceContext
from graphcore.inference.handles import UNKNOWN, DimensionHandle, ShapeHandle
from graphcore.inference.shape_fns.elementwise import merge_all_inputs


def concat_shape(c: InferenceContext) -> None:
    """Concat: `concat_dim: []  values: N arrays`, equal in all other dimensions.

    The sizes along `concat_dim` are added up.
    """
    _concat(c, 0, c.inputs[1:])


def concat_v2_shape(c: InferenceContext) -> None:
    """ConcatV2: `values: N arrays  axis: []`, likewise."""
    _concat(c, c.num_inputs - 1, c.inputs[:-1])


def _concat(c: InferenceContext, axis_input: int, values: list[ShapeHandle]) -> None:
    c.with_rank(c.input(axis_input), 0)
    rank = _common_rank(c, values)
    axis_value = c.input_tensor(axis_input)
    if axis_value is None:
        c.set_output(0, c.unknown_shape_of_rank(rank))
        return
    axis = int(axis_value)
    least_rank = -axis if axis < 0 else axis + 1
    before, middle, after = _around(c, values[-1], axis, least_rank)
    for value in values[-2::-1]:
        value_before, value_middle, value_after = _around(c, value, axis, least_rank)
        before = c.merge(value_before, before)
        middle = c.add(middle, value_middle)
        after = c.merge(value_after, after)
    if before.dims is None or after.dims is None:
        c.set_output(0, c.unknown_shape())
    else:
        c.set_output(0, ShapeHandle((*before.dims, middle, *after.dims)))


def _around(c: InferenceContext, shape: ShapeHandle, axis: int, least_rank: int) -> tuple[ShapeHandle, DimensionHandle, ShapeHandle]:
    """The dimensions before the axis, the dimension at it, and those after it."""
    dims = shape.dims
    if dims is None:
        return c.unknown_shape(), c.unknown_dim(), c.scalar() if axis == -1 else c.unknown_shape()
    if len(dims) < least_rank:
        c.with_rank_at_least(shape, least_rank)
    return ShapeHandle(dims[:axis]), dims[axis], ShapeHandle(() if axis == -1 else dims[axis + 1 :])


def _common_rank(c: InferenceContext, values: list[ShapeHandle]) -> int:
    rank = next((len(value.dims) for value in values if value.dims is not None), UNKNOWN)
    if rank == 0:
        raise InvalidArgumentError("Can't concatenate scalars: they have no dimension to lengthen; Pack makes a vector of them")
    if rank != UNKNOWN:
        for value in values:
            c.with_rank(value, rank)
    return rank


def concat_offset_shape(c: InferenceContext) -> None:
    """ConcatOffset: one offset vector for each shape vector after input 0."""
    for i in range(1, c.num_inputs):
        c.set_output(i - 1, c.input(i))


def pack_shape(c: InferenceContext) -> None:
    """N arrays of one shape, with a new dimension N at attr `axis`."""
    merged = merge_all_inputs(c)
    if merged.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    axis = _pack_axis(c, len(merged.dims) + 1)
    c.set_output(0, ShapeHandle((*merged.dims[:axis], DimensionHandle(c.num_inputs), *merged.dims[axis:])))


def unpack_shape(c: InferenceContext) -> None:
    """The slices along attr `axis`, one an output."""
    shape = c.input(0)
    out = c.unknown_shape()
    if shape.dims is not None:
        axis = _pack_axis(c, len(shape.dims))
        c.with_value(shape.dims[axis], c.num_outputs)
        out = ShapeHandle(shape.dims[:axis] + shape.dims[axis + 1 :])
    for i in range(c.num_outputs):
        c.set_output(i, out)


def _pack_axis(c: InferenceContext, rank: int) -> int:
    axis = c.int_attr("axis")
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"Invalid axis: {axis}; must be in [{-rank},{rank})")
    return axis % rank


def split_shape(c: InferenceContext) -> None:
    """Split: `split_dim: []  value`: as many equal parts as there are outputs."""
    value = c.input(1)
    axis = c.make_dim_for_scalar_input_with_negative_indexing(0, c.rank(value)).value
    if axis == UNKNOWN:
        out = c.unknown_shape_of_rank(c.rank(value))
    else:
        c.with_rank_at_least(value, axis + 1)
        out = c.replace_dim(value, axis, _even_part(c, c.dim(value, axis)))
    for i in range(c.num_outputs):
        c.set_output(i, out)


def _even_part(c: InferenceContext, dim: DimensionHandle) -> DimensionHandle:
    try:
        return c.divide(dim, c.num_outputs, evenly_divisible=True)
    except InvalidArgumentError as error:
        text = f"{error.message}\n\tNumber of ways to split should evenly divide the split dimension"
        raise InvalidArgumentError(text) from error


def split_v_shape(c: InferenceContext) -> None:
    """SplitV: `value  size_splits: [N]  split_dim: []`: parts of given sizes; one may be -1 for the rest."""
    value = c.input(0)
    rank = c.rank(value)
    axis = c.make_dim_for_scalar_input_with_negative_indexing(2, rank).value if rank else 0
    sizes = c.input_tensor(1)
    if rank == 0:
        raise InvalidArgumentError("Can't split scalars")
    if sizes is not None and rank != UNKNOWN and sizes.size != c.num_outputs:
        raise InvalidArgumentError("Length of size_splits should be equal to num_outputs")
    if UNKNOWN in (rank, axis):
        for i in range(c.num_outputs):
            c.set_output(i, c.unknown_shape_of_rank(rank))
        return
    parts = [UNKNOWN] * c.num_outputs if sizes is None else _part_sizes(sizes.reshape(-1).tolist(), c.dim(value, axis).value)
    for i, size in enumerate(parts):
        c.set_output(i, c.replace_dim(value, axis, size))


def _part_sizes(sizes: list[int], total: int) -> list[int]:
    if sizes.count(-1) > 1:
        raise InvalidArgumentError("size_splits can only have one -1")
    listed = sum([size for size in sizes if size != -1])
    parts: list[int] = []
    for i, listed_size in enumerate(sizes):
        size = total - listed if listed_size == -1 and total != UNKNOWN else listed_size
        if size < -1 or (size == -1 and total != UNKNOWN):
            raise InvalidArgumentError(f"Split size at index {i} must be >= 0. Got: {size}")
        parts.append(size)
    if total != UNKNOWN and sum(parts) != total:
        raise InvalidArgumentError(f"can't split axis of size {total} into pieces of size [{','.join(map(str, sizes))}]")
    return parts


def tile_shape(c: InferenceContext) -> None:
    """`input  multiples: [rank]`: each dimension times its multiple."""
    shape, multiples = c.input(0), c.make_shape_from_shape_tensor(1)
    if shape.dims is not None:
        multiples = c.with_rank(multiples, len(shape.dims))
    if multiples.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    c.set_output(0, c.make_shape([c.multiply(c.dim(shape, i), times) for i, times in enumerate(multiples.dims)]))


def pad_shape(c: InferenceContext) -> None:
    """`input  paddings: [rank, 2]`: each dimension plus its paddings (Pad, PadV2, MirrorPad)."""
    paddings = c.with_rank(c.input(1), 2)
    c.with_value(c.dim(paddings, 1), 2)
    shape = c.input(0)
    count = c.dim(paddings, 0)
    if count.value != UNKNOWN:
        shape = c.with_rank(shape, count.value)
    elif shape.dims is not None:
        count = c.with_value(count, len(shape.dims))
    value = c.input_tensor(1)
    if value is None:
        c.set_output(0, c.unknown_shape_of_rank(count.value))
        return
    shape = c.with_rank(shape, int(value.shape[0]))
    dims: list[DimensionHandle] = []
    for i, (before, after) in enumerate(value.tolist()):
        if before < 0 or after < 0:
            raise InvalidArgumentError("Paddings must be non-negative")
        dims.append(c.add(c.dim(shape, i), before + after))
    c.set_output(0, c.make_shape(dims))


def dynamic_stitch_shape(c: InferenceContext) -> None:
    """`indices: N arrays  data: N arrays [indices..., rest...] -> [1 + the greatest index, rest...]`."""
    count = c.num_inputs // 2
    rest = c.unknown_shape()
    greatest, all_known = -1, True
    for i in range(count):
        value = c.input_tensor(i)
        all_known = all_known and value is not None
        indices, data = c.input(i), c.input(i + count)
        if indices.dims is None:
            continue
        data, indices = c.merge_prefix(data, indices)
        rest = c.merge(rest, c.subshape(data, c.rank(indices)))
        if value is not None and value.size:
            greatest = max(greatest, int(value.max()))
    c.set_output(0, c.concatenate(c.vector(greatest + 1 if all_known else UNKNOWN), rest))


def dynamic_partition_shape(c: InferenceContext) -> None:
    """`data: [partitions..., rest...]  partitions -> N arrays [?, rest...]`."""
    data, partitions = c.input(0), c.input(1)
    if partitions.dims is None:
        for i in range(c.num_outputs):
            c.set_output(i, c.unknown_shape())
        return
    c.merge_prefix(data, partitions)
    rest = c.subshape(data, len(partitions.dims))
    for i in range(c.num_outputs):
        c.set_output(i, c.concatenate(c.vector(UNKNOWN), rest))  # parts differ in size
