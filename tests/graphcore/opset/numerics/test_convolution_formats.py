"""Convolutions and their gradients agree in every type and data format, whole and group by group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc

ATTRS: dict[str, dict[str, Any]] = {
    "same": {"strides": [1, 1, 1, 1], "padding": "SAME"},
    "valid": {"strides": [1, 1, 1, 1], "padding": "VALID"},
    "explicit": {"strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 2, 1, 0, 0]},
    "strided": {"strides": [1, 2, 3, 1], "padding": "SAME"},
    "dilated": {"strides": [1, 1, 1, 1], "padding": "SAME", "dilations": [1, 2, 2, 1]},
    "dilated rows": {"strides": [1, 2, 1, 1], "padding": "VALID", "dilations": [1, 2, 1, 1]},
}
TOLERANCE = {gc.float64: 1e-10, gc.float32: 1e-4, gc.half: 2e-2, gc.bfloat16: 1e-1}


def transposed(values: list[Any], order: tuple[int, ...]) -> list[Any]:
    """Permute lists of attrs to another order of dimensions."""
    pairs = len(values) == 2 * len(order)
    return [value for axis in order for value in (values[2 * axis : 2 * axis + 2] if pairs else [values[axis]])]


def results(dtype: gc.DType, x: Any, w: Any, weights: Any, data_format: str, attrs: dict[str, Any]) -> list[Any]:
    """A convolution in `dtype`, and the gradients of its weighted sum, as doubles."""
    with gc.Graph().as_default():
        feeds = {gc.placeholder(dtype, array.shape): array.astype(dtype.as_numpy) for array in (x, w)}
        y = gc.ops.conv2d(*feeds, data_format=data_format, **attrs)
        gradients = gc.gradients(y * weights.astype(dtype.as_numpy), list(feeds)) if dtype in {gc.float64, gc.float32} else []
        return [np.asarray(value).astype(np.float64) for value in gc.Session().run([y, *gradients], feeds)]


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("attrs", ATTRS.values(), ids=ATTRS)
def test_a_convolution_agrees_with_that_of_its_groups_in_doubles(
    attrs: dict[str, Any], data_format: str, dtype: gc.DType, groups: int
) -> None:
    order = (0, 3, 1, 2) if data_format == "NCHW" else (0, 1, 2, 3)
    rng = np.random.default_rng(7)
    x, w = rng.standard_normal((2, 9, 8, 4)), rng.standard_normal((3, 2, 4 // groups, 6))
    with gc.Graph().as_default():
        places = gc.ops.conv2d(gc.constant(x), gc.constant(w), **attrs).shape.as_list()
    weights = (np.arange(np.prod(places)) % 5 - 1.5).reshape(places)
    parts = [np.split(array, groups, -1) for array in (x, w, weights)]
    by_group = [results(gc.float64, part[0], part[1], part[2], "NHWC", attrs) for part in zip(*parts, strict=True)]
    y, dx, dw = (np.concatenate(values, -1) for values in zip(*by_group, strict=True))
    given = {name: transposed(value, order) if isinstance(value, list) else value for name, value in attrs.items()}
    got = results(dtype, x.transpose(order), w, weights.transpose(order), data_format, given)
    for value, expected in zip(got, (y.transpose(order), dx.transpose(order), dw), strict=False):
        np.testing.assert_allclose(value, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * 5)


def test_a_run_gives_the_same_as_the_run_before() -> None:
    rng = np.random.default_rng(3)
    x, w = gc.placeholder(gc.float32, [32, 28, 28, 1]), gc.placeholder(gc.float32, [5, 5, 1, 6])
    feeds = {place: rng.standard_normal([size or 0 for size in place.shape.as_list()]).astype(np.float32) for place in (x, w)}
    y = gc.ops.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")
    fetches, session = [y, *gc.gradients(y * y, [x, w])], gc.Session()
    first = session.run(fetches, feeds)
    for _ in range(3):
        for again, before in zip(session.run(fetches, feeds), first, strict=True):
            # BLAS may add up to 25,088 products of float32 in another order.
            np.testing.assert_allclose(again, before, rtol=0, atol=1e-5 * float(np.abs(before).max()))
