"""Draws for ops that rearrange, index, join and cut arrays, and ops with special rules."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import graphcore as gc
from graphcore.registry import OpRegistration
from tests.oracle.cases.draws import (
    SIZES,
    Draw,
    Drawer,
    Drawn,
    arg_reduction,
    axis_of,
    convolution,
    dtype_of,
    ints,
    matrices,
    part_of,
    pooling,
    scan,
    shape_of,
    values,
)

KIND = st.sampled_from(["int32", "int64"])
ODD = st.integers(0, 9).map(lambda n: n == 0)


def tensor(draw: Draw, entry: OpRegistration, least: int = 0, most: int = 4, attr: str = "T", *, special: bool = True) -> Any:
    return values(draw, dtype_of(draw, entry, attr), shape_of(draw, least, most), special=special)


def reshape(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry)
    sizes = list(draw(st.permutations(x.shape)))
    if sizes and draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    return Drawn((x, ints(sizes, draw(KIND))), {})


def transpose(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry)
    order = list(draw(st.permutations(range(x.ndim))))
    if order and draw(ODD):
        order[0] = order[-1]
    return Drawn((x, ints(order, draw(KIND))), {})


def expand_dims(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry)
    return Drawn((x, ints(axis_of(draw, x.ndim + 1))), {})


def squeeze(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry)
    ones = [i - (x.ndim if draw(st.booleans()) else 0) for i, size in enumerate(x.shape) if size == 1 and draw(st.booleans())]
    return Drawn((x,), {"squeeze_dims": ones})


def concat(draw: Draw, entry: OpRegistration) -> Drawn:
    shape = shape_of(draw, 1)
    axis, dtype = axis_of(draw, len(shape)), dtype_of(draw, entry)
    parts = []
    for _ in range(draw(st.integers(2, 3))):
        sizes = list(shape)
        if -len(sizes) <= axis < len(sizes):
            sizes[axis] = draw(SIZES)
        parts.append(values(draw, dtype, tuple(sizes)))
    return Drawn((parts, ints(axis)) if entry.op_def.name == "ConcatV2" else (ints(axis), parts), {})


def pack(draw: Draw, entry: OpRegistration) -> Drawn:
    shape, dtype = shape_of(draw, 0, 3), dtype_of(draw, entry)
    return Drawn(([values(draw, dtype, shape) for _ in range(draw(st.integers(1, 3)))],), {"axis": axis_of(draw, len(shape) + 1)})


def unpack(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry, 1)
    axis = axis_of(draw, x.ndim)
    return Drawn((x,), {"axis": axis, "num": x.shape[axis] if -x.ndim <= axis < x.ndim else 1})


def split(draw: Draw, entry: OpRegistration) -> Drawn:
    shape = list(shape_of(draw, 1))
    axis, count = axis_of(draw, len(shape)), draw(st.integers(1, 3))
    if -len(shape) <= axis < len(shape):
        shape[axis] = count * draw(SIZES) + draw(ODD)
    return Drawn((ints(axis), values(draw, dtype_of(draw, entry), tuple(shape))), {"num_split": count})


def split_v(draw: Draw, entry: OpRegistration) -> Drawn:
    shape = list(shape_of(draw, 1))
    axis, sizes = axis_of(draw, len(shape)), draw(st.lists(SIZES, min_size=1, max_size=3))
    if -len(shape) <= axis < len(shape):
        shape[axis] = sum(sizes) + draw(ODD)
    if len(sizes) > 1 and draw(st.booleans()):
        sizes[0] = -1
    return Drawn((values(draw, dtype_of(draw, entry), tuple(shape)), ints(sizes, draw(KIND)), ints(axis)), {"num_split": len(sizes)})


def slice_(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry)
    begin = [draw(st.integers(0, size)) for size in x.shape]
    size = [draw(st.integers(-1, whole - first + draw(ODD))) for first, whole in zip(begin, x.shape, strict=True)]
    kind = draw(KIND)
    return Drawn((x, ints(begin, kind), ints(size, kind)), {})


def strided_slice(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry, 1)
    count = draw(st.integers(1, x.ndim + 1))
    begin, end = ([draw(st.integers(-5, 5)) for _ in range(count)] for _ in range(2))
    stride = [draw(st.sampled_from([1, 1, 2, -1, -2])) for _ in range(count)]
    ellipsis = draw(st.integers(0, 2 * count))
    attrs = {
        "begin_mask": draw(st.integers(0, 7)),
        "end_mask": draw(st.integers(0, 7)),
        "ellipsis_mask": 1 << ellipsis if ellipsis < count else 0,
        "new_axis_mask": draw(st.integers(0, 7)) if draw(st.booleans()) else 0,
        "shrink_axis_mask": draw(st.integers(0, 7)) if draw(st.booleans()) else 0,
    }
    kind = draw(KIND)
    return Drawn((x, ints(begin, kind), ints(end, kind), ints(stride, kind)), attrs)


def pad(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry)
    amounts = ints([[draw(st.integers(0, 2)), draw(st.integers(0, 2))] for _ in x.shape], draw(KIND)).reshape(x.ndim, 2)
    if entry.op_def.name == "MirrorPad":
        return Drawn((x, amounts), {"mode": draw(st.sampled_from(["REFLECT", "SYMMETRIC"]))})
    return Drawn((x, amounts) if entry.op_def.name == "Pad" else (x, amounts, x.dtype.type(2)), {})


def tile(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry)
    return Drawn((x, ints([draw(st.integers(0, 3)) for _ in x.shape], draw(KIND))), {})


def broadcast_to(draw: Draw, entry: OpRegistration) -> Drawn:
    shape = shape_of(draw)
    return Drawn((values(draw, dtype_of(draw, entry), part_of(draw, shape)), ints(shape, draw(KIND))), {})


def reverse(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry)
    axes = [i - (x.ndim if draw(st.booleans()) else 0) for i in range(x.ndim) if draw(st.booleans())]
    return Drawn((x, ints(axes, draw(KIND))), {})


def roll(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry, 1)
    axes = [draw(st.integers(-x.ndim, x.ndim - 1)) for _ in range(draw(st.integers(1, 2)))]
    return Drawn((x, ints([draw(st.integers(-5, 5)) for _ in axes]), ints(axes)), {})


def _indices(draw: Draw, shape: tuple[int, ...], limit: int) -> Any:
    beyond = limit + draw(ODD)
    random = np.random.default_rng(draw(st.integers(0, 999)))
    return random.integers(0, max(beyond, 1), shape).astype(draw(KIND))


def gather_v2(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry, 1, attr="Tparams")
    axis = axis_of(draw, x.ndim)
    limit = x.shape[axis] if -x.ndim <= axis < x.ndim else 1
    return Drawn((x, _indices(draw, shape_of(draw, 0, 2), limit), ints(axis)), {})


def gather(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry, 1, attr="Tparams")
    return Drawn((x, _indices(draw, shape_of(draw, 0, 2), x.shape[0])), {})


def gather_nd(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry, 1, attr="Tparams")
    depth = draw(st.integers(0, x.ndim))
    return Drawn((x, _indices(draw, (*shape_of(draw, 0, 2), depth), min((*x.shape[:depth], 4)))), {})


def one_hot(draw: Draw, entry: OpRegistration) -> Drawn:
    dtype = dtype_of(draw, entry)
    index = values(draw, gc.as_dtype(draw(st.sampled_from(["int32", "int64", "uint8"]))), shape_of(draw, 0, 3))
    on, off = (values(draw, dtype, ()) for _ in range(2))
    return Drawn((index, ints(draw(st.integers(0, 5))), on, off), {"axis": draw(st.integers(-1, index.ndim))})


def segments(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry, 1, special=False)  # TensorFlow ignores NaN or not, depending on its position in the segment
    ids = np.sort(_indices(draw, x.shape[:1], 4))
    return Drawn((x, ids), {})


def unsorted_segments(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry, 1, special=False)  # as above
    ids = _indices(draw, x.shape[: draw(st.integers(1, x.ndim))], 4) - draw(st.integers(0, 1))
    return Drawn((x, ids.astype(np.int32), ints(draw(st.sampled_from([4, 5])))), {})


def rows(draw: Draw, entry: OpRegistration) -> Drawn:
    """Softmax and its like: at least a vector."""
    return Drawn((tensor(draw, entry, 1),), {})


def cross_entropy(draw: Draw, entry: OpRegistration) -> Drawn:
    dtype, shape = dtype_of(draw, entry), shape_of(draw, 2, 2)
    features, labels = values(draw, dtype, shape), abs(values(draw, dtype, part_of(draw, shape) or shape, special=False))
    return Drawn((features, labels), {})


def sparse_cross_entropy(draw: Draw, entry: OpRegistration) -> Drawn:
    batch, classes = draw(SIZES), draw(st.integers(1, 4))
    return Drawn((values(draw, dtype_of(draw, entry), (batch, classes)), _indices(draw, (batch,), classes)), {})


def top_k(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry, 1)
    return Drawn((x, ints(draw(st.integers(0, x.shape[-1] + draw(ODD))))), {})


def select(draw: Draw, entry: OpRegistration) -> Drawn:
    shape, dtype = shape_of(draw), dtype_of(draw, entry)
    if entry.op_def.name == "Select":
        condition = draw(st.sampled_from([shape, (), shape[:1]]))
        return Drawn((values(draw, gc.bool_, condition), values(draw, dtype, shape), values(draw, dtype, shape)), {})
    parts = [part_of(draw, shape) for _ in range(3)]
    return Drawn((values(draw, gc.bool_, parts[0]), values(draw, dtype, parts[1]), values(draw, dtype, parts[2])), {})


def bias_add(draw: Draw, entry: OpRegistration) -> Drawn:
    dtype, layout = dtype_of(draw, entry), draw(st.sampled_from(["NHWC", "NCHW"]))
    shape = shape_of(draw, 2)
    channels = shape[1 if layout == "NCHW" else -1]
    return Drawn((values(draw, dtype, shape), values(draw, dtype, (channels + draw(ODD),))), {"data_format": layout})


def resize(draw: Draw, entry: OpRegistration) -> Drawn:
    dtype = dtype_of(draw, entry, among="float half uint8 int32")
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 2)))
    how = draw(st.sampled_from([{}, {"align_corners": True}, {"half_pixel_centers": True}]))
    return Drawn((values(draw, dtype, shape), ints([draw(st.integers(0, 7)), draw(st.integers(1, 7))])), how)


def cast(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry, attr="SrcT", special=False)  # their conversion to integers is undefined
    return Drawn((x,), {"DstT": dtype_of(draw, entry, "DstT").text})


def blocks(draw: Draw, entry: OpRegistration) -> Drawn:
    size = draw(st.integers(2, 3))
    spread = entry.op_def.name == "SpaceToDepth"
    places = [draw(st.integers(1, 2)) * (size if spread else 1) for _ in range(2)]
    channels = draw(st.integers(1, 2)) * (1 if spread else size * size) + draw(ODD)
    dtype = dtype_of(draw, entry)
    return Drawn((values(draw, dtype, (draw(st.integers(1, 2)), *places, channels)),), {"block_size": size})


def batch_norm(draw: Draw, entry: OpRegistration) -> Drawn:
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    scale, offset = (
        values(draw, gc.float32, shape[-1:], special=False) for _ in range(2)
    )  # infinite ones show the order of multiplication
    mean, variance = np.zeros(0, np.float32), np.zeros(0, np.float32)
    return Drawn((values(draw, gc.float32, shape), scale, offset, mean, variance), {"is_training": True})


def clip(draw: Draw, entry: OpRegistration) -> Drawn:
    x = tensor(draw, entry)
    dtype = gc.as_dtype(x.dtype)
    return Drawn((x, values(draw, dtype, (), high=1), values(draw, dtype, (), low=1)), {})


DRAWERS: dict[str, Drawer] = {
    "ArgMax": arg_reduction, "ArgMin": arg_reduction, "Cumsum": scan, "Cumprod": scan,
    "MatMul": matrices, "BatchMatMul": matrices, "BatchMatMulV2": matrices,
    "Conv2D": convolution, "DepthwiseConv2dNative": convolution, "MaxPool": pooling, "AvgPool": pooling,
    "Reshape": reshape, "Transpose": transpose, "ConjugateTranspose": transpose, "ExpandDims": expand_dims, "Squeeze": squeeze,
    "Concat": concat, "ConcatV2": concat, "Pack": pack, "Unpack": unpack, "Split": split, "SplitV": split_v,
    "Slice": slice_, "StridedSlice": strided_slice, "Pad": pad, "PadV2": pad, "MirrorPad": pad, "Tile": tile, "BroadcastTo": broadcast_to,
    "ReverseV2": reverse, "Roll": roll, "Gather": gather, "GatherV2": gather_v2, "GatherNd": gather_nd, "OneHot": one_hot,
    "SegmentSum": segments, "SegmentMean": segments, "SegmentMax": segments, "SegmentMin": segments, "SegmentProd": segments,
    "UnsortedSegmentSum": unsorted_segments, "UnsortedSegmentMax": unsorted_segments, "UnsortedSegmentMin": unsorted_segments,
    "UnsortedSegmentProd": unsorted_segments, "Softmax": rows, "LogSoftmax": rows,
    "SoftmaxCrossEntropyWithLogits": cross_entropy, "SparseSoftmaxCrossEntropyWithLogits": sparse_cross_entropy,
    "TopKV2": top_k, "Select": select, "SelectV2": select, "BiasAdd": bias_add,
    "ResizeBilinear": resize, "ResizeNearestNeighbor": resize, "Cast": cast, "SpaceToDepth": blocks, "DepthToSpace": blocks,
    "FusedBatchNorm": batch_norm, "ClipByValue": clip,
}  # fmt: skip
