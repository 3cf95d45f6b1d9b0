"""Matrix products."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference.shape_fns.common_shape_fns import batch_matmul_shape, batch_matmul_v2_shape, matmul_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.gradient_text import required_type, vector
from graphcore.opset.framework.kernels import invalid, narrow

_A: Final = [[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]]
_B: Final = [[2.0, 1.0], [-1.0, 0.5], [3.0, -2.0]]
_TYPES: Final = "T:{half, float, double}"
_COMPLEX_TYPES: Final = "T:{complex64, complex128}"
_CONJUGATES: Final = {"x": "cx", "y": "cy"}
_ADJOINT: Final = ("adj_x", "adj_y")

# By (transpose_a, transpose_b): the operands of dx with transposition flags, then those of dy.
PRODUCTS: Final = {
    (False, False): (("dz", "y", False, True), ("x", "dz", True, False)),
    (False, True): (("dz", "y", False, False), ("dz", "x", True, False)),
    (True, False): (("y", "dz", False, True), ("x", "dz", False, False)),
    (True, True): (("y", "dz", True, True), ("dz", "x", True, True)),
}

Product = tuple[str, str, bool, bool]
"""Two operands, and whether each is transposed."""


def product_node(name: str, op_name: str, product: Product, flags: tuple[str, str], types: str = "T=$T") -> str:
    """One line: `name` is the product of two operands, transposed according to the flag attrs."""
    left, right, first, second = product
    return f"  {name} = {op_name}[{types}, {flags[0]}={str(first).lower()}, {flags[1]}={str(second).lower()}]({left}, {right})\n"


def renamed(product: Product, names: dict[str, str]) -> Product:
    """The same product with renamed operands."""
    left, right, first, second = product
    return names.get(left, left), names.get(right, right), first, second


def _matmul_grad(attrs: Attrs) -> str:
    """The gradient of MatMul; complex operands are conjugated first, as MatMul does not conjugate."""
    dx, dy = PRODUCTS[bool(attrs.get("transpose_a")), bool(attrs.get("transpose_b"))]
    head, types = "", _TYPES
    if required_type(attrs).is_complex:
        head, types = "  cx = Conj[T=$T](x) @ dz\n  cy = Conj[T=$T](y) @ dz\n", _COMPLEX_TYPES
        dx, dy = renamed(dx, _CONJUGATES), renamed(dy, _CONJUGATES)
    flags = ("transpose_a", "transpose_b")
    return f"[{types}](x:T, y:T, dz:T) -> (dx:T, dy:T) {{\n{head}{product_node('dx', 'MatMul', dx, flags)}{product_node('dy', 'MatMul', dy, flags)}}}"


def _batch_matmul_grad(attrs: Attrs) -> str:
    dx, dy = PRODUCTS[bool(attrs.get("adj_x")), bool(attrs.get("adj_y"))]
    types = _COMPLEX_TYPES if required_type(attrs).is_complex else _TYPES
    nodes = product_node("dx", "BatchMatMul", dx, _ADJOINT) + product_node("dy", "BatchMatMul", dy, _ADJOINT)
    return f"[{types}](x:T, y:T, dz:T) -> (dx:T, dy:T) {{\n{nodes}}}"


def _batch_matmul_v2_grad(attrs: Attrs) -> str:
    dx, dy = PRODUCTS[bool(attrs.get("adj_x")), bool(attrs.get("adj_y"))]
    types = _COMPLEX_TYPES if required_type(attrs).is_complex else _TYPES
    products = product_node("gx", "BatchMatMulV2", dx, _ADJOINT) + product_node("gy", "BatchMatMulV2", dy, _ADJOINT)
    return f"[{types}](x:T, y:T, dz:T) -> (dx:T, dy:T) {{\n{products}{sum_broadcast_batches('T', 'T')}}}"


def sum_broadcast_batches(x_type: str, y_type: str) -> str:
    """The lines that reduce gx and gy over broadcast batch dimensions."""
    return (
        f"  zero = {vector('int32', 0)}\n"
        f"  one = {vector('int32', 1)}\n"
        f"  minustwo = {vector('int32', -2)}\n"
        f"  sx = Shape[T=${x_type}](x)\n"
        f"  sy = Shape[T=${y_type}](y)\n"
        "  batch_sx = StridedSlice[Index=int32, T=int32](sx, zero, minustwo, one)\n"
        "  batch_sy = StridedSlice[Index=int32, T=int32](sy, zero, minustwo, one)\n"
        "  rx, ry = BroadcastGradientArgs(batch_sx, batch_sy)\n"
        f"  sum_gx = Sum[T=${x_type}](gx, rx)\n"
        f"  sum_gy = Sum[T=${y_type}](gy, ry)\n"
        f"  dx = Reshape[T=${x_type}](sum_gx, sx)\n"
        f"  dy = Reshape[T=${y_type}](sum_gy, sy)\n"
    )


@op
class MatMul(Total):
    """The matrix product `a @ b`, with optional transpositions.

    a: [m, k], or [k, m] if transpose_a
    b: [k, n], or [n, k] if transpose_b
    product: [m, n]
    """

    pure = True
    signature = (
        "MatMul[transpose_a:bool = false, transpose_b:bool = false, "
        "T:{bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}, "
        "grad_a:bool = false, grad_b:bool = false](a:T, b:T) -> (product:T)"
    )
    layer = "product"
    shape = matmul_shape
    cost = "product"
    gradient = _matmul_grad
    examples = (
        Example([_A, _B]),
        Example([_A, _A], {"transpose_b": True}),
        Example([_A, _A], {"transpose_a": True}),
        Example([_A, _B], {"transpose_a": True, "transpose_b": True}),
    )

    def kernel(k: KernelContext) -> Kernel:
        dot, dtype = matrix_dot(k), k.dtype("T")
        first, second = k.attr("transpose_a"), k.attr("transpose_b")
        if narrow(dtype):
            wide = np.float32
            return lambda a, b: dot((a.T if first else a).astype(wide), (b.T if second else b).astype(wide)).astype(dtype)
        if first and second:
            return lambda a, b: dot(a.T, b.T)
        if first:
            return lambda a, b: dot(a.T, b)
        if second:
            return lambda a, b: dot(a, b.T)
        return dot


def matrix_dot(k: KernelContext) -> Kernel:
    """The product of the node's matrices by `dot`, which is faster to call than `matmul`.

    It accepts more than matrices.
    """
    dot: Kernel = k.xp.dot
    if [shape.rank for shape in k.input_shapes] == [2, 2]:
        return dot

    def product(a: Any, b: Any) -> Any:
        if not a.ndim == b.ndim == 2:
            raise invalid(k, f"required two matrices, got shapes {list(a.shape)} and {list(b.shape)}")
        return dot(a, b)

    return product


def _batches_dot(k: KernelContext) -> Kernel:
    """The product of the node's matrices or batches by `matmul`, which accepts vectors too."""
    matmul: Kernel = k.xp.matmul
    if all(shape.rank is not None for shape in k.input_shapes):
        return matmul

    def product(x: Any, y: Any) -> Any:
        if x.ndim < 2 or y.ndim < 2:
            raise invalid(k, f"required matrices or batches of them, got shapes {list(x.shape)} and {list(y.shape)}")
        return matmul(x, y)

    return product


