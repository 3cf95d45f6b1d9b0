"""Eigenvectors, singular vectors and orthogonal columns of matrices, in the last two dimensions.

Their gradients are those of TensorFlow. Vectors are unique only up to their signs, or for complex matrices up to their phases: gradients are right for
losses that do not depend on these. Where two values are equal, the vectors are not determined, and what would divide by their difference is left out.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.errors import UnimplementedError
from graphcore.inference import InferenceContext
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import is_complex
from graphcore.opset.framework.kernels import invalid
from graphcore.opset.math.linear_algebra_factors import NOT_SQUARE, TYPES, check_square, square_shape, widened

_SYMMETRIC: Final = np.array(
    [[[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]], [[2.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 3.0]]], np.float32
)
_TALL: Final = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]], np.float32)
_CONSTANTS: Final = """
  one_float = Const[dtype=float, value=Tensor<type: float shape: [] values: 1>]()
  half_float = Const[dtype=float, value=Tensor<type: float shape: [] values: 0.5>]()
  one = Cast[SrcT=float, DstT=$T](one_float)
  half = Cast[SrcT=float, DstT=$T](half_float)
  last = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: -1>]()
  before = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: -2>]()
  all = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: -1>]()
  none = Const[dtype=int64, value=Tensor<type: int64 shape: [] values: 0>]()"""


def _product(name: str, left: str, right: str, adjoint: str = "") -> str:
    """A line for a product of matrices. `adjoint` names those whose conjugate transposes it takes, x or y."""
    flags = [f"adj_{factor}={str(factor in adjoint).lower()}" for factor in "xy"]
    return f"\n  {name} = BatchMatMulV2[T=$T, {', '.join(flags)}]({left}, {right})"


def _differences(values: str) -> str:
    """Lines for `f`, with 1 / (values[j] - values[i]) at [i, j], and 0 where the two are equal."""
    return f"""
  row = ExpandDims[T=$T]({values}, before)
  column = ExpandDims[T=$T]({values}, last)
  difference = Sub[T=$T](row, column)
  f = DivNoNan[T=$T](one, difference)"""


def _turns(matrix: str) -> str:
    """Lines for `turns`: -i times the imaginary parts of a diagonal, by which complex phases turn back."""
    return f"""
  turn = MatrixDiagPart[T=$T]({matrix})
  turn_back = Conj[T=$T](turn)
  twice = Sub[T=$T](turn_back, turn)
  turns = Mul[T=$T](twice, half)"""


@op
class SelfAdjointEigV2:
    """The eigenvalues of symmetric or Hermitian matrices, in ascending order, and the eigenvectors.

    input: [..., n, n]; only the lower half is read
    e: [..., n]
    v: [..., n, n], an eigenvector a column; empty without compute_v
    compute_v: compute the eigenvectors.
    """

    signature = f"SelfAdjointEigV2[compute_v:bool = true, {TYPES}](input:T) -> (e:T, v:T)"
    cost = "cubic"
    device_types = ("CPU",)
    examples = (Example([_SYMMETRIC], {"compute_v": False}), Example([[[2.0]]]))
    failures = (NOT_SQUARE.format(op="SelfAdjointEigV2"),)

    def shape(c: InferenceContext) -> None:
        in_shape = square_shape(c)
        values = c.subshape(in_shape, 0, -1) if c.rank_known(in_shape) else in_shape
        c.set_output(0, values)
        c.set_output(1, in_shape if c.attr("compute_v") else c.vector(0))

    def kernel(k: KernelContext) -> Kernel:
        dtype, vectors = k.dtype("T"), bool(k.attr("compute_v"))

        def decompose(a: Any) -> Any:
            check_square(k, a)
            if not np.isfinite(a).all():
                raise invalid(k, "Self-adjoint eigen decomposition was not successful. The input might not be valid.")
            if vectors:
                values, columns = np.linalg.eigh(widened(k, a), "L")
                return values.astype(dtype, copy=False), columns.astype(dtype, copy=False)
            return np.linalg.eigvalsh(widened(k, a), "L").astype(dtype, copy=False), np.zeros(0, dtype)

        return decompose

    def gradient(attrs: Attrs) -> str:
        """All of it is in the lower half, the only one that is read."""
        turning = ""
        if attrs.get("compute_v", True):
            turning = f"""{_differences("e")}{_product("vdv", "v", "dv", "x")}
              turned = Mul[T=$T](f, vdv)
              middle = Add[T=$T](diagonal, turned)"""
        middle = "middle" if turning else "diagonal"
        return f"""[compute_v:bool, T:type](x:T, de:T, dv:T) -> (dx:T) {{{_CONSTANTS}
              e, v = SelfAdjointEigV2[compute_v=true, T=$T](x)
              diagonal = MatrixDiag[T=$T](de){turning}
              {_product("left", "v", middle)}{_product("both", "left", "v", "y")}
              {_product("other_left", "v", middle, "y")}{_product("others", "other_left", "v", "y")}
              sum = Add[T=$T](both, others)
              lower = MatrixBandPart[T=$T, Tindex=int64](sum, all, none)
              twice = MatrixDiagPart[T=$T](sum)
              once = Mul[T=$T](twice, half)
              dx = MatrixSetDiag[T=$T](lower, once)
            }}"""


@op
class Qr:
    """The factors of each matrix: orthogonal columns q, and an upper triangular r.

    input: [..., m, n]
    q: [..., m, min(m, n)]
    r: [..., min(m, n), n]
    full_matrices: q is square, [..., m, m], and r as the matrix.
    """

    signature = f"Qr[full_matrices:bool = false, {TYPES}](input:T) -> (q:T, r:T)"
    cost = "cubic"
    device_types = ("CPU",)
    examples = (Example([_TALL]), Example([_SYMMETRIC]), Example([_TALL], {"full_matrices": True}, differentiable=False))
    failures = (
        """
        three = Const[dtype=float, value=Tensor<type: float shape: [3] values: 0 1 2>]()
        hidden = PlaceholderWithDefault[dtype=float, shape=<unknown>](three)
        it = Qr[T=float](hidden)
        """,
    )

    def shape(c: InferenceContext) -> None:
        in_shape = c.with_rank_at_least(c.input(0), 2)
        if not c.rank_known(in_shape):
            c.set_output(0, c.unknown_shape())
            c.set_output(1, c.unknown_shape())
            return
        batch, m, n = c.subshape(in_shape, 0, -2), c.dim(in_shape, -2), c.dim(in_shape, -1)
        small = m if c.attr("full_matrices") else c.min(m, n)
        c.set_output(0, c.concatenate(batch, c.matrix(m, small)))
        c.set_output(1, c.concatenate(batch, c.matrix(small, n)))

    def kernel(k: KernelContext) -> Kernel:
        dtype, full = k.dtype("T"), bool(k.attr("full_matrices"))

        def decompose(a: Any) -> Any:
            if a.ndim < 2:
                raise invalid(k, f"Input must have rank >= 2, got {a.ndim}")
            q, r = np.linalg.qr(widened(k, a), "complete") if full else np.linalg.qr(widened(k, a))
            return q.astype(dtype, copy=False), r.astype(dtype, copy=False)

        return decompose

    def gradient(attrs: Attrs) -> str:
        """The columns of a wide matrix that follow the square part are `q` times those of `r`."""
        if attrs.get("full_matrices"):
            raise UnimplementedError("The gradient of op 'Qr' requires full_matrices=False, got True")
        turned = ""
        if is_complex(attrs):
            turned = f"""{_product("qdq_turned", "all_dq", "q", "x")}
              unequal = Sub[T=$T](rdr, qdq_turned){_turns("unequal")}
              turn_row = ExpandDims[T=$T](turns, before)
              correction = Mul[T=$T](q, turn_row)
              all_w = Add[T=$T](w, correction)"""
        return f"""[full_matrices:bool, T:type](x:T, dq:T, dr:T) -> (dx:T) {{{_CONSTANTS}
              q, r = Qr[full_matrices=false, T=$T](x)
              two = Const[dtype=int32, value=Tensor<type: int32 shape: [2] values: 1 1>]()
              no = Const[dtype=int32, value=Tensor<type: int32 shape: [2] values: 0 0>]()
              zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
              next = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 1>]()
              second = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 2>]()
              shape = Shape[T=$T](q)
              rank = Rank[T=$T](q)
              before_rank = Sub[T=int32](rank, second)
              last_rank = Sub[T=int32](rank, next)
              rows = GatherV2[Tparams=int32, Tindices=int32, Taxis=int32](shape, before_rank, zero)
              side = Pack[N=2, T=int32, axis=0](zero, rows)
              y = StridedSlice[T=$T, Index=int32, ellipsis_mask=1, end_mask=2](x, side, no, two)
              dv = StridedSlice[T=$T, Index=int32, ellipsis_mask=1, end_mask=2](dr, side, no, two)
              u = StridedSlice[T=$T, Index=int32, ellipsis_mask=1, begin_mask=2](r, no, side, two)
              du = StridedSlice[T=$T, Index=int32, ellipsis_mask=1, begin_mask=2](dr, no, side, two)
              {_product("of_y", "y", "dv", "y")}{_product("dy", "q", "dv")}
              all_dq = Add[T=$T](dq, of_y)
              {_product("qdq", "q", "all_dq", "x")}{_product("dqq", "all_dq", "q", "x")}
              {_product("rdr", "u", "du", "y")}{_product("drr", "du", "u", "y")}
              skew_q = Sub[T=$T](qdq, dqq)
              skew_r = Sub[T=$T](rdr, drr)
              skew = Add[T=$T](skew_q, skew_r)
              lower = MatrixBandPart[T=$T, Tindex=int64](skew, all, none)
              {_product("turned_q", "q", "lower")}{_product("within_q", "q", "qdq")}
              across = Sub[T=$T](all_dq, within_q)
              w = Add[T=$T](turned_q, across){turned}
              lead = Range[Tidx=int32](zero, before_rank, next)
              swapped = Pack[N=2, T=int32, axis=0](last_rank, before_rank)
              perm = ConcatV2[N=2, T=int32](lead, swapped, zero)
              w_adjoint = ConjugateTranspose[T=$T, Tperm=int32]({"all_w" if turned else "w"}, perm)
              solved = MatrixTriangularSolve[lower=false, adjoint=false, T=$T](u, w_adjoint)
              by_r = ConjugateTranspose[T=$T, Tperm=int32](solved, perm)
              {_product("of_r", "q", "du")}
              of_x = Add[T=$T](of_r, by_r)
              dx = ConcatV2[N=2, T=$T](of_x, dy, last)
            }}"""


@op
class Svd:
    """The singular values of each matrix in descending order, and the singular vectors as columns.

    input: [..., m, n]
    s: [..., min(m, n)]
    u: [..., m, min(m, n)], empty without compute_uv
    v: [..., n, min(m, n)], empty without compute_uv
    compute_uv: compute the vectors.
    full_matrices: u and v are square.
    """

    signature = f"Svd[compute_uv:bool = true, full_matrices:bool = false, {TYPES}](input:T) -> (s:T, u:T, v:T)"
    cost = "cubic"
    device_types = ("CPU",)
    examples = (Example([_TALL], {"compute_uv": False}), Example([[[2.0]]]))
    failures = (
        """
        three = Const[dtype=float, value=Tensor<type: float shape: [3] values: 0 1 2>]()
        hidden = PlaceholderWithDefault[dtype=float, shape=<unknown>](three)
        it = Svd[T=float](hidden)
        """,
    )

    def shape(c: InferenceContext) -> None:
        in_shape = c.with_rank_at_least(c.input(0), 2)
        batch, m, n = c.subshape(in_shape, 0, -2), c.dim(in_shape, -2), c.dim(in_shape, -1)
        small, full = c.min(m, n), c.attr("full_matrices")
        c.set_output(0, c.concatenate(batch, c.vector(small)))
        for i, side in ((1, m), (2, n)):
            whole = c.concatenate(batch, c.matrix(side, side if full else small))
            c.set_output(i, whole if c.attr("compute_uv") else c.vector(0))

    def kernel(k: KernelContext) -> Kernel:
        dtype, vectors, full = k.dtype("T"), bool(k.attr("compute_uv")), bool(k.attr("full_matrices"))

        def decompose(a: Any) -> Any:
            if a.ndim < 2 or not np.isfinite(a).all():
                raise invalid(k, "Input must have rank >= 2, and finite elements")
            if not vectors:
                empty = np.zeros(0, dtype)
                return np.linalg.svd(widened(k, a), compute_uv=False).astype(dtype, copy=False), empty, empty
            u, s, turned = np.linalg.svd(widened(k, a), full_matrices=full)
            return tuple(part.astype(dtype, copy=False) for part in (s, u, turned.swapaxes(-1, -2).conj()))

        return decompose

    def gradient(attrs: Attrs) -> str:
        """The vectors turn within their span, and out of it where the matrix is not square."""
        real = ""
        if is_complex(attrs):  # the values are real, so that only this part of their gradient counts
            real = """
              ds_back = Conj[T=$T](ds)
              ds_twice = Add[T=$T](ds, ds_back)
              ds_real = Mul[T=$T](ds_twice, half)"""
        of_values = "ds_real" if real else "ds"
        if not attrs.get("compute_uv", True):
            return f"""[compute_uv:bool, full_matrices:bool, T:type](x:T, ds:T, du:T, dv:T) -> (dx:T) {{{_CONSTANTS}{real}
              s, u, v = Svd[compute_uv=true, full_matrices=false, T=$T](x)
              row = ExpandDims[T=$T]({of_values}, before)
              scaled = Mul[T=$T](u, row){_product("dx", "scaled", "v", "y")}
            }}"""
        if attrs.get("full_matrices"):
            raise UnimplementedError("The gradient of op 'Svd' requires full_matrices=False, got True")
        turned = ""
        if is_complex(attrs):
            turned = f"""{_turns("vdv")}
              scaled_turns = Mul[T=$T](turns, inverse)
              turning = MatrixDiag[T=$T](scaled_turns)
              all_within = Add[T=$T](within, turning)"""
        return f"""[compute_uv:bool, full_matrices:bool, T:type](x:T, ds:T, du:T, dv:T) -> (dx:T) {{{_CONSTANTS}{real}
              s, u, v = Svd[compute_uv=true, full_matrices=false, T=$T](x)
              squares = Mul[T=$T](s, s){_differences("squares")}
              s_row = ExpandDims[T=$T](s, before)
              s_column = ExpandDims[T=$T](s, last)
              inverse = DivNoNan[T=$T](one, s)
              inverse_row = ExpandDims[T=$T](inverse, before)
              {_product("udu", "u", "du", "x")}{_product("duu", "du", "u", "x")}
              {_product("vdv", "v", "dv", "x")}{_product("dvv", "dv", "v", "x")}
              skew_u = Sub[T=$T](udu, duu)
              skew_v = Sub[T=$T](vdv, dvv)
              f_u = Mul[T=$T](f, skew_u)
              f_v = Mul[T=$T](f, skew_v)
              by_u = Mul[T=$T](f_u, s_row)
              by_v = Mul[T=$T](s_column, f_v)
              diagonal = MatrixDiag[T=$T]({of_values})
              by_both = Add[T=$T](by_u, by_v)
              within = Add[T=$T](diagonal, by_both){turned}
              {_product("left", "u", "all_within" if turned else "within")}{_product("of_span", "left", "v", "y")}
              {_product("u_udu", "u", "udu")}{_product("v_vdv", "v", "vdv")}
              out_u = Sub[T=$T](du, u_udu)
              out_v = Sub[T=$T](dv, v_vdv)
              shape = Shape[T=$T](x)
              rank = Rank[T=$T](x)
              zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()
              last_rank = Add[T=int32](rank, last)
              before_rank = Add[T=int32](rank, before)
              m = GatherV2[Tparams=int32, Tindices=int32, Taxis=int32](shape, before_rank, zero)
              n = GatherV2[Tparams=int32, Tindices=int32, Taxis=int32](shape, last_rank, zero)
              tall = Greater[T=int32](m, n)
              wide = Less[T=int32](m, n)
              if_tall = Cast[SrcT=bool, DstT=$T](tall)
              if_wide = Cast[SrcT=bool, DstT=$T](wide)
              scaled_u = Mul[T=$T](u, inverse_row)
              scaled_out = Mul[T=$T](out_u, inverse_row)
              {_product("of_u", "scaled_out", "v", "y")}{_product("of_v", "scaled_u", "out_v", "y")}
              u_part = Mul[T=$T](of_u, if_tall)
              v_part = Mul[T=$T](of_v, if_wide)
              parts = Add[T=$T](u_part, v_part)
              dx = Add[T=$T](of_span, parts)
            }}"""
