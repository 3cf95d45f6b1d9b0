"""Activation functions and their gradient ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from graphcore.functions import unary_grad
from graphcore.inference.shape_fns.common_shape_fns import merge_both_inputs, unchanged_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.gradient_text import ONE, holomorphic, scalar
from graphcore.opset.framework.kernels import float_attr, into_itself, with_number
from graphcore.opset.framework.type_sets import FLOATING_OR_COMPLEX, REAL
from graphcore.registry import KernelFactory

_X: Final = [[-3.0, -0.5, 0.25], [1.0, 2.0, 7.5]]
_Y: Final = [[-0.9, -0.4, 0.25], [1.0, 2.0, 7.5]]
_G: Final = [[1.0, 2.0, 3.0], [-4.0, 5.0, 6.0]]
_NN_FLOATS: Final = "T:{half, bfloat16, float, double}"
_WITH_ALPHA: Final = f"alpha:float = 0.20000000298023224, {_NN_FLOATS} = float"
_HALF_TOO: Final = "T:{half, float, double}"
_Define = Callable[[KernelFactory], KernelFactory]


def _activation(name: str, gradient: Any, *examples: Example, attrs: str = _NN_FLOATS, **traits: Any) -> _Define:
    """Register an activation function by its kernel, whose docstring is the op's."""

    def define(kernel: KernelFactory) -> KernelFactory:
        signature = f"{name}[{attrs}](features:T) -> (activations:T)"
        parts = {"shape": unchanged_shape, "kernel": kernel, "gradient": gradient, "examples": examples, **traits}
        define_op(name, kernel.__doc__, Elementwise, signature=signature, **parts)
        return kernel

    return define


def _by_input(
    name: str, *examples: Example, attrs: str = _NN_FLOATS, types: str = _HALF_TOO, forwarded: str = "T=$T", slope: str = ""
) -> _Define:
    """Register the gradient op of an activation function, computed from its input.

    Args:
        name: the name of the op.
        examples: the examples.
        attrs: the attrs of the op.
        types: the attrs of its gradient.
        forwarded: these attrs as the gradient passes them to `name`.
        slope: the lines that compute `dfeatures`; zeros by default.
    """
    return _gradient_op(name, "features", examples, attrs, types, forwarded, slope or "dfeatures = ZerosLike[T=$T](features)")


def _by_output(name: str) -> _Define:
    """Register the gradient op of an exponential unit, computed from its output."""
    slope = """zeros = ZerosLike[T=$T](outputs)
      below = Less[T=$T](outputs, zeros)
      product = Mul[T=$T](dz, gradients)
      doutputs = Select[T=$T](below, product, zeros)"""
    return _gradient_op(name, "outputs", (Example([_G, _Y]),), _NN_FLOATS, _HALF_TOO, "T=$T", slope)


def _gradient_op(name: str, by: str, examples: tuple[Example, ...], attrs: str, types: str, forwarded: str, slope: str) -> _Define:
    gradient = f"""[{types}](gradients:T, {by}:T, dz:T) -> (dgradients:T, d{by}:T) {{
      dgradients = {name}[{forwarded}](dz, {by})
      {slope}
    }}"""

    def define(kernel: KernelFactory) -> KernelFactory:
        signature = f"{name}[{attrs}](gradients:T, {by}:T) -> (backprops:T)"
        parts = {"shape": merge_both_inputs, "kernel": kernel, "gradient": gradient, "examples": examples}
        define_op(name, kernel.__doc__, Elementwise, signature=signature, **parts)
        return kernel

    return define


def _relu_grad(name: str, types: str = "T:{float, double}", forwarded: str = "T=$T") -> str:
    """The gradient text of an activation function with gradient op `name`."""
    return f"""[{types}](x:T, dy:T) -> (dx:T) {{
      dx = {name}[{forwarded}](dy, x)
    }}"""


@_activation("Relu", _relu_grad("ReluGrad"), Example([_X], outputs=[[[0.0, 0.0, 0.25], [1.0, 2.0, 7.5]]]), attrs=f"T:{REAL[:-1]}, qint8}}")
def _relu(k: KernelContext) -> Kernel:
    """`max(x, 0)`, element by element."""
    return with_number(k.xp, "maximum", k.dtype("T").type(0))


@_by_input("ReluGrad", Example([_G, _X], outputs=[[[0.0, 0.0, 3.0], [-4.0, 5.0, 6.0]]]), attrs=f"T:{REAL}", types="T:{float, double}")
def _relu_slope(k: KernelContext) -> Kernel:
    """The gradient of Relu: `gradients` where `features` is positive, else 0."""
    # A product, as in TensorFlow: several times faster than a selection for mixed signs.
    greater, multiply, zero = k.xp.greater, k.xp.multiply, k.dtype("T").type(0)
    return lambda gradients, features: multiply(gradients, greater(features, zero))


@_activation("Relu6", _relu_grad("Relu6Grad"), Example([_X], outputs=[[[0.0, 0.0, 0.25], [1.0, 2.0, 6.0]]]), attrs=f"T:{REAL}")
def _relu6(k: KernelContext) -> Kernel:
    """`min(max(x, 0), 6)`, element by element."""
    number = k.dtype("T").type
    at_least, at_most = with_number(k.xp, "maximum", number(0)), with_number(k.xp, "minimum", number(6))
    return lambda x: at_most(at_least(x))


@_by_input("Relu6Grad", Example([_G, _X], outputs=[[[0.0, 0.0, 3.0], [-4.0, 5.0, 0.0]]]), attrs=f"T:{REAL}", types="T:{float, double}")
def _relu6_slope(k: KernelContext) -> Kernel:
    """The gradient of Relu6: `gradients` where `features` is between 0 and 6, else 0."""
    number = k.dtype("T").type
    zero, six = number(0), number(6)
    return lambda gradients, features: gradients * ((features > zero) & (features < six))


