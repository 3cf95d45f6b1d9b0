"""Casts between types."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.inference import partial_rules
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape
from graphcore.opset.framework.block import Example, Kernel, KernelContext, define_op, no_registered_gradient, op
from graphcore.opset.framework.families import Elementwise
from graphcore.opset.framework.kernels import pass_through

# The number of low bits of a float that Truncate cuts off.
_CUT_BITS: Final = {("float", "bfloat16"): (np.uint32, 16), ("float", "half"): (np.uint32, 13), ("double", "float"): (np.uint64, 29)}


@op
class Cast(Elementwise):
    """The elements in another type. Floats are truncated to integers, complex numbers to their real part.

    Truncate: for narrower floats, cut off the lowest bits instead of rounding.
    """

    signature = "Cast[SrcT:type, DstT:type, Truncate:bool = false](x:SrcT) -> (y:DstT)"
    shape = unchanged_shape
    partial_rule = partial_rules.CAST
    memory = "unknown"
    gradient = """[SrcT:type, DstT:type](x:SrcT, dy:DstT) -> (dx:SrcT) {
      dx = Cast[DstT=$SrcT, SrcT=$DstT](dy)
    }"""
    examples = (
        Example([[1.5, -1.5, 0.0]], {"DstT": "int32"}, outputs=[[1, -1, 0]]),
        Example([[1.5, 0.0]], {"DstT": "bool"}, outputs=[[True, False]]),
        Example([[1.5, -2.5]], {"DstT": "double"}, outputs=[[1.5, -2.5]]),
    )

    def kernel(k: KernelContext) -> Kernel:
        source, target = k.input_types[0].base, k.output_types[0]
        dtype = k.dtype("DstT")
        if source is target:
            return pass_through(k)
        cut = _CUT_BITS.get((source.text, target.text)) if k.attr("Truncate") else None
        if cut is not None:
            return _truncating(k, *cut)
        if source.is_complex and not target.is_complex:
            return lambda x: x.real.astype(dtype)
        return lambda x: x.astype(dtype)


define_op(
    "_HostCast",
    """The elements of a tensor in host memory in another type, as Cast computes them.

    Truncate: for narrower floats, cut off the lowest bits instead of rounding.
    """,
    Cast,
    signature=Cast.signature.replace("Cast[", "_HostCast["),
    gradient=no_registered_gradient("partitioning makes it, after differentiation"),
)


def _truncating(k: KernelContext, bits: Any, count: int) -> Kernel:
    dtype, mask = k.dtype("DstT"), bits(~((1 << count) - 1) & np.iinfo(bits).max)

    def cast(x: Any) -> Any:
        cut = (k.xp.asarray(x).view(bits) & mask).view(x.dtype)
        return k.xp.where(k.xp.isnan(x), x, cut).astype(dtype)

    return cast