def batched(k: KernelContext) -> Kernel:
    """The kernel of batch matrix products; operands are cast to the type of the result first."""
    matmul, dtype = _batches_dot(k), k.dtype("Tout" if "Tout" in k.attrs else "T")
    first, second = k.attr("adj_x"), k.attr("adj_y")
    if not first and not second and all(in_type is k.output_types[0] for in_type in k.input_types) and not narrow(dtype):
        plain: Kernel = matmul
        return plain
    wide = np.dtype(np.float32) if narrow(dtype) else dtype

    def adjoined(x: Any, y: Any) -> Any:
        x = x.swapaxes(-1, -2).conj() if first else x
        y = y.swapaxes(-1, -2).conj() if second else y
        return matmul(x.astype(wide, copy=False), y.astype(wide, copy=False)).astype(dtype, copy=False)

    return adjoined


_BATCHES: Final = (
    Example([[_A, _A], [_B, _B]]),
    Example([[_A], [_A]], {"adj_y": True}),
    Example([[_A, _A], [_A, _A]], {"adj_x": True}),
    Example([[_A], [_B]], {"adj_x": True, "adj_y": True}),
)
_BROADCAST_BATCHES: Final = (Example([[_A, _A], _B]), Example([[[_A], [_A]], [_A, _A, _A]], {"adj_y": True}))


@op
class BatchMatMul(Total):
    """Matrix products of two equal batches of matrices; `adj` takes the conjugate transpose first.

    x: [..., m, k]  y: [..., k, n]  output: [..., m, n]
    """

    pure = True
    signature = (
        "BatchMatMul[T:{bfloat16, half, float, double, int32, int64, complex64, complex128}, adj_x:bool = false, adj_y:bool = false, "
        "grad_x:bool = false, grad_y:bool = false](x:T, y:T) -> (output:T)"
    )
    layer = "product"
    shape = batch_matmul_shape
    cost = "product"
    kernel = batched
    gradient = _batch_matmul_grad
    examples = _BATCHES


@op
class BatchMatMulV2(Total):
    """Matrix products with broadcast batch dimensions; `adj` takes the conjugate transpose first.

    x: [..., m, k]  y: [..., k, n]  output: [..., m, n]
    """

    pure = True
    signature = (
        "BatchMatMulV2[T:{bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}, "
        "adj_x:bool = false, adj_y:bool = false, grad_x:bool = false, grad_y:bool = false](x:T, y:T) -> (output:T)"
    )
    layer = "product"
    shape = batch_matmul_v2_shape
    cost = "product"
    kernel = batched
    gradient = _batch_matmul_v2_grad
    examples = (*_BATCHES, *_BROADCAST_BATCHES)
