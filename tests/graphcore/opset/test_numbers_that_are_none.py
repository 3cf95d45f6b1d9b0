"""NaN, infinities and empty tensors, which kernels might change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError

NAN, INF = np.nan, np.inf


def run(op: str, *inputs: Any, **attrs: Any) -> Any:
    graph = gc.Graph()
    return gc.Session(graph=graph).run(graph.apply_op(op, inputs, attrs).outputs[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", gc.bfloat16.as_numpy])
@pytest.mark.parametrize(
    ("values", "largest", "smallest"),
    [([1, NAN, 3], 2, 0), ([NAN, 1, 2], 2, 1), ([NAN, NAN], 0, 0), ([-INF, NAN, -INF], 0, 0), ([NAN, -INF, INF], 2, 1)],
)
def test_nan_is_neither_the_largest_nor_the_smallest(values: list[float], largest: int, smallest: int, dtype: Any) -> None:
    x = np.array(values).astype(dtype)
    assert run("ArgMax", x, np.int32(0)) == largest
    assert run("ArgMin", x, np.int32(0)) == smallest
    assert run("ArgMax", np.stack([x, x]), np.int32(-1)).tolist() == [largest] * 2


@pytest.mark.parametrize("how", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
def test_an_image_of_the_same_size_is_the_same_image(how: dict[str, bool]) -> None:
    image = np.array([[1, -INF, 3], [NAN, INF, 2]], np.float16).reshape(1, 2, 3, 1)
    np.testing.assert_array_equal(run("ResizeBilinear", image, np.array([2, 3], np.int32), **how), image.astype(np.float32))


def test_nothing_can_be_gathered_of_params_without_elements() -> None:
    empty = np.zeros((0, 3), np.float32)
    for indices in (np.zeros((2, 0), np.int32), np.zeros((1, 1), np.int32), np.zeros(0, np.int32)):
        with pytest.raises(InvalidArgumentError, match=r"params with elements.*\[0, 3\]"):
            run("GatherNd", empty, indices)
    assert run("GatherNd", empty, np.zeros((0, 1), np.int32)).shape == (0, 3)
