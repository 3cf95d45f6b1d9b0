"""Values that are invalid at run time are refused as in TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError

_ONES = np.ones((2, 3), np.float32)
_THREE = np.array([1, 2, 3], np.float32)
_PLACES = np.array([[0, 0], [1, 1]])
_WORDS = np.array([b"a", b"b"], object)
_BOXES = np.array([[0, 0, 1, 1], [0, 0, 2, 2]], np.float32)


def _int(value: Any) -> Any:
    return np.array(value, np.int32)


CASES: dict[str, tuple[str, list[Any], str]] = {
    "fewer than none": ("OneHot", [_int([1]), _int(-3), np.float32(1), np.float32(0)], "depth must be non-negative, got: -3"),
    "a negative size": ("Reshape", [_THREE, _int([-2])], "Size 0 must be non-negative, not -2"),
    "a later negative size": ("Reshape", [_ONES, _int([2, -7])], "Size 1 must be non-negative, not -7"),
    "several axes to sum along": ("Cumsum", [_ONES, _int([0])], "ScanOp: axis must be a scalar, not \\[1\\]"),
    "several axes to multiply along": ("Cumprod", [_ONES, _int([1])], "ScanOp: axis must be a scalar, not \\[1\\]"),
    "more shifts than axes": ("Roll", [_ONES, _int([1, 1]), _int([0])], "shift and axis must have the same size, got 2 and 1"),
    "boxes fewer than none": ("NonMaxSuppression", [_BOXES, _THREE[:2], _int(-2)], "max_output_size must be non-negative, got -2"),
    "a matrix of elements": ("Unique", [_ONES], "unique expects a 1D vector, got shape \\[2, 3\\]"),
    "a band below the matrix": (
        "MatrixBandPart",
        [_ONES, np.int64(5), np.int64(0)],
        "num_lower must be negative or less or equal to number of rows \\(2\\) got: 5",
    ),
    "a band above the matrix": (
        "MatrixBandPart",
        [_ONES, np.int64(0), np.int64(4)],
        "num_upper must be negative or less or equal to number of columns \\(3\\) got: 4",
    ),
    "a band of a vector": ("MatrixBandPart", [_THREE, np.int64(0), np.int64(0)], "input must be at least 2-dim, received shape: \\[3\\]"),
    "several turns of the hue": (
        "AdjustHue",
        [np.ones((1, 1, 3), np.float32), _THREE],
        "required images and a scalar, got .* shape \\[3\\]",
    ),
    "corners of another rank": (
        "SparseSlice",
        [_PLACES, _THREE[:2], np.array([2, 2]), np.array([0]), np.array([1, 1])],
        "required shape, start and size of one length, got shapes \\[2\\], \\[1\\] and \\[2\\]",
    ),
    "a part that is no matrix": ("SparseSliceGrad", [_THREE, _PLACES, np.array([0, 0]), np.arange(3)], "do not fit indices \\[3\\]"),
    "sums that are no matrix": ("SparseAddGrad", [_THREE, _PLACES, _PLACES, np.arange(3)], "# rows in sum_indices should match"),
    "several separators": ("StringSplit", [_WORDS, _WORDS], "required a vector and a scalar, got shapes \\[2\\] and \\[2\\]"),
}


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
@pytest.mark.parametrize("case", CASES)
def test_a_value_that_the_op_does_not_take_is_refused(case: str, engine: str) -> None:
    op, values, text = CASES[case]
    with gc.Graph().as_default() as graph:
        feeds: dict[Any, Any] = {}

        def fed(value: Any) -> Any:
            tensor = gc.placeholder(gc.as_dtype(np.asarray(value).dtype), gc.Shape(None))
            feeds[tensor] = value
            return tensor

        node = graph.apply_op(op, [fed(value) for value in values], name="it")
        with pytest.raises(InvalidArgumentError, match=text) as caught:
            gc.Session(engine=engine).run(list(node.outputs), feeds)
    assert (caught.value.node, caught.value.op) == ("it", op)
