"""Moving blocks between space, batch and depth."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array, Attrs
from graphcore.errors import InvalidArgumentError
from graphcore.inference import InferenceContext
from graphcore.inference.handles import DimensionHandle, ShapeHandle
from graphcore.opset.framework.block import Example, Kernel, KernelContext, op
from graphcore.opset.framework.families import Total
from graphcore.opset.framework.gradient_text import required_int
from graphcore.opset.framework.kernels import constant_ints, ints, invalid
from graphcore.opset.framework.type_sets import INDEX
from graphcore.traits import FailsOn

_X: Final = np.arange(32, dtype=np.float32).reshape(2, 2, 4, 2) / 4 - 3


def _split_into_blocks(k: KernelContext, x: Any, block: tuple[int, ...], pads: tuple[int, ...]) -> Any:
    """SpaceToBatchND: pad, split spatial dimensions into blocks, move positions in blocks to the batch."""
    m = len(block)
    pairs = [(0, 0), *zip(pads[::2], pads[1::2], strict=True), *[(0, 0)] * (x.ndim - 1 - m)]
    if len(pads) != 2 * m or min((*pads, *block), default=1) < 0:
        raise invalid(k, f"required {m} pairs of paddings >= 0, got {list(pads)}")
    whole = [before + size + after for size, (before, after) in zip(x.shape, pairs, strict=True)]
    sizes = whole[1 : 1 + m]
    if any(size % width for size, width in zip(sizes, block, strict=True)):
        raise invalid(k, f"padded spatial sizes {sizes} are not divisible by block_shape {list(block)}")
    padded = k.xp.zeros(whole, x.dtype)
    padded[tuple([slice(before, before + size) for size, (before, _) in zip(x.shape, pairs, strict=True)])] = x
    cut = [part for size, width in zip(sizes, block, strict=True) for part in (size // width, width)]
    rest = tuple(range(1 + 2 * m, x.ndim + m))
    order = (*range(2, 2 + 2 * m, 2), 0, *range(1, 1 + 2 * m, 2), *rest)
    moved = padded.reshape((x.shape[0], *cut, *x.shape[1 + m :])).transpose(order)
    return moved.reshape((x.shape[0] * math.prod(block), *cut[::2], *x.shape[1 + m :]))


def _join_blocks(k: KernelContext, x: Any, block: tuple[int, ...], crops: tuple[int, ...]) -> Any:
    """BatchToSpaceND: the inverse, with cropping."""
    m = len(block)
    batch, left = divmod(x.shape[0], math.prod(block))
    if left or len(crops) != 2 * m or min(crops, default=0) < 0:
        raise invalid(
            k,
            f"Input batch dimension ({x.shape[0]}) is not divisible by the product of the block sizes {list(block)}, or crops {list(crops)} are wrong",
        )
    apart = x.reshape((*block, batch, *x.shape[1:]))
    pairs = [axis for i in range(m) for axis in (m + 1 + i, i)]
    moved = apart.transpose((m, *pairs, *range(1 + 2 * m, x.ndim + m)))
    whole = moved.reshape((batch, *[size * width for size, width in zip(x.shape[1 : 1 + m], block, strict=True)], *x.shape[1 + m :]))
    index = [slice(None)]
    for i, size in enumerate(whole.shape[1 : 1 + m]):
        if crops[2 * i] + crops[2 * i + 1] > size:
            raise invalid(k, f"cropped size must be non-negative, got {size} - {crops[2 * i]} - {crops[2 * i + 1]}")
        index.append(slice(crops[2 * i], size - crops[2 * i + 1]))
    return whole[tuple(index)]


def _blocks_shape(
    c: InferenceContext, in_shape: ShapeHandle, block: list[int] | None, pairs: Array | None, count: int, *, to_batch: bool
) -> None:
    """The shape after moving blocks of `count` spatial dimensions between space and batch.

    Block sizes and pairs may be unknown.
    """
    if in_shape.dims is None or count < 0:
        c.set_output(0, c.unknown_shape() if in_shape.dims is None else c.unknown_shape_of_rank(len(in_shape.dims)))
        return
    batch, space, rest = in_shape.dims[0], in_shape.dims[1 : 1 + count], in_shape.dims[1 + count :]
    if block is None:
        c.set_output(0, c.make_shape([c.unknown_dim() for _ in range(1 + count)] + list(rest)))
        return
    dims = []
    for i, (size, width) in enumerate(zip(space, block, strict=True)):
        change = c.unknown_dim() if pairs is None else c.make_dim(int(pairs[i].sum()))
        if to_batch:
            dims.append(c.divide(c.add(size, change), width, evenly_divisible=True))
        else:
            dims.append(c.subtract(c.multiply(size, width), change))
    product = math.prod(block)
    batch = c.multiply(batch, product) if to_batch else c.divide(batch, product, evenly_divisible=True)
    c.set_output(0, c.make_shape([batch, *dims, *rest]))


def _pairs(c: InferenceContext, slot: int, count: DimensionHandle | int, *, to_batch: bool) -> Array | None:
    """The value of input `slot`, two numbers for each of `count` dimensions; None if unknown."""
    c.merge(c.input(slot), c.matrix(count, 2))
    pairs = c.input_tensor(slot)
    if pairs is not None and (pairs < 0).any():
        raise InvalidArgumentError(f"{'paddings' if to_batch else 'crops'} cannot be negative")
    return pairs


def _nd_shape(*, to_batch: bool) -> Callable[[InferenceContext], None]:
    def shape(c: InferenceContext) -> None:
        count = c.dim(c.with_rank(c.input(1), 1), 0)
        in_shape = c.with_rank_at_least(c.input(0), 1 + max(0, count.value))
        pairs = _pairs(c, 2, count, to_batch=to_batch)
        block = c.input_tensor(1)
        if block is not None and (block < 1).any():
            raise InvalidArgumentError("block_shape must be positive")
        _blocks_shape(c, in_shape, None if block is None else block.tolist(), pairs, count.value, to_batch=to_batch)

    return shape


def _nd_grad(other: str, pairs_type: str, other_pairs: str) -> str:
    return f"""[T:type, Tblock_shape:type, {pairs_type}:type](x:T, block:Tblock_shape, pairs:{pairs_type}, dy:T) -> (dx:T, dblock:Tblock_shape, dpairs:{pairs_type}) {{
      dx = {other}[T=$T, Tblock_shape=$Tblock_shape, {other_pairs}=${pairs_type}](dy, block, pairs)
      dblock = ZerosLike[T=$Tblock_shape](block)
      dpairs = ZerosLike[T=${pairs_type}](pairs)
    }}"""


@op
class SpaceToBatchND:
    """Moves blocks of spatial dimensions, after zero padding, into the batch.

    input: [batch, spatial..., rest...]
    block_shape: [m], sizes of the blocks in the first m spatial dimensions
    paddings: [m, 2]
    """

    pure = True
    signature = (
        f"SpaceToBatchND[T:type, Tblock_shape:{INDEX} = int32, Tpaddings:{INDEX} = int32]"
        "(input:T, block_shape:Tblock_shape, paddings:Tpaddings) -> (output:T)"
    )
    shape = _nd_shape(to_batch=True)
    can_fail = FailsOn(values=("block_shape", "paddings"))
    gradient = _nd_grad("BatchToSpaceND", "Tpaddings", "Tcrops")
    examples = (Example([_X, [2, 2], [[0, 0], [0, 0]]]), Example([_X, [3], [[1, 0]]]), Example([_X, [1, 4], [[0, 0], [3, 1]]]))
    failures = (Example([_X, [-1, -1], [[0, 0], [0, 0]]]),)

    def kernel(k: KernelContext) -> Kernel:
        block, pads = constant_ints(k, 1), constant_ints(k, 2)
        return lambda x, b, p: _split_into_blocks(k, x, ints(b) if block is None else block, ints(p) if pads is None else pads)


@op
class BatchToSpaceND:
    """Moves blocks from the batch back into spatial dimensions, and crops them.

    input: [batch, spatial..., rest...]
    block_shape: [m], sizes of the blocks in the first m spatial dimensions
    crops: [m, 2]
    """

    pure = True
    signature = (
        f"BatchToSpaceND[T:type, Tblock_shape:{INDEX} = int32, Tcrops:{INDEX} = int32]"
        "(input:T, block_shape:Tblock_shape, crops:Tcrops) -> (output:T)"
    )
    shape = _nd_shape(to_batch=False)
    can_fail = FailsOn(values=("block_shape", "crops"))
    gradient = _nd_grad("SpaceToBatchND", "Tcrops", "Tpaddings")
    examples = (
        Example([_X.reshape(8, 1, 2, 2), [2, 2], [[0, 0], [0, 0]]]),
        Example([_X.reshape(8, 1, 2, 2), [1, 4], [[0, 0], [3, 1]]]),
    )
    failures = (Example([_X.reshape(8, 1, 2, 2), [-1, -1], [[0, 0], [0, 0]]]),)

    def kernel(k: KernelContext) -> Kernel:
        block, crops = constant_ints(k, 1), constant_ints(k, 2)
        return lambda x, b, c: _join_blocks(k, x, ints(b) if block is None else block, ints(c) if crops is None else crops)


def _square_shape(*, to_batch: bool) -> Callable[[InferenceContext], None]:
    def shape(c: InferenceContext) -> None:
        in_shape = c.with_rank(c.input(0), 4)
        _blocks_shape(c, in_shape, [c.int_attr("block_size")] * 2, _pairs(c, 1, 2, to_batch=to_batch), 2, to_batch=to_batch)

    return shape


@op
class SpaceToBatch:
    """SpaceToBatchND for images and square blocks.

    input: [batch, rows, columns, channels]
    paddings: [2, 2]
    block_size: the size of the blocks.
    """

    pure = True
    signature = f"SpaceToBatch[T:type, Tpaddings:{INDEX} = int32, block_size:int >= 2](input:T, paddings:Tpaddings) -> (output:T)"
    shape = _square_shape(to_batch=True)
    can_fail = FailsOn(values=("paddings",))
    gradient = """[T:type, Tpaddings:type, block_size:int](x:T, paddings:Tpaddings, dy:T) -> (dx:T, dpaddings:Tpaddings) {
      dx = BatchToSpace[T=$T, Tidx=$Tpaddings, block_size=$block_size](dy, paddings)
      dpaddings = ZerosLike[T=$Tpaddings](paddings)
    }"""
    examples = (Example([_X, [[0, 0], [1, 1]]], {"block_size": 2}),)
    failures = (Example([_X, [[-1, -1], [-1, -1]]], {"block_size": 2}),)

    def kernel(k: KernelContext) -> Kernel:
        block, pads = (required_int(k.attrs, "block_size"),) * 2, constant_ints(k, 1)
        return lambda x, p: _split_into_blocks(k, x, block, ints(p) if pads is None else pads)


@op
class BatchToSpace:
    """BatchToSpaceND for images and square blocks.

    input: [batch, rows, columns, channels]
    crops: [2, 2]
    block_size: the size of the blocks.
    """

    pure = True
    signature = f"BatchToSpace[T:type, block_size:int >= 2, Tidx:{INDEX} = int32](input:T, crops:Tidx) -> (output:T)"
    shape = _square_shape(to_batch=False)
    can_fail = FailsOn(values=("crops",))
    gradient = """[T:type, Tidx:type, block_size:int](x:T, crops:Tidx, dy:T) -> (dx:T, dcrops:Tidx) {
      dx = SpaceToBatch[T=$T, Tpaddings=$Tidx, block_size=$block_size](dy, crops)
      dcrops = ZerosLike[T=$Tidx](crops)
    }"""
    examples = (Example([_X.reshape(8, 1, 2, 2), [[0, 0], [1, 1]]], {"block_size": 2}),)
    failures = (Example([_X.reshape(8, 1, 2, 2), [[-1, -1], [-1, -1]]], {"block_size": 2}),)

    def kernel(k: KernelContext) -> Kernel:
        block, crops = (required_int(k.attrs, "block_size"),) * 2, constant_ints(k, 1)
        return lambda x, c: _join_blocks(k, x, block, ints(c) if crops is None else crops)


_DEPTH_FORMAT: Final = "block_size:int >= 2, data_format:{'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"
_DEPTH_ATTRS: Final = "T:type, block_size:int, data_format:string"
_DEPTH_GIVEN: Final = "T=$T, block_size=$block_size, data_format=$data_format"


def _is_nchw(attrs: Attrs) -> bool:
    name = attrs.get("data_format")
    if name == b"NCHW_VECT_C":
        raise InvalidArgumentError("Data format NCHW_VECT_C is not supported: required NHWC or NCHW", attr="data_format")
    return name == b"NCHW"


def _depth_shape(*, to_depth: bool) -> Callable[[InferenceContext], None]:
    def shape(c: InferenceContext) -> None:
        in_shape = c.with_rank(c.input(0), 4)
        size, nchw = c.int_attr("block_size"), _is_nchw(c.attrs)
        rows, columns, depth = (c.dim(in_shape, axis) for axis in ((2, 3, 1) if nchw else (1, 2, 3)))
        if to_depth:
            space = [c.divide(dim, size, evenly_divisible=True) for dim in (rows, columns)]
            depth = c.multiply(depth, size * size)
        else:
            space = [c.multiply(dim, size) for dim in (rows, columns)]
            depth = c.divide(depth, size * size, evenly_divisible=True)
        c.set_output(0, c.make_shape([c.dim(in_shape, 0), depth, *space] if nchw else [c.dim(in_shape, 0), *space, depth]))

    return shape


@op
class SpaceToDepth(Total):
    """Moves blocks of space into the channels.

    input: [batch, rows, columns, channels], or in data_format's order
    output: [batch, rows / block_size, columns / block_size, channels * block_size ** 2]
    block_size: the size of the blocks.
    """

    pure = True
    signature = f"SpaceToDepth[T:type, {_DEPTH_FORMAT}](input:T) -> (output:T)"
    shape = _depth_shape(to_depth=True)
    gradient = f"[{_DEPTH_ATTRS}](x:T, dy:T) -> (dx:T) {{\n  dx = DepthToSpace[{_DEPTH_GIVEN}](dy)\n}}"
    examples = (Example([_X], {"block_size": 2}),)

    def kernel(k: KernelContext) -> Kernel:
        size, nchw = required_int(k.attrs, "block_size"), _is_nchw(k.attrs)

        def to_depth(x: Any) -> Any:
            x = x.transpose(0, 2, 3, 1) if nchw else x
            n, h, w, c = x.shape
            if h % size or w % size:
                raise invalid(k, f"Image height {h} and width {w} should be divisible by block_size: {size}")
            y = (
                x.reshape(n, h // size, size, w // size, size, c)
                .transpose(0, 1, 3, 2, 4, 5)
                .reshape(n, h // size, w // size, size * size * c)
            )
            return y.transpose(0, 3, 1, 2) if nchw else y

        return to_depth


@op
class DepthToSpace(Total):
    """Moves channels into blocks of space.

    input: [batch, rows, columns, channels], or in data_format's order
    output: [batch, rows * block_size, columns * block_size, channels / block_size ** 2]
    block_size: the size of the blocks.
    """

    pure = True
    signature = f"DepthToSpace[T:type, {_DEPTH_FORMAT}](input:T) -> (output:T)"
    shape = _depth_shape(to_depth=False)
    gradient = f"[{_DEPTH_ATTRS}](x:T, dy:T) -> (dx:T) {{\n  dx = SpaceToDepth[{_DEPTH_GIVEN}](dy)\n}}"
    examples = (Example([_X.reshape(2, 1, 2, 8)], {"block_size": 2}),)

    def kernel(k: KernelContext) -> Kernel:
        size, nchw = required_int(k.attrs, "block_size"), _is_nchw(k.attrs)

        def to_space(x: Any) -> Any:
            x = x.transpose(0, 2, 3, 1) if nchw else x
            n, h, w, c = x.shape
            if c % (size * size):
                raise invalid(k, f"Input depth dimension {c} should be divisible by: {size * size}")
            left = c // (size * size)
            y = x.reshape(n, h, w, size, size, left).transpose(0, 1, 3, 2, 4, 5).reshape(n, h * size, w * size, left)
            return y.transpose(0, 3, 1, 2) if nchw else y

        return to_space
