"""Positions of extremes along an axis, and running sums and products."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from graphcore.attrs import Attrs
from graphcore.dtypes import bfloat16, float16
from graphcore.inference.shape_fns.common_shape_fns import arg_op_shape, unchanged_shape
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import INDEX_TYPE, index_type, index_typed, is_complex, scalar
from graphcore.opset.framework.kernels import constant_int, invalid, one_int
from graphcore.opset.framework.type_sets import INDEX, NUMBER, ORDERED
from graphcore.registry import KernelFactory
from graphcore.traits import FailsOn

_X: Final = [[-3.0, 5.0, -1.0], [1.0, 2.0, 3.5]]
_ARG_TYPES: Final = ORDERED[:-1] + ", bool}"


def _arg_reduction(name: str, never: float) -> KernelFactory:
    """The kernel of ArgMax and ArgMin. NaN counts as `never`, which loses against all numbers."""

    def kernel(k: KernelContext) -> Kernel:
        xp, find, constant_axis, dtype = k.xp, getattr(k.xp, name), constant_int(k, 1), k.dtype("output_type")
        with_nan = k.input_types[0].is_floating

        def arg_reduction(x: Any, dimension: Any) -> Any:
            axis = one_int(k, dimension) if constant_axis is None else constant_axis
            if not -x.ndim <= axis < x.ndim:
                raise invalid(k, f"Expected dimension in the range [{-x.ndim}, {x.ndim}), but got {axis}")
            if not x.shape[axis]:
                raise invalid(k, f"Reduction axis {axis} is empty in shape {list(x.shape)}")
            if with_nan:
                bad = xp.isnan(x)
                if bad.any():
                    x = xp.where(bad, xp.asarray(never, x.dtype), x)
            return find(x, axis).astype(dtype, copy=False)

        return arg_reduction

    return kernel


@op
class ArgMax:
    """The index of the largest element along one axis; of several, the first; never NaN."""

    pure = True
    signature = (
        f"ArgMax[T:{_ARG_TYPES}, Tidx:{{int16, int32, int64}} = int32, output_type:{{int16, uint16, int32, int64}} = int64]"
        "(input:T, dimension:Tidx) -> (output:output_type)"
    )
    shape = arg_op_shape
    memory = "fresh"
    can_fail = FailsOn(values=("dimension",), empty=True, vectors=True)
    kernel = _arg_reduction("argmax", -math.inf)
    gradient = NO_GRADIENT
    examples = (
        Example([_X, 1], outputs=[[1, 2]]),
        Example([_X, 0]),
        Example([_X, -1]),
        Example([[[math.nan, 1.0, 3.0], [2.0, math.nan, -math.inf], [math.nan] * 3], 1], outputs=[[2, 0, 0]]),
    )
    failures = (Example([np.zeros((0, 3), np.float32), 0]), Example([_X, 99]))


@op
class ArgMin:
    """The index of the smallest element along one axis; of several, the first; never NaN."""

    pure = True
    signature = f"ArgMin[T:{_ARG_TYPES}, Tidx:{INDEX} = int32, output_type:{{int32, int64}} = int64](input:T, dimension:Tidx) -> (output:output_type)"
    shape = arg_op_shape
    memory = "fresh"
    can_fail = FailsOn(values=("dimension",), empty=True, vectors=True)
    kernel = _arg_reduction("argmin", math.inf)
    gradient = NO_GRADIENT
    examples = (
        Example([_X, 1], outputs=[[0, 0]]),
        Example([_X, 0]),
        Example([_X, -1]),
        Example([[[math.nan, 1.0, 3.0], [2.0, math.nan, math.inf], [math.nan] * 3], 1], outputs=[[1, 0, 0]]),
    )
    failures = (Example([np.zeros((0, 3), np.float32), 0]), Example([_X, 99]))


def _running(name: str, neutral: int) -> KernelFactory:
    def kernel(k: KernelContext) -> Kernel:
        xp, accumulate, constant_axis, dtype = k.xp, getattr(k.xp, name), constant_int(k, 1), k.dtype("T")
        exclusive, reverse = k.attr("exclusive"), k.attr("reverse")

        def running(x: Any, axis: Any) -> Any:
            if axis.ndim:
                raise invalid(k, f"ScanOp: axis must be a scalar, not {list(axis.shape)}")
            along = one_int(k, axis) if constant_axis is None else constant_axis
            forward = xp.flip(x, along) if reverse else x
            result = accumulate(forward, along, dtype)
            if exclusive:
                result = _shifted(xp, result, along, neutral)
            return xp.flip(result, along) if reverse else result

        return running

    return kernel


def _shifted(xp: Any, x: Any, axis: int, neutral: int) -> Any:
    shifted = xp.full(x.shape, neutral, x.dtype)
    before = (slice(None),) * (axis % x.ndim)
    shifted[(*before, slice(1, None))] = x[(*before, slice(None, -1))]
    return shifted


@op
class Cumsum:
    """The running sum along one axis; `exclusive` omits the element, `reverse` starts at the end."""

    pure = True
    signature = f"Cumsum[exclusive:bool = false, reverse:bool = false, T:{NUMBER}, Tidx:{INDEX} = int32](x:T, axis:Tidx) -> (out:T)"
    shape = unchanged_shape
    kernel = _running("cumsum", 0)
    examples = (
        Example([_X, 1], outputs=[[[-3.0, 2.0, 1.0], [1.0, 3.0, 6.5]]]),
        Example([_X, 0], {"exclusive": True}),
        Example([_X, -1], {"exclusive": True, "reverse": True}),
    )
    failures = (Example([_X, 99]),)

    def gradient(attrs: Any) -> str:
        reverse = "false" if attrs.get("reverse") else "true"
        text = f"""[T:{{half, float, double}}, exclusive:bool](x:T, axis:{INDEX_TYPE}, dy:T) -> (dx:T, daxis:{INDEX_TYPE}) {{
          dx = Cumsum[T=$T, Tidx={INDEX_TYPE}, exclusive=$exclusive, reverse={reverse}](dy, axis)
          daxis = ZerosLike[T={INDEX_TYPE}](axis)
        }}"""
        return index_typed("Tidx", text)(attrs)


@op
class Cumprod:
    """The running product along one axis; `exclusive` omits the element, `reverse` starts at the end."""

    pure = True
    signature = f"Cumprod[exclusive:bool = false, reverse:bool = false, T:{NUMBER}, Tidx:{INDEX} = int32](x:T, axis:Tidx) -> (out:T)"
    shape = unchanged_shape
    kernel = _running("cumprod", 1)
    examples = (
        Example([_X, 1], outputs=[[[-3.0, -15.0, 15.0], [1.0, 2.0, 7.0]]]),
        Example([_X, 0], {"exclusive": True}),
        Example([_X, -1], {"exclusive": True, "reverse": True}),
    )
    failures = (Example([_X, 99]),)

    def gradient(attrs: Attrs) -> str:
        """Without x_i, the products are those before it times sums s_i = dy_i + x_(i+1) s_(i+1).

        That is a system with two diagonals.

        This needs no division, so zeros are harmless, to any derivative.
        """
        back, exclusive = attrs.get("reverse") is True, attrs.get("exclusive") is True
        step, used = ("one", "Greater[T=int32](places, zero)") if back else ("minus_one", "Less[T=int32](places, last)")
        narrow = index_type(attrs, "T") in {float16, bfloat16}
        wide = "float" if narrow else "$T"
        column = f"""shifted = Roll[T={wide}, Tshift=int32, Taxis=int32](dy_rows, {step}, minus_one)
          is_used = {used}
          arriving = SelectV2[T={wide}](is_used, shifted, zeros)"""
        diagonals = "zeros, ones, links" if back else "links, ones, zeros"
        text = f"""[T:{{half, float, double}}, exclusive:bool, reverse:bool](x:T, axis:{INDEX_TYPE}, dy:T) -> (dx:T, daxis:{INDEX_TYPE}) {{
          factors = {"Conj" if is_complex(attrs) else "Identity"}[T=$T](x)
          before = Cumprod[T=$T, Tidx={INDEX_TYPE}, exclusive=true, reverse=$reverse](factors, axis)
          zero = {scalar("int32", 0)}
          one = {scalar("int32", 1)}
          minus_one = {scalar("int32", -1)}
          rank = Rank[T=$T](x)
          axis_32 = Cast[SrcT={INDEX_TYPE}, DstT=int32](axis)
          axis_more = AddV2[T=int32](axis_32, rank)
          along = FloorMod[T=int32](axis_more, rank)
          along_vector = ExpandDims[T=int32](along, zero)
          axes = Range(zero, rank, one)
          others, others_places = ListDiff[T=int32](axes, along_vector)
          order = ConcatV2[N=2, T=int32](others, along_vector, zero)
          factors_wide = Cast[SrcT=$T, DstT={wide}](factors)
          dy_wide = Cast[SrcT=$T, DstT={wide}](dy)
          rows = Transpose[T={wide}](factors_wide, order)
          dy_rows = Transpose[T={wide}](dy_wide, order)
          zeros = ZerosLike[T={wide}](rows)
          ones = OnesLike[T={wide}](rows)
          turned = Neg[T={wide}](rows)
          links = Roll[T={wide}, Tshift=int32, Taxis=int32](turned, {step}, minus_one)
          sizes = Shape[T=$T](x)
          count = GatherV2[Taxis=int32, Tindices=int32, Tparams=int32](sizes, along, zero)
          places = Range(zero, count, one)
          last = Sub[T=int32](count, one)
          {column if exclusive else f"arriving = Identity[T={wide}](dy_rows)"}
          diagonals = Pack[T={wide}, N=3, axis=-2]({diagonals})
          column = ExpandDims[T={wide}](arriving, minus_one)
          solved = TridiagonalSolve[T={wide}, partial_pivoting=false](diagonals, column)
          sum_rows = Squeeze[T={wide}, squeeze_dims=[-1]](solved)
          back = InvertPermutation[T=int32](order)
          sums_wide = Transpose[T={wide}](sum_rows, back)
          sums = Cast[SrcT={wide}, DstT=$T](sums_wide)
          dx = Mul[T=$T](before, sums)
          daxis = ZerosLike[T={INDEX_TYPE}](axis)
        }}"""
        return index_typed("Tidx", text)(attrs)
