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
def test_the_error_of_a_kernel_names_the_required_shapes(op: str, inputs: list[Any], attrs: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        results(op, inputs, attrs, shapes_known=False)


def test_no_sizes_but_1_and_its_own_are_broadcast() -> None:
    with gc.Graph().as_default(), pytest.raises(InvalidArgumentError, match="Dimensions must be equal, but are 0 and 2"):
        gc.apply_op("BroadcastTo", [gc.placeholder(gc.float32, (0,)), gc.constant([2])])


@pytest.mark.parametrize(("given", "axis"), [((3,), 1), ((), 0), ((0, 3), 0)])
def test_reading_the_shape_of_a_failing_argmax_raises_its_error(given: tuple[int, ...], axis: int) -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        shape = gc.ops.shape(gc.apply_op("ArgMax", [gc.identity(gc.zeros(given)), gc.constant(axis)]))
        with pytest.raises(InvalidArgumentError, match=r"Expected dimension|Reduction axis"):
            session.run(shape)


def test_the_shape_of_an_argmax_of_a_matrix_takes_no_kernel() -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        x = gc.placeholder(gc.float32, (3, 4))
        assert session.plan([gc.ops.shape(gc.ops.arg_max(x, gc.constant(1)))], {x: None}).nodes == []
