"""Arithmetic on two values, with broadcasting."""

from __future__ import annotations

from typing import Any, Final

from graphcore.attrs import Attrs
from graphcore.definitions.types import FunctionDef
from graphcore.functions import GradientText, binary_grad
from graphcore.inference import partial_rules
from graphcore.inference.shape_fns.common_shape_fns import broadcast_binary_op_shape_fn
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.gradient_text import holomorphic, is_complex, required_type, scalar
from graphcore.opset.framework.kernels import floating_ufunc, invalid, joining_ufunc, ufunc, unimplemented
from graphcore.opset.framework.type_sets import FLOATING_OR_COMPLEX
from graphcore.traits import FailsOn

_DIVIDABLE: Final = "{bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}"
_COLUMN: Final = [[-10.0], [10.0]]
_ROWS: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.0]]


def _quotient_grad(name: str) -> GradientText:
    return binary_grad(f"""
        gx = {name}(dz, y)
        nx = Neg(x) @ dz
        y2 = Square(y) @ dz
        nx_y2 = {name}(nx, y2)
        gy = Mul(dz, nx_y2)
    """)


@op
class Add:
    """`x + y` with broadcasting; strings are joined."""

    signature = "Add[T:{bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}](x:T, y:T) -> (z:T)"
    layer = "addition"
    shape = broadcast_binary_op_shape_fn
    partial_rule = partial_rules.ADD
    kernel = joining_ufunc("add")
    gradient = binary_grad("""
        gx = Identity(dz)
        gy = Identity(dz)
    """)
    examples = (
        Example([_ROWS, _COLUMN]),
        Example([[b"a", b"b"], [b"c", b"d"]], outputs=[[b"ac", b"bd"]]),
        Example([b"a", b"c"], outputs=[b"ac"]),
    )


@op
class AddV2:
    """`x + y` with broadcasting."""

    signature = (
        "AddV2[T:{bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, complex128}]"
        "(x:T, y:T) -> (z:T)"
    )
    commutative = True
    aggregate = True
    layer = "addition"
    shape = broadcast_binary_op_shape_fn
    partial_rule = partial_rules.ADD
    kernel = ufunc("add")
    gradient = Add.gradient
    examples = (Example([_ROWS, _COLUMN]), Example([_ROWS, 2.0]))


@op
class Sub:
    """`x - y` with broadcasting."""

    signature = (
        "Sub[T:{bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, uint32, uint64}]"
        "(x:T, y:T) -> (z:T)"
    )
    shape = broadcast_binary_op_shape_fn
    partial_rule = partial_rules.SUBTRACT
    kernel = ufunc("subtract")
    gradient = binary_grad("""
        gx = Identity(dz)
        gy = Neg(dz)
    """)
    examples = (Example([_ROWS, _COLUMN]),)


_REAL_MUL_GRAD: Final = binary_grad("""
    gx = Mul(dz, y)
    gy = Mul(x, dz)
""")
_COMPLEX_MUL_GRAD: Final = binary_grad("""
    cy = Conj(y) @ dz
    gx = Mul(dz, cy)
    cx = Conj(x) @ dz
    gy = Mul(cx, dz)
""")


def _mul_grad(attrs: Attrs) -> FunctionDef:
    return (_COMPLEX_MUL_GRAD if required_type(attrs).is_complex else _REAL_MUL_GRAD)(attrs)


@op
class Mul:
    """`x * y` with broadcasting."""

    signature = (
        "Mul[T:{bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}]"
        "(x:T, y:T) -> (z:T)"
    )
    commutative = True
    layer = "scaling"
    shape = broadcast_binary_op_shape_fn
    partial_rule = partial_rules.MULTIPLY
    kernel = ufunc("multiply")
    gradient = _mul_grad
    examples = (Example([_ROWS, _COLUMN]),)


