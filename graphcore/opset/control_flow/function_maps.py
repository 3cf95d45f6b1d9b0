"""MapAccumulate: a function run along an input, with the last result as a further argument."""

from __future__ import annotations

from typing import Any, Final

from graphcore.attrs import Attrs, Func
from graphcore.definitions.types import FunctionDef
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.opset.control_flow.function_calls import NO_INVERSE, fitting, func_attr
from graphcore.opset.framework.block import Example, InferenceContext, Kernel, KernelContext, no_registered_gradient, op
from graphcore.opset.framework.gradient_text import required_int
from graphcore.text import parse_function
from graphcore.text.values import attr_value_text

_WEIGHTED: Final = "Weighted(w:float, x:float, u:float) -> (y:float) {\n  wx = Mul[T=float](w, x)\n  y = Add[T=float](wx, u)\n}"
_INVERTED: Final = "Inverted(w:float, x:float, u:float) -> (y:float) {\n  y = MatrixInverse[T=float](w)\n}"
_XS: Final = [[1.0, 2.0]]
_ARGS: Final = [[2.0], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0.5, 1.0]]
_YS: Final = [[2.5, 5.0], [8.5, 13.0], [18.5, 25.0]]


def _shape(c: InferenceContext) -> None:
    count = c.int_attr("K")
    steps = c.dim(c.with_rank_at_least(c.input(count), 1), 0)
    c.set_output(0, c.concatenate(c.vector(steps), c.input(count + 1)))


def _kernel(k: KernelContext) -> Kernel:
    count, dtype = required_int(k.attrs, "K"), k.attr("T")
    assert isinstance(dtype, DType)
    xp, step = k.xp, fitting(k, func_attr(k.attrs, "f"), (dtype,) * (count + 2), (dtype,))

    def run(*inputs: Any) -> Any:
        theta, xs, value = inputs[:count], inputs[count], inputs[count + 1]
        result = xp.empty((_rows(k, xs).shape[0], *value.shape), dtype.as_numpy)
        for i in range(xs.shape[0]):
            value = step(*theta, xs[i], value)
            result[i] = value
        return result

    return run


def _rows(k: KernelContext, xs: Any) -> Any:
    if not xs.shape:
        raise InvalidArgumentError(f"'{k.node_name}' (op {k.op}) goes along the first dimension of x, and x is a scalar", node=k.node_name)
    return xs


def _gradient(attrs: Attrs) -> FunctionDef:
    count, dtype = required_int(attrs, "K"), attrs["T"]
    assert isinstance(dtype, DType)
    in_types, wanted = ", ".join([dtype.text] * (count + 3)), ", ".join([dtype.text] * (count + 2))
    func = attr_value_text(func_attr(attrs, "f"))
    return parse_function(f"""_[T:{{float, double}}, K:int >= 0, f:func](theta:K*T, x:T, u:T, dy:T) -> (dtheta:K*T, dx:T, du:T) {{
      y = MapAccumulate[f=$f, T=$T, K=$K](theta, x, u)
      dtheta = MapAccumulateGrad[g=SymbolicGradient[f={func}, Tin={{{in_types}}}, Tout={{{wanted}}}], T=$T, K=$K](theta, x, u, y:y:0, dy)
      return dtheta = dtheta:dtheta
      return dx = dtheta:dx:0
      return du = dtheta:du:0
    }}""")


@op
class MapAccumulate:
    """`y[i] = f(theta, x[i], y[i - 1])` for all rows of `x` in order, with `y[-1] = u`.

    theta: arguments of every step.
    x: one row for each step.
    u: the initial value.
    y: the result of each step: `[n, ...]` for the `n` rows of `x`.
    f: a function of theta, a row of x and a value like `u`, to a value like `u`.
    K: the number of tensors in theta.
    """

    signature = "MapAccumulate[f:func, T:{float, double}, K:int >= 0](theta:K*T, x:T, u:T) -> (y:T)"
    shape = _shape
    kernel = _kernel
    gradient = _gradient
    examples = (Example(_ARGS, {"f": Func("Weighted"), "K": 1}, outputs=[_YS], functions=(_WEIGHTED,)),)
    failures = (Example([[NO_INVERSE], _XS, NO_INVERSE], {"f": Func("Inverted"), "K": 1}, functions=(_INVERTED,)),)


def _gradient_shape(c: InferenceContext) -> None:
    for i in range(c.num_outputs):
        c.set_output(i, c.input(i))


def _gradient_kernel(k: KernelContext) -> Kernel:
    count, dtype = required_int(k.attrs, "K"), k.attr("T")
    assert isinstance(dtype, DType)
    xp, back = k.xp, fitting(k, func_attr(k.attrs, "g"), (dtype,) * (count + 3), (dtype,) * (count + 2))

    def run(*inputs: Any) -> Any:
        theta, xs, start, ys, dys = inputs[:count], *inputs[count:]
        dtheta = [xp.zeros_like(item) for item in theta]
        dx, du = xp.empty_like(xs), xp.zeros_like(start)
        for i in range(_rows(k, xs).shape[0] - 1, -1, -1):
            *parts, dx[i], du = back(*theta, xs[i], ys[i - 1] if i else start, dys[i] + du)
            dtheta = [total + part for total, part in zip(dtheta, parts, strict=True)]
        return (*dtheta, dx, du)

    return run


@op
class MapAccumulateGrad:
    """The gradients of the inputs of MapAccumulate.

    theta: arguments of every step.
    x: one row for each step.
    u: the initial value.
    y: the result of each step.
    dy: the gradient of `y`.
    dtheta: the gradients of `theta`.
    dx: the gradient of `x`.
    du: the gradient of `u`.
    g: the gradient of the function of one step: a function of theta, a row of x, the last result, and the gradient of the step's result.
    K: the number of tensors in theta.
    """

    signature = "MapAccumulateGrad[g:func, T:{float, double}, K:int >= 0](theta:K*T, x:T, u:T, y:T, dy:T) -> (dtheta:K*T, dx:T, du:T)"
    shape = _gradient_shape
    kernel = _gradient_kernel
    gradient = no_registered_gradient("the gradient of a gradient function would be needed for each step")
    examples = (
        Example(
            [*_ARGS, _YS, [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]],
            {"g": Func("SymbolicGradient", {"f": Func("Weighted")}), "K": 1},
            outputs=[18.0, [[4.0, 4.0], [2.0, 2.0], [2.0, 0.0]], [2.0, 2.0]],
            functions=(_WEIGHTED,),
        ),
    )
    failures = (
        Example(
            [[NO_INVERSE], _XS, NO_INVERSE, [NO_INVERSE], [NO_INVERSE]],
            {"g": Func("SymbolicGradient", {"f": Func("Inverted")}), "K": 1},
            functions=(_INVERTED,),
        ),
    )
