"""Joining and splitting tensors: concatenation, packing, splitting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference import partial_rules
from graphcore.inference.shape_fns.common_shape_fns import (
    concat_offset_shape,
    concat_shape,
    concat_v2_shape,
    pack_shape,
    split_shape,
    split_v_shape,
    unpack_shape,
)
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.gradient_text import index_type, list_to_array, required_int
from graphcore.opset.framework.kernels import constant_int, constant_ints, ints, invalid, normal_axis, one_int
from graphcore.opset.framework.type_sets import INDEX
from graphcore.traits import FailsOn

_A: Final = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
_B: Final = [[-1.0, -2.0, -3.0]]
_C: Final = [[7.0], [8.0]]


def _concat_grad(*, dim_first: bool) -> Callable[[Attrs], str]:
    """One Slice for each input, at its offset in the joined tensor."""

    def gradient(attrs: Attrs) -> str:
        count = required_int(attrs, "N")
        dtype = "int32" if dim_first else index_type(attrs, "Tidx").text
        dim = "dim" if dtype == "int32" else "dim_32:y:0"
        slices = "".join(f"  dx_{i} = Slice[Index=int32, T=$T](dy, offset:offset:{i}, shapes:output:{i})\n" for i in range(count))
        joined = list_to_array(attrs, [f"dx_{i}:output:0" for i in range(count)])
        head = (
            f"dim:{dtype}, x:N*T, dy:T) -> (d_dim:{dtype}, dx:N*T)"
            if dim_first
            else f"x:N*T, dim:{dtype}, dy:T) -> (dx:N*T, d_dim:{dtype})"
        )
        return (
            f"_[T:type, N:int]({head} {{\n"
            + ("" if dtype == "int32" else f"  dim_32 = Cast[DstT=int32, SrcT={dtype}](dim)\n")
            + "  shapes = ShapeN[N=$N, T=$T](x)\n"
            f"  offset = ConcatOffset[N=$N]({dim}, shapes:output)\n"
            f"  d_dim = ZerosLike[T={dtype}](dim)\n"
            f"  dx = {joined}\n"
            f"{slices}"
            "  return dx = dx:output\n"
            "  return d_dim = d_dim:y:0\n"
            "}"
        )

    return gradient


def _joined(k: KernelContext, values: tuple[Any, ...], axis: int) -> Any:
    if not values[0].shape:
        raise invalid(k, "Can't concatenate scalars")
    return k.xp.concatenate(values, normal_axis(k, axis, values[0].ndim))


@op
class Concat:
    """Joins tensors along one dimension; the others must agree.

    concat_dim: the dimension, a scalar
    """

    pure = True
    signature = "Concat[N:int >= 2, T:type](concat_dim:int32, values:N*T) -> (output:T)"
    layer = "concatenation"
    shape = concat_shape
    partial_rule = partial_rules.CONCAT_AXIS_FIRST
    can_fail = FailsOn(values=("concat_dim",))
    gradient = _concat_grad(dim_first=True)
    examples = (Example([0, [_A, _B]]), Example([1, [_A, _C]]))
    failures = (Example([-1, [_A, _B]]),)

    def kernel(k: KernelContext) -> Kernel:
        constant_axis = constant_int(k, 0)
        return lambda dim, *values: _joined(k, values, one_int(k, dim) if constant_axis is None else constant_axis)


@op
class ConcatV2:
    """Joins tensors along one dimension; the others must agree.

    axis: the dimension, a scalar in [-rank, rank)
    """

    pure = True
    signature = f"ConcatV2[N:int >= 2, T:type, Tidx:{INDEX} = int32](values:N*T, axis:Tidx) -> (output:T)"
    layer = "concatenation"
    shape = concat_v2_shape
    partial_rule = partial_rules.CONCAT_AXIS_LAST
    can_fail = FailsOn(values=("axis",))
    gradient = _concat_grad(dim_first=False)
    examples = (Example([[_A, _B], 0]), Example([[_A, _C, _A], -1]))
    failures = (Example([[_A, _B], -1]),)

    def kernel(k: KernelContext) -> Kernel:
        constant_axis = constant_int(k, required_int(k.attrs, "N"))
        return lambda *values: _joined(k, values[:-1], one_int(k, values[-1]) if constant_axis is None else constant_axis)


@op
class ConcatOffset:
    """The offsets of several tensors in their concatenation.

    concat_dim: the dimension along which they are joined
    shape: their shapes
    offset: one index a dimension, for each tensor
    """

    pure = True
    signature = f"ConcatOffset[N:int >= 2, shape_type:{INDEX} = int32](concat_dim:int32, shape:N*shape_type) -> (offset:N*shape_type)"
    shape = concat_offset_shape
    gradient = NO_GRADIENT
    examples = (Example([1, [[2, 2, 7], [2, 3, 7], [2, 9, 7]]], outputs=[[0, 0, 0], [0, 2, 0], [0, 5, 0]]),)
    failures = (Example([-1, [[2, 2, 7], [2, 3, 7], [2, 9, 7]]]),)

    def kernel(k: KernelContext) -> Kernel:
        def offsets(dim: Any, *shapes: Any) -> Any:
            axis = normal_axis(k, one_int(k, dim), len(shapes[0]))
            result, position = [], 0
            for i, shape in enumerate(shapes):
                differs = (shape != shapes[0]).nonzero()[0].tolist() if len(shape) == len(shapes[0]) else [-1]
                if set(differs) - {axis}:
                    raise invalid(
                        k, f"input[{i}] of shape {shape.tolist()} and input[0] of shape {shapes[0].tolist()} differ beside dimension {axis}"
                    )
                offset = k.xp.zeros_like(shape)
                offset[axis] = position
                position += int(shape[axis])
                result.append(offset)
            return tuple(result)

        return offsets


@op
class Pack(Total):
    """Joins equally shaped tensors along a new dimension.

    axis: the position of the new dimension, in [-1 - rank, rank].
    """

    pure = True
    signature = "Pack[N:int, T:type, axis:int = 0](values:N*T) -> (output:T)"
    shape = pack_shape
    partial_rule = partial_rules.PACK
    gradient = """_[T:type, N:int, axis:int](x:N*T, dy:T) -> (dx:N*T) {
      dx = Unpack[T=$T, axis=$axis, num=$N](dy)
      return dx = dx:output
    }"""
    examples = (
        Example([[1.0, 2.0]], outputs=[[1.0, 2.0]], attrs={"N": 2}),
        Example([[_A, _A, _A]], {"axis": -1}),
        Example([[_B]], {"axis": 1}),
    )

    def kernel(k: KernelContext) -> Kernel:
        stack, array, dtype, axis = k.xp.stack, k.xp.array, k.dtype("T"), k.attr("axis")

        def pack(*values: Any) -> Any:
            if not values[0].shape and dtype != np.object_:  # NumPy would put the arrays of scalar strings into one another
                return array(values, dtype)
            return stack(values, axis)

        return pack


@op
class Unpack:
    """Splits a tensor along one dimension, which is removed from the parts.

    num: the size of that dimension.
    axis: the dimension, in [-rank, rank).
    """

    pure = True
    signature = "Unpack[num:int >= 0, T:type, axis:int = 0](value:T) -> (output:num*T)"
    shape = unpack_shape
    partial_rule = partial_rules.UNPACK
    can_fail = False
    gradient = """[T:type, num:int, axis:int](x:T, dy:num*T) -> (dx:T) {
      dx = Pack[N=$num, T=$T, axis=$axis](dy)
    }"""
    examples = (Example([_A], {"num": 2}, outputs=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), Example([_A], {"num": 3, "axis": -1}))

    def kernel(k: KernelContext) -> Kernel:
        num, axis = required_int(k.attrs, "num"), required_int(k.attrs, "axis")

        def unpack(x: Any) -> Any:
            where = normal_axis(k, axis, x.ndim)
            if x.shape[where] != num:
                raise invalid(k, f"Input shape axis {axis} must equal {num}, got shape {list(x.shape)}")
            before = (slice(None),) * where
            parts = tuple([x[(*before, i)] for i in range(num)])
            return parts if num != 1 else parts[0]

        return unpack


def _parts(x: Any, axis: int, sizes: tuple[int, ...]) -> Any:
    before = (slice(None),) * axis
    parts, begin = [], 0
    for size in sizes:
        parts.append(x[(*before, slice(begin, begin + size))])
        begin += size
    return tuple(parts) if len(parts) != 1 else parts[0]


def _together(attrs: Attrs) -> str:
    """The pieces concatenated; a Concat takes at least two."""
    return "Identity[T=$T](dy)" if attrs.get("num_split") == 1 else "Concat[N=$num_split, T=$T](dim, dy)"


@op
class Split:
    """Splits a tensor into equal pieces along one dimension.

    split_dim: the dimension, a scalar in [-rank, rank)
    num_split: the number of pieces; it must divide the dimension.
    """

    pure = True
    signature = "Split[num_split:int, T:type](split_dim:int32, value:T) -> (output:num_split*T)"
    shape = split_shape
    can_fail = FailsOn(values=("split_dim",))
    examples = (
        Example([0, _A], {"num_split": 2}, outputs=[[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]]),
        Example([-1, _A], {"num_split": 3}),
        Example([1, _A], {"num_split": 1}, outputs=[_A]),
    )
    failures = (Example([-1, _A], {"num_split": 2}),)

    def gradient(attrs: Attrs) -> str:
        return f"""[T:type, num_split:int](dim:int32, x:T, dy:num_split*T) -> (d_dim:int32, dx:T) {{
          d_dim = ZerosLike[T=int32](dim)
          dx = {_together(attrs)}
        }}"""

    def kernel(k: KernelContext) -> Kernel:
        count, constant_axis = required_int(k.attrs, "num_split"), constant_int(k, 0)

        def split(dim: Any, x: Any) -> Any:
            axis = normal_axis(k, one_int(k, dim) if constant_axis is None else constant_axis, x.ndim)
            size, rest = divmod(x.shape[axis], count)
            if rest:
                raise invalid(
                    k,
                    f"Number of ways to split should evenly divide the split dimension, but got split_dim {axis} (size = {x.shape[axis]}) and num_split {count}",
                )
            return _parts(x, axis, (size,) * count)

        return split


@op
class SplitV:
    """Splits a tensor into pieces of given sizes along one dimension.

    size_splits: the sizes, [num_split]; one of them may be -1 and stands for the rest
    split_dim: the dimension, a scalar in [-rank, rank)
    """

    pure = True
    signature = "SplitV[num_split:int, T:type, Tlen:{int8, int32, int64} = int64](value:T, size_splits:Tlen, split_dim:int32) -> (output:num_split*T)"
    shape = split_v_shape
    can_fail = FailsOn(values=("size_splits", "split_dim"))
    examples = (
        Example([_A, [1, 2], 1], {"num_split": 2}, outputs=[[[1.0], [4.0]], [[2.0, 3.0], [5.0, 6.0]]]),
        Example([_A, np.array([1, -1, 1]), -1], {"num_split": 3}),
        # Equal in both, because for a single piece TensorFlow checks the last dimension if the axis is unknown.
        Example([[[1.0, 2.0], [3.0, 4.0]], [2], 0], {"num_split": 1}, outputs=[[[1.0, 2.0], [3.0, 4.0]]]),
    )
    failures = (Example([_A, [-1, -1], 1], {"num_split": 2}),)

    def gradient(attrs: Attrs) -> str:
        return f"""[T:type, Tlen:type, num_split:int](x:T, size_splits:Tlen, dim:int32, dy:num_split*T) -> (dx:T, d_size_splits:Tlen, d_dim:int32) {{
          dx = {_together(attrs)}
          d_size_splits = ZerosLike[T=$Tlen](size_splits)
          d_dim = ZerosLike[T=int32](dim)
        }}"""

    def kernel(k: KernelContext) -> Kernel:
        constant_sizes = constant_ints(k, 1)

        def split(x: Any, size_splits: Any, dim: Any) -> Any:
            axis = normal_axis(k, one_int(k, dim), x.ndim)
            listed_sizes = ints(size_splits) if constant_sizes is None else constant_sizes
            if len(listed_sizes) == 1 and listed_sizes[0] != x.shape[axis]:  # also for a size of -1
                text = f"Input size: {x.shape[axis]} output size: {listed_sizes[0]}"
                raise invalid(k, f"If there is only one output, it must have the same size as the input. {text}")
            left = x.shape[axis] - sum(size for size in listed_sizes if size >= 0)
            sizes = tuple([left if size == -1 else size for size in listed_sizes])
            if min(sizes) < 0 or sum(sizes) != x.shape[axis] or listed_sizes.count(-1) > 1:
                raise invalid(
                    k,
                    f"Determined shape must either match input shape along split_dim exactly if fully specified, or be less than the size of the input along split_dim if not fully specified.  Got: {list(listed_sizes)} for size {x.shape[axis]}",
                )
            return _parts(x, axis, sizes)

        return split
