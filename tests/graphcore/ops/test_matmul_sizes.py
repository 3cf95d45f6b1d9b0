"""Matrix products of all sizes and layouts are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.ops.products import product
from tests.support.strict_arrays import strict


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(
    "sizes", [(32, 400, 120), (120, 400, 32), (7, 3000, 60), (1, 1100, 1000), (1100, 1000, 1), (101, 103, 107), (9, 40_000, 4)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_of_any_size_and_layout_is_the_product(
    sizes: tuple[int, int, int], transpose_a: bool, transpose_b: bool, dtype: type
) -> None:
    m, depth, n = sizes
    rng = np.random.default_rng(m + n)
    a: Any = rng.standard_normal((m, depth)).astype(dtype)
    b: Any = rng.standard_normal((depth, n)).astype(dtype)
    given = (np.ascontiguousarray(a.T) if transpose_a else a, np.ascontiguousarray(b.T) if transpose_b else b)
    with gc.Graph().as_default() as graph:
        fed = [gc.placeholder(gc.as_dtype(dtype), array.shape) for array in given]
        product = gc.ops.mat_mul(*fed, transpose_a=transpose_a, transpose_b=transpose_b)
        got = gc.Session(graph=graph).run(product, dict(zip(fed, given, strict=True)))
    np.testing.assert_allclose(got, a @ b, rtol=1e-4 if dtype is np.float32 else 1e-12, atol=1e-3 if dtype is np.float32 else 1e-10)


def test_a_product_is_computed_for_rows_that_are_not_known_beforehand() -> None:
    a, b = np.ones((32, 400), np.float32), np.ones((400, 120), np.float32)
    x = gc.placeholder(gc.float32, [None, 400])
    product = x @ gc.constant(b)
    session = gc.Session()
    for rows in (32, 32, 32, 32, 8, 32):
        np.testing.assert_array_equal(session.run(product, {x: a[:rows]}), np.full((rows, 120), 400.0, np.float32))


@pytest.mark.parametrize("sizes", [(9, 112, 1280), (2304, 16, 48), (300, 70, 90), (5, 6, 7)])
def test_products_of_other_modules_arrays_are_the_same(sizes: tuple[int, int, int]) -> None:
    m, depth, n = sizes
    a, b = np.arange(m * depth, dtype=np.float64).reshape(m, depth) % 17, np.arange(depth * n, dtype=np.float64).reshape(depth, n) % 13
    np.testing.assert_array_equal(product(np, a, b), a @ b)
    np.testing.assert_array_equal(product(strict, strict.asarray(a.tolist()), strict.asarray(b.tolist())).get(), a @ b)


def test_a_pointwise_convolution_is_the_product_of_pixels_and_filter() -> None:
    x = np.arange(9 * 112, dtype=np.float32).reshape(1, 3, 3, 112) % 7
    w = np.arange(112 * 1280, dtype=np.float32).reshape(1, 1, 112, 1280) % 5
    y = gc.ops.conv2d(gc.constant(x), gc.constant(w), strides=[1, 1, 1, 1], padding="SAME")
    np.testing.assert_array_equal(gc.Session().run(y), x @ w[0, 0])
