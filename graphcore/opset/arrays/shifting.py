"""Reversing parts of sequences, rolling, and reinterpreting bits."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.dtypes import DType
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape_with_rank_at_least
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import required_int
from graphcore.opset.framework.kernels import constant_ints, ints, invalid
from graphcore.opset.framework.type_sets import INDEX

_X: Final = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]
_BITS: Final = (
    "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, "
    "qint8, quint8, qint16, quint16, qint32}"
)


@op
class ReverseSequence:
    """Reverses the first seq_lengths[i] elements of slice i.

    seq_lengths: [n], where n is the size of the batch dimension
    seq_dim: the dimension to reverse.
    batch_dim: the dimension of the slices.
    """

    pure = True
    signature = (
        "ReverseSequence[seq_dim:int, batch_dim:int = 0, T:type, Tlen:{int32, int64} = int64](input:T, seq_lengths:Tlen) -> (output:T)"
    )
    gradient = """[seq_dim:int, batch_dim:int, T:type, Tlen:type](x:T, lengths:Tlen, dy:T) -> (dx:T, dlengths:Tlen) {
      dx = ReverseSequence[T=$T, Tlen=$Tlen, batch_dim=$batch_dim, seq_dim=$seq_dim](dy, lengths)
      dlengths = ZerosLike[T=$Tlen](lengths)
    }"""
    examples = (
        Example([_X, [2, 4]], {"seq_dim": 1}, outputs=[[[2.0, 1.0, 3.0, 4.0], [8.0, 7.0, 6.0, 5.0]]]),
        Example([_X, [1, 2, 0, 2]], {"seq_dim": 0, "batch_dim": 1}),
    )
    failures = (Example([_X, [-1, -1]], {"seq_dim": 1}),)

    def shape(c: InferenceContext) -> None:
        lengths = c.with_rank(c.input(1), 1)
        seq, batch = c.int_attr("seq_dim"), c.int_attr("batch_dim")
        in_shape = c.with_rank_at_least(c.input(0), max(seq, batch) + 1)
        if in_shape.dims is not None:
            in_shape = c.replace_dim(in_shape, batch, c.merge_dim(c.dim(in_shape, batch), c.dim(lengths, 0)))
        c.set_output(0, in_shape)

    def kernel(k: KernelContext) -> Kernel:
        xp, seq, batch = k.xp, required_int(k.attrs, "seq_dim"), required_int(k.attrs, "batch_dim")

        def reverse(x: Any, lengths: Any) -> Any:
            size = x.shape[seq]
            if lengths.shape != (x.shape[batch],) or (lengths.size and (lengths.max() > size or lengths.min() < 0)):
                raise invalid(k, f"seq_lengths must be {x.shape[batch]} numbers in [0, {size}], got {lengths.tolist()}")
            place = xp.arange(size)
            source = xp.where(place < lengths[:, None], lengths[:, None] - 1 - place, place)
            shape = [1] * x.ndim
            shape[batch], shape[seq] = x.shape[batch], size
            index = source.reshape(shape) if batch < seq else source.T.reshape(shape)
            return xp.take_along_axis(x, index, seq)

        return reverse


def _roll_shape(c: InferenceContext) -> None:
    c.merge(c.with_rank_at_most(c.input(1), 1), c.with_rank_at_most(c.input(2), 1))
    unchanged_shape_with_rank_at_least(c, 1)


@op
class Roll:
    """Shifts elements along axes cyclically.

    shift: the distance, a scalar or one number for each axis
    axis: the axes, a scalar or a vector
    """

    pure = True
    signature = f"Roll[T:type, Tshift:{INDEX}, Taxis:{INDEX}](input:T, shift:Tshift, axis:Taxis) -> (output:T)"
    shape = _roll_shape
    gradient = """[T:type, Tshift:{int32, int64}, Taxis:{int32, int64}](x:T, shift:Tshift, axis:Taxis, dy:T) -> (dx:T, dshift:Tshift, daxis:Taxis) {
      back = Neg[T=$Tshift](shift)
      dx = Roll[T=$T, Taxis=$Taxis, Tshift=$Tshift](dy, back, axis)
      dshift = ZerosLike[T=$Tshift](shift)
      daxis = ZerosLike[T=$Taxis](axis)
    }"""
    examples = (
        Example([_X, 1, 1], outputs=[[[4.0, 1.0, 2.0, 3.0], [8.0, 5.0, 6.0, 7.0]]]),
        Example([_X, [-1, 3], [0, -1]]),
        Example([_X, [1, 2], [1, 1]]),
    )
    failures = (Example([_X, 1, 99]),)

    def kernel(k: KernelContext) -> Kernel:
        roll, shift, axis = k.xp.roll, constant_ints(k, 1), constant_ints(k, 2)

        def shifted(x: Any, s: Any, a: Any) -> Any:
            by, along = ints(s) if shift is None else shift, ints(a) if axis is None else axis
            if len(by) != len(along):
                raise invalid(k, f"shift and axis must have the same size, got {len(by)} and {len(along)}")
            return roll(x, by, along)

        return shifted


@op
class Bitcast:
    """The same bits as another type; the last dimension changes if the sizes of the types differ.

    type: the other type.
    """

    pure = True
    signature = f"Bitcast[T:{_BITS}, type:{_BITS}](input:T) -> (output:type)"
    can_fail = False
    memory = "view"
    gradient = NO_GRADIENT
    examples = (
        Example([[1.0, -2.0]], {"type": "int32"}, outputs=[[1065353216, -1073741824]]),
        Example([[1, 2]], {"type": "uint8"}),
        Example([np.arange(8, dtype=np.uint8)], {"type": "int64"}),
    )

    def shape(c: InferenceContext) -> None:
        source, target = c.attr("T"), c.attr("type")
        in_shape = c.input(0)
        if in_shape.dims is None or not isinstance(source, DType) or not isinstance(target, DType) or source.size == target.size:
            c.set_output(0, in_shape)
        elif source.size > target.size:
            c.set_output(0, c.concatenate(in_shape, c.vector(source.size // target.size)))
        else:
            c.with_value(c.dim(c.with_rank_at_least(in_shape, 1), -1), target.size // source.size)
            c.set_output(0, c.subshape(in_shape, 0, -1))

    def kernel(k: KernelContext) -> Kernel:
        source, target = k.dtype("T"), k.dtype("type")

        def bitcast(x: Any) -> Any:
            x = k.xp.ascontiguousarray(x).reshape(x.shape)
            if source.itemsize == target.itemsize:
                return x.view(target)
            if source.itemsize > target.itemsize:
                return x.reshape(-1).view(target).reshape((*x.shape, source.itemsize // target.itemsize))
            if not x.shape or x.shape[-1] * source.itemsize != target.itemsize:
                raise invalid(
                    k, f"Cannot bitcast from {source} to {target}: the last dimension must be {target.itemsize // source.itemsize}"
                )
            return x.reshape(-1).view(target).reshape(x.shape[:-1])

        return bitcast
