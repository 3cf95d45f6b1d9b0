"""Matrix products of all sizes and layouts are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError


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


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
@pytest.mark.parametrize("dtype", [gc.float32, gc.int32, gc.half], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(("a", "b"), [((2, 3, 4), (4, 5)), ((3,), (3,)), ((2, 3), (3,)), ((), (2, 2))])
def test_a_product_of_other_ranks_at_run_time_is_refused(a: tuple[int, ...], b: tuple[int, ...], dtype: gc.DType, engine: str) -> None:
    x, y = gc.placeholder(dtype, None, name="x"), gc.placeholder(dtype, None, name="y")
    for product in (gc.ops.mat_mul(x, y), gc.ops.mat_mul(x, y, transpose_a=True)):
        with pytest.raises(InvalidArgumentError, match=r"MatMul node .*required two matrices, got shapes \["):
            gc.Session(engine=engine).run(product, {x: np.ones(a, dtype.as_numpy), y: np.ones(b, dtype.as_numpy)})


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_product_of_batches_refuses_vectors_at_run_time(engine: str) -> None:
    x, y = gc.placeholder(gc.float32, None, name="x"), gc.placeholder(gc.float32, None, name="y")
    for product in (gc.matmul(x, y), gc.matmul(x, y, adjoint_b=True)):
        with pytest.raises(InvalidArgumentError, match=r"required matrices or batches of them, got shapes \[3\] and \["):
            gc.Session(engine=engine).run(product, {x: np.ones(3, np.float32), y: np.ones((3, 2), np.float32)})


@pytest.mark.parametrize(
    ("x", "y"),
    [((6, 200, 150), (6, 150, 180)), ((6, 2, 100, 90), (6, 1, 90, 80)), ((1, 300, 200), (4, 200, 250)), ((5, 150, 130), (130, 140))],
)
def test_batches_of_products_are_numpys(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal(x).astype(np.float32), rng.standard_normal(y).astype(np.float32)
    np.testing.assert_allclose(gc.Session().run(gc.ops.batch_mat_mul_v2(gc.constant(a), gc.constant(b))), a @ b, rtol=1e-4, atol=1e-4)


def test_a_batch_of_products_does_not_overwrite_its_operands() -> None:
    x = gc.placeholder(gc.float32, [3, 20, 20], name="x")
    y = gc.ops.batch_mat_mul_v2(gc.exp(x), gc.tanh(x))
    value = np.random.default_rng(3).standard_normal((3, 20, 20)).astype(np.float32)
    session = gc.Session()
    for _ in range(2):
        np.testing.assert_allclose(session.run(y, {x: value}), np.exp(value) @ np.tanh(value), rtol=1e-4, atol=1e-4)


def test_a_pointwise_convolution_is_the_product_of_pixels_and_filter() -> None:
    x = np.arange(9 * 112, dtype=np.float32).reshape(1, 3, 3, 112) % 7
    w = np.arange(112 * 1280, dtype=np.float32).reshape(1, 1, 112, 1280) % 5
    y = gc.ops.conv2d(gc.constant(x), gc.constant(w), strides=[1, 1, 1, 1], padding="SAME")
    np.testing.assert_array_equal(gc.Session().run(y), x @ w[0, 0])
