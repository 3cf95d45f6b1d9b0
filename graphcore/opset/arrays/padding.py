"""Padding and reversing."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.errors import InvalidArgumentError
from graphcore.inference.shape_fns.common_shape_fns import pad_shape
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import INDEX_TYPE, index_type, index_typed, vector
from graphcore.opset.framework.kernels import constant_ints, ints, invalid
from graphcore.opset.framework.type_sets import INDEX
from graphcore.traits import FailsOn

_X: Final = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def _padded(k: KernelContext, x: Any, flat: tuple[int, ...], value: Any) -> Any:
    before, after = flat[::2], flat[1::2]
    if len(before) != x.ndim or min(flat, default=0) < 0:
        raise invalid(k, f"The paddings must be {x.ndim} pairs of numbers >= 0 for an input of shape {list(x.shape)}, got {list(flat)}")
    sizes = [b + n + a for b, n, a in zip(before, x.shape, after, strict=True)]
    result = k.xp.zeros(sizes, x.dtype) if value is None else k.xp.full(sizes, value, x.dtype)
    result[tuple([slice(b, b + n) for b, n in zip(before, x.shape, strict=True)])] = x
    return result


def _pad_grad(attrs: Attrs) -> str:
    """The part of dy that is not padding."""
    text = f"""[T:type, Tpaddings:{{int32, int64}}](x:T, paddings:{INDEX_TYPE}, dy:T) -> (dx:T, dpaddings:{INDEX_TYPE}) {{
      rank = Rank[T=$T](x)
      one = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 1>]()
      column = Pack[N=2, T=int32](rank, one)
      zeros = {vector("int32", 0, 0)}
      before = Slice[Index=int32, T=$Tpaddings](paddings, zeros, column)
      flat = {vector("int32", -1)}
      begin = Reshape[T=$Tpaddings](before, flat)
      size = Shape[T=$T, out_type=$Tpaddings](x)
      dx = Slice[Index=$Tpaddings, T=$T](dy, begin, size)
      dpaddings = ZerosLike[T=$Tpaddings](paddings)
    }}"""
    return index_typed("Tpaddings", text)(attrs)


@op
class Pad:
    """Adds zeros around a tensor.

    paddings: the numbers before and after, for each dimension, [rank, 2]
    """

    pure = True
    signature = f"Pad[T:type, Tpaddings:{INDEX} = int32](input:T, paddings:Tpaddings) -> (output:T)"
    shape = pad_shape
    can_fail = FailsOn(values=("paddings",))
    gradient = _pad_grad
    examples = (Example([_X, [[1, 0], [0, 2]]]), Example([_X, np.zeros((2, 2), np.int64)]))
    failures = (Example([_X, [[-1, -1], [-1, -1]]]),)

    def kernel(k: KernelContext) -> Kernel:
        constant_paddings = constant_ints(k, 1)
        return lambda x, paddings: _padded(k, x, ints(paddings) if constant_paddings is None else constant_paddings, None)


@op
class PadV2:
    """Adds a constant around a tensor.

    paddings: the numbers before and after, for each dimension, [rank, 2]
    constant_values: the constant, a scalar
    """

    pure = True
    signature = f"PadV2[T:type, Tpaddings:{INDEX} = int32](input:T, paddings:Tpaddings, constant_values:T) -> (output:T)"
    shape = pad_shape
    can_fail = FailsOn(values=("paddings",))
    examples = (Example([_X, [[1, 0], [0, 2]], 7.0]),)
    failures = (Example([_X, [[-1, -1], [-1, -1]], 7.0]),)

    # The gradient of the constant is the sum over the padding.
    def gradient(attrs: Attrs) -> str:
        head = _pad_grad(attrs).rsplit("}", 1)[0]
        head = head.replace(", dy:T) -> (dx:T,", ", value:T, dy:T) -> (dx:T,").replace(") {", ", dvalue:T) {", 1)
        return f"""{head}
      zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
      axes = Range(zero, rank, one)
      all = Sum[T=$T](dy, axes)
      inside = Sum[T=$T](dx, axes)
      dvalue = Sub[T=$T](all, inside)
    }}"""

    def kernel(k: KernelContext) -> Kernel:
        constant_paddings = constant_ints(k, 1)
        return lambda x, paddings, value: _padded(k, x, ints(paddings) if constant_paddings is None else constant_paddings, value)


def _mirror_index(k: KernelContext, size: int, before: int, after: int) -> Any:
    """The source index of each element of a padded dimension."""
    edge = 1 if k.attr("mode") == b"REFLECT" else 0
    if max(before, after) > size - edge or min(before, after) < 0:
        raise invalid(k, f"paddings must be in [0, {size - edge}] for a dimension of {size}, got ({before}, {after})")
    inside = np.arange(size)
    return np.concatenate([inside[edge : before + edge][::-1], inside, inside[size - after - edge : size - edge][::-1]])


@op
class MirrorPad:
    """Adds to a tensor its own mirror image on each side.

    paddings: the numbers before and after, for each dimension, [rank, 2]
    mode: REFLECT leaves the edge itself out of the image, SYMMETRIC repeats it.
    """

    pure = True
    signature = f"MirrorPad[T:type, Tpaddings:{INDEX} = int32, mode:{{'REFLECT', 'SYMMETRIC'}}](input:T, paddings:Tpaddings) -> (output:T)"
    shape = pad_shape
    gradient = """[T:type, Tpaddings:{int32, int64}, mode:string](x:T, paddings:Tpaddings, dy:T) -> (dx:T, dpaddings:Tpaddings) {
      dx = MirrorPadGrad[T=$T, Tpaddings=$Tpaddings, mode=$mode](dy, paddings)
      dpaddings = ZerosLike[T=$Tpaddings](paddings)
    }"""
    examples = (
        Example([_X, [[1, 1], [2, 0]]], {"mode": "REFLECT"}),
        Example([_X, [[1, 1], [2, 2]]], {"mode": "SYMMETRIC"}),
    )
    failures = (Example([_X, [[-1, -1], [-1, -1]]], {"mode": "REFLECT"}),)

    def kernel(k: KernelContext) -> Kernel:
        constant_paddings = constant_ints(k, 1)

        def pad(x: Any, paddings: Any) -> Any:
            flat = ints(paddings) if constant_paddings is None else constant_paddings
            for axis, (before, after) in enumerate(zip(flat[::2], flat[1::2], strict=True)):
                if before or after:
                    x = x.take(k.xp.asarray(_mirror_index(k, x.shape[axis], before, after)), axis)
            return x

        return pad


def _without_padding(c: InferenceContext) -> None:
    paddings = c.with_rank(c.input(1), 2)
    c.with_value(c.dim(paddings, 1), 2)
    rank = c.dim(paddings, 0).value
    if rank < 0:
        c.set_output(0, c.unknown_shape())
        return
    shape = c.with_rank(c.input(0), rank)
    value = c.input_tensor(1)
    if value is None:
        c.set_output(0, c.unknown_shape_of_rank(rank))
        return
    c.set_output(0, c.make_shape([c.subtract(c.dim(shape, i), int(value[i].sum())) for i in range(len(value))]))


@op
class MirrorPadGrad:
    """The gradient of MirrorPad: each element of the input is added to its source.

    paddings: the numbers before and after, for each dimension, [rank, 2]
    mode: as of the MirrorPad.
    """

    pure = True
    signature = (
        f"MirrorPadGrad[T:type, Tpaddings:{INDEX} = int32, mode:{{'REFLECT', 'SYMMETRIC'}}](input:T, paddings:Tpaddings) -> (output:T)"
    )
    shape = _without_padding
    can_fail = FailsOn(values=("paddings",))
    gradient = """[T:type, Tpaddings:{int32, int64}, mode:string](x:T, paddings:Tpaddings, dy:T) -> (dx:T, dpaddings:Tpaddings) {
      dx = MirrorPad[T=$T, Tpaddings=$Tpaddings, mode=$mode](dy, paddings)
      dpaddings = ZerosLike[T=$Tpaddings](paddings)
    }"""
    examples = (
        Example([[[1.0, 2.0, 3.0, 4.0, 5.0]], [[0, 0], [2, 0]]], {"mode": "REFLECT"}),
        Example([[[1.0, 2.0, 3.0, 4.0, 5.0]], [[0, 0], [1, 2]]], {"mode": "SYMMETRIC"}),
    )
    failures = (Example([[[1.0, 2.0, 3.0, 4.0, 5.0]], [[-1, -1], [-1, -1]]], {"mode": "REFLECT"}),)

    def kernel(k: KernelContext) -> Kernel:
        constant_paddings = constant_ints(k, 1)

        def fold(x: Any, paddings: Any) -> Any:
            flat = ints(paddings) if constant_paddings is None else constant_paddings
            for axis, (before, after) in enumerate(zip(flat[::2], flat[1::2], strict=True)):
                if before or after:
                    x = _folded(k, x, axis, before, after)
            return x

        return fold


def _folded(k: KernelContext, x: Any, axis: int, before: int, after: int) -> Any:
    size = x.shape[axis] - before - after
    source = _mirror_index(k, size, before, after)
    front = k.xp.moveaxis(x, axis, 0)
    result = front[before : before + size].copy()
    for position in (*range(before), *range(before + size, x.shape[axis])):
        result[source[position]] += front[position]
    return k.xp.moveaxis(result, 0, axis)


_REVERSE_TYPES: Final = (
    "{uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, complex64, complex128, string}"
)
_REVERSE_V2_TYPES: Final = (
    "{uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, complex64, complex128, string}"
)


def _reverse_shape(c: InferenceContext) -> None:
    shape, dims = c.input(0), c.with_rank(c.input(1), 1)
    rank = c.dim(dims, 0).value
    if shape.dims is None and rank >= 0:
        shape = c.unknown_shape_of_rank(rank)
    elif shape.dims is not None and rank >= 0 and rank != len(shape.dims):
        raise InvalidArgumentError(
            f"reverse does not work on tensors with more or fewer dimensions than flags: {len(shape.dims)} and {rank}",
            op=c.op,
            node=c.node_name,
        )
    c.set_output(0, shape)


def _reverse_v2_shape(c: InferenceContext) -> None:
    shape = c.input(0)
    c.with_rank(c.input(1), 1)
    axes = c.input_tensor(1)
    if axes is not None and shape.dims is not None:
        seen = set()
        for axis in axes.tolist():
            c.dim(shape, axis)
            seen.add(axis % len(shape.dims))
        if len(seen) < len(axes):
            raise InvalidArgumentError(f"axis specified more than once: {axes.tolist()}", op=c.op, node=c.node_name)
    c.set_output(0, shape)


@op
class Reverse:
    """Reverses the chosen dimensions.

    dims: True for each dimension to reverse, [rank]
    """

    pure = True
    signature = f"Reverse[T:{_REVERSE_TYPES}](tensor:T, dims:bool) -> (output:T)"
    can_fail = False
    memory = "strided view"
    shape = _reverse_shape
    gradient = """[T:type](x:T, d:bool, dy:T) -> (dx:T, dd:bool) {
      dx = Reverse[T=$T](dy, d)
      dd = ZerosLike[T=bool](d)
    }"""
    examples = (Example([_X, [False, True]], outputs=[[[3.0, 2.0, 1.0], [6.0, 5.0, 4.0]]]),)

    def kernel(k: KernelContext) -> Kernel:
        return lambda x, dims: x[tuple([slice(None, None, -1 if turned else None) for turned in dims.tolist()])]


@op
class ReverseV2:
    """Reverses the chosen dimensions.

    axis: the dimensions to reverse, each in [-rank, rank)
    """

    pure = True
    signature = f"ReverseV2[Tidx:{INDEX} = int32, T:{_REVERSE_V2_TYPES}](tensor:T, axis:Tidx) -> (output:T)"
    shape = _reverse_v2_shape
    can_fail = FailsOn(values=("axis",))
    examples = (Example([_X, [1]], outputs=[[[3.0, 2.0, 1.0], [6.0, 5.0, 4.0]]]), Example([_X, [-1, 0]]))
    failures = (Example([_X, [99]]),)

    def gradient(attrs: Attrs) -> str:
        wide = ", Tidx=int64" if index_type(attrs, "Tidx").text == "int64" else ""
        text = f"""[T:type, Tidx:{{int32, int64}}](x:T, d:{INDEX_TYPE}, dy:T) -> (dx:T, dd:{INDEX_TYPE}) {{
          dx = ReverseV2[T=$T{wide}](dy, d)
          dd = ZerosLike[T=$Tidx](d)
        }}"""
        return index_typed("Tidx", text)(attrs)

    def kernel(k: KernelContext) -> Kernel:
        flip = k.xp.flip
        constant_axes = constant_ints(k, 1)
        return lambda x, axis: flip(x, ints(axis) if constant_axes is None else constant_axes)
