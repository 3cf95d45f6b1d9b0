"""Activation functions and their gradient ops."""

from __future__ import annotations

from typing import Any, Final

from graphcore.functions import unary_grad
from graphcore.inference.shape_fns.common_shape_fns import merge_both_inputs, unchanged_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.gradient_text import ONE, holomorphic, scalar
from graphcore.opset.framework.kernels import float_attr, with_number
from graphcore.opset.framework.type_sets import FLOATING_OR_COMPLEX, REAL

_X: Final = [[-3.0, -0.5, 0.25], [1.0, 2.0, 7.5]]
_G: Final = [[1.0, 2.0, 3.0], [-4.0, 5.0, 6.0]]
_NN_FLOATS: Final = "{half, bfloat16, float, double}"


@op
class Relu(Elementwise):
    """`max(x, 0)`, element by element."""

    signature = f"Relu[T:{REAL[:-1]}, qint8}}](features:T) -> (activations:T)"
    shape = unchanged_shape
    gradient = """[T:{float, double}](x:T, dy:T) -> (dx:T) {
      dx = ReluGrad[T=$T](dy, x)
    }"""
    examples = (Example([_X], outputs=[[[0.0, 0.0, 0.25], [1.0, 2.0, 7.5]]]),)

    def kernel(k: KernelContext) -> Kernel:
        return with_number(k.xp, "maximum", k.dtype("T").type(0))


@op
class ReluGrad(Elementwise):
    """The gradient of Relu: `gradients` where `features` is positive, else 0."""

    signature = f"ReluGrad[T:{REAL}](gradients:T, features:T) -> (backprops:T)"
    shape = merge_both_inputs
    gradient = """[T:{float, double}](gradients:T, features:T, dz:T) -> (dgradients:T, dfeatures:T) {
      dgradients = ReluGrad[T=$T](dz, features)
      dfeatures = ZerosLike[T=$T](features)
    }"""
    examples = (Example([_G, _X], outputs=[[[0.0, 0.0, 3.0], [-4.0, 5.0, 6.0]]]),)

    def kernel(k: KernelContext) -> Kernel:
        # A product, as in the reference: several times faster than a selection for mixed signs.
        greater, multiply, zero = k.xp.greater, k.xp.multiply, k.dtype("T").type(0)
        return lambda gradients, features: multiply(gradients, greater(features, zero))


@op
class Relu6(Elementwise):
    """`min(max(x, 0), 6)`, element by element."""

    signature = f"Relu6[T:{REAL}](features:T) -> (activations:T)"
    shape = unchanged_shape
    gradient = """[T:{float, double}](x:T, dy:T) -> (dx:T) {
      dx = Relu6Grad[T=$T](dy, x)
    }"""
    examples = (Example([_X], outputs=[[[0.0, 0.0, 0.25], [1.0, 2.0, 6.0]]]),)

    def kernel(k: KernelContext) -> Kernel:
        number = k.dtype("T").type
        at_least, at_most = with_number(k.xp, "maximum", number(0)), with_number(k.xp, "minimum", number(6))
        return lambda x: at_most(at_least(x))


@op
class Relu6Grad(Elementwise):
    """The gradient of Relu6: `gradients` where `features` is between 0 and 6, else 0."""

    signature = f"Relu6Grad[T:{REAL}](gradients:T, features:T) -> (backprops:T)"
    shape = merge_both_inputs
    gradient = """[T:{float, double}](gradients:T, features:T, dz:T) -> (dgradients:T, dfeatures:T) {
      dgradients = Relu6Grad[T=$T](dz, features)
      dfeatures = ZerosLike[T=$T](features)
    }"""
    examples = (Example([_G, _X], outputs=[[[0.0, 0.0, 3.0], [-4.0, 5.0, 0.0]]]),)

    def kernel(k: KernelContext) -> Kernel:
        number = k.dtype("T").type
        zero, six = number(0), number(6)
        return lambda gradients, features: gradients * ((features > zero) & (features < six))


@op
class Sigmoid(Elementwise):
    """`1 / (1 + exp(-x))`, element by element."""

    signature = f"Sigmoid[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    shape = unchanged_shape
    cost = "transcendental"
    gradient = holomorphic(
        unary_grad(f"""
        y = Sigmoid(x)
        {ONE}
        a = Sub(one, y) @ dy
        b = Mul(y, a)
        dx = Mul(dy, b)
    """)
    )
    examples = (Example([_X]),)

    def kernel(k: KernelContext) -> Kernel:
        negative, exp, reciprocal = k.xp.negative, k.xp.exp, k.xp.reciprocal

        def sigmoid(x: Any) -> Any:
            result = exp(negative(x))
            result += 1
            return reciprocal(result, result) if result.shape else reciprocal(result)

        return sigmoid


