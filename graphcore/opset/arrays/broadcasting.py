"""Broadcasting: the shape of a broadcast, its gradient axes, and repeating to a larger shape."""

from __future__ import annotations

import itertools
import math
from typing import Any, Final

from graphcore.inference.shape_fns.common_shape_fns import (
    broadcast_args_shape,
    broadcast_gradient_args_shape,
    broadcast_to_shape,
    tile_shape,
)
from graphcore.opset.framework.block import NO_GRADIENT, Example, Kernel, KernelContext, op
from graphcore.opset.framework.gradient_text import INDEX_TYPE, index_type, index_typed, scalar, vector
from graphcore.opset.framework.kernels import constant_ints, in_proportion, ints, invalid
from graphcore.opset.framework.type_sets import INDEX
from graphcore.traits import FailsOn

Sizes = tuple[int, ...]

_X: Final = [[-3.0, -2.0, -1.0], [1.0, 2.0, 3.5]]


def _aligned(k: KernelContext, first: Sizes, second: Sizes) -> list[tuple[int, int]]:
    pairs = list(itertools.zip_longest(reversed(first), reversed(second), fillvalue=1))[::-1]
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        raise invalid(k, f"Incompatible shapes: [{','.join(map(str, first))}] vs. [{','.join(map(str, second))}]")
    return pairs


@op
class BroadcastGradientArgs:
    """The axes over which the gradients of a broadcasting op's operands are summed.

    s0: the shape of the first operand
    s1: the shape of the second operand
    r0: the axes to sum the gradient of the first operand over
    r1: the axes to sum the gradient of the second operand over
    """

    pure = True
    most_bytes = in_proportion(2)
    signature = f"BroadcastGradientArgs[T:{INDEX} = int32](s0:T, s1:T) -> (r0:T, r1:T)"
    shape = broadcast_gradient_args_shape
    gradient = NO_GRADIENT
    examples = (
        Example([[2, 3], [2, 3]], outputs=[[], []]),
        Example([[2, 1], [3]], outputs=[[1], [0]]),
        Example([[1, 1, 3], [1, 3]], outputs=[[0, 1], [0, 1]]),
    )
    failures = (Example([[-1, -1], [2, 3]]),)

    def kernel(k: KernelContext) -> Kernel:
        array, dtype = k.xp.array, k.dtype("T")

        def axes(first: Sizes, second: Sizes) -> tuple[Any, Any]:
            if first == second:
                return array((), dtype), array((), dtype)
            pairs = _aligned(k, first, second)
            return array([i for i, (a, _) in enumerate(pairs) if a == 1], dtype), array(
                [i for i, (_, b) in enumerate(pairs) if b == 1], dtype
            )

        constant_shapes = constant_ints(k, 0), constant_ints(k, 1)
        if constant_shapes[0] is not None and constant_shapes[1] is not None:
            answer = axes(constant_shapes[0], constant_shapes[1])
            return lambda *_: answer
        return lambda s0, s1: axes(ints(s0), ints(s1))


@op
class BroadcastArgs:
    """The shape that two shapes broadcast to.

    s0: a shape
    s1: a shape
    r0: the smallest shape that both broadcast to
    """

    pure = True
    most_bytes = in_proportion(1)
    signature = f"BroadcastArgs[T:{INDEX} = int32](s0:T, s1:T) -> (r0:T)"
    shape = broadcast_args_shape
    gradient = NO_GRADIENT
    examples = (Example([[2, 1], [3]], outputs=[[2, 3]]),)
    failures = (Example([[-1, -1], [3]]),)

    def kernel(k: KernelContext) -> Kernel:
        array, dtype = k.xp.array, k.dtype("T")
        return lambda s0, s1: array([b if a == 1 else a for a, b in _aligned(k, ints(s0), ints(s1))], dtype)


