"""Systems of equations with three diagonals."""

from __future__ import annotations

from typing import Any

from graphcore.attrs import Attrs
from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import is_complex, scalar
from graphcore.opset.framework.kernels import invalid, unimplemented


@op
class TridiagonalSolve:
    """The solutions of systems of equations whose matrices have three diagonals.

    diagonals: [..., 3, n], the diagonal above (its last element is not used), the main one, the one below (its first is not used)
    rhs: [..., n, k]
    output: [..., n, k]
    partial_pivoting: exchange rows where that is more precise.
    perturb_singular: for GPUs only, as in TensorFlow.
    """

    signature = (
        "TridiagonalSolve[partial_pivoting:bool = true, perturb_singular:bool = false, T:{double, float, complex64, complex128}]"
        "(diagonals:T, rhs:T) -> (output:T)"
    )
    examples = (
        Example([[[1.0, -2.0, 9.0], [4.0, 0.5, 3.0], [9.0, 1.0, -1.0]], [[1.0, 2.0], [3.0, -1.0], [0.5, 4.0]]]),
        Example([[[[2.0, 0.0], [1.0, 1.0], [0.0, 3.0]]], [[[1.0], [2.0]]]], {"partial_pivoting": False}),
    )
    failures = (Example([[[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[1.0], [2.0]]]),)

    def shape(c: InferenceContext) -> None:
        diagonals, rhs = c.with_rank_at_least(c.input(0), 2), c.with_rank_at_least(c.input(1), 2)
        c.merge_dim(c.dim(diagonals, -1), c.dim(rhs, -2))
        c.with_value(c.dim(diagonals, -2), 3)
        c.set_output(0, rhs)

    def gradient(attrs: Attrs) -> str:
        """By the right side a solution with the transposed matrix; by the matrix a product of both solutions."""
        conj = "Conj" if is_complex(attrs) else "Identity"
        options = "T=$T, partial_pivoting=$partial_pivoting, perturb_singular=$perturb_singular"
        return f"""[T:type, partial_pivoting:bool, perturb_singular:bool](diagonals:T, rhs:T, dy:T) -> (ddiagonals:T, drhs:T) {{
          y = TridiagonalSolve[{options}](diagonals, rhs)
          above, main, below = Unpack[T=$T, num=3, axis=-2](diagonals)
          one = {scalar("int32", 1)}
          minus_one = {scalar("int32", -1)}
          minus_two = {scalar("int32", -2)}
          turned_above = Roll[T=$T, Tshift=int32, Taxis=int32](below, minus_one, minus_one)
          turned_below = Roll[T=$T, Tshift=int32, Taxis=int32](above, one, minus_one)
          turned = Pack[T=$T, N=3, axis=-2](turned_above, main, turned_below)
          conjugate = {conj}[T=$T](turned)
          drhs = TridiagonalSolve[{options}](conjugate, dy)
          y_conj = {conj}[T=$T](y)
          next_y = Roll[T=$T, Tshift=int32, Taxis=int32](y_conj, minus_one, minus_two)
          last_y = Roll[T=$T, Tshift=int32, Taxis=int32](y_conj, one, minus_two)
          above_parts = Mul[T=$T](drhs, next_y)
          main_parts = Mul[T=$T](drhs, y_conj)
          below_parts = Mul[T=$T](drhs, last_y)
          above_sum = Sum[T=$T](above_parts, minus_one)
          main_sum = Sum[T=$T](main_parts, minus_one)
          below_sum = Sum[T=$T](below_parts, minus_one)
          sizes = Shape[T=$T](main)
          rank = Rank[T=$T](main)
          zero = {scalar("int32", 0)}
          last_axis = Sub[T=int32](rank, one)
          count = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](sizes, last_axis, zero)
          places = Range(zero, count, one)
          last = Sub[T=int32](count, one)
          is_used_above = Less[T=int32](places, last)
          is_used_below = Greater[T=int32](places, zero)
          zeros = ZerosLike[T=$T](main_sum)
          used_above = SelectV2[T=$T](is_used_above, above_sum, zeros)
          used_below = SelectV2[T=$T](is_used_below, below_sum, zeros)
          all = Pack[T=$T, N=3, axis=-2](used_above, main_sum, used_below)
          ddiagonals = Neg[T=$T](all)
        }}"""

    def kernel(k: KernelContext) -> Kernel:
        xp, dtype, pivots = k.xp, k.dtype("T"), k.attr("partial_pivoting") is True
        if k.attr("perturb_singular"):
            raise unimplemented(k, "perturb_singular is for GPUs only")

        def solve(diagonals: Any, rhs: Any) -> Any:
            if diagonals.ndim < 2 or rhs.ndim != diagonals.ndim or diagonals.shape[-2] != 3 or diagonals.shape[:-2] != rhs.shape[:-2]:
                raise invalid(k, f"required diagonals [..., 3, n] and rhs [..., n, k], got {list(diagonals.shape)} and {list(rhs.shape)}")
            if diagonals.shape[-1] != rhs.shape[-2]:
                raise invalid(k, f"Expected right-hand sides with {diagonals.shape[-1]} rows, got {rhs.shape[-2]}")
            if not rhs.size:
                return xp.zeros(rhs.shape, dtype)
            return _solved(k, diagonals, rhs, pivots=pivots)

        return solve


def _solved(k: KernelContext, diagonals: Any, rhs: Any, *, pivots: bool) -> Any:
    """Gaussian elimination, row by row, of all systems at once. Rows come first, so that each is contiguous."""
    xp = k.xp
    above, main, below = (xp.ascontiguousarray(xp.moveaxis(diagonals[..., i, :], -1, 0)) for i in range(3))
    right = xp.ascontiguousarray(xp.moveaxis(rhs, -2, 0))
    count, nothing = len(main), xp.zeros_like(main[0])
    rows: tuple[list[Any], ...] = ([], [], [], [])  # the remaining elements of each row, and its right sides
    row = (main[0], above[0] if count > 1 else nothing, nothing, right[0])
    for i in range(1, count):
        lower = (below[i], main[i], above[i] if i < count - 1 else nothing, right[i])
        if pivots:
            swap = xp.abs(lower[0]) > xp.abs(row[0])
            if bool(swap.any()):
                wide = swap[..., None]
                row, lower = (
                    tuple([xp.where(wide if at == 3 else swap, b, a) for at, (a, b) in enumerate(zip(row, lower, strict=True))]),
                    tuple([xp.where(wide if at == 3 else swap, a, b) for at, (a, b) in enumerate(zip(row, lower, strict=True))]),
                )
        if not bool(row[0].all()):
            raise invalid(k, "The matrix is not invertible" if pivots else "A pivot is zero; partial_pivoting=True may help")
        factor = lower[0] / row[0]
        for kept, part in zip(rows, row, strict=True):
            kept.append(part)
        row = (lower[1] - factor * row[1], lower[2] - factor * row[2], nothing, lower[3] - factor[..., None] * row[3])
    if not bool(row[0].all()):
        raise invalid(k, "The matrix is not invertible")
    first, second, third, sides = rows
    result = xp.empty_like(right)
    result[count - 1] = row[3] / row[0][..., None]
    for i in range(count - 2, -1, -1):
        rest = sides[i] - second[i][..., None] * result[i + 1]
        if pivots and i + 2 < count:
            rest = rest - third[i][..., None] * result[i + 2]
        result[i] = rest / first[i][..., None]
    return xp.moveaxis(result, 0, -2)
