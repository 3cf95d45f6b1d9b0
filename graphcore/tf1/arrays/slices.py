"""Parts of tensors, and tensors with parts added, under TensorFlow 1's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcore.dtypes import bool_, int64
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.arrays.layout import concat, expand_dims, reshape, shape, squeeze
from graphcore.tf1.calls import apply_one, either
from graphcore.tf1.framework import convert_to_tensor, name_scope, ones
from graphcore.tf1.math.elementwise import cast
from graphcore.tf1.math.reductions import reduction


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


def extract_image_patches(
    images: Any, ksizes: Any = None, strides: Any = None, rates: Any = None, padding: Any = None, name: str | None = None, sizes: Any = None
) -> Tensor:
    """The window at each place, in the channels. images: [b, h, w, c] -> y: [b, rows, columns, kh * kw * c]."""
    attrs = {"ksizes": either("sizes", sizes, "ksizes", ksizes), "strides": strides, "rates": rates, "padding": padding}
    return apply_one("ExtractImagePatches", [images], name, attrs)


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