@op
class LeakyRelu(Elementwise):
    """`x` where it is positive, else `alpha * x`."""

    signature = f"LeakyRelu[alpha:float = 0.20000000298023224, T:{_NN_FLOATS} = float](features:T) -> (activations:T)"
    shape = unchanged_shape
    gradient = """[T:{half, float, double}, alpha:float](x:T, dy:T) -> (dx:T) {
      dx = LeakyReluGrad[T=$T, alpha=$alpha](dy, x)
    }"""
    examples = (Example([_X]), Example([_X], {"alpha": -0.5}))

    def kernel(k: KernelContext) -> Kernel:
        where, maximum, alpha, zero = k.xp.where, k.xp.maximum, k.dtype("T").type(float_attr(k, "alpha")), k.dtype("T").type(0)
        if alpha <= 1:
            return lambda x: maximum(x, x * alpha)
        return lambda x: where(x > zero, x, x * alpha)


@op
class LeakyReluGrad(Elementwise):
    """The gradient of LeakyRelu: `gradients` where `features` is positive, else `alpha * gradients`."""

    signature = f"LeakyReluGrad[alpha:float = 0.20000000298023224, T:{_NN_FLOATS} = float](gradients:T, features:T) -> (backprops:T)"
    shape = merge_both_inputs
    gradient = """[T:{half, float, double}, alpha:float](gradients:T, features:T, dz:T) -> (dgradients:T, dfeatures:T) {
      dgradients = LeakyReluGrad[T=$T, alpha=$alpha](dz, features)
      dfeatures = ZerosLike[T=$T](features)
    }"""
    examples = (Example([_G, _X]),)

    def kernel(k: KernelContext) -> Kernel:
        where, alpha, zero = k.xp.where, k.dtype("T").type(k.attr("alpha")), k.dtype("T").type(0)
        return lambda gradients, features: where(features > zero, gradients, gradients * alpha)


@op
class Elu(Elementwise):
    """`x` where it is positive, else `exp(x) - 1`."""

    signature = f"Elu[T:{_NN_FLOATS}](features:T) -> (activations:T)"
    shape = unchanged_shape
    gradient = unary_grad("""
        y = Elu(x)
        dx = EluGrad(dy, y)
    """)
    examples = (Example([_X]),)

    def kernel(k: KernelContext) -> Kernel:
        return _exponential_unit(k, 1.0, 1.0)


@op
class EluGrad(Elementwise):
    """The gradient of Elu by its output: `gradients` if `outputs` > 0, else `gradients * (outputs + 1)`."""

    signature = f"EluGrad[T:{_NN_FLOATS}](gradients:T, outputs:T) -> (backprops:T)"
    shape = merge_both_inputs
    gradient = """[T:{half, float, double}](gradients:T, outputs:T, dz:T) -> (dgradients:T, doutputs:T) {
      dgradients = EluGrad[T=$T](dz, outputs)
      zeros = ZerosLike[T=$T](outputs)
      below = Less[T=$T](outputs, zeros)
      product = Mul[T=$T](dz, gradients)
      doutputs = Select[T=$T](below, product, zeros)
    }"""
    examples = (Example([_G, [[-0.9, -0.4, 0.25], [1.0, 2.0, 7.5]]]),)

    def kernel(k: KernelContext) -> Kernel:
        return _exponential_unit_grad(k, 1.0, 1.0)


_SELU_SCALE: Final = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA: Final = 1.7580993408473768599402175208123


def _exponential_unit(k: KernelContext, scale: float, scale_alpha: float) -> Kernel:
    where, expm1, number = k.xp.where, k.xp.expm1, k.dtype("T").type
    zero, above, below = number(0), number(scale), number(scale_alpha)
    if scale == 1.0:
        return lambda x: where(x < zero, expm1(x), x)
    return lambda x: where(x < zero, below * expm1(x), above * x)


def _exponential_unit_grad(k: KernelContext, scale: float, scale_alpha: float) -> Kernel:
    where, number = k.xp.where, k.dtype("T").type
    zero, above, below = number(0), number(scale), number(scale_alpha)
    return lambda gradients, outputs: where(outputs < zero, gradients * (outputs + below), gradients * above)


@op
class Selu(Elementwise):
    """`scale * x` where x is positive, else `scale * alpha * (exp(x) - 1)`, with fixed constants.

    The constants are those of self-normalising networks.
    """

    signature = f"Selu[T:{_NN_FLOATS}](features:T) -> (activations:T)"
    shape = unchanged_shape
    gradient = unary_grad("""
        y = Selu(x)
        dx = SeluGrad(dy, y)
    """)
    examples = (Example([_X]),)

    def kernel(k: KernelContext) -> Kernel:
        return _exponential_unit(k, _SELU_SCALE, _SELU_SCALE_ALPHA)


