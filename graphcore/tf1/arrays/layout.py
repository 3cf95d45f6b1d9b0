"""Shapes, layouts and copies of tensors, under TensorFlow 1's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from graphcore.dtypes import DType, as_dtype, float32, int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.graph import convert_to_tensor as as_tensor
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.calls import apply_one, either
from graphcore.tf1.framework import constant, ones, zeros

newaxis: Final = None
"""A new dimension of size 1 in an index: `x[:, gc.newaxis]`."""


def identity(input: Any, name: str | None = None) -> Tensor:
    """The same value."""
    return apply_one("Identity", [input], name)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """The same value, but gradients do not flow through it."""
    return apply_one("StopGradient", [input], name)


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same elements in another shape; one size may be -1."""
    return apply_one("Reshape", [tensor, [int(size) for size in shape] if _is_empty(shape) else shape], name)


def _is_empty(shape: Any) -> bool:
    return isinstance(shape, list | tuple) and not shape


def shape(input: Any, name: str | None = None, out_type: object = int32) -> Tensor:
    """The shape at run time. input: any -> y: [rank] of `out_type`."""
    wanted = as_dtype(out_type or int32)
    return apply_one("Shape", [input], name, None if wanted is int32 else {"out_type": wanted})


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions at run time, int32."""
    return apply_one("Rank", [input], name)


def size(input: Any, name: str | None = None, out_type: object = int32) -> Tensor:
    """The number of elements at run time."""
    wanted = as_dtype(out_type or int32)
    return apply_one("Size", [input], name, None if wanted is int32 else {"out_type": wanted})


def ensure_shape(x: Any, shape: object, name: str | None = None) -> Tensor:
    """`x`, whose shape must be compatible with `shape` at run time."""
    return apply_one("EnsureShape", [x], name, {"shape": as_shape(shape)})


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


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Insert a dimension of size 1 at `axis` (or `dim`)."""
    return apply_one("ExpandDims", [input, either("axis", axis, "dim", dim)], name)


def squeeze(
    input: Any, axis: int | Sequence[int] | None = None, name: str | None = None, squeeze_dims: int | Sequence[int] | None = None
) -> Tensor:
    """Remove dimensions of size 1: those in `axis` (or `squeeze_dims`), or all."""
    axes = either("axis", axis, "squeeze_dims", squeeze_dims)
    dims = [] if axes is None else [axes] if isinstance(axes, int) else list(axes)
    return apply_one("Squeeze", [input], name, {"squeeze_dims": dims})


def transpose(a: Any, perm: Any = None, name: str | None = "transpose", conjugate: bool = False) -> Tensor:
    """Permute the dimensions to the order `perm`; reverse them without one."""
    graph = get_default_graph()
    tensor = as_tensor(graph, a, None, "input of transpose")
    op = "ConjugateTranspose" if conjugate and tensor.dtype.is_complex else "Transpose"
    if perm is not None:
        return apply_one(op, [tensor, perm], name or "transpose")
    rank = tensor.shape.rank
    if rank is not None:
        return apply_one(op, [tensor, constant(list(range(rank))[::-1], int32)], name or "transpose")
    with graph.name_scope(name or "transpose") as scope:
        last = apply_one("Sub", [apply_one("Rank", [tensor], "Rank"), 1], "sub")
        return apply_one(op, [tensor, apply_one("Range", [last, -1, -1], "Range")], scope)


def zeros_like(tensor: Any, dtype: object = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Zeros of the same shape, and of the same or another dtype."""
    return _alike("ZerosLike", tensor, dtype, name or "zeros_like", optimize)


def ones_like(tensor: Any, dtype: object = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Ones of the same shape, and of the same or another dtype."""
    return _alike("OnesLike", tensor, dtype, name or "ones_like", optimize)


def _alike(op: str, x: Any, dtype: object, name: str, optimize: bool) -> Tensor:
    tensor = as_tensor(get_default_graph(), x, None, f"input of {name}")
    wanted = tensor.dtype.base if dtype is None else as_dtype(dtype)
    if wanted is tensor.dtype.base:
        return apply_one(op, [tensor], name)
    make = zeros if op.startswith("Zeros") else ones
    if optimize and tensor.shape.is_fully_defined:
        return make(tensor.shape, wanted, name)
    return make(shape(tensor), wanted, name)


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Join tensors along `axis`."""
    parts = values if isinstance(values, list | tuple) else [values]
    if len(parts) == 1:
        return identity(parts[0], name)
    return apply_one("ConcatV2", [list(parts), axis], name)


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Stack tensors of one shape along a new `axis`."""
    return apply_one("Pack", [list(values)], name, {"axis": axis})


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


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: object = None,
    name: str | None = None,
) -> Tensor:
    """Rows that are `on_value` at the index and `off_value` elsewhere. indices: [...] -> y: [..., depth].

    Args:
        indices: ints; one outside of the depth makes a row of `off_value`.
        depth: the number of classes.
        on_value, off_value: 1 and 0 by default.
        axis: the new dimension; the last one by default.
        dtype: the dtype of the result; that of the values, or float32, by default.
        name: the name of the node.
    """
    graph = get_default_graph()
    wanted = None if dtype is None else as_dtype(dtype)
    for value in (on_value, off_value):
        if wanted is None and value is not None:
            wanted = as_tensor(graph, value, None, "value of one_hot").dtype.base if isinstance(value, Tensor) else None
            wanted = wanted or constant(value).dtype
    wanted = wanted or float32
    on = constant(_number(1, wanted), wanted) if on_value is None else as_tensor(graph, on_value, wanted, "on_value of one_hot")
    off = constant(_number(0, wanted), wanted) if off_value is None else as_tensor(graph, off_value, wanted, "off_value of one_hot")
    return apply_one("OneHot", [indices, depth, on, off], name or "one_hot", None if axis is None else {"axis": axis})


def _number(value: int, dtype: DType) -> Any:
    return value == 1 if dtype.is_bool else value
