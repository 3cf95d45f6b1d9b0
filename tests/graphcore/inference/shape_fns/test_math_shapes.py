"""Sums, broadcasting, select, segments, ranges, losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphcore.inference import ShapeHandle, shape_of_sizes
from graphcore.inference.shape_fns import common_shape_fns as fns
from tests.support.shape_rows import ShapeFunction, assert_row, bad, case, context, infer, refusal


def add_n(inputs: str, expected: str) -> Any:
    return case("S5 AddN", fns.add_n_shape, inputs, expected)


def add(inputs: str, expected: str) -> Any:
    return case("S5 Add", fns.broadcast_binary_op_shape_fn, inputs, expected)


def select(inputs: str, expected: str) -> Any:
    return case("S5 Select", fns.select_shape, inputs, expected)


def segment(inputs: str, expected: str) -> Any:
    return case("S5 SegmentSum", fns.segment_reduction_shape, inputs, expected)


def unsorted(inputs: str, expected: str, count: object = None) -> Any:
    return case("S5 UnsortedSegmentSum", fns.segment_reduction_with_num_segments_shape, inputs, expected, values=(None, None, count))


def steps(expected: str, *values: object) -> Any:
    return case(f"S5 Range {values}", fns.range_shape, "?;?;?", expected, values=values)


@pytest.mark.parametrize(
    ("function", "inputs", "expected", "given"),
    [
        add_n("?;?", "in0|in1"),
        add_n("[1,?]", "in0"),
        add_n("[1,2];[?,2]", "in0"),
        add_n("[1,2];[1,2]", "in0|in1"),
        add_n("[?,2];[1,2]", "in1"),
        add_n("[1,?];[?,2];[1,2]", "in2"),
        add_n("[1,2];[?,2];[1,?]", "in0"),
        add_n("?;?;[1,2]", "in2"),
        add_n("[1,?];[?,2]", "[d0_0,d1_1]"),
        add_n("[?,2,?];[?,?,3]", "[d0_0|d1_0,d0_1,d1_2]"),
        add_n("[?,2];[1,?]", "[d1_0,d0_1]"),
        case("S5 Cast", fns.unchanged_shape, "?", "in0"),
        case("S5 Cast", fns.unchanged_shape, "[1,?,3,4]", "in0"),
        case("S5 with rank", lambda c: fns.unchanged_shape_with_rank(c, 2), "?", "[?,?]"),
        case("S5 with rank", lambda c: fns.unchanged_shape_with_rank(c, 2), "[1,?]", "in0"),
        case("S5 at least", lambda c: fns.unchanged_shape_with_rank_at_least(c, 1), "[1,?]", "in0"),
        case("S5 at most", lambda c: fns.unchanged_shape_with_rank_at_most(c, 2), "[1,?]", "in0"),
        case("S5 merge both", fns.merge_both_inputs, "[1,?];[?,2]", "[d0_0,d1_1]"),
        case("S5 scalar", fns.scalar_shape, "[1,?]", "[]"),
        case("S5 unknown", fns.unknown_shape, "[1,?]", "?;?", outputs=2),
        segment("?;?", "?"),
        segment("?;[100]", "?"),
        segment("[?];?", "[?]"),
        segment("[1];[100]", "[?]"),
        segment("[?,?];?", "[?,d0_1]"),
        segment("[?,2];[100]", "[?,d0_1]"),
        segment("[1,2,?,4];[100]", "[?,d0_1,d0_2,d0_3]"),
        case("S5 SparseSegmentSum", fns.sparse_segment_reduction_shape, "[9,2];[7];[?]", "[?,d0_1]"),
        case(
            "S5 SparseSegmentSumWithNumSegments",
            fns.sparse_segment_reduction_with_num_segments_shape,
            "[9,2];[7];[7];[]",
            "[5,d0_1]",
            values=(None, None, None, 5),
        ),
        case(
            "S5 SparseSegmentSumGrad",
            fns.sparse_segment_reduction_grad_shape,
            "[9,2];[7];[7];[]",
            "[5,d0_1]",
            values=(None, None, None, 5),
        ),
        add("?;?", "?"),
        add("[1,2];?", "?"),
        add("?;[1,2]", "?"),
        add("[?];[1]", "[d0_0]"),
        add("[1];[?]", "[d1_0]"),
        add("[?];[2]", "[d1_0]"),
        add("[2];[?]", "[d0_0]"),
        add("[?];[?]", "[?]"),
        add("[0];[?]", "[?]"),
        add("[];[]", "[]"),
        add("[];[?]", "[d1_0]"),
        add("[?];[]", "[d0_0]"),
        add("[1];[1]", "[d0_0|d1_0]"),
        add("[];[1]", "[d1_0]"),
        add("[1];[]", "[d0_0]"),
        add("[2];[2]", "[d0_0|d1_0]"),
        add("[1];[2]", "[d1_0]"),
        add("[2];[1]", "[d0_0]"),
        add("[0];[0]", "[d0_0|d1_0]"),
        add("[1];[0]", "[d1_0]"),
        add("[0];[1]", "[d0_0]"),
        add("[0];[]", "[d0_0]"),
        add("[?,1,2,3,4,5];[3,1,?]", "[d0_0,d0_1,d0_2,d0_3|d1_0,d0_4,d0_5]"),
        add("[3,1,?];[?,1,2,3,4,5]", "[d1_0,d1_1,d1_2,d1_3|d0_0,d1_4,d1_5]"),
        select("?;?;?", "in1|in2"),
        select("[];?;?", "in1|in2"),
        select("[1];?;?", "in1|in2"),
        select("[1,2];?;?", "in1|in2"),
        select("?;[];?", "in1"),
        select("?;?;[1,2]", "in2"),
        select("[2,?,?];[?,?,3];[?,2,?]", "[d0_0,d2_1,d1_2]"),
        select("[2];[?];[?]", "[d0_0]"),
        select("[?];[?,?,3];[1,2,?]", "[d2_0,d2_1,d1_2]"),
        select("[2];[?,?,3];[?,2,?]", "[d0_0,d2_1,d1_2]"),
        case("S5 SelectV2", fns.select_v2_shape, "[3,1];[4];[]", "[d0_0,d1_0]"),
        case("S5 SelectV2", fns.select_v2_shape, "[];?;[]", "?"),
        steps("[?]", None, None, None),
        steps("[?]", 1, None, None),
        steps("[?]", 1, 1, None),
        steps("[0]", 1, 1, 1),
        steps("[33]", 2, 100, 3),
        steps("[4]", 10, 0, -3),
        steps("[3]", np.float32(0), np.float32(0.3), np.float32(0.1)),
        case("S5 LinSpace", fns.linspace_shape, "?;?;?", "[?]"),
        case("S5 LinSpace", fns.linspace_shape, "?;?;?", "[2]", values=(None, None, 2)),
        unsorted("?;?;?", "?"),
        unsorted("?;[?];?", "?"),
        unsorted("?;[3];?", "?"),
        unsorted("[?,2,3,?,5];[1,2,?];[]", "[100,d0_3,d0_4]", 100),
        unsorted("[?,2,3,?,5];[1,2,?];[]", "[?,d0_3,d0_4]"),
        case("S5 SoftmaxCrossEntropy", fns.softmax_cross_entropy_shape, "[2,?];[?,3]", "[d0_0];[d0_0,d1_1]", outputs=2),
        case("S5 SoftmaxCrossEntropy", fns.softmax_cross_entropy_shape, "[1,3];[2,1]", "[d1_0];[d1_0,d0_1]", outputs=2),
        case("S5 SoftmaxCrossEntropy", fns.softmax_cross_entropy_shape, "?;?", "[?];[?,?]", outputs=2),
        case("S5 SparseSoftmaxCrossEntropy", fns.sparse_softmax_cross_entropy_shape, "[?,3];[2]", "[d1_0];[d1_0,d0_1]", outputs=2),
        case("S5 InTopK", fns.in_top_k_shape, "[?,3];[2];[]", "[d1_0]"),
        case("S5 TopKV2", fns.top_k_shape, "[2,5];[]", "[d0_0,3];[d0_0,3]", outputs=2, values=(None, 3)),
        case("S5 TopK", fns.top_k_shape, "[2,?]", "[d0_0,3];[d0_0,3]", outputs=2, attrs={"k": 3}),
    ],
)
def test_the_output_has_the_expected_shape(function: ShapeFunction, inputs: str, expected: str, given: dict[str, Any]) -> None:
    assert_row(infer(function, inputs, **given), expected)


@pytest.mark.parametrize(
    ("function", "inputs", "text", "given"),
    [
        bad(
            "S5 AddN",
            fns.add_n_shape,
            "[1,2];?;[?,4]",
            "Dimension 1 in both shapes must be equal, but are 2 and 4. Shapes are [1,2] and [?,4].\n\tFrom merging shape 0 with other shapes.",
        ),
        bad(
            "S5 AddN",
            fns.add_n_shape,
            "?;[1,2];?;[1,2,3]",
            "Shapes must be equal rank, but are 2 and 3\n\tFrom merging shape 1 with other shapes.",
        ),
        bad("S5 Add", fns.broadcast_binary_op_shape_fn, "[2];[3]", "Dimensions must be equal, but are 2 and 3"),
        bad("S5 Add", fns.broadcast_binary_op_shape_fn, "[0];[3]", "Dimensions must be equal, but are 0 and 3"),
        bad("S5 SegmentSum", fns.segment_reduction_shape, "?;[1,2]", "Shape must be rank 1 but is rank 2"),
        bad("S5 SegmentSum", fns.segment_reduction_shape, "[];[1]", "Shape must be at least rank 1 but is rank 0"),
        bad("S5 Select", fns.select_shape, "[1];[];?", "Shapes must be equal rank, but are 0 and 1"),
        bad("S5 Select", fns.select_shape, "[1,2];[1];?", "Shapes must be equal rank, but are 1 and 2"),
        bad("S5 Select", fns.select_shape, "[1];[2,?,3];[?,2,?]", "Dimensions must be equal, but are 2 and 1"),
        bad("S5 Select", fns.select_shape, "[2,?];[?,?,3];[?,2,?]", "Shapes must be equal rank, but are 3 and 2"),
        bad("S5 Select", fns.select_shape, "[2,?,5];[?,?,3];[?,2,?]", "Dimension 2 in both shapes must be equal, but are 3 and 5"),
        bad("S5 Range", fns.range_shape, "[1,2];?;?", "Shape must be rank 0 but is rank 2\n\t for 'start'"),
        bad("S5 Range", fns.range_shape, "?;[1,2];?", "Shape must be rank 0 but is rank 2\n\t for 'limit'"),
        bad("S5 Range", fns.range_shape, "?;?;[1,2]", "Shape must be rank 0 but is rank 2\n\t for 'delta'"),
        bad("S5 Range", fns.range_shape, "?;?;?", "Requires delta != 0", values=(1, 1, 0)),
        bad("S5 Range", fns.range_shape, "?;?;?", "Requires start <= limit: 1/-1", values=(1, -1, 3)),
        bad("S5 Range", fns.range_shape, "?;?;?", "Requires start >= limit when delta < 0: 1/2", values=(1, 2, -3)),
        bad("S5 LinSpace", fns.linspace_shape, "?;?;[1,2]", "Shape must be rank 0 but is rank 2\n\t for 'num'"),
        bad("S5 LinSpace", fns.linspace_shape, "?;[1,2];?", "Shape must be rank 0 but is rank 2\n\t for 'stop'"),
        bad("S5 LinSpace", fns.linspace_shape, "?;?;?", "Requires num > 0: -1", values=(None, None, -1)),
        bad(
            "S5 UnsortedSegmentSum",
            fns.segment_reduction_with_num_segments_shape,
            "[3];[3];?",
            "Dimension size, given by scalar input 2, must be non-negative but is -1",
            values=(None, None, -1),
        ),
        bad("S5 UnsortedSegmentSum", fns.segment_reduction_with_num_segments_shape, "?;?;[1,2]", "Shape must be rank 0 but is rank 2"),
        bad("S5 UnsortedSegmentSum", fns.segment_reduction_with_num_segments_shape, "[1,?,2];[1,?,3];?", "are 2 and 3"),
        bad("S5 UnsortedSegmentSum", fns.segment_reduction_with_num_segments_shape, "[1,2];[1,2,3];?", "at least rank 3 but is rank 2"),
        bad(
            "S5 SparseSegmentSumWithNumSegments",
            fns.sparse_segment_reduction_with_num_segments_shape,
            "[9,2];[7];[7];[]",
            "Cannot specify a negative value for num_segments",
            values=(None, None, None, -5),
        ),
        bad(
            "S5 SparseSegmentSumGrad",
            fns.sparse_segment_reduction_grad_shape,
            "[9,2];[7];[7];[]",
            "Cannot specify a negative value for output_dim0",
            values=(None, None, None, -5),
        ),
        bad("S5 SoftmaxCrossEntropy", fns.softmax_cross_entropy_shape, "[5];[5]", "rank 2, but is rank 1", outputs=2),
        bad("S5 SoftmaxCrossEntropy", fns.softmax_cross_entropy_shape, "[2,5];[2,4]", "are 5 and 4", outputs=2),
        bad("S5 SparseSoftmaxCrossEntropy", fns.sparse_softmax_cross_entropy_shape, "[2,5];[2,1]", "rank 1 but is rank 2", outputs=2),
        bad("S5 SparseSoftmaxCrossEntropy", fns.sparse_softmax_cross_entropy_shape, "[2,5];[3]", "are 2 and 3", outputs=2),
        bad("S5 TopKV2", fns.top_k_shape, "[2,5];[]", "must have last dimension >= k = 7 but is 5", outputs=2, values=(None, 7)),
    ],
)
def test_misfits_are_refused_with_the_text_of_the_rule(function: ShapeFunction, inputs: str, text: str, given: dict[str, Any]) -> None:
    assert text in refusal(function, inputs, **given)


def test_the_same_unknown_dimension_twice_stays_that_dimension_s5() -> None:
    shared = shape_of_sizes([-1, 3])
    c = context([shared, ShapeHandle(shared.dims)])
    c.run(fns.broadcast_binary_op_shape_fn)
    assert_row(c, "[d0_0,d0_1]")


def test_a_tensor_broadcast_with_itself_keeps_its_handle() -> None:
    x = shape_of_sizes([-1, 3])
    c = context([x, x])
    c.run(fns.broadcast_binary_op_shape_fn)
    assert c.output(0) is x