@op
class MulNoNan(Elementwise):
    """`x * y` with broadcasting, and 0 where y is 0 even if x is NaN or infinite."""

    signature = f"MulNoNan[T:{FLOATING_OR_COMPLEX}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    gradient = _mul_grad
    examples = (Example([_ROWS, _COLUMN]), Example([[float("nan"), 2.0], [0.0, 3.0]], outputs=[[0.0, 6.0]], differentiable=False))

    def kernel(k: KernelContext) -> Kernel:
        xp, zero = k.xp, k.dtype("T").type(0)
        return lambda x, y: xp.where(y == 0, zero, x * y)


@op
class Div:
    """`x / y` with broadcasting; integer results are truncated."""

    pure = True
    signature = f"Div[T:{_DIVIDABLE}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    neutral = "ones"
    elementwise = True
    reuses_input = True
    can_fail = FailsOn(integers=True)
    gradient = holomorphic(_quotient_grad("Div"))
    examples = (Example([_ROWS, _COLUMN]), Example([[7, -7, 7, -7], [2, 2, -2, -2]], outputs=[[3, -3, -3, 3]]))
    failures = (Example([[[0, 0, 0], [0, 0, 0]], [[0], [0]]]),)

    def kernel(k: KernelContext) -> Kernel:
        if not k.output_types[0].is_integer:
            quotient: Kernel = k.xp.true_divide
            return quotient
        return _integer_division(k, _truncated(k))


@op
class RealDiv:
    """`x / y` with broadcasting, for floating point and complex numbers."""

    pure = True
    signature = f"RealDiv[T:{_DIVIDABLE}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    kernel = floating_ufunc("true_divide")
    gradient = holomorphic(_quotient_grad("RealDiv"))
    examples = (Example([_ROWS, _COLUMN]), Example([1.0, _COLUMN]))


@op
class DivNoNan(Elementwise):
    """`x / y` with broadcasting, and 0 where y is 0."""

    signature = "DivNoNan[T:{half, float, bfloat16, double, complex64, complex128}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    gradient = holomorphic(_quotient_grad("DivNoNan"))
    examples = (Example([_ROWS, _COLUMN]), Example([[1.0, 6.0], [0.0, 2.0]], outputs=[[0.0, 3.0]], differentiable=False))

    def kernel(k: KernelContext) -> Kernel:
        xp, zero = k.xp, k.dtype("T").type(0)
        return lambda x, y: xp.where(y == 0, zero, x / y)


def _refuse_complex(k: KernelContext) -> None:
    if k.output_types[0].is_complex:
        raise unimplemented(k, f"complex numbers cannot be rounded, got {k.output_types[0].text}")


@op
class TruncateDiv:
    """`x / y` with broadcasting, truncated."""

    pure = True
    signature = f"TruncateDiv[T:{_DIVIDABLE}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    elementwise = True
    can_fail = FailsOn(integers=True)
    gradient = NO_GRADIENT
    examples = (Example([[7, -7, 7, -7], [2, 2, -2, -2]], outputs=[[3, -3, -3, 3]]),)
    failures = (Example([[7, -7, 7, -7], [0, 0, 0, 0]]),)

    def kernel(k: KernelContext) -> Kernel:
        if k.output_types[0].is_integer:
            return _integer_division(k, _truncated(k))
        _refuse_complex(k)
        trunc = k.xp.trunc
        return lambda x, y: trunc(x / y)


@op
class FloorDiv:
    """`x / y` with broadcasting, rounded down."""

    pure = True
    signature = f"FloorDiv[T:{_DIVIDABLE}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    partial_rule = partial_rules.FLOOR_DIVIDE
    elementwise = True
    can_fail = FailsOn(integers=True)
    gradient = NO_GRADIENT
    examples = (Example([[7, -7, 7, -7], [2, 2, -2, -2]], outputs=[[3, -4, -4, 3]]), Example([[1.0, -1.0], 0.1]))
    failures = (Example([[7, -7, 7, -7], [0, 0, 0, 0]]),)

    def kernel(k: KernelContext) -> Kernel:
        if k.output_types[0].is_integer:
            return _integer_division(k, k.xp.floor_divide)
        _refuse_complex(k)
        # floor_divide would correct the rounding of the quotient: 1.0 // 0.1 is 9 there and 10 in TensorFlow.
        floor = k.xp.floor
        return lambda x, y: floor(x / y)


