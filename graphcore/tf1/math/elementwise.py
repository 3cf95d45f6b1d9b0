"""Elementwise mathematics, products of matrices and casts, under TensorFlow 1's names.

All functions take tensors or values; values take the dtype of the tensors beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from graphcore.dtypes import DType, as_dtype, bfloat16, complex64, complex128, float32, float64, int32, int64
from graphcore.graph import Tensor, get_default_graph
from graphcore.graph import convert_to_tensor as as_tensor
from graphcore.tf1.calls import apply_one, named
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope

if TYPE_CHECKING:

    class _Unary(Protocol):
        """An elementwise function of one tensor."""

        def __call__(self, x: Any, name: str | None = None) -> Tensor:
            """A node of the function's op."""

    class _Binary(Protocol):
        """An elementwise function of two tensors, with broadcasting."""

        def __call__(self, x: Any, y: Any, name: str | None = None) -> Tensor:
            """A node of the function's op."""


def _unary(function: str, op: str, doc: str) -> _Unary:
    def call(x: Any, name: str | None = None) -> Tensor:
        return apply_one(op, [x], name)

    return named(call, function, doc)


def _binary(function: str, op: str, doc: str) -> _Binary:
    def call(x: Any, y: Any, name: str | None = None) -> Tensor:
        return apply_one(op, [x, y], name)

    return named(call, function, doc)


negative = _unary("negative", "Neg", "`-x`.")
square = _unary("square", "Square", "`x * x`.")
sqrt = _unary("sqrt", "Sqrt", "The square root.")
exp = _unary("exp", "Exp", "E to the power `x`.")
log = _unary("log", "Log", "The natural logarithm.")
tanh = _unary("tanh", "Tanh", "The hyperbolic tangent.")
sigmoid = _unary("sigmoid", "Sigmoid", "`1 / (1 + exp(-x))`.")

subtract = _binary("subtract", "Sub", "`x - y` with broadcasting.")
multiply = _binary("multiply", "Mul", "`x * y`, elementwise with broadcasting.")
pow = _binary("pow", "Pow", "`x` to the power `y`.")  # noqa: A001 - TF1's name
maximum = _binary("maximum", "Maximum", "The larger of both, elementwise.")
minimum = _binary("minimum", "Minimum", "The smaller of both, elementwise.")
equal = _binary("equal", "Equal", "`x == y`, elementwise.")
not_equal = _binary("not_equal", "NotEqual", "`x != y`, elementwise.")
realdiv = _binary("realdiv", "RealDiv", "`x / y` for floats.")
truncatediv = _binary("truncatediv", "TruncateDiv", "`x / y` for integers, rounded towards 0.")
floormod = mod = _binary("floormod", "FloorMod", "The remainder of a division that rounds down: it has the sign of `y`.")
truncatemod = _binary("truncatemod", "TruncateMod", "The remainder of a division that rounds towards 0: it has the sign of `x`.")