@op
class BroadcastTo:
    """Repeats `input` along dimensions of size 1, and new leading ones, to the shape `shape`.

    shape: the sizes, [rank]
    """

    pure = True
    signature = f"BroadcastTo[T:type, Tidx:{INDEX} = int32](input:T, shape:Tidx) -> (output:T)"
    shape = broadcast_to_shape
    neutral = "own shape"
    can_fail = FailsOn(values=("shape",))
    memory = "broadcast view"
    examples = (Example([_X, [2, 2, 3]]), Example([[[1.0], [2.0]], [2, 3]]), Example([7.0, [2, 2]]))
    failures = (Example([_X, [-1, -1, -1]]),)

    def gradient(attrs: Any) -> str:
        wide = index_type(attrs, "Tidx").text == "int64"
        text = f"""[T:type, Tidx:{{int32, int64}}](x:T, shape:{INDEX_TYPE}, dy:T) -> (dx:T, dshape:Tidx) {{
          sx = Shape[T=$T{", out_type=int64" if wide else ""}](x)
          rx, ry = BroadcastGradientArgs{"[T=int64]" if wide else ""}(sx, shape)
          sum_gx = Sum[T=$T{", Tidx=int64" if wide else ""}](dy, rx)
          dx = Reshape[T=$T{", Tshape=int64" if wide else ""}](sum_gx, sx)
          dshape = ZerosLike[T=$Tidx](shape)
        }}"""
        return index_typed("Tidx", text)(attrs)

    def kernel(k: KernelContext) -> Kernel:
        broadcast_to = k.xp.broadcast_to
        constant_sizes = constant_ints(k, 1)

        def broadcast(x: Any, shape: Any) -> Any:
            sizes = ints(shape) if constant_sizes is None else constant_sizes
            try:
                return broadcast_to(x, sizes)
            except ValueError:
                raise invalid(k, f"Incompatible shapes: {list(x.shape)} vs. {list(sizes)}") from None

        return broadcast


@op
class Tile:
    """Repeats `input` multiples[i] times along dimension i.

    multiples: one number a dimension, [rank]
    """

    pure = True
    signature = f"Tile[T:type, Tmultiples:{INDEX} = int32](input:T, multiples:Tmultiples) -> (output:T)"
    shape = tile_shape
    neutral = "ones"
    can_fail = FailsOn(values=("multiples",))
    examples = (Example([_X, [2, 1]]), Example([_X, [2, 3]]), Example([_X, [0, 1]]))
    failures = (Example([_X, [-1, -1]]),)

    # Repeats and elements become dimensions of their own, and the repeats are summed.
    gradient = index_typed(
        "Tmultiples",
        f"""[T:{{half, float, double}}](x:T, multiples:{INDEX_TYPE}, dy:T) -> (dx:T, dmultiples:{INDEX_TYPE}) {{
          x_shape = Shape[T=$T, out_type={INDEX_TYPE}](x)
          pairs = Pack[N=2, T={INDEX_TYPE}, axis=1](multiples, x_shape)
          flat = {vector("int32", -1)}
          split_shape = Reshape[T={INDEX_TYPE}](pairs, flat)
          dy_split = Reshape[T=$T, Tshape={INDEX_TYPE}](dy, split_shape)
          zero = {scalar("int32", 0)}
          two = {scalar("int32", 2)}
          split_rank = Size[T={INDEX_TYPE}](split_shape)
          repeats = Range(zero, split_rank, two)
          dx_sum = Sum[T=$T](dy_split, repeats)
          dx = Reshape[T=$T, Tshape={INDEX_TYPE}](dx_sum, x_shape)
          dmultiples = ZerosLike[T={INDEX_TYPE}](multiples)
        }}""",
    )

    def kernel(k: KernelContext) -> Kernel:
        broadcast_to = k.xp.broadcast_to
        constant_repeats = constant_ints(k, 1)

        def tile(x: Any, multiples: Any) -> Any:
            repeats = ints(multiples) if constant_repeats is None else constant_repeats
            if len(repeats) != x.ndim or min(repeats, default=0) < 0:
                raise invalid(k, f"Expected one multiple >= 0 a dimension of {list(x.shape)}, got {list(repeats)}")
            if math.prod(repeats) == 1:
                return x
            apart = [size for pair in zip(itertools.repeat(1), x.shape) for size in pair]
            wide = [size for pair in zip(repeats, x.shape, strict=True) for size in pair]
            together = [repeat * size for repeat, size in zip(repeats, x.shape, strict=True)]
            return broadcast_to(x.reshape(apart), wide).reshape(together)

        return tile
