"""Kernels give the results of TensorFlow for arrays without elements, or refuse them in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError

WINDOW = {"ksize": [1, 1, 1, 2, 1], "strides": [1, 1, 1, 2, 1], "padding": "VALID"}


def empty(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def results(op: str, inputs: Sequence[Any], attrs: dict[str, Any], *, shapes_known: bool) -> list[Any]:
    with gc.Graph().as_default() as graph, gc.Session() as session:
        arrays = [np.asarray(value) for value in inputs]
        places = [gc.placeholder(gc.as_dtype(array.dtype), array.shape if shapes_known else None) for array in arrays]
        node = graph.apply_op(op, places, attrs)
        return list(session.run(list(node.outputs), dict(zip(places, arrays, strict=True))))


@pytest.mark.parametrize("shapes_known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "shapes"),
    [
        ("DepthToSpace", [empty(0, 2, 2, 4)], {"block_size": 2}, [(0, 4, 4, 1)]),
        ("DepthToSpace", [empty(1, 0, 2, 4)], {"block_size": 2}, [(1, 0, 4, 1)]),
        ("LRN", [empty(1, 2, 2, 0)], {}, [(1, 2, 2, 0)]),
        ("LRNGrad", [empty(1, 2, 2, 0)] * 3, {}, [(1, 2, 2, 0)]),
        ("UniqueV2", [empty(0, 3), np.array([0])], {}, [(0, 3), (0,)]),
        ("UniqueV2", [empty(3, 0), np.array([0])], {}, [(1, 0), (3,)]),
        ("UniqueV2", [empty(0), np.zeros(0, np.int64)], {}, [(0,), (0,)]),
        ("UniqueWithCountsV2", [empty(3, 0), np.array([1])], {}, [(3, 0), (0,), (0,)]),
        ("MaxPool3DGrad", [empty(1, 3, 0, 4, 1), empty(1, 3, 0, 2, 1), empty(1, 3, 0, 2, 1)], WINDOW, [(1, 3, 0, 4, 1)]),
        ("BroadcastTo", [empty(1), np.array([0])], {}, [(0,)]),
    ],
)
def test_a_kernel_takes_arrays_without_elements(
    op: str, inputs: list[Any], attrs: dict[str, Any], shapes: list[tuple[int, ...]], *, shapes_known: bool
) -> None:
    assert [value.shape for value in results(op, inputs, attrs, shapes_known=shapes_known)] == shapes


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "text"),
    [
        (
            "MaxPool3DGrad",
            [empty(1, 3, 0, 4, 0), empty(1, 3, 0, 0, 0), empty(1, 3, 0, 0, 0)],
            WINDOW,
            r"Expected orig_output shape to be \[1, 3, 0, 2, 0\], but got \[1, 3, 0, 0, 0\]",
        ),
        (
            "MaxPool3DGrad",
            [empty(1, 3, 2, 4, 1), empty(1, 3, 2, 2, 1), empty(1, 3, 2, 1, 1)],
            WINDOW,
            r"Expected grad shape to be \[1, 3, 2, 2, 1\], but got \[1, 3, 2, 1, 1\]",
        ),
        ("BroadcastTo", [empty(0), np.array([2])], {}, r"Incompatible shapes: \[0\] vs\. \[2\]"),
        ("ArgMax", [empty(0, 3), np.array(0)], {}, r"Reduction axis 0 is empty in shape \[0, 3\]"),
        ("ArgMax", [empty(2, 3), np.array(2)], {}, r"Expected dimension in the range \[-2, 2\), but got 2"),
        ("ArgMin", [empty(), np.array(0)], {}, r"Expected dimension in the range \[0, 0\), but got 0"),
    ],
)
def test_a_kernel_says_which_shapes_it_requires(op: str, inputs: list[Any], attrs: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        results(op, inputs, attrs, shapes_known=False)


@pytest.mark.parametrize(
    ("op", "given", "second", "text"),
    [
        ("BroadcastTo", (0,), [2], "Dimensions must be equal, but are 0 and 2"),
        ("ArgMax", (3,), 1, r"Dimension \(1\) must be in the range \[-1, 1\)"),
        ("ArgMax", (), 0, r"Dimension \(0\) must be in the range \[0, 0\)"),
    ],
)
def test_what_the_kernel_refuses_is_an_error_of_the_graph_where_shapes_tell(
    op: str, given: tuple[int, ...], second: Any, text: str
) -> None:
    with gc.Graph().as_default(), pytest.raises(InvalidArgumentError, match=text):
        gc.apply_op(op, [gc.placeholder(gc.float32, given), gc.constant(second)])