@op
class FloorMod:
    """The remainder of `FloorDiv`: it has the sign of y."""

    pure = True
    signature = "FloorMod[T:{int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    elementwise = True
    reuses_input = True
    can_fail = FailsOn(integers=True)
    gradient = binary_grad("""
        gx = Identity(dz)
        q = FloorDiv(x, y)
        nq = Neg(q)
        gy = Mul(dz, nq)
    """)
    examples = (Example([[7, -7, 7, -7], [2, 2, -2, -2]], outputs=[[1, 1, -1, -1]]), Example([[5.5, -5.5], [2.0, -3.0]]))
    failures = (Example([[7, -7, 7, -7], [0, 0, 0, 0]]),)

    def kernel(k: KernelContext) -> Kernel:
        return _integer_division(k, k.xp.remainder) if k.output_types[0].is_integer else ufunc("remainder")(k)


@op
class Mod:
    """The remainder of `TruncateDiv`: it has the sign of x."""

    pure = True
    signature = "Mod[T:{int32, int64, half, half, bfloat16, float, double}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    elementwise = True
    reuses_input = True
    can_fail = FailsOn(integers=True)
    gradient = NO_GRADIENT
    examples = (Example([[7, -7, 7, -7], [2, 2, -2, -2]], outputs=[[1, -1, 1, -1]]),)
    failures = (Example([[7, -7, 7, -7], [0, 0, 0, 0]]),)

    def kernel(k: KernelContext) -> Kernel:
        return _integer_division(k, k.xp.fmod) if k.output_types[0].is_integer else ufunc("fmod")(k)


@op
class TruncateMod:
    """The remainder of `TruncateDiv`: it has the sign of x."""

    pure = True
    signature = "TruncateMod[T:{int32, int64, bfloat16, half, float, double}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    elementwise = True
    reuses_input = True
    can_fail = FailsOn(integers=True)
    kernel = Mod.kernel
    gradient = NO_GRADIENT
    examples = (Example([[7, -7, 7, -7], [2, 2, -2, -2]], outputs=[[1, -1, 1, -1]]),)
    failures = (Example([[7, -7, 7, -7], [0, 0, 0, 0]]),)


def _pow_grad_text(safe_log: str) -> GradientText:
    return binary_grad(f"""
        z = Pow(x, y)
        const_zero = {scalar("float", 0)}
        const_one = {scalar("float", 1)}
        zero = Cast[SrcT=float, DstT=$T](const_zero)
        one = Cast[SrcT=float, DstT=$T](const_one)
        t0 = Sub(y, one) @ dz
        t1 = Pow(x, t0)
        t2 = Mul(dz, y)
        gx = Mul(t1, t2)
        unsafe_log = Log(x) @ dz
        zeros = ZerosLike(x)
        {safe_log}
        safe_log = Select({safe_log.split(" ", maxsplit=1)[0]}, unsafe_log, zeros)
        t4 = Mul(dz, z)
        gy = Mul(safe_log, t4)
    """)


_REAL_POW_GRAD: Final = _pow_grad_text("pos_x = Greater(x, zero)")
_POW_GRAD: Final = holomorphic(_pow_grad_text("nz_x = NotEqual(x, zero)"))


def _pow_grad(attrs: Attrs) -> FunctionDef:
    return (_POW_GRAD if required_type(attrs).is_complex else _REAL_POW_GRAD)(attrs)


@op
class Pow:
    """x to the power of y, with broadcasting. Integers have no negative powers."""

    pure = True
    signature = "Pow[T:{bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    cost = "transcendental"
    elementwise = True
    reuses_input = True
    can_fail = FailsOn(integers=True)
    gradient = _pow_grad
    examples = (Example([[[1.0, 2.0, 3.0], [0.5, 2.5, 3.5]], [[2.0], [-1.5]]]), Example([[2, -3], [3, 2]], outputs=[[8, 9]]))
    failures = (Example([[2, -3], [-1, -1]]),)

    def kernel(k: KernelContext) -> Kernel:
        power: Kernel = k.xp.power
        if not k.output_types[0].is_integer:
            return power

        def integer_power(x: Any, y: Any) -> Any:
            if (y < 0).any():
                raise invalid(k, "Integers to negative integer powers are not allowed")
            return power(x, y)

        return integer_power


