"""Discrete Fourier transforms over the last one, two or three dimensions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape_with_rank_at_least
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.gradient_text import scalar
from graphcore.opset.framework.kernels import invalid
from graphcore.registry import KernelFactory

_TYPES: Final = "Tcomplex:{complex64, complex128} = complex64"
_Z: Final = np.array([[[1 + 2j, -1j, 3, 0.5], [2, 0, 1 - 1j, -2]]], np.complex64)


def _transform(name: str, rank: int) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        transform, dtype, axes = getattr(k.xp.fft, name), k.dtype("Tcomplex"), tuple(range(-rank, 0))

        def run(x: Any) -> Any:
            if x.ndim < rank:
                raise invalid(k, f"Input must have rank of at least {rank} but got: {list(x.shape)}")
            return transform(x, None, axes).astype(dtype, copy=False) if x.size else x

        return run

    return kernel


def _gradient(other: str, rank: int, *, divide: bool) -> str:
    """The gradient of the linear transform: the inverse transform, scaled by the number of elements."""
    return f"""[Tcomplex:type](x:Tcomplex, dy:Tcomplex) -> (dx:Tcomplex) {{
      shape = Shape[T=$Tcomplex](dy)
      first = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: {-rank}>]()
      step = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: 1>]()
      end = Const[dtype=int32, value=Tensor<type: int32 shape: [1] values: 0>]()
      sizes = StridedSlice[T=int32, Index=int32, end_mask=1](shape, first, end, step)
      axis = {scalar("int32", 0)}
      count = Prod[T=int32](sizes, axis)
      factor = Cast[SrcT=int32, DstT=$Tcomplex](count)
      turned = {other}[Tcomplex=$Tcomplex](dy)
      dx = {"RealDiv" if divide else "Mul"}[T=$Tcomplex](turned, factor)
    }}"""


def _fourier(rank: int, suffix: str, dimensions: str, examples: tuple[Example, ...]) -> None:
    """Register the transform over the last `rank` dimensions and its inverse."""

    def shape(c: InferenceContext) -> None:
        unchanged_shape_with_rank_at_least(c, rank=rank)

    for name, other, text, is_inverse in (
        (f"FFT{suffix}", f"IFFT{suffix}", "", False),
        (f"IFFT{suffix}", f"FFT{suffix}", "inverse ", True),
    ):
        define_op(
            name,
            f"The {text}Fourier transform over the last {dimensions}.",
            Total,
            signature=f"{name}[{_TYPES}](input:Tcomplex) -> (output:Tcomplex)",
            shape=shape,
            cost="transform",
            kernel=_transform("ifftn" if is_inverse else "fftn", rank),
            gradient=_gradient(other, rank, divide=is_inverse),
            examples=examples,
        )


_fourier(1, "", "dimension", (Example([_Z]), Example([_Z[0, 0, :3]])))
_fourier(2, "2D", "two dimensions", (Example([_Z]), Example([_Z[0, :, :3]])))
_fourier(3, "3D", "three dimensions", (Example([_Z]),))
