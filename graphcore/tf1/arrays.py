"""Pieces, joins, ranges and layouts of tensors: names of the top level of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcore.api.arrays import concat, expand_dims, reshape, shape, squeeze, stack, transpose
from graphcore.dtypes import DType, as_dtype, bool_, float32, int32, int64
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.calls import apply_one, either
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope, ones
from graphcore.tf1.math.elementwise import cast, matmul
from graphcore.tf1.math.reductions import reduction

__all__ = [
    "batch_to_space",
    "boolean_mask",
    "broadcast_dynamic_shape",
    "broadcast_static_shape",
    "depth_to_space",
    "ensure_shape",
    "extract_image_patches",
    "eye",
    "fill",
    "gather",
    "gather_nd",
    "linspace",
    "matrix_diag",
    "matrix_diag_part",
    "matrix_set_diag",
    "matrix_transpose",
    "meshgrid",
    "pad",
    "parallel_stack",
    "placeholder_with_default",
    "range",
    "rank",
    "repeat",
    "reverse",
    "reverse_sequence",
    "sequence_mask",
    "size",
    "slice",
    "space_to_batch",
    "space_to_depth",
    "sparse_to_dense",
    "split",
    "strided_slice",
    "tensordot",
    "unstack",
]
_range = range


def placeholder_with_default(input: Any, shape: object, name: str | None = None) -> Tensor:
    """A placeholder that has the value `input` when it is not fed."""
    tensor = convert_to_tensor(input)
    return apply_one("PlaceholderWithDefault", [tensor], name, {"shape": as_shape(shape)})


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of one value. dims: sizes -> y: [*dims]."""
    return apply_one("Fill", [np.zeros(0, np.int32) if isinstance(dims, list | tuple) and not dims else dims, value], name)


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: object = None, name: str = "range") -> Tensor:  # noqa: A001 - TF1's name
    """The numbers from `start`, or 0, by steps of `delta` up to, but without, `limit`."""
    if limit is None:
        start, limit = 0, start
    if dtype is None:
        found = [
            convert_to_tensor(number).dtype.base if isinstance(number, Tensor) else _natural(number) for number in (start, limit, delta)
        ]
        wanted = max(found, key=_RANKS.index)
    else:
        wanted = as_dtype(dtype)
    ends = [cast(number, wanted) if isinstance(number, Tensor) else constant(number, wanted) for number in (start, limit, delta)]
    return apply_one("Range", ends, name)


_RANKS = tuple(as_dtype(name) for name in ("int32", "int64", "half", "bfloat16", "float", "double"))


def _natural(number: Any) -> DType:
    dtype = convert_to_tensor(number).dtype if hasattr(number, "as_tensor") else as_dtype(np.asarray(number).dtype)
    if isinstance(number, np.ndarray | np.generic) and dtype in _RANKS:
        return dtype
    return int32 if dtype.is_integer else float32