def _choice_grad(chooses_x: str) -> GradientText:
    """The gradient goes to the selected input, to x if both are equal."""
    return binary_grad(f"""
        c = {chooses_x}(x, y) @ dz
        mask = Cast[SrcT=bool, DstT=$T](c)
        gx = Mul(dz, mask)
        gy = Sub(dz, gx)
    """)


@op
class Maximum:
    """The larger of x and y, with broadcasting; NaN if either is."""

    signature = "Maximum[T:{bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    partial_rule = partial_rules.MAXIMUM
    kernel = ufunc("maximum")
    gradient = _choice_grad("GreaterEqual")
    examples = (Example([_ROWS, [[-1.5], [1.5]]]),)


@op
class Minimum:
    """The smaller of x and y, with broadcasting; NaN if either is."""

    signature = "Minimum[T:{bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}](x:T, y:T) -> (z:T)"
    shape = broadcast_binary_op_shape_fn
    partial_rule = partial_rules.MINIMUM
    kernel = ufunc("minimum")
    gradient = _choice_grad("LessEqual")
    examples = (Example([_ROWS, [[-1.5], [1.5]]]),)


_REAL_SQUARED_DIFFERENCE_GRAD: Final = binary_grad(f"""
        c = {scalar("int64", 2)}
        two = Cast[SrcT=int64, DstT=$T](c)
        x_sub_y = Sub(x, y)
        two_x_sub_y = Mul(two, x_sub_y)
        gx = Mul(two_x_sub_y, dz)
        gy = Neg(gx)
    """)
# The result is real, so only the real part of the incoming gradient counts.
_COMPLEX_SQUARED_DIFFERENCE_GRAD: Final = binary_grad("""
        x_sub_y = Sub(x, y)
        cz = Conj(dz)
        twice_real = AddV2(dz, cz)
        gx = Mul(x_sub_y, twice_real)
        gy = Neg(gx)
    """)


def _squared_difference_grad(attrs: Attrs) -> FunctionDef:
    return (_COMPLEX_SQUARED_DIFFERENCE_GRAD if is_complex(attrs) else _REAL_SQUARED_DIFFERENCE_GRAD)(attrs)


@op
class SquaredDifference(Elementwise):
    """`(x - y)` times its conjugate, with broadcasting."""

    signature = "SquaredDifference[T:{bfloat16, half, float, double, int32, int64, complex64, complex128}](x:T, y:T) -> (z:T)"
    commutative = True
    shape = broadcast_binary_op_shape_fn
    gradient = _squared_difference_grad
    examples = (Example([_ROWS, _COLUMN]),)

    def kernel(k: KernelContext) -> Kernel:
        subtract, conj = k.xp.subtract, k.xp.conjugate
        if k.output_types[0].is_complex:
            return lambda x, y: conj(subtract(x, y)) * subtract(x, y)

        def squared_difference(x: Any, y: Any) -> Any:
            difference = subtract(x, y)
            difference *= difference
            return difference

        return squared_difference


def _truncated(k: KernelContext) -> Kernel:
    floor_divide = k.xp.floor_divide

    def divide(x: Any, y: Any) -> Any:
        quotient = floor_divide(x, y)
        return quotient + ((quotient < 0) & (quotient * y != x))

    return divide


def _integer_division(k: KernelContext, divide: Kernel) -> Kernel:
    divisor = k.constant(1)
    if divisor is not None and divisor.all():
        return divide

    def checked(x: Any, y: Any) -> Any:
        if not y.all() and x.size:
            raise invalid(k, "Integer division by zero")
        return divide(x, y)

    return checked
