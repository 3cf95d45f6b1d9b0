"""Matrix products with operands of different types."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.inference.shape_fns.common_shape_fns import batch_matmul_v2_shape, matmul_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.math.matmul import PRODUCTS, batched, matrix_dot, product_node, renamed, sum_broadcast_batches

_A: Final = [[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]]
_B: Final = [[2.0, 1.0], [-1.0, 0.5], [3.0, -2.0]]


@op
class BatchMatMulV3(Total):
    """BatchMatMulV2 for different types of operands and result.

    x: [..., m, k]
    y: [..., k, n]
    output: [..., m, n]
    """

    pure = True
    signature = (
        "BatchMatMulV3[Ta:{bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}, "
        "Tb:{bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}, "
        "Tout:{bfloat16, half, float, double, int16, int32, int64, complex64, complex128}, "
        "adj_x:bool = false, adj_y:bool = false, grad_x:bool = false, grad_y:bool = false](x:Ta, y:Tb) -> (output:Tout)"
    )
    layer = "product"
    shape = batch_matmul_v2_shape
    cost = "product"
    kernel = batched
    examples = (
        Example([[_A, _A], _B], {"Tout": "float"}),
        Example([[_A, _A], [_A, _A]], {"Tout": "float", "adj_x": True}),
        Example([np.array(_A).astype(np.int8), np.array(_B).astype(np.int8)], {"Tout": "int32"}),
    )

    def gradient(attrs: Attrs) -> str:
        """As in BatchMatMulV2; each product has the type of its operand."""
        dx, dy = PRODUCTS[bool(attrs.get("adj_x")), bool(attrs.get("adj_y"))]
        types = {"x": "$Ta", "y": "$Tb", "dz": "$Tout"}
        nodes = "".join(
            product_node(
                name, "BatchMatMulV3", product, ("adj_x", "adj_y"), f"Ta={types[product[0]]}, Tb={types[product[1]]}, Tout={result}"
            )
            for name, product, result in (("gx", dx, "$Ta"), ("gy", dy, "$Tb"))
        )
        return f"[Ta:type, Tb:type, Tout:type](x:Ta, y:Tb, dz:Tout) -> (dx:Ta, dy:Tb) {{\n{nodes}{sum_broadcast_batches('Ta', 'Tb')}}}"


@op
class SparseMatMul(Total):
    """The matrix product `a @ b` for matrices with many zeros; they are stored like any others.

    a: [m, k], or [k, m] if transpose_a
    b: [k, n], or [n, k] if transpose_b
    a_is_sparse: a hint, ignored.
    b_is_sparse: a hint, ignored.
    """

    signature = (
        "SparseMatMul[transpose_a:bool = false, transpose_b:bool = false, a_is_sparse:bool = false, b_is_sparse:bool = false, "
        "Ta:{float, bfloat16} = float, Tb:{float, bfloat16} = float](a:Ta, b:Tb) -> (product:float)"
    )
    layer = "product"
    shape = matmul_shape
    cost = "product"
    examples = (
        Example([_A, _B]),
        Example([_A, _A], {"transpose_b": True}),
        Example([_A, _A], {"transpose_a": True}),
        Example([_A, _B], {"transpose_a": True, "transpose_b": True}),
    )

    def gradient(attrs: Attrs) -> str:
        """The products of MatMul's gradient in float, cast to the types of the operands."""
        first, second = bool(attrs.get("transpose_a")), bool(attrs.get("transpose_b"))
        dx, dy = PRODUCTS[first, second]
        flags = ("transpose_a", "transpose_b")
        names = {"x": "xf", "y": "yf"}
        dx, dy = renamed(dx, names), renamed(dy, names)
        return (
            "[Ta:{float, bfloat16}, Tb:{float, bfloat16}](x:Ta, y:Tb, dz:float) -> (dx:Ta, dy:Tb) {\n"
            "  xf = Cast[DstT=float, SrcT=$Ta](x)\n"
            "  yf = Cast[DstT=float, SrcT=$Tb](y)\n"
            f"{product_node('dxf', 'MatMul', dx, flags, 'T=float')}{product_node('dyf', 'MatMul', dy, flags, 'T=float')}"
            "  dx = Cast[DstT=$Ta, SrcT=float](dxf)\n"
            "  dy = Cast[DstT=$Tb, SrcT=float](dyf)\n"
            "}"
        )

    def kernel(k: KernelContext) -> Kernel:
        dot, first, second = matrix_dot(k), k.attr("transpose_a"), k.attr("transpose_b")

        def product(a: Any, b: Any) -> Any:
            a, b = a.astype(np.float32, copy=False), b.astype(np.float32, copy=False)
            return dot(a.T if first else a, b.T if second else b)

        return product
