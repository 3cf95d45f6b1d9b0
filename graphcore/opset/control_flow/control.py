"""Ops that pass values on, select among them, or only order others."""

from __future__ import annotations

from typing import Any, Final

from graphcore.attrs import Attrs
from graphcore.inference import partial_rules
from graphcore.inference.shape_fns.common_shape_fns import no_outputs, select_shape, select_v2_shape, unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, InferenceContext, Kernel, KernelContext, op
from graphcore.opset.framework.families import Elementwise, Passing
from graphcore.opset.framework.gradient_text import required_int
from graphcore.opset.framework.kernels import pass_through

_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]
_Y: Final = [[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]]
IDENTITY_GRADIENT: Final = """[T:type](x:T, dy:T) -> (dx:T) {
  dx = Identity[T=$T](dy)
}"""


@op
class NoOp:
    """Does nothing; used as a target of control edges."""

    signature = "NoOp() -> ()"
    shape = no_outputs
    role = "control"
    can_fail = False
    gradient = NO_GRADIENT
    examples = (Example([]),)

    def kernel(k: KernelContext) -> Kernel:
        return lambda: None


@op
class Identity:
    """The input itself. Of a variable: its value at this moment."""

    pure = True
    signature = "Identity[T:type](input:T) -> (output:T)"
    shape = unchanged_shape
    partial_rule = partial_rules.SAME
    kernel = pass_through
    gradient = IDENTITY_GRADIENT
    examples = (Example([_X], outputs=[_X]),)


@op
class StopGradient:
    """The input itself, but no gradient flows through it."""

    pure = True
    signature = "StopGradient[T:type](input:T) -> (output:T)"
    shape = unchanged_shape
    partial_rule = partial_rules.SAME
    kernel = pass_through
    gradient = NO_GRADIENT
    examples = (Example([_X], outputs=[_X]),)


def _passed(*values: Any) -> Any:
    return values if len(values) != 1 else values[0]


def _unchanged_shapes(c: InferenceContext) -> None:
    for i, shape in enumerate(c.inputs):
        c.set_output(i, shape)


@op
class IdentityN(Passing):
    """The inputs themselves, as one node."""

    pure = True
    signature = "IdentityN[T:list(type)](input:T) -> (output:T)"
    shape = _unchanged_shapes
    gradient = """[T:list(type)](x:T, dy:T) -> (dx:T) {
      dx = IdentityN[T=$T](dy)
    }"""
    examples = (Example([[_X, _Y]], outputs=[_X, _Y]),)

    def kernel(k: KernelContext) -> Kernel:
        return _passed


def _array_to_list_grad(attrs: Attrs) -> str:
    elements = ", ".join(f"dy:{i}" for i in range(required_int(attrs, "N")))
    return f"""[T:type, N:int, out_types:list(type)](x:N*T, dy:out_types) -> (dx:N*T) {{
      dx = _ListToArray[N=$N, T=$T, Tin=$out_types]({elements})
    }}"""


@op
class _ListToArray(Passing):
    """N tensors of type T from a list with N types T.

    Used by gradient functions only, and removed with the other converters.
    """

    signature = "_ListToArray[Tin:list(type), T:type, N:int](input:Tin) -> (output:N*T)"
    shape = _unchanged_shapes
    gradient = """[T:type, N:int, Tin:list(type)](x:Tin, dy:N*T) -> (dx:Tin) {
      dx = _ArrayToList[N=$N, T=$T, out_types=$Tin](dy)
    }"""
    examples = (Example([[_X, _Y]], {"T": "float", "N": 2}, outputs=[_X, _Y]),)

    def kernel(k: KernelContext) -> Kernel:
        return _passed


@op
class _ArrayToList(Passing):
    """A list of tensors from N tensors of type T.

    Used by gradient functions only, and removed with the other converters.
    """

    signature = "_ArrayToList[T:type, N:int, out_types:list(type)](input:N*T) -> (output:out_types)"
    shape = _unchanged_shapes
    gradient = _array_to_list_grad
    examples = (Example([[_X, _Y]], {"out_types": ["float", "float"]}, outputs=[_X, _Y]),)

    def kernel(k: KernelContext) -> Kernel:
        return _passed


_SELECT_GRADIENT: Final = """[T:{half, float, double}](c:bool, x:T, y:T, dz:T) -> (dc:bool, dx:T, dy:T) {
  dc = ZerosLike[T=bool](c) @ dz
  zeros = ZerosLike[T=$T](x) @ dz
  dx = Select[T=$T](c, dz, zeros)
  dy = Select[T=$T](c, zeros, dz)
}"""


@op
class Select(Elementwise):
    """The elements of `t` where the condition is true, else those of `e`.

    condition: of the same shape, a scalar, or a vector that selects along the first dimension
    t: taken where true
    e: taken where false
    """

    signature = "Select[T:type](condition:bool, t:T, e:T) -> (output:T)"
    shape = select_shape
    gradient = _SELECT_GRADIENT
    examples = (
        Example([[[True, False, True], [False, True, False]], _X, _Y]),
        Example([[True, False], _X, _Y]),
        Example([False, _X, _Y], outputs=[_Y]),
    )

    def kernel(k: KernelContext) -> Kernel:
        where = k.xp.where

        def select(condition: Any, t: Any, e: Any) -> Any:
            if condition.ndim == 1 and t.ndim > 1:
                condition = condition.reshape((-1,) + (1,) * (t.ndim - 1))
            return where(condition, t, e)

        return select


@op
class SelectV2(Elementwise):
    """The elements of `t` where the condition is true, else those of `e`; all three are broadcast.

    condition: the selector
    t: taken where true
    e: taken where false
    """

    signature = "SelectV2[T:type](condition:bool, t:T, e:T) -> (output:T)"
    shape = select_v2_shape
    gradient = """[T:{half, float, double}](c:bool, x:T, y:T, dz:T) -> (dc:bool, dx:T, dy:T) {
      dc = ZerosLike[T=bool](c)
      zeros = ZerosLike[T=$T](dz)
      gx = SelectV2[T=$T](c, dz, zeros)
      gy = SelectV2[T=$T](c, zeros, dz)
      sx = Shape[T=$T](x)
      sy = Shape[T=$T](y)
      sz = Shape[T=$T](dz)
      rx, rzx = BroadcastGradientArgs(sx, sz)
      ry, rzy = BroadcastGradientArgs(sy, sz)
      sum_gx = Sum[T=$T](gx, rx)
      dx = Reshape[T=$T](sum_gx, sx)
      sum_gy = Sum[T=$T](gy, ry)
      dy = Reshape[T=$T](sum_gy, sy)
    }"""
    examples = (Example([[[True], [False]], _X, _Y]), Example([[True, False, True], _X, 7.0]))

    def kernel(k: KernelContext) -> Kernel:
        where: Kernel = k.xp.where
        return where
