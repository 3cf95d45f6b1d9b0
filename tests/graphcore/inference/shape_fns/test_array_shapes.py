"""Array ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphcore.attrs import TensorValue
from graphcore.dtypes import float32
from graphcore.inference import ShapeAndType
from graphcore.inference.shape_fns import common_shape_fns as fns
from graphcore.shapes import Shape
from graphcore.tensor_encoding import EncodedTensor
from tests.support.shape_rows import ShapeFunction, assert_row, bad, case, context, infer, refusal, shape


def in_a_file(*dims: int) -> TensorValue:
    """A constant as encoded in a file, -1 for an unknown size; None: of unknown rank."""
    return TensorValue.from_encoded(EncodedTensor(float32, dims or None))


SQUEEZE_ALL: dict[str, object] = {"squeeze_dims": ()}


def pack(inputs: str, expected: str, axis: int = 0) -> Any:
    return case(f"S6 Pack axis {axis}", fns.pack_shape, inputs, expected, attrs={"axis": axis})


def reshape(inputs: str, expected: str, *sizes: int) -> Any:
    return case(f"S6 Reshape {sizes}", fns.reshape_shape, inputs, expected, values=(None, list(sizes)))


def gather2(inputs: str, expected: str, axis: int | None, batch_dims: int = 0) -> Any:
    name = f"S6 GatherV2 axis {axis} batch_dims {batch_dims}"
    return case(name, fns.gather_v2_shape, inputs, expected, values=(None, None, axis), attrs={"batch_dims": batch_dims})


def split(inputs: str, expected: str, dim: int | None) -> Any:
    return case(f"S6 Split {dim}", fns.split_shape, inputs, expected, values=(dim,), outputs=2)


def split_v(inputs: str, expected: str, sizes: list[int] | None, dim: int | None) -> Any:
    return case(f"S6 SplitV {sizes} {dim}", fns.split_v_shape, inputs, expected, values=(None, sizes, dim), outputs=2)


def sliced(inputs: str, expected: str, begin: list[int] | None, size: list[int] | None, **given: Any) -> Any:
    return case(f"S6 Slice {begin} {size}", fns.slice_shape, inputs, expected, values=(None, begin, size), **given)


@pytest.mark.parametrize(
    ("function", "inputs", "expected", "given"),
    [
        pack("?;?;?", "?"),
        pack("[1,3];[1,3];?", "[3,d0_0|d1_0,d0_1|d1_1]"),
        pack("[?,3];[1,3];?", "[3,d1_0,d0_1|d1_1]"),
        pack("[1,2];[1,2]", "[d0_0|d1_0,2,d0_1|d1_1]", 1),
        pack("[1,2];[1,2]", "[d0_0|d1_0,d0_1|d1_1,2]", -1),
        case("S6 Unpack", fns.unpack_shape, "?", "?;?", outputs=2, attrs={"axis": 0}),
        case("S6 Unpack", fns.unpack_shape, "[2,?]", "[d0_1];[d0_1]", outputs=2, attrs={"axis": 0}),
        case("S6 Unpack", fns.unpack_shape, "[3,?]", "[d0_0];[d0_0]", outputs=2, attrs={"axis": -1}),
        case("S6 Const", fns.const_shape, "", "[2,3]", attrs={"value": np.zeros((2, 3), np.float32)}),
        case("S6 Const", fns.const_shape, "", "[]", attrs={"value": np.array(3, np.float32)}),
        case("S6 Fill", fns.fill_shape, "?;?", "?"),
        case("S6 Fill", fns.fill_shape, "[?];?", "?"),
        case("S6 Fill", fns.fill_shape, "[4];?", "[?,?,?,?]"),
        case("S6 Fill", fns.fill_shape, "[4];?", "[1,2,3,4]", values=([1, 2, 3, 4],)),
        case("S6 Identity", fns.unchanged_shape, "[1,?]", "in0"),
        case("S6 BroadcastGradientArgs", fns.broadcast_gradient_args_shape, "?;[3]", "[?];[?]", outputs=2),
        case("S6 BroadcastArgs", fns.broadcast_args_shape, "[2];[3]", "[3]"),
        case("S6 BroadcastArgs", fns.broadcast_args_shape, "[2];?", "[?]"),
        case("S6 Gather", fns.gather_shape, "?;?", "?"),
        case("S6 Gather", fns.gather_shape, "[1,?,2];[3]", "[d1_0,d0_1,d0_2]"),
        case("S6 Gather", fns.gather_shape, "[1,?,2];[]", "[d0_1,d0_2]"),
        gather2("[5,6];[2,3];[]", "[?,?,?]", None),
        gather2("[5,6];?;[]", "?", None),
        gather2("[5,6];[2,3];[]", "[d0_0,d1_0,d1_1]", 1),
        gather2("[5,6];[2,3];[]", "[d0_0,d1_0,d1_1]", -1),
        gather2("[5,6];[2,3];[]", "[d1_0,d1_1,d0_1]", -2),
        gather2("[5,6];?;[]", "?", 0),
        gather2("[2,5,6];[2,3];[]", "[d0_0,d1_1,d0_2]", 1, 1),
        gather2("[2,5,6];[2,3];[]", "[d0_0,d1_1,d0_2]", 1, -1),
        gather2("[2,5,6];[2,3];[]", "[?,?,?]", None, 1),
        case("S6 GatherNd", fns.gather_nd_shape, "?;[1,2]", "?"),
        case("S6 GatherNd", fns.gather_nd_shape, "[4,5,6];[?,2]", "[d1_0,d0_2]"),
        case("S6 GatherNd", fns.gather_nd_shape, "[4,5];[7,2]", "[d1_0]"),
        case("S6 ScatterNd", fns.scatter_nd_shape, "[2,1];[2,3];[2]", "[4,3]", values=(None, None, [4, 3])),
        case("S6 ScatterNd", fns.scatter_nd_shape, "[2,1];[2,3];[2]", "[?,?]"),
        case("S6 TensorScatterUpdate", fns.tensor_scatter_shape, "[4,3];[2,1];[2,3]", "in0"),
        case("S6 Shape", fns.shape_shape, "?", "[?]"),
        case("S6 Shape", fns.shape_shape, "[?,2]", "[2]"),
        case("S6 ShapeN", fns.shape_shape, "[?,2];[]", "[2];[0]", outputs=2),
        case("S6 Unique", fns.unique_shape, "?", "[?];in0", outputs=2),
        case("S6 Unique", fns.unique_shape, "[5]", "[?];in0", outputs=2),
        case("S6 UniqueWithCounts", fns.unique_shape, "[5]", "[?];in0;[?]", outputs=3),
        case("S6 Pad", fns.pad_shape, "?;?", "?"),
        case("S6 Pad", fns.pad_shape, "?;[3,2]", "[?,?,?]"),
        case("S6 Pad", fns.pad_shape, "[1,2];?", "[?,?]"),
        case("S6 Pad", fns.pad_shape, "[100,200,300];[3,2]", "[111,222,333]", values=(None, [[1, 10], [2, 20], [3, 30]])),
        case("S6 Pad", fns.pad_shape, "[?,200,?];[3,2]", "[?,222,?]", values=(None, [[1, 10], [2, 20], [3, 30]])),
        case("S6 Pad", fns.pad_shape, "[?,200];[?,2]", "[d0_0,201]", values=(None, [[0, 0], [0, 1]])),
        case("S6 BroadcastTo", fns.broadcast_to_shape, "?;[?]", "?"),
        case("S6 BroadcastTo", fns.broadcast_to_shape, "[1,3];[3]", "[7,2,d0_1]", values=(None, [7, 2, 3])),
        case("S6 BroadcastTo", fns.broadcast_to_shape, "[3,1];[2]", "[d0_0,?]", partial={1: "[?,?]"}),
        case("S6 ExpandDims", fns.expand_dims_shape, "[2,3];[]", "?"),
        case("S6 ExpandDims", fns.expand_dims_shape, "?;[]", "?", values=(None, 0)),
        case("S6 ExpandDims", fns.expand_dims_shape, "[2,3];[]", "[1,d0_0,d0_1]", values=(None, 0)),
        case("S6 ExpandDims", fns.expand_dims_shape, "[2,3];[]", "[d0_0,d0_1,1]", values=(None, -1)),
        case("S6 ExpandDims", fns.expand_dims_shape, "[2,3];[1]", "[d0_0,1,d0_1]", values=(None, [-2])),
        case("S6 Concat", fns.concat_shape, "[];?;?", "?"),
        case("S6 Concat", fns.concat_shape, "[];[?,2];?", "[?,?]"),
        case("S6 Concat", fns.concat_shape, "[];[100,2,?];[10,?,3]", "[110,d1_1,d2_2]", values=(0,)),
        case("S6 Concat", fns.concat_shape, "[];[100,2,?];[10,?,3]", "[110,d1_1,d2_2]", values=(-3,)),
        case("S6 Concat", fns.concat_shape, "[];[1,100,?];[?,10,3]", "[d1_0,110,d2_2]", values=(1,)),
        case("S6 Concat", fns.concat_shape, "[];?;[?,10,3]", "[d2_0,d2_1,?]", values=(-1,)),
        case("S6 ConcatV2", fns.concat_v2_shape, "[1,?];[?,2];[]", "[d0_0,?]", values=(None, None, -1)),
        case("S6 ConcatOffset", fns.concat_offset_shape, "[];[3];[3]", "in1;in2", outputs=2),
        reshape("?;[2]", "[?,2]", -1, 2),
        reshape("[?];[1]", "[d0_0]", -1),
        reshape("[3,4];[2]", "[2,6]", 2, -1),
        reshape("[0];[2]", "[0,?]", 0, -1),
        reshape("[3,4];[2]", "[2,6]", 2, 6),
        reshape("[?,4];[2]", "[d0_0,4]", -1, 4),
        reshape("[?,4];[2]", "[?,2]", -1, 2),
        reshape("[?,4];[2]", "[6,2]", 6, 2),
        reshape("[3,4];[3]", "[?,?,2]", -1, -1, 2),
        reshape("[];[0]", "[]"),
        case("S6 Reshape", fns.reshape_shape, "[3,4];?", "?"),
        case("S6 Reshape", fns.reshape_shape, "[3,4];[2]", "[?,?]"),
        case("S6 Reshape", fns.reshape_shape, "[3,?];[2]", "[d0_1,3]", partial={1: "[?,3]"}),
        case("S6 Placeholder", fns.placeholder_shape, "", "[]", attrs={"shape": Shape([])}, producer=24),
        case("S6 Placeholder", fns.placeholder_shape, "", "?", attrs={"shape": Shape([])}, producer=23),
        case("S6 Placeholder", fns.placeholder_shape, "", "[1,?]", attrs={"shape": Shape([1, None])}, producer=23),
        case("S6 Placeholder", fns.placeholder_shape, "", "?", attrs={"shape": Shape(None)}),
        case("S6 explicit", fns.explicit_shape, "", "[1,?]", attrs={"shape": Shape([1, None])}),
        case("S6 explicit", fns.explicit_shapes, "", "[1];?", attrs={"shapes": [Shape([1]), Shape(None)]}, outputs=2),
        case("S6 Transpose", fns.transpose_shape, "?;?", "?"),
        case("S6 Transpose", fns.transpose_shape, "?;[2]", "[?,?]"),
        case("S6 Transpose", fns.transpose_shape, "?;[1]", "in0"),
        case("S6 Transpose", fns.transpose_shape, "[1,?];[2]", "[?,?]"),
        case("S6 Transpose", fns.transpose_shape, "[1,?];[2]", "[d0_1,d0_0]", values=(None, [1, 0])),
        case("S6 Transpose", fns.transpose_shape, "[1,2,3];?", "[d0_2,d0_0,d0_1]", values=(None, [2, 0, 1])),
        case("S6 Transpose", fns.transpose_shape, "[1,2];[2]", "[d0_1,d0_0]", values=(None, [-1, 0])),
        case("S6 Squeeze", fns.squeeze_shape, "[1,4,1,5,1]", "[d0_1,d0_3]", attrs=SQUEEZE_ALL),
        case("S6 Squeeze", fns.squeeze_shape, "?", "?", attrs=SQUEEZE_ALL),
        case("S6 Squeeze", fns.squeeze_shape, "[1,?]", "?", attrs=SQUEEZE_ALL),
        case("S6 Squeeze", fns.squeeze_shape, "[1,?,1]", "[d0_0,d0_2]", attrs={"squeeze_dims": [1]}),
        case("S6 Squeeze", fns.squeeze_shape, "[1,4,1]", "[d0_1,d0_2]", attrs={"squeeze_dims": [-3]}),
        split("?;?", "?;?", None),
        split("?;[1,4]", "[?,?];[?,?]", None),
        split("?;[1,4]", "[d1_0,2];[d1_0,2]", 1),
        split("?;[1,?]", "[d1_0,?];[d1_0,?]", -1),
        split("?;?", "?;?", 1),
        split_v("[2,5];?;?", "[d0_0,2];[d0_0,3]", [2, 3], 1),
        split_v("[2,5];?;?", "[d0_0,2];[d0_0,3]", [2, -1], -1),
        split_v("[2,?];?;?", "[d0_0,2];[d0_0,?]", [2, -1], 1),
        split_v("[2,5];?;?", "[d0_0,?];[d0_0,?]", None, 1),
        split_v("[2,5];?;?", "[?,?];[?,?]", [2, 3], None),
        split_v("?;?;?", "?;?", [2, 3], 1),
        case("S6 OneHot", fns.one_hot_shape, "?;[]", "?", attrs={"axis": -1}, values=(None, 2)),
        case("S6 OneHot", fns.one_hot_shape, "[1,3,?];[]", "[d0_0,d0_1,d0_2,2]", attrs={"axis": -1}, values=(None, 2)),
        case("S6 OneHot", fns.one_hot_shape, "[1,3,?];[]", "[d0_0,2,d0_1,d0_2]", attrs={"axis": 1}, values=(None, 2)),
        case("S6 OneHot", fns.one_hot_shape, "[1,3,?];[]", "[?,d0_0,d0_1,d0_2]", attrs={"axis": 0}),
        case("S6 Tile", fns.tile_shape, "?;?", "?"),
        case("S6 Tile", fns.tile_shape, "[2,3];?", "[?,?]"),
        case("S6 Tile", fns.tile_shape, "?;[2]", "[?,?]"),
        case("S6 Tile", fns.tile_shape, "?;[2]", "[0,?]", values=(None, [0, 2])),
        case("S6 Tile", fns.tile_shape, "[2,?,3];[3]", "[8,?,d0_2]", values=(None, [4, 5, 1])),
        sliced("[5,6];[2];[2]", "[2,4]", [1, 2], [2, -1]),
        sliced("[5,6];[2];[2]", "[2,d0_1]", [1, 0], [2, -1]),
        sliced("?;[2];[2]", "[2,?]", [1, 1], [2, -1]),
        sliced("[5,6];[2];[2]", "[2,?]", None, [2, -1]),
        sliced("[5,6];[2];[2]", "[?,?]", [0, 1], None),
        sliced("?;?;?", "?", None, None),
        sliced("[5,6];[2];[2]", "[?,2]", [0, 0], None, partial={2: "[?,2]"}),
        case("S6 DynamicStitch", fns.dynamic_stitch_shape, "[2];[3];[2,4];[3,?]", "[6,d2_1]", values=([1, 2], [0, 4, 5])),
        case("S6 DynamicStitch", fns.dynamic_stitch_shape, "[2];[?];?;[3,4]", "[?,d3_1]", values=([1, 2],)),
        case("S6 DynamicStitch", fns.dynamic_stitch_shape, "?;?;?;?", "?"),
        case("S6 DynamicPartition", fns.dynamic_partition_shape, "[?,3];[2]", "[?,d0_1];[?,d0_1]", outputs=2),
        case("S6 DynamicPartition", fns.dynamic_partition_shape, "[?,3];?", "?;?", outputs=2),
        case("S6 random", fns.random_shape, "[2]", "[2,3]", values=([2, 3],)),
    ],
)
def test_the_output_has_the_expected_shape(function: ShapeFunction, inputs: str, expected: str, given: dict[str, Any]) -> None:
    assert_row(infer(function, inputs, **given), expected)


@pytest.mark.parametrize(
    ("function", "inputs", "text", "given"),
    [
        bad("S6 Const", fns.const_shape, "", "Shape [1,2,3,4,?] is not fully defined for 'x'", attrs={"value": in_a_file(1, 2, 3, 4, -1)}),
        bad("S6 Const", fns.const_shape, "", "Shape ? is not fully defined for 'x'", attrs={"value": in_a_file()}),
        bad("S6 Pack", fns.pack_shape, "[1,2];[1,2]", "Invalid axis: -4; must be in [-3,3)", attrs={"axis": -4}),
        bad("S6 Pack", fns.pack_shape, "[1,2];[1,2]", "Invalid axis: 3; must be in [-3,3)", attrs={"axis": 3}),
        bad(
            "S6 Pack",
            fns.pack_shape,
            "[1,2];[?,4]",
            "Dimension 1 in both shapes must be equal, but are 2 and 4. Shapes are [1,2] and [?,4].\n\tFrom merging shape 0 with other shapes.",
            attrs={"axis": 0},
        ),
        bad("S6 Unpack", fns.unpack_shape, "[3,?]", "Dimension must be 2 but is 3", outputs=2, attrs={"axis": 0}),
        bad("S6 Unpack", fns.unpack_shape, "[3,?]", "Invalid axis: 2; must be in [-2,2)", outputs=2, attrs={"axis": 2}),
        bad("S6 Fill", fns.fill_shape, "[1,2];?", "Shape must be rank 1 but is rank 2"),
        bad("S6 Fill", fns.fill_shape, "[2];[1]", "Shape must be rank 0 but is rank 1"),
        bad("S6 Fill", fns.fill_shape, "[2];?", "Fill dimensions must be >= 0", values=([2, -1],)),
        bad("S6 Gather", fns.gather_shape, "[];[1,2,3]", "Shape must be at least rank 1 but is rank 0"),
        bad("S6 GatherV2", fns.gather_v2_shape, "[5,6];[2];[]", "at least rank 4 but", values=(None, None, 3), attrs={"batch_dims": 0}),
        bad("S6 GatherV2", fns.gather_v2_shape, "[5,6];[2];[]", "at least rank 3 but", values=(None, None, -3), attrs={"batch_dims": 0}),
        bad("S6 GatherV2", fns.gather_v2_shape, "[5,6];[2];[]", "at least rank 2 but", values=(None, None, 0), attrs={"batch_dims": 2}),
        bad("S6 GatherNd", fns.gather_nd_shape, "[2,3];[2,3]", "indices.shape[-1] must be <= params.rank"),
        bad("S6 ScatterNd", fns.scatter_nd_shape, "[2,1];[3,3];[2]", "[0,1) of indices[shape=[2,1]] = [2] must match dimensions [0,1) of"),
        bad(
            "S6 ScatterNd",
            fns.scatter_nd_shape,
            "[2,1];[2,5];[2]",
            "Dimensions [1,2) of input[shape=[4,3]] = [3] must match dimensions [1,2) of updates[shape=[2,5]] = [5]: Dimension 0 in",
            values=(None, None, [4, 3]),
        ),
        bad("S6 ScatterNd", fns.scatter_nd_shape, "[2,1];[2,5];[2]", "specified for empty input", values=(None, None, [0, 5])),
        bad("S6 Unique", fns.unique_shape, "[1,2,3,4,5]", "Shape must be rank 1 but is rank 5 for 'x' (op: 'Op') with input", outputs=2),
        bad("S6 Pad", fns.pad_shape, "?;[1,2,3]", "Shape must be rank 2 but is rank 3"),
        bad("S6 Pad", fns.pad_shape, "?;[1,4]", "Dimension must be 2 but is 4"),
        bad("S6 Pad", fns.pad_shape, "[1,2,3];[4,2]", "Shape must be rank 4 but is rank 3"),
        bad("S6 Pad", fns.pad_shape, "[1];[1,2]", "Paddings must be non-negative", values=(None, [[-1, 3]])),
        bad("S6 BroadcastTo", fns.broadcast_to_shape, "[3,1];[2]", "Dimensions must be equal, but are 3 and 2 for", values=(None, [2, 1])),
        bad("S6 BroadcastTo", fns.broadcast_to_shape, "[3,1];[1]", "Shape must be at most rank 1 but is rank 2", values=(None, [3])),
        bad("S6 ExpandDims", fns.expand_dims_shape, "[1,2,3];[]", "dim 4 not in the interval [-4, 3]", values=(None, 4)),
        bad("S6 ExpandDims", fns.expand_dims_shape, "[1,2,3];[]", "dim -5 not in the interval [-4, 3]", values=(None, -5)),
        bad("S6 ExpandDims", fns.expand_dims_shape, "?;[2]", "'dim' input must be a tensor with a single", values=(None, [5, 6])),
        bad("S6 Concat", fns.concat_shape, "[1];?;?", "Shape must be rank 0 but is rank 1"),
        bad("S6 Concat", fns.concat_shape, "[];[];[]", "Can't concatenate scalars"),
        bad("S6 Concat", fns.concat_shape, "[];[];[1]", "Can't concatenate scalars"),
        bad("S6 Concat", fns.concat_shape, "[];[1,2];[]", "Shape must be rank 2 but is rank 0", values=(0,)),
        bad("S6 Concat", fns.concat_shape, "[];[1];[1,2];[1]", "Shape must be rank 1 but is rank 2", values=(0,)),
        bad("S6 Concat", fns.concat_shape, "[];[1];[1,2];[1]", "Shape must be rank 1 but is rank 2"),
        bad("S6 Concat", fns.concat_shape, "[];?;[3];[1,2]", "Shape must be rank 1 but is rank 2", values=(-1,)),
        bad("S6 Concat", fns.concat_shape, "[];[1,2];[1,2]", "Shape must be at least rank 3 but is rank 2", values=(2,)),
        bad("S6 Concat", fns.concat_shape, "[];[1,2];[3,2]", "Dimension 0 in both shapes must be equal, but are 1 and 3", values=(1,)),
        bad("S6 Reshape", fns.reshape_shape, "[3,4];[1,1]", "Shape must be rank 1 but is rank 2"),
        bad(
            "S6 Reshape",
            fns.reshape_shape,
            "[3,4];[3]",
            "Cannot reshape a tensor with 12 elements to shape [1,2,3] (6 elements)",
            values=(None, [1, 2, 3]),
        ),
        bad("S6 Reshape", fns.reshape_shape, "[7];[2]", "Dimension size must be evenly divisible by 2 but is 7", values=(None, [-1, 2])),
        bad("S6 Transpose", fns.transpose_shape, "[1,2];[2]", "perm dim 2 is out of range of input rank 2", values=(None, [0, 2])),
        bad("S6 Transpose", fns.transpose_shape, "[1];[2]", "Dimension must be 1 but is 2", values=(None, [0, 1])),
        bad("S6 Transpose", fns.transpose_shape, "[1,2];[1]", "Dimension must be 2 but is 1"),
        bad(
            "S6 Squeeze",
            fns.squeeze_shape,
            "[1,6,1]",
            "Can not squeeze dim[1], expected a dimension of 1, got 6",
            attrs={"squeeze_dims": [1]},
        ),
        bad("S6 Squeeze", fns.squeeze_shape, "[1,6,1]", "squeeze_dims[0] not in [-3,3)", attrs={"squeeze_dims": [3]}),
        bad("S6 Squeeze", fns.squeeze_shape, "[1,6,1]", "squeeze_dims[1] not in [-3,3)", attrs={"squeeze_dims": [0, -4]}),
        bad("S6 Split", fns.split_shape, "?;[1,5]", "Dimension size must be evenly divisible by 2 but is 5", values=(1,), outputs=2),
        bad("S6 Split", fns.split_shape, "?;[1,5,2]", "given by scalar input 3 must be in range [-3, 3)", values=(3,), outputs=2),
        bad("S6 Split", fns.split_shape, "?;[1,5,2]", "given by scalar input -4 must be in range [-3, 3)", values=(-4,), outputs=2),
        bad("S6 SplitV", fns.split_v_shape, "[];?;?", "Can't split scalars", values=(None, [1, 2], 0), outputs=2),
        bad(
            "S6 SplitV",
            fns.split_v_shape,
            "[5];?;?",
            "can't split axis of size 5 into pieces of size [2,2]",
            values=(None, [2, 2], 0),
            outputs=2,
        ),
        bad("S6 SplitV", fns.split_v_shape, "[5];?;?", "Split size at index 1 must be >= 0. Got: -2", values=(None, [7, -1], 0), outputs=2),
        bad("S6 SplitV", fns.split_v_shape, "[5];?;?", "size_splits can only have one -1", values=(None, [-1, -1], 0), outputs=2),
        bad("S6 SplitV", fns.split_v_shape, "[5];?;?", "Length of size_splits should be equal", values=(None, [5], 0), outputs=2),
        bad("S6 OneHot", fns.one_hot_shape, "?;[]", "axis must be >= -1", attrs={"axis": -2}),
        bad(
            "S6 OneHot",
            fns.one_hot_shape,
            "?;[]",
            "given by scalar input 1, must be non-negative but is -1",
            attrs={"axis": -1},
            values=(None, -1),
        ),
        bad("S6 Tile", fns.tile_shape, "[2,3];[1]", "Shape must be rank 2 but is rank 1", values=(None, [4])),
        bad("S6 Tile", fns.tile_shape, "[2,3];[]", "Shape must be rank 1 but is rank 0"),
        bad("S6 Slice", fns.slice_shape, "[2,3];[2];[3]", "Dimension 0 in both shapes must be equal, but are 2 and 3"),
        bad("S6 Slice", fns.slice_shape, "[2,3];[3];[3]", "Shape must be rank 3 but is rank 2"),
        bad("S6 Slice", fns.slice_shape, "[2,3];[2];[2]", "sizes vector cannot be < -1, but was -2", values=(None, [0, 0], [-2, 1])),
        bad(
            "S6 Slice", fns.slice_shape, "[2,3];[2];[2]", "Negative dimension size caused by subtracting 4", values=(None, [0, 4], [1, -1])
        ),
    ],
)
def test_misfits_are_refused_with_the_text_of_the_rule(function: ShapeFunction, inputs: str, text: str, given: dict[str, Any]) -> None:
    assert text in refusal(function, inputs, **given)


@pytest.mark.parametrize("op", ["Identity", "StopGradient", "ZerosLike"])
def test_ops_that_change_nothing_pass_the_handle_data_on_s6(op: str) -> None:
    c = context("[]", op=op)
    data = [ShapeAndType(shape("[2,?]"), float32)]
    c.set_input_handle_shapes_and_types(0, data)
    c.run(fns.unchanged_shape)
    assert c.output_handle_shapes_and_types(0) == data
