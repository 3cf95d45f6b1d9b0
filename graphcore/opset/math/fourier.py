"""Discrete Fourier transforms over the last one, two or three dimensions."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape_with_rank_at_least
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
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


_SHAPES: Final = {rank: partial(unchanged_shape_with_rank_at_least, rank=rank) for rank in (1, 2, 3)}


def _one(c: InferenceContext) -> None:
    _SHAPES[1](c)


def _two(c: InferenceContext) -> None:
    _SHAPES[2](c)


def _three(c: InferenceContext) -> None:
    _SHAPES[3](c)


@op
class FFT(Total):
    """The Fourier transform over the last dimension."""

    signature = f"FFT[{_TYPES}](input:Tcomplex) -> (output:Tcomplex)"
    shape = _one
    cost = "transform"
    kernel = _transform("fftn", 1)
    gradient = _gradient("IFFT", 1, divide=False)
    examples = (Example([_Z]), Example([_Z[0, 0, :3]]))


@op
class IFFT(Total):
    """The inverse Fourier transform over the last dimension."""

    signature = f"IFFT[{_TYPES}](input:Tcomplex) -> (output:Tcomplex)"
    shape = _one
    cost = "transform"
    kernel = _transform("ifftn", 1)
    gradient = _gradient("FFT", 1, divide=True)
    examples = (Example([_Z]), Example([_Z[0, 0, :3]]))


@op
class FFT2D(Total):
    """The Fourier transform over the last two dimensions."""

    signature = f"FFT2D[{_TYPES}](input:Tcomplex) -> (output:Tcomplex)"
    shape = _two
    cost = "transform"
    kernel = _transform("fftn", 2)
    gradient = _gradient("IFFT2D", 2, divide=False)
    examples = (Example([_Z]), Example([_Z[0, :, :3]]))


@op
class IFFT2D(Total):
    """The inverse Fourier transform over the last two dimensions."""

    signature = f"IFFT2D[{_TYPES}](input:Tcomplex) -> (output:Tcomplex)"
    shape = _two
    cost = "transform"
    kernel = _transform("ifftn", 2)
    gradient = _gradient("FFT2D", 2, divide=True)
    examples = (Example([_Z]), Example([_Z[0, :, :3]]))


@op
class FFT3D(Total):
    """The Fourier transform over the last three dimensions."""

    signature = f"FFT3D[{_TYPES}](input:Tcomplex) -> (output:Tcomplex)"
    shape = _three
    cost = "transform"
    kernel = _transform("fftn", 3)
    gradient = _gradient("IFFT3D", 3, divide=False)
    examples = (Example([_Z]),)


@op
class IFFT3D(Total):
    """The inverse Fourier transform over the last three dimensions."""

    signature = f"IFFT3D[{_TYPES}](input:Tcomplex) -> (output:Tcomplex)"
    shape = _three
    cost = "transform"
    kernel = _transform("ifftn", 3)
    gradient = _gradient("FFT3D", 3, divide=True)
    examples = (Example([_Z]),)
