"""`tf.linalg`: exponentials of matrices, and factors by elimination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from graphcore.api.loops import while_loop
from graphcore.dtypes import complex64, complex128, float16, float32, float64, int32
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Tensor, get_default_graph
from graphcore.tf1.arrays.layout import ones_like, zeros_like
from graphcore.tf1.arrays.matrices import matrix_diag_part
from graphcore.tf1.calls import apply_one
from graphcore.tf1.framework import constant, convert_to_tensor, name_scope
from graphcore.tf1.math.elementwise import abs as absolute
from graphcore.tf1.math.elementwise import add_n, cast, matmul
from graphcore.tf1.math.reductions import reduction

_PADE: Final = {
    3: (120.0, 60.0, 12.0, 1.0),
    5: (30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0),
    7: (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0),
    9: (17643225600.0, 8821612800.0, 2075673600.0, 302702400.0, 30270240.0, 2162160.0, 110880.0, 3960.0, 90.0, 1.0),
    13: (
        *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0),
        *(670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0),
    ),
}
"""The coefficients of the numerators of Padé approximants of the exponential, by their order."""
_LIMITS: Final = {
    float32: {3: 0.4258730016922831, 5: 1.880152677804762, 7: 3.925724783138660},
    float64: {3: 0.01495585217958292, 5: 0.2539398330063230, 7: 0.9504178996162932, 9: 2.097847961257068, 13: 5.371920351148152},
}
"""The orders for a precision, each with the largest norm for which it is as precise."""


def expm(input: Any, name: str | None = None) -> Tensor:
    """The exponentials of matrices; NaN where the matrix is not finite. input: [..., n, n] -> [..., n, n].

    As in TensorFlow a graph of several ops: Padé approximants, after the matrix was halved often enough, and as many squares of the result.

    Args:
        input: the matrices, floating or complex. Half precision is computed in single precision.
        name: the name scope.
    """
    with name_scope(name or "matrix_exponential"):
        matrix = convert_to_tensor(input)
        if matrix.dtype is float16:
            return cast(expm(cast(matrix, float32)), float16)
        if matrix.dtype not in {float32, float64, complex64, complex128}:
            raise InvalidArgumentError(f"tf.linalg.expm: required floating or complex matrices, got {matrix.dtype.text}")
        norm = reduction("Max", reduction("Sum", absolute(matrix), [-2], True), [-1], True)
        orders = _LIMITS[norm.dtype]
        *few, (most, largest) = orders.items()
        halvings = _halvings(norm, largest)
        scaled = matrix / cast(apply_one("Pow", [_like(norm, 2.0), halvings], None), matrix.dtype)
        powers = _even_powers(scaled, 6 if most == 13 else most - 1)
        odd, even = _pade(scaled, powers, most)
        for order, limit in reversed(few):
            is_small = apply_one("LessEqual", [norm, _like(norm, limit)], None)
            odd, even = (
                apply_one("SelectV2", [is_small, *pair], None) for pair in zip(_pade(scaled, powers, order), (odd, even), strict=True)
            )
        return _squared(apply_one("MatrixSolve", [even - odd, even + odd], None), halvings)


def _like(norm: Tensor, value: float) -> Tensor:
    return constant(value, norm.dtype)


def _halvings(norm: Tensor, largest: float) -> Tensor:
    """The halvings after which a norm is below `largest`; none for norms that are not finite."""
    needed = apply_one("Ceil", [apply_one("Log", [norm / largest], None) / float(np.log(2.0))], None)
    return apply_one(
        "SelectV2", [apply_one("IsFinite", [norm], None), apply_one("Maximum", [needed, _like(norm, 0.0)], None), zeros_like(norm)], None
    )


def _even_powers(matrix: Tensor, highest: int) -> list[Tensor]:
    """The powers 0, 2, 4 ... `highest`."""
    powers = [_identity_like(matrix), matmul(matrix, matrix)]
    while 2 * len(powers) <= highest:
        powers.append(matmul(powers[-1], powers[1]))
    return powers


def _identity_like(matrix: Tensor) -> Tensor:
    return apply_one("MatrixDiag", [ones_like(matrix_diag_part(matrix))], None)


def _pade(matrix: Tensor, powers: Sequence[Tensor], order: int) -> tuple[Tensor, Tensor]:
    """The odd and the even part of an approximant's numerator."""
    weights = _PADE[order]
    return matmul(matrix, _polynomial(powers, weights[1::2])), _polynomial(powers, weights[::2])


def _polynomial(powers: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """The weighted sum of even powers; those beyond the last one given as its products with the others."""
    low = add_n([power * weight for power, weight in zip(powers, weights, strict=False)])
    high = weights[len(powers) :]
    if not high:
        return low
    return low + matmul(powers[-1], add_n([power * weight for power, weight in zip(powers[1:], high, strict=False)]))


def _squared(result: Tensor, times: Tensor) -> Tensor:
    """Square each matrix as many times as `times` says. times: [..., 1, 1]."""
    most = reduction("Max", times)

    def body(i: Tensor, current: Tensor) -> tuple[Tensor, Tensor]:
        square = apply_one("SelectV2", [apply_one("Less", [i, times], None), matmul(current, current), current], None)
        return i + 1.0, square

    squared: Tensor = while_loop(lambda i, _: apply_one("Less", [i, most], None), body, (_like(times, 0.0), result))[1]
    return squared


class Lu(NamedTuple):
    """The two factors of matrices in one array, and the order of rows."""

    lu: Tensor
    p: Tensor


def lu(input: Any, output_idx_type: Any = int32, name: str | None = None) -> Lu:
    """The factors of matrices by elimination with row exchanges. input: [..., n, n] -> lu: [..., n, n], p: [..., n].

    Args:
        input: invertible matrices.
        output_idx_type: int32 or int64, the type of `p`: row i of the product of the factors is row p[i] of the matrix.
        name: the name of the node.

    Returns:
        The upper factor on and above the diagonal of `lu`, the lower one, without its ones on the diagonal, below; and `p`.
    """
    return Lu(*get_default_graph().apply_op("Lu", [input], {"output_idx_type": output_idx_type}, name).outputs)