def linspace(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """`num` numbers from `start` to `stop`, both included."""
    return apply_one("LinSpace", [start, stop, num], name)


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions at run time, int32."""
    return apply_one("Rank", [input], name)


def size(input: Any, name: str | None = None, out_type: object = int32) -> Tensor:
    """The number of elements at run time."""
    wanted = as_dtype(out_type or int32)
    return apply_one("Size", [input], name, None if wanted is int32 else {"out_type": wanted})


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:  # noqa: A001 - TF1's name
    """The block that begins at `begin`, of `size`; -1 for all that is left. begin, size: [rank]."""
    return apply_one("Slice", [input_, begin, size], name)


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """Part of a tensor as by `x[begin:end:strides]`, a number for each of the first dimensions.

    Args:
        input_: the tensor.
        begin, end, strides: vectors of one length; strides of 1 by default.
        begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask: bits for entries that are empty, `...`, None, or one index.
        var: not supported; a slice of a variable is assigned by `v[...].assign(value)`.
        name: the name of the node.
    """
    if var is not None:
        raise InvalidArgumentError("strided_slice: required no var; a slice of a variable is assigned by v[...].assign(value)")
    if strides is None:
        strides = ones(shape(begin), convert_to_tensor(begin).dtype.base)
    masks = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    return apply_one("StridedSlice", [input_, begin, end, strides], name or "StridedSlice", masks)


def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split") -> list[Tensor]:
    """Parts of a tensor along `axis`: a number of equal ones, or parts of the given sizes.

    Args:
        value: the tensor.
        num_or_size_splits: the number of parts, or their sizes, one of which may be -1.
        axis: the dimension.
        num: the number of sizes if these are a tensor of unknown length.
        name: the name of the node.
    """
    graph = get_default_graph()
    if isinstance(num_or_size_splits, int | np.integer):
        return list(graph.apply_op("Split", [axis, value], {"num_split": int(num_or_size_splits)}, name).outputs)
    sizes = convert_to_tensor(num_or_size_splits)
    if sizes.shape.rank == 0:
        raise InvalidArgumentError("split: required an int or a vector of sizes, got a scalar tensor")
    count = sizes.shape[0].value if num is None else num
    if count is None:
        raise InvalidArgumentError("split: cannot infer the number of parts from sizes of unknown length; give num")
    return list(graph.apply_op("SplitV", [value, sizes, axis], {"num_split": count}, name).outputs)


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """The slices of a tensor along `axis`; `num` of them if its shape is unknown."""
    tensor = convert_to_tensor(value)
    if num is None:
        if tensor.shape.rank is None:
            raise InvalidArgumentError(f"unstack: cannot infer num from the unknown shape of '{tensor.name}'; give num")
        num = tensor.shape[axis].value
    if num is None:
        raise InvalidArgumentError(f"unstack: cannot infer num from shape {tensor.shape}; give num")
    return list(get_default_graph().apply_op("Unpack", [tensor], {"num": num, "axis": axis}, name).outputs)


def gather(
    params: Any, indices: Any, validate_indices: bool | None = None, name: str | None = None, axis: Any = None, batch_dims: int = 0
) -> Tensor:  # indices are always checked
    """The slices of `params` at `indices` along `axis`. params: [..., n, ...]  indices: [...]."""
    del validate_indices
    along = batch_dims if axis is None else axis
    return apply_one("GatherV2", [params, indices, along], name, {"batch_dims": batch_dims} if batch_dims else None)


def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """The slices of `params` at index vectors. indices: [..., depth] -> y: [..., *params.shape[depth:]]."""
    if batch_dims:
        raise InvalidArgumentError(f"gather_nd: required batch_dims of 0, got {batch_dims}")
    return apply_one("GatherNd", [params, indices], name)


def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0) -> Tensor:
    """A tensor with a margin. paddings: [rank, 2], the widths before and after each dimension.

    Args:
        tensor: the inner part.
        paddings: the widths.
        mode: "CONSTANT", "REFLECT" (without the border) or "SYMMETRIC" (with it).
        name: the name of the node.
        constant_values: the value of a constant margin.
    """
    mode = mode.upper()
    if mode == "CONSTANT":
        if not isinstance(constant_values, Tensor) and not np.any(constant_values):
            return apply_one("Pad", [tensor, paddings], name)
        return apply_one("PadV2", [tensor, paddings, constant_values], name)
    if mode not in {"REFLECT", "SYMMETRIC"}:
        raise InvalidArgumentError(f"pad: required the mode CONSTANT, REFLECT or SYMMETRIC, got {mode}")
    return apply_one("MirrorPad", [tensor, paddings], name, {"mode": mode})


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """The elements in reverse order along each dimension in `axis`."""
    return apply_one("ReverseV2", [tensor, [axis] if isinstance(axis, int) else axis], name)


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """The first `seq_lengths[i]` elements of each example in reverse order."""
    attrs = {
        "seq_dim": either("seq_axis", seq_axis, "seq_dim", seq_dim),
        "batch_dim": either("batch_axis", batch_axis, "batch_dim", batch_dim) or 0,
    }
    return apply_one("ReverseSequence", [input, seq_lengths], name, attrs)


def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: int | None = None) -> Tensor:
    """The slices where `mask` holds. tensor: [n, ...]  mask: [n] -> y: [count, ...]; masks of higher rank select by more dimensions."""
    with name_scope(name):
        tensor, mask = convert_to_tensor(tensor), convert_to_tensor(mask, bool_)
        axis, rank_ = axis or 0, mask.shape.rank
        if not rank_:
            raise InvalidArgumentError(f"boolean_mask: required a mask of a known rank above 0, got shape {mask.shape}")
        tensor.shape[axis : axis + rank_].assert_is_compatible_with(mask.shape)
        sizes = shape(tensor)
        joined = concat([sizes[:axis], [reduction("Prod", sizes[axis : axis + rank_], [0])], sizes[axis + rank_ :]], 0)
        flat = reshape(tensor, joined)
        return gather(flat, squeeze(apply_one("Where", [reshape(mask, [-1])], "Where"), [1]), axis=axis)


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: object = bool_, name: str | None = None) -> Tensor:
    """True before the length of each row. lengths: [...] -> y: [..., maxlen]; the greatest length by default."""
    with name_scope(name or "SequenceMask"):
        lengths = convert_to_tensor(lengths)
        longest = reduction("Max", lengths) if maxlen is None else cast(maxlen, lengths.dtype.base)
        places = range(constant(0, lengths.dtype.base), longest, constant(1, lengths.dtype.base))
        result = apply_one("Less", [places, expand_dims(lengths, -1)], "Less")
        return cast(result, dtype)


def meshgrid(*args: Any, indexing: str = "xy", name: str = "meshgrid") -> list[Tensor]:
    """The coordinates of a grid: for each vector a tensor that varies along its own dimension only."""
    with name_scope(name):
        count = len(args)
        vectors = [convert_to_tensor(vector) for vector in args]
        shaped = [reshape(vector, [-1 if i == at else 1 for i in _range(count)]) for at, vector in enumerate(vectors)]
        sizes = [size(vector) for vector in vectors]
        if indexing == "xy" and count > 1:
            shaped[0], shaped[1] = (reshape(vectors[at], [-1 if i == 1 - at else 1 for i in _range(count)]) for at in (0, 1))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        whole: Any = stack(sizes) if sizes else []
        return [apply_one("BroadcastTo", [vector, whole], None) for vector in shaped]


def eye(num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: object = float32, name: str | None = None) -> Tensor:
    """Identity matrices. -> y: [*batch_shape, num_rows, num_columns]."""
    with name_scope(name or "eye"):
        columns = num_rows if num_columns is None else num_columns
        rows = apply_one("Equal", [expand_dims(range(num_rows), 1), expand_dims(range(columns), 0)], "Equal")
        matrix = cast(rows, dtype)
        if batch_shape is None:
            return matrix
        whole = concat([convert_to_tensor(batch_shape, int32), stack([num_rows, columns])], 0)
        return apply_one("BroadcastTo", [matrix, whole], None)


def ensure_shape(x: Any, shape: object, name: str | None = None) -> Tensor:
    """`x`, whose shape must be compatible with `shape` at run time."""
    return apply_one("EnsureShape", [x], name, {"shape": as_shape(shape)})


def repeat(input: Any, repeats: int, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each element, or slice along `axis`, `repeats` times in a row."""
    with name_scope(name or "Repeat"):
        tensor = convert_to_tensor(input)
        if axis is None:
            tensor, axis = reshape(tensor, [-1]), 0
        rank_ = tensor.shape.rank
        if rank_ is None:
            raise InvalidArgumentError(f"repeat: required a tensor of known rank, got '{tensor.name}'")
        axis %= rank_
        tiled = apply_one("Tile", [expand_dims(tensor, axis + 1), [1] * (axis + 1) + [repeats] + [1] * (rank_ - axis - 1)], None)
        sizes = shape(tensor)
        return reshape(tiled, concat([sizes[:axis], [-1], sizes[axis + 1 :]], 0))


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """Stack tensors of one shape along a new first dimension."""
    return stack(values, 0, name)


def space_to_depth(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Blocks of places as channels. input: [b, h, w, c] -> y: [b, h / s, w / s, c * s * s]."""
    return apply_one("SpaceToDepth", [input], name, {"block_size": block_size, "data_format": data_format})


def depth_to_space(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Channels as blocks of places. input: [b, h, w, c] -> y: [b, h * s, w * s, c / (s * s)]."""
    return apply_one("DepthToSpace", [input], name, {"block_size": block_size, "data_format": data_format})


def space_to_batch(input: Any, paddings: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None) -> Tensor:
    """Places that are `block_size` apart as images of their own."""
    block = either("block_shape", block_shape, "block_size", block_size)
    return apply_one("SpaceToBatchND", [input, [block, block] if isinstance(block, int) else block, paddings], name)


def batch_to_space(input: Any, crops: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None) -> Tensor:
    """The inverse of `space_to_batch`."""
    block = either("block_shape", block_shape, "block_size", block_size)
    return apply_one("BatchToSpaceND", [input, [block, block] if isinstance(block, int) else block, crops], name)


def extract_image_patches(
    images: Any, ksizes: Any = None, strides: Any = None, rates: Any = None, padding: Any = None, name: str | None = None, sizes: Any = None
) -> Tensor:
    """The window at each place, in the channels. images: [b, h, w, c] -> y: [b, rows, columns, kh * kw * c]."""
    attrs = {"ksizes": either("sizes", sizes, "ksizes", ksizes), "strides": strides, "rates": rates, "padding": padding}
    return apply_one("ExtractImagePatches", [images], name, attrs)


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A tensor with values at some places. sparse_indices: [n, rank] or [n] -> y: [*output_shape]."""
    del validate_indices  # they always are
    with name_scope(name or "SparseToDense"):
        values = convert_to_tensor(sparse_values)
        places = convert_to_tensor(sparse_indices)
        rank_ = places.shape.rank
        if rank_ is None:
            raise InvalidArgumentError(f"sparse_to_dense: required indices of known rank, got '{places.name}'")
        if rank_ < 2:
            places = reshape(places, [-1, 1])
        places = cast(places, int64)
        count = shape(places)[:1]
        if values.shape.rank == 0:
            values = apply_one("Fill", [count, values], None)
        filled = apply_one("Fill", [output_shape, convert_to_tensor(default_value, values.dtype.base)], None)
        return apply_one("TensorScatterUpdate", [filled, places, values], None)


def matrix_diag(diagonal: Any, name: str = "diag", k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0) -> Tensor:
    """Matrices with given diagonals, from number `k` or `k[0]` to `k[1]`. diagonal: [..., n] -> y: [..., n, n]."""
    if isinstance(k, int) and k == 0 and num_rows == num_cols == -1 and not padding_value:
        return apply_one("MatrixDiag", [diagonal], name)
    diagonal = convert_to_tensor(diagonal)
    return apply_one("MatrixDiagV2", [diagonal, k, num_rows, num_cols, convert_to_tensor(padding_value, diagonal.dtype.base)], name)


def matrix_diag_part(input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0) -> Tensor:
    """The diagonals of matrices, from number `k` or `k[0]` to `k[1]`. input: [..., m, n] -> y: [..., min(m, n)]."""
    if isinstance(k, int) and k == 0 and not padding_value:
        return apply_one("MatrixDiagPart", [input], name)
    matrices = convert_to_tensor(input)
    return apply_one("MatrixDiagPartV2", [matrices, k, convert_to_tensor(padding_value, matrices.dtype.base)], name)


def matrix_set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0) -> Tensor:
    """Matrices with other diagonals, from number `k` or `k[0]` to `k[1]`. input: [..., m, n]  diagonal: [..., min(m, n)]."""
    if isinstance(k, int) and k == 0:
        return apply_one("MatrixSetDiag", [input, diagonal], name)
    return apply_one("MatrixSetDiagV2", [input, diagonal, k], name)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> Shape:
    """The shape of the result of broadcasting two known shapes.

    Raises:
        InvalidArgumentError: they do not fit.
    """
    x, y = as_shape(shape_x), as_shape(shape_y)
    if x.dims is None or y.dims is None:
        return Shape(None)
    length = max(len(x.dims), len(y.dims))
    sizes: list[int | None] = []
    for a, b in zip((1,) * (length - len(x.dims)) + x.dims, (1,) * (length - len(y.dims)) + y.dims, strict=True):
        if a is not None and b is not None and a != b and 1 not in (a, b):
            raise InvalidArgumentError(f"Incompatible shapes for broadcasting: {x} and {y}")
        sizes.append(b if a == 1 else a if b == 1 or (a is not None and a > 1) else b if b is not None and b > 1 else a)
    return Shape(sizes)


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape of the result of broadcasting, at run time. shape_x: [m]  shape_y: [n] -> y: [max(m, n)]."""
    return apply_one("BroadcastArgs", [shape_x, shape_y], None)


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """The last two dimensions exchanged. a: [..., m, n] -> y: [..., n, m]."""
    tensor = convert_to_tensor(a)
    if tensor.shape.rank is None:
        places = concat([range(rank(tensor) - 2), [rank(tensor) - 1, rank(tensor) - 2]], 0)
    else:
        known = list(_range(tensor.shape.rank))
        places = constant([*known[:-2], known[-1], known[-2]], int32)
    return transpose(tensor, places, name, conjugate)


def _others(length: int, axes: Sequence[int]) -> list[int]:
    """The axes of a tensor of rank `length` besides `axes`."""
    return [axis for axis in _range(length) if axis not in axes]


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum of products over pairs of dimensions.

    Args:
        a, b: tensors of known shape, but for one size in each that remains.
        axes: the number of last dimensions of `a` that meet the first of `b`, or the two lists of dimensions that meet.
        name: the name scope.
    """
    with name_scope(name or "Tensordot"):
        a = convert_to_tensor(a)
        b = convert_to_tensor(b, a.dtype.base)
        ranks = [tensor.shape.rank for tensor in (a, b)]
        if ranks[0] is None or ranks[1] is None:
            raise InvalidArgumentError("tensordot: required tensors of known rank")
        if isinstance(axes, int):
            pairs = [list(_range(ranks[0] - axes, ranks[0])), list(_range(axes))]
        else:
            pairs = [[each] if isinstance(each, int) else [int(axis) for axis in each] for each in axes]
        pairs = [[axis % length for axis in each] for each, length in zip(pairs, (ranks[0], ranks[1]), strict=True)]
        free = [_others(length, each) for each, length in zip(pairs, (ranks[0], ranks[1]), strict=True)]
        sizes = [gather(shape(tensor), constant(kept, int32)) for tensor, kept in zip((a, b), free, strict=True)]
        met = reduction("Prod", gather(shape(a), constant(pairs[0], int32)), [0])
        left = reshape(transpose(a, constant(free[0] + pairs[0], int32)), stack([-1, met]))
        right = reshape(transpose(b, constant(pairs[1] + free[1], int32)), stack([met, -1]))
        result = reshape(matmul(left, right), concat(sizes, 0))
        result.set_shape([*[a.shape[i].value for i in free[0]], *[b.shape[i].value for i in free[1]]])
        return result