def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x + y` with broadcasting; strings are joined."""
    return get_default_graph().builder.add(x, y, name or "Add")


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` with broadcasting; integers become floats, as with the operator."""
    divided = get_default_graph().builder.truediv(x, y)
    return divided if name is None else apply_one("Identity", [divided], name)


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` with broadcasting; integers become floats."""
    divided = get_default_graph().builder.truediv(x, y)
    return divided if name is None else apply_one("Identity", [divided], name)


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y` as in Python 2: integers stay integers, rounded down."""
    x = convert_to_tensor(x)
    return apply_one("FloorDiv" if x.dtype.is_integer else "RealDiv", [x, y], name or "div")


def abs(x: Any, name: str | None = None) -> Tensor:  # noqa: A001 - TF1's name
    """The absolute value; real for complex numbers."""
    return get_default_graph().builder.absolute(x, name)


def round(x: Any, name: str | None = None) -> Tensor:  # noqa: A001 - TF1's name
    """The nearest integer of each element, ties to the even one; integers themselves."""
    tensor = convert_to_tensor(x)
    return tensor if tensor.dtype.is_integer else apply_one("Round", [tensor], name)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """`-log(1 + exp(-x))`."""
    with name_scope(name or "LogSigmoid") as scope:
        return apply_one("Neg", [apply_one("Softplus", [-convert_to_tensor(x)], None)], scope)


def relu(features: Any, name: str | None = None) -> Tensor:
    """`max(features, 0)`."""
    return apply_one("Relu", [features], name)


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Tensor:
    """A scalar times a tensor."""
    x = convert_to_tensor(x)
    return apply_one("Mul", [convert_to_tensor(scalar, x.dtype.base), x], name)


def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    """True where exactly one of both is."""
    return get_default_graph().builder.logical_xor(x, y, name)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """`x` where `condition` holds, else `y`; without both the places where it holds: [count, rank]."""
    if x is None and y is None:
        return apply_one("Where", [condition], name)
    return apply_one("Select", [condition, x, y], name)


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,  # noqa: ARG001 - TF1's hint
    b_is_sparse: bool = False,  # noqa: ARG001 - TF1's hint
    name: str | None = None,
) -> Tensor:
    """The matrix product. a: [..., m, k]  b: [..., k, n] -> y: [..., m, n] (transposed first if requested).

    Args:
        a, b: matrices, or stacks of matrices.
        transpose_a, transpose_b: transpose each matrix first.
        adjoint_a, adjoint_b: transpose and conjugate each matrix first.
        a_is_sparse, b_is_sparse: hints without effect.
        name: the name of the node.
    """
    builder = get_default_graph().builder
    return builder.matmul(a, b, name or "MatMul", (transpose_a, transpose_b), (adjoint_a, adjoint_b))


def add_n(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape."""
    return apply_one("AddN", [list(inputs)], name)


def accumulate_n(inputs: Sequence[Any], shape: object = None, tensor_dtype: object = None, name: str | None = None) -> Tensor:
    """The sum of tensors of one shape."""
    del tensor_dtype
    total = add_n(inputs, name)
    if shape is not None:
        total.set_shape(shape)
    return total


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:  # noqa: A001 - TF1's name
    """Complex numbers of their real and imaginary parts."""
    real = convert_to_tensor(real)
    return apply_one("Complex", [real, imag], name, {"Tout": complex128 if real.dtype.base is float64 else complex64})


def real(input: Any, name: str | None = None) -> Tensor:
    """The real part."""
    tensor = convert_to_tensor(input)
    return _part("Real", tensor, name) if tensor.dtype.is_complex else tensor


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part."""
    tensor = convert_to_tensor(input)
    return _part("Imag", tensor, name) if tensor.dtype.is_complex else apply_one("ZerosLike", [tensor], name)


def angle(input: Any, name: str | None = None) -> Tensor:
    """The angle of complex numbers, in radians; of real ones 0 or pi."""
    tensor = convert_to_tensor(input)
    if tensor.dtype.is_complex:
        return _part("Angle", tensor, name)
    zeros = apply_one("ZerosLike", [tensor], None)
    return where(apply_one("Less", [tensor, 0], None), apply_one("AddV2", [zeros, np.pi], None), zeros, name)


def _part(op: str, tensor: Tensor, name: str | None) -> Tensor:
    return apply_one(op, [tensor], name, {"Tout": tensor.dtype.real_dtype})


def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; real numbers themselves."""
    tensor = convert_to_tensor(x)
    return apply_one("Conj", [tensor], name) if tensor.dtype.is_complex else tensor


def cast(x: Any, dtype: object, name: str | None = None) -> Tensor:
    """`x` with another dtype; of a sparse tensor its values."""
    if hasattr(x, "with_values"):
        return x.with_values(cast(x.values, dtype, name))  # type: ignore[no-any-return]  # a sparse tensor stays one
    tensor = as_tensor(get_default_graph(), x, None, "input of cast")
    wanted = as_dtype(dtype)
    if tensor.dtype is wanted:
        return tensor
    return apply_one("Cast", [tensor], name, {"DstT": wanted})


def saturate_cast(value: Any, dtype: object, name: str | None = None) -> Tensor:
    """`value` with another dtype; what lies beyond its limits becomes the limit."""
    wanted = as_dtype(dtype)
    with name_scope(name or "saturate_cast") as scope:
        value = convert_to_tensor(value)
        if value.dtype.min < wanted.min:
            value = maximum(value, constant(np.asarray(wanted.min).astype(value.dtype.as_numpy), value.dtype.base))
        if value.dtype.max > wanted.max:
            value = apply_one("Minimum", [value, constant(np.asarray(wanted.max).astype(value.dtype.as_numpy), value.dtype.base)], None)
        return cast(value, wanted, scope)


if TYPE_CHECKING:

    class _Cast(Protocol):
        def __call__(self, x: Any, name: str = ...) -> Tensor:
            """`x` with one dtype."""


def _cast_to(dtype: DType, function: str, node_name: str) -> _Cast:
    def call(x: Any, name: str = node_name) -> Tensor:
        return cast(x, dtype, name)

    return named(call, function, f"`x` as {dtype.name}.")


to_float = _cast_to(float32, "to_float", "ToFloat")
to_double = _cast_to(float64, "to_double", "ToDouble")
to_int32 = _cast_to(int32, "to_int32", "ToInt32")
to_int64 = _cast_to(int64, "to_int64", "ToInt64")
to_bfloat16 = _cast_to(bfloat16, "to_bfloat16", "ToBFloat16")
to_complex64 = _cast_to(complex64, "to_complex64", "ToComplex64")
to_complex128 = _cast_to(complex128, "to_complex128", "ToComplex128")
