"""Convolutions and gradients agree by windows and by columns, in every type and data format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.opset.numerics import convolving_costs

ATTRS: dict[str, dict[str, Any]] = {
    "same": {"strides": [1, 1, 1, 1], "padding": "SAME"},
    "valid": {"strides": [1, 1, 1, 1], "padding": "VALID"},
    "explicit": {"strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 2, 1, 0, 0]},
    "strided": {"strides": [1, 2, 3, 1], "padding": "SAME"},
    "dilated": {"strides": [1, 1, 1, 1], "padding": "SAME", "dilations": [1, 2, 2, 1]},
    "dilated rows": {"strides": [1, 2, 1, 1], "padding": "VALID", "dilations": [1, 2, 1, 1]},
}
TOLERANCE = {gc.float64: 1e-10, gc.float32: 1e-4, gc.half: 2e-2, gc.bfloat16: 1e-1}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Clears the cached choice of algorithm before and after a test."""
    with gc.Graph().as_default():
        yield
    convolving_costs.columns_pay.cache_clear()
    convolving_costs.input_columns_pay.cache_clear()


def results(
    monkeypatch: pytest.MonkeyPatch, cost_of_columns: float, fetches: list[gc.Tensor], feeds: dict[gc.Tensor, Any]
) -> tuple[list[Any], bool]:
    """The results under a given cost of columns, and True if the cost was queried."""
    asked: list[Any] = []

    def cost(*sizes: Any) -> float:
        asked.append(sizes)
        return cost_of_columns

    monkeypatch.setattr(convolving_costs, "_by_columns", cost)
    monkeypatch.setattr(convolving_costs, "_input_by_columns", cost)
    convolving_costs.columns_pay.cache_clear()
    convolving_costs.input_columns_pay.cache_clear()
    return [np.asarray(value).astype(np.float64) for value in gc.Session().run(fetches, feeds)], bool(asked)


def transposed(values: list[Any], order: tuple[int, ...]) -> list[Any]:
    """Permute lists of attrs to another order of dimensions."""
    pairs = len(values) == 2 * len(order)
    return [value for axis in order for value in (values[2 * axis : 2 * axis + 2] if pairs else [values[axis]])]


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("attrs", ATTRS.values(), ids=ATTRS)
def test_both_ways_give_the_same(
    monkeypatch: pytest.MonkeyPatch, attrs: dict[str, Any], data_format: str, dtype: gc.DType, groups: int
) -> None:
    order = (0, 3, 1, 2) if data_format == "NCHW" else (0, 1, 2, 3)
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal((2, 9, 8, 4)).transpose(order), rng.standard_normal((3, 2, 4 // groups, 6))]
    x, w = (gc.placeholder(dtype, array.shape) for array in arrays)
    feeds = {place: array.astype(dtype.as_numpy) for place, array in zip((x, w), arrays, strict=True)}
    given = {name: transposed(value, order) if isinstance(value, list) else value for name, value in attrs.items()}
    y = gc.ops.conv2d(x, w, data_format=data_format, **given)
    fetches = [y]
    if dtype in {gc.float64, gc.float32}:
        weights = (np.arange(y.shape.num_elements) % 5 - 1.5).reshape([size or 0 for size in y.shape.as_list()]).astype(dtype.as_numpy)
        fetches += gc.gradients(y * weights, [x, w])
    windows, _ = results(monkeypatch, 1e9, fetches, feeds)
    columns, asked = results(monkeypatch, 0.0, fetches, feeds)
    gaps_between_columns = attrs.get("dilations", [1, 1, 1, 1])[2] > 1
    assert asked is not gaps_between_columns
    for by_columns, by_windows in zip(columns, windows, strict=True):
        np.testing.assert_allclose(by_columns, by_windows, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * 5)


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
