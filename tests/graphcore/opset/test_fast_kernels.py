"""Fast kernels for large arrays agree with the plain ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.opset.framework.kernels import with_number
from tests.support.strict_arrays import strict

SHAPES = ((3,), (5000,), (0, 7), (2, 3), (70, 70), (64, 8, 2, 6), (2, 70_000), (5000, 1), (4, 0, 5000))


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers around 0, with NaN and infinities if the type has them."""
    values = (np.arange(np.prod(shape)) * 7 % 23 - 11).reshape(shape).astype(dtype)
    if values.size > 3 and np.issubdtype(dtype, np.floating):
        values.flat[:3] = [np.nan, np.inf, -np.inf]
    return values


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.uint8])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_a_number_repeated_is_that_number(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    x, number = numbers(shape, dtype), dtype(2)
    kernel = with_number(np, name, number)
    for given in (x, x.T, x[::2]):
        found = kernel(given)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, getattr(np, name)(given, number))
    np.testing.assert_array_equal(
        with_number(strict, name, number)(strict.asarray(x.tolist())).get(), getattr(np, name)(x.tolist(), number)
    )


def test_numbers_are_repeated_for_few_shapes_at_a_time() -> None:
    kernel = with_number(np, "maximum", np.float32(0))
    for width in range(64, 164):
        x = numbers((100, width), np.float32)
        np.testing.assert_array_equal(kernel(x), np.maximum(x, np.float32(0)))


@pytest.mark.parametrize(
    ("data_format", "shape"),
    [("NHWC", (3, 4)), *itertools.product(("NHWC", "NCHW"), [(2, 3, 4), (2, 3, 5, 4), (2, 3, 5, 4, 6), (2, 0, 5, 4), (2, 3, 5, 0)])],
)
def test_the_gradient_of_a_bias_is_the_sum_over_all_but_the_channels(data_format: str, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    channel = 1 if data_format == "NCHW" else len(shape) - 1
    found = gc.Session().run(gc.ops.bias_add_grad(gc.constant(x), data_format=data_format))
    np.testing.assert_array_equal(found, x.sum(tuple([axis for axis in range(len(shape)) if axis != channel])))
