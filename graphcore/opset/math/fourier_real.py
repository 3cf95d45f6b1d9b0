"""Discrete Fourier transforms between real numbers and half of their spectrum."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op
from graphcore.opset.framework.gradient_text import scalar, vector
from graphcore.opset.framework.kernels import constant_ints, ints, invalid
from graphcore.registry import KernelFactory
from graphcore.support.memory_limits import check_allocation

_TYPES: Final = "Treal:{float, double} = float, Tcomplex:{complex64, complex128} = complex64"
_GIVEN: Final = "Treal=$Treal, Tcomplex=$Tcomplex"
_X: Final = (np.arange(24, dtype=np.float32) ** 2 % 17 / 4).reshape(2, 3, 4)
_Z: Final = np.array([[[1, -1j, 3, 0.5], [2, 0, 1 - 1j, -2], [1j, 2, 0.25, 1]]], np.complex64)


def _fitted(name: str, source: str, dtype: str, sizes: str) -> str:
    """The lines that cut a tensor to sizes, or fill it up with zeros."""
    return f"""
      {name}_now = Shape[T={dtype}]({source})
      {name}_gap = Sub[T=int32]({sizes}, {name}_now)
      {name}_zeros = ZerosLike[T=int32]({name}_gap)
      {name}_missing = Maximum[T=int32]({name}_gap, {name}_zeros)
      {name}_paddings = Pack[T=int32, N=2, axis=1]({name}_zeros, {name}_missing)
      {name}_padded = Pad[T={dtype}, Tpaddings=int32]({source}, {name}_paddings)
      {name} = Slice[T={dtype}, Index=int32]({name}_padded, {name}_zeros, {sizes})"""


_CONSTANTS: Final = f"""zero = {scalar("int32", 0)}
      one = {scalar("int32", 1)}
      two = {scalar("int32", 2)}
      first = {vector("int32", 0)}
      last = {vector("int32", -1)}
      step = {vector("int32", 1)}
      length = StridedSlice[T=int32, Index=int32, end_mask=1](fft_length, last, first, step)
      count = Prod[T=int32](fft_length, zero)"""


def _forward_gradient(suffix: str) -> str:
    """The real part of the sum over the given half of the spectrum, with zeros in the other half."""
    return f"""[Treal:type, Tcomplex:type](x:Treal, fft_length:int32, dy:Tcomplex) -> (dx:Treal, dfft_length:int32) {{
      {_CONSTANTS}
      half_sizes = Shape[T=$Tcomplex](dy)
      leading = StridedSlice[T=int32, Index=int32, begin_mask=1](half_sizes, first, last, step)
      whole_sizes = ConcatV2[N=2, T=int32](leading, length, zero)
      {_fitted("whole", "dy", "$Tcomplex", "whole_sizes")}
      turned = IFFT{suffix}[Tcomplex=$Tcomplex](whole)
      real = Real[T=$Tcomplex, Tout=$Treal](turned)
      factor = Cast[SrcT=int32, DstT=$Treal](count)
      scaled = Mul[T=$Treal](real, factor)
      sizes = Shape[T=$Treal](x)
      {_fitted("dx", "scaled", "$Treal", "sizes")}
      dfft_length = ZerosLike[T=int32](fft_length)
    }}"""


def _inverse_gradient(suffix: str) -> str:
    """The transform, in which all counts twice but what has no mirror image.

    That is the first number and, of an even length, the last.
    """
    return f"""[Treal:type, Tcomplex:type](x:Tcomplex, fft_length:int32, dy:Treal) -> (dx:Tcomplex, dfft_length:int32) {{
      {_CONSTANTS}
      turned = RFFT{suffix}[{_GIVEN}](dy, fft_length)
      half_sizes = Shape[T=$Tcomplex](turned)
      half_length = StridedSlice[T=int32, Index=int32, end_mask=1](half_sizes, last, first, step)
      size = Squeeze[T=int32](half_length)
      places = Range(zero, size, one)
      is_first = Equal[T=int32](places, zero)
      doubled = Mul[T=int32](places, two)
      is_middle = Equal[T=int32](doubled, length)
      is_alone = LogicalOr(is_first, is_middle)
      weight = SelectV2[T=int32](is_alone, one, two)
      weight_T = Cast[SrcT=int32, DstT=$Tcomplex](weight)
      count_T = Cast[SrcT=int32, DstT=$Tcomplex](count)
      weighted = Mul[T=$Tcomplex](turned, weight_T)
      scaled = RealDiv[T=$Tcomplex](weighted, count_T)
      sizes = Shape[T=$Tcomplex](x)
      {_fitted("dx", "scaled", "$Tcomplex", "sizes")}
      dfft_length = ZerosLike[T=int32](fft_length)
    }}"""


def _transform(name: str, rank: int, output: str) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        transform, dtype, axes, constant_sizes = getattr(k.xp.fft, name), k.dtype(output), tuple(range(-rank, 0)), constant_ints(k, 1)

        def run(x: Any, fft_length: Any) -> Any:
            sizes = ints(fft_length) if constant_sizes is None else constant_sizes
            if x.ndim < rank:
                raise invalid(k, f"Input must have rank of at least {rank} but got: {list(x.shape)}")
            if len(sizes) != rank or min(sizes) < 1:
                raise invalid(k, f"fft_length must have {rank} positive elements but got: {list(sizes)}")
            needed = [*sizes[:-1], sizes[-1] if output == "Tcomplex" else sizes[-1] // 2 + 1]
            if x.size and any(in_size < size for in_size, size in zip(x.shape[-rank:], needed, strict=True)):
                raise invalid(k, f"The last dimensions of the input must be at least {needed} but got: {list(x.shape)}")
            check_allocation([*x.shape[:-rank], *sizes[:-1], sizes[-1] // 2 + 1 if output == "Tcomplex" else sizes[-1]], dtype)
            return transform(x, sizes, axes).astype(dtype, copy=False)

        return run

    return kernel


def _shape(rank: int, *, halves: bool) -> Any:
    """The sizes of fft_length in the last dimensions; the half of the last one for a spectrum."""

    def shape(c: InferenceContext) -> None:
        in_shape = c.with_rank_at_least(c.input(0), rank)
        c.with_value(c.dim(c.with_rank(c.input(1), 1), 0), rank)
        if in_shape.dims is None:
            c.set_output(0, in_shape)
            return
        constant_sizes = c.input_tensor(1)
        sizes = [None] * rank if constant_sizes is None else [int(size) for size in constant_sizes.reshape(-1)]
        for place, size in enumerate(sizes):
            half_size = size // 2 + 1 if size is not None and halves and place == rank - 1 else size
            in_shape = c.replace_dim(in_shape, place - rank, c.unknown_dim() if half_size is None else c.make_dim(half_size))
        c.set_output(0, in_shape)

    return shape


def _real(rank: int, suffix: str, dimensions: str) -> None:
    """Register the transform of real numbers over the last `rank` dimensions, and its inverse."""
    shared: dict[str, Any] = {"cost": "transform", "memory": "fresh"}
    lengths = [[4], [3, 4], [2, 3, 4]][rank - 1], [[3], [2, 3], [1, 3, 2]][rank - 1]
    define_op(
        f"RFFT{suffix}",
        f"""The Fourier transform of real numbers over the last {dimensions}: the half of the spectrum that is not mirrored.

        fft_length: the sizes; the input is cut to them, [{rank}]
        output: [..., fft_length / 2 + 1]
        """,
        signature=f"RFFT{suffix}[{_TYPES}](input:Treal, fft_length:int32) -> (output:Tcomplex)",
        shape=_shape(rank, halves=True),
        kernel=_transform("rfftn", rank, "Tcomplex"),
        gradient=_forward_gradient(suffix),
        # The sweeps of gradients have no complex results of real numbers: tests/graphcore/opset/math/test_real_fourier.py has these.
        examples=tuple([Example([_X, sizes], differentiable=False) for sizes in lengths]),
        failures=(Example([_X, [-1] * rank]),),
        **shared,
    )
    define_op(
        f"IRFFT{suffix}",
        f"""The real numbers of a half spectrum over the last {dimensions}: the inverse of RFFT{suffix}.

        fft_length: the sizes of the output; the input is cut to them, [{rank}]
        output: [..., fft_length]
        """,
        signature=f"IRFFT{suffix}[{_TYPES}](input:Tcomplex, fft_length:int32) -> (output:Treal)",
        shape=_shape(rank, halves=False),
        kernel=_transform("irfftn", rank, "Treal"),
        gradient=_inverse_gradient(suffix),
        examples=tuple([Example([_Z, sizes]) for sizes in ([[6], [3, 6], [1, 3, 6]][rank - 1], [[7], [2, 7], [1, 3, 7]][rank - 1])]),
        failures=(Example([_Z, [-1] * rank]),),
        **shared,
    )


_real(1, "", "dimension")
_real(2, "2D", "two dimensions")
_real(3, "3D", "three dimensions")