@op
class Sigmoid(Elementwise):
    """`1 / (1 + exp(-x))`, element by element."""

    signature = f"Sigmoid[T:{FLOATING_OR_COMPLEX}](x:T) -> (y:T)"
    layer = "sigmoid"
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
        negative, exp, reciprocal = k.xp.negative, k.xp.exp, into_itself(k.xp, "reciprocal")

        def sigmoid(x: Any) -> Any:
            result = exp(negative(x))
            result += 1
            return reciprocal(result)

        return sigmoid


@_activation(
    "LeakyRelu",
    _relu_grad("LeakyReluGrad", f"{_HALF_TOO}, alpha:float", "T=$T, alpha=$alpha"),
    Example([_X]),
    Example([_X], {"alpha": -0.5}),
    attrs=_WITH_ALPHA,
)
def _leaky_relu(k: KernelContext) -> Kernel:
    """`x` where it is positive, else `alpha * x`."""
    where, maximum, alpha, zero = k.xp.where, k.xp.maximum, k.dtype("T").type(float_attr(k, "alpha")), k.dtype("T").type(0)
    if alpha <= 1:
        return lambda x: maximum(x, x * alpha)
    return lambda x: where(x > zero, x, x * alpha)


@_by_input("LeakyReluGrad", Example([_G, _X]), attrs=_WITH_ALPHA, types=f"{_HALF_TOO}, alpha:float", forwarded="T=$T, alpha=$alpha")
def _leaky_relu_slope(k: KernelContext) -> Kernel:
    """The gradient of LeakyRelu: `gradients` where `features` is positive, else `alpha * gradients`."""
    where, alpha, zero = k.xp.where, k.dtype("T").type(k.attr("alpha")), k.dtype("T").type(0)
    return lambda gradients, features: where(features > zero, gradients, gradients * alpha)


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


@_activation("Elu", unary_grad("y = Elu(x)\ndx = EluGrad(dy, y)"), Example([_X]))
def _elu(k: KernelContext) -> Kernel:
    """`x` where it is positive, else `exp(x) - 1`."""
    return _exponential_unit(k, 1.0, 1.0)


@_by_output("EluGrad")
def _elu_slope(k: KernelContext) -> Kernel:
    """The gradient of Elu, from its output: `gradients`, times `outputs + 1` where `outputs` <= 0."""
    return _exponential_unit_grad(k, 1.0, 1.0)


@_activation("Selu", unary_grad("y = Selu(x)\ndx = SeluGrad(dy, y)"), Example([_X]))
def _selu(k: KernelContext) -> Kernel:
    """`scale * x` where x is positive, else `scale * alpha * (exp(x) - 1)`, with fixed constants.

    The constants are those of self-normalising networks.
    """
    return _exponential_unit(k, _SELU_SCALE, _SELU_SCALE_ALPHA)


@_by_output("SeluGrad")
def _selu_slope(k: KernelContext) -> Kernel:
    """The gradient of Selu, from its output."""
    return _exponential_unit_grad(k, _SELU_SCALE, _SELU_SCALE_ALPHA)


@_activation(
    "Softplus",
    unary_grad("dx = SoftplusGrad(dy, x)"),
    Example([_X]),
    Example([[-200.0, 200.0]], outputs=[[0.0, 200.0]]),
    cost="transcendental",
)
def _softplus(k: KernelContext) -> Kernel:
    """`log(1 + exp(x))`, element by element, without overflow."""
    maximum, absolute, exp, log1p, zero = k.xp.maximum, k.xp.absolute, k.xp.exp, k.xp.log1p, k.dtype("T").type(0)
    return lambda x: maximum(x, zero) + log1p(exp(-absolute(x)))


@_by_input(
    "SoftplusGrad",
    Example([_G, _X]),
    slope="""y = Sigmoid[T=$T](features)
      slope = SigmoidGrad[T=$T](y, gradients)
      dfeatures = Mul[T=$T](dz, slope)""",
)
def _softplus_slope(k: KernelContext) -> Kernel:
    """The gradient of Softplus: `gradients / (1 + exp(-features))`."""
    exp = k.xp.exp
    return lambda gradients, features: gradients / (exp(-features) + 1)


@_activation("Softsign", unary_grad("dx = SoftsignGrad(dy, x)"), Example([_X]))
def _softsign(k: KernelContext) -> Kernel:
    """`x / (|x| + 1)`, element by element."""
    absolute = k.xp.absolute
    return lambda x: x / (absolute(x) + 1)


@_by_input(
    "SoftsignGrad",
    Example([_G, _X]),
    slope=f"""minus_two = {scalar("float", -2)}
      factor = Cast[SrcT=float, DstT=$T](minus_two)
      {ONE}
      sign = Sign[T=$T](features)
      magnitude = Abs[T=$T](features)
      base = AddV2[T=$T](magnitude, one)
      once = SoftsignGrad[T=$T](gradients, features)
      thrice = Div[T=$T](once, base)
      slope = Mul[T=$T](thrice, sign)
      doubled = Mul[T=$T](slope, factor)
      dfeatures = Mul[T=$T](dz, doubled)""",
)
def _softsign_slope(k: KernelContext) -> Kernel:
    """The gradient of Softsign: `gradients / (1 + |features|)^2`."""
    absolute, square = k.xp.absolute, k.xp.square
    return lambda gradients, features: gradients / square(absolute(features) + 1)