@op
class SeluGrad(Elementwise):
    """The gradient of Selu, from its output."""

    signature = f"SeluGrad[T:{_NN_FLOATS}](gradients:T, outputs:T) -> (backprops:T)"
    shape = merge_both_inputs
    gradient = """[T:{half, float, double}](gradients:T, outputs:T, dz:T) -> (dgradients:T, doutputs:T) {
      dgradients = SeluGrad[T=$T](dz, outputs)
      zeros = ZerosLike[T=$T](outputs)
      below = Less[T=$T](outputs, zeros)
      product = Mul[T=$T](dz, gradients)
      doutputs = Select[T=$T](below, product, zeros)
    }"""
    examples = (Example([_G, [[-0.9, -0.4, 0.25], [1.0, 2.0, 7.5]]]),)

    def kernel(k: KernelContext) -> Kernel:
        return _exponential_unit_grad(k, _SELU_SCALE, _SELU_SCALE_ALPHA)


@op
class Softplus(Elementwise):
    """`log(1 + exp(x))`, element by element, without overflow."""

    signature = f"Softplus[T:{_NN_FLOATS}](features:T) -> (activations:T)"
    shape = unchanged_shape
    cost = "transcendental"
    gradient = unary_grad("dx = SoftplusGrad(dy, x)")
    examples = (Example([_X]), Example([[-200.0, 200.0]], outputs=[[0.0, 200.0]]))

    def kernel(k: KernelContext) -> Kernel:
        maximum, absolute, exp, log1p, zero = k.xp.maximum, k.xp.absolute, k.xp.exp, k.xp.log1p, k.dtype("T").type(0)
        return lambda x: maximum(x, zero) + log1p(exp(-absolute(x)))


@op
class SoftplusGrad(Elementwise):
    """The gradient of Softplus: `gradients / (1 + exp(-features))`."""

    signature = f"SoftplusGrad[T:{_NN_FLOATS}](gradients:T, features:T) -> (backprops:T)"
    shape = merge_both_inputs
    gradient = """[T:{half, float, double}](gradients:T, features:T, dz:T) -> (dgradients:T, dfeatures:T) {
      dgradients = SoftplusGrad[T=$T](dz, features)
      y = Sigmoid[T=$T](features)
      slope = SigmoidGrad[T=$T](y, gradients)
      dfeatures = Mul[T=$T](dz, slope)
    }"""
    examples = (Example([_G, _X]),)

    def kernel(k: KernelContext) -> Kernel:
        exp = k.xp.exp
        return lambda gradients, features: gradients / (exp(-features) + 1)


@op
class Softsign(Elementwise):
    """`x / (|x| + 1)`, element by element."""

    signature = f"Softsign[T:{_NN_FLOATS}](features:T) -> (activations:T)"
    shape = unchanged_shape
    gradient = unary_grad("dx = SoftsignGrad(dy, x)")
    examples = (Example([_X]),)

    def kernel(k: KernelContext) -> Kernel:
        absolute = k.xp.absolute
        return lambda x: x / (absolute(x) + 1)


@op
class SoftsignGrad(Elementwise):
    """The gradient of Softsign: `gradients / (1 + |features|)^2`."""

    signature = f"SoftsignGrad[T:{_NN_FLOATS}](gradients:T, features:T) -> (backprops:T)"
    shape = merge_both_inputs
    gradient = f"""[T:{{half, float, double}}](gradients:T, features:T, dz:T) -> (dgradients:T, dfeatures:T) {{
      dgradients = SoftsignGrad[T=$T](dz, features)
      minus_two = {scalar("float", -2)}
      factor = Cast[SrcT=float, DstT=$T](minus_two)
      {ONE}
      sign = Sign[T=$T](features)
      magnitude = Abs[T=$T](features)
      base = AddV2[T=$T](magnitude, one)
      once = SoftsignGrad[T=$T](gradients, features)
      thrice = Div[T=$T](once, base)
      slope = Mul[T=$T](thrice, sign)
      doubled = Mul[T=$T](slope, factor)
      dfeatures = Mul[T=$T](dz, doubled)
    }}"""
    examples = (Example([_G, _X]),)

    def kernel(k: KernelContext) -> Kernel:
        absolute, square = k.xp.absolute, k.xp.square
        return lambda gradients, features: gradients / square(absolute(features) + 1)
