"""Complex numbers: their parts, angle, conjugate and magnitude."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn, unchanged_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.gradient_text import required_type
from graphcore.opset.framework.kernels import invalid, pass_through

_TYPES: Final = "T:{complex64, complex128} = complex64, Tout:{float, double} = float"
_Z: Final = np.array([1 + 2j, -0.5 + 1j, 3 - 4j], np.complex64)


def _zero(attrs: Attrs) -> str:
    real = required_type(attrs, "Tout").text
    return f"zero = Const[dtype={real}, value=Tensor<type: {real} shape: [] values: 0>]()"


def check_parts(k: KernelContext) -> None:
    """Check that the parts of complex64 are floats, and those of complex128 doubles.

    Raises:
        InvalidArgumentError: attr `Tout` differs.
    """
    part_type, wanted = k.dtype("T"), k.dtype("Tout")
    if part_type.itemsize != 2 * wanted.itemsize:
        raise invalid(
            k,
            f"Signature mismatch, have: {k.attr('T')!r}->{k.attr('Tout')!r}: the parts of {part_type} are of {part_type.itemsize // 2} bytes",
        )


@op
class Real:
    """The real part of each element."""

    pure = True
    signature = f"Real[{_TYPES}](input:T) -> (output:Tout)"
    shape = unchanged_shape
    can_fail = False
    examples = (Example([_Z], outputs=[[1.0, -0.5, 3.0]]),)

    def gradient(attrs: Attrs) -> str:
        return f"""[T:{{complex64, complex128}}, Tout:{{float, double}}](x:T, dy:Tout) -> (dx:T) {{
          {_zero(attrs)}
          dx = Complex[T=$Tout, Tout=$T](dy, zero)
        }}"""

    def kernel(k: KernelContext) -> Kernel:
        check_parts(k)
        return lambda x: x.real


@op
class Imag:
    """The imaginary part of each element."""

    pure = True
    signature = f"Imag[{_TYPES}](input:T) -> (output:Tout)"
    shape = unchanged_shape
    can_fail = False
    examples = (Example([_Z], outputs=[[2.0, 1.0, -4.0]]),)

    def gradient(attrs: Attrs) -> str:
        return f"""[T:{{complex64, complex128}}, Tout:{{float, double}}](x:T, dy:Tout) -> (dx:T) {{
          {_zero(attrs)}
          dx = Complex[T=$Tout, Tout=$T](zero, dy)
        }}"""

    def kernel(k: KernelContext) -> Kernel:
        check_parts(k)
        return lambda x: x.imag


@op
class Angle(Elementwise):
    """The angle of each element in the complex plane, in [-pi, pi]."""

    signature = f"Angle[{_TYPES}](input:T) -> (output:Tout)"
    shape = unchanged_shape
    examples = (Example([_Z]),)
    gradient = """[T:{complex64, complex128}, Tout:{float, double}](x:T, dy:Tout) -> (dx:T) {
      re = Real[T=$T, Tout=$Tout](x)
      im = Imag[T=$T, Tout=$Tout](x)
      z = Complex[T=$Tout, Tout=$T](im, re)
      z_inv = Reciprocal[T=$T](z)
      neg = Neg[T=$T](z_inv)
      dyc = Cast[SrcT=$Tout, DstT=$T](dy)
      dx = Mul[T=$T](neg, dyc)
    }"""

    def kernel(k: KernelContext) -> Kernel:
        check_parts(k)
        arctan2 = k.xp.arctan2
        return lambda x: arctan2(x.imag, x.real)


@op
class Conj(Elementwise):
    """The complex conjugate of each element."""

    signature = "Conj[T:{complex64, complex128, variant} = complex64](input:T) -> (output:T)"
    reuses_input = True
    shape = unchanged_shape
    gradient = """[T:{complex64, complex128}](x:T, dy:T) -> (dx:T) {
      dx = Conj[T=$T](dy)
    }"""
    examples = (Example([_Z], outputs=[_Z.conj()]),)

    def kernel(k: KernelContext) -> Kernel:
        if not k.output_types[0].is_complex:
            return pass_through(k)
        conjugate: Kernel = k.xp.conjugate
        return conjugate


@op
class Complex(Elementwise):
    """Complex numbers from their real and imaginary parts, with broadcasting."""

    signature = "Complex[T:{float, double} = float, Tout:{complex64, complex128} = complex64](real:T, imag:T) -> (out:Tout)"
    shape = broadcast_binary_op_shape_fn
    gradient = """[T:{float, double}, Tout:{complex64, complex128}](x:T, y:T, dz:Tout) -> (dx:T, dy:T) {
      sx = Shape[T=$T](x)
      sy = Shape[T=$T](y)
      gx = Real[T=$Tout, Tout=$T](dz)
      gy = Imag[T=$Tout, Tout=$T](dz)
      rx, ry = BroadcastGradientArgs(sx, sy)
      sum_gx = Sum[T=$T](gx, rx)
      dx = Reshape[T=$T](sum_gx, sx)
      sum_gy = Sum[T=$T](gy, ry)
      dy = Reshape[T=$T](sum_gy, sy)
    }"""
    examples = (Example([[1.0, -2.0], [[3.0], [4.0]]]),)

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype = k.xp, k.dtype("Tout")

        def combine(real: Any, imag: Any) -> Any:
            z = xp.empty(xp.broadcast_shapes(real.shape, imag.shape), dtype)
            z.real = real
            z.imag = imag
            return z

        return combine


@op
class ComplexAbs(Elementwise):
    """The magnitude of each element."""

    # The gradient divides by the magnitude instead of using Sign, whose gradient is zero although the direction depends on x.

    signature = f"ComplexAbs[{_TYPES}](x:T) -> (y:Tout)"
    reuses_input = True
    shape = unchanged_shape
    gradient = """[T:{complex64, complex128}, Tout:{float, double}](x:T, dy:Tout) -> (dx:T) {
      y = ComplexAbs[T=$T, Tout=$Tout](x)
      length = Cast[SrcT=$Tout, DstT=$T](y)
      direction = DivNoNan[T=$T](x, length)
      dyc = Cast[SrcT=$Tout, DstT=$T](dy)
      dx = Mul[T=$T](dyc, direction)
    }"""
    examples = (Example([_Z]), Example([np.array([3 + 4j], np.complex64)], outputs=[[5.0]]))

    def kernel(k: KernelContext) -> Kernel:
        check_parts(k)
        absolute: Kernel = k.xp.absolute
        return absolute
