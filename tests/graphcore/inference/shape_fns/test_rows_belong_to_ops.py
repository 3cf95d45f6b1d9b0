"""All tested shape functions belong to registered ops."""

from __future__ import annotations

import pytest

import graphcore as gc
from graphcore.inference.shape_fns import common_shape_fns as fns
from tests.support.shape_rows import ShapeFunction, assert_row, infer, refusal

FUNCTIONS: dict[ShapeFunction, str] = {
    fns.arg_op_shape: "ArgMax ArgMin",
    fns.avg_pool_shape: "AvgPool",
    fns.batch_matmul_shape: "BatchMatMul",
    fns.batch_matmul_v2_shape: "BatchMatMulV2",
    fns.bias_add_grad_shape: "BiasAddGrad",
    fns.bias_add_shape: "BiasAdd",
    fns.broadcast_binary_op_shape_fn: "Add AddV2 Sub Mul RealDiv FloorDiv Maximum Minimum Pow Less Equal LogicalAnd",
    fns.broadcast_gradient_args_shape: "BroadcastGradientArgs",
    fns.broadcast_to_shape: "BroadcastTo",
    fns.concat_offset_shape: "ConcatOffset",
    fns.concat_shape: "Concat",
    fns.concat_v2_shape: "ConcatV2",
    fns.const_shape: "Const",
    fns.conv2d_shape: "Conv2D",
    fns.conv3d_shape: "Conv3D",
    fns.depthwise_conv2d_native_shape: "DepthwiseConv2dNative",
    fns.einsum_shape: "Einsum",
    fns.expand_dims_shape: "ExpandDims",
    fns.fill_shape: "Fill",
    fns.gather_nd_shape: "GatherNd",
    fns.gather_shape: "Gather",
    fns.gather_v2_shape: "GatherV2",
    fns.linspace_shape: "LinSpace",
    fns.matmul_shape: "MatMul",
    fns.max_pool_shape: "MaxPool",
    fns.max_pool_v2_shape: "MaxPoolV2",
    fns.one_hot_shape: "OneHot",
    fns.pack_shape: "Pack",
    fns.pad_shape: "Pad PadV2 MirrorPad",
    fns.placeholder_shape: "Placeholder",
    fns.pool3d_shape: "AvgPool3D MaxPool3D",
    fns.range_shape: "Range",
    fns.reduction_shape: "Sum Mean Prod Max Min All Any",
    fns.reshape_shape: "Reshape",
    fns.segment_reduction_shape: "SegmentSum SegmentMean SegmentMax SegmentMin SegmentProd",
    fns.segment_reduction_with_num_segments_shape: "UnsortedSegmentSum UnsortedSegmentMax",
    fns.select_shape: "Select",
    fns.select_v2_shape: "SelectV2",
    fns.shape_shape: "Shape ShapeN",
    fns.split_shape: "Split",
    fns.split_v_shape: "SplitV",
    fns.squeeze_shape: "Squeeze",
    fns.strided_slice_shape: "StridedSlice",
    fns.tile_shape: "Tile",
    fns.transpose_shape: "Transpose",
    fns.unchanged_shape: "Identity StopGradient ZerosLike Cast Neg Tanh Exp Relu Square",
    fns.unique_shape: "Unique",
    fns.unpack_shape: "Unpack",
}
PAIRS = [(op, function) for function, ops in FUNCTIONS.items() for op in ops.split()]


@pytest.mark.parametrize(("op", "function"), PAIRS, ids=[op for op, _ in PAIRS])
def test_an_op_has_the_shape_function_whose_rows_are_tested(op: str, function: ShapeFunction) -> None:
    assert gc.op_registry.look_up(op).shape_fn is function


def test_s5_add_n_merges_from_the_last_to_the_first() -> None:
    shape_fn = gc.op_registry.look_up("AddN").shape_fn
    assert shape_fn is not None
    assert_row(infer(shape_fn, "[1,?];[?,2]", attrs={"T": gc.float32}), "[d0_0,d1_1]")
    text = (
        "Dimension 1 in both shapes must be equal, but are 2 and 4. Shapes are [1,2] and [?,4].\n\tFrom merging shape 0 with other shapes."
    )
    assert refusal(shape_fn, "[1,2];?;[?,4]", attrs={"T": gc.float32}).startswith(text)


@pytest.mark.parametrize("op", ["Identity", "StopGradient", "ZerosLike", "Cast"])
def test_s6_an_unchanged_shape_keeps_the_handle_of_its_input(op: str) -> None:
    shape_fn = gc.op_registry.look_up(op).shape_fn
    assert shape_fn is not None
    assert_row(infer(shape_fn, "[1,?]"), "in0")
    assert_row(infer(shape_fn, "?"), "in0")
