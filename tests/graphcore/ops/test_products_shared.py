"""Large products: several threads compute parts of them, and neither that nor anything else that runs shows in what they give."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import graphcore as gc
from graphcore.ops import blas, products
from graphcore.ops.products import batch_product, product, share
from graphcore.pool import kernel_pool
from tests.support.threads import LiveThreads, threads_that_compute, wait_for_pool

SIZES = [(512, 512, 512), (1200, 130, 200), (200, 131, 1201), (40, 5000, 300), (3, 2000, 2000), (700, 700, 701)]


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if blas.threads_for_parts() == 0:
        pytest.skip("NumPy's BLAS here is not OpenBLAS with threads of its own: products are left to it as they are")
    monkeypatch.setattr(blas, "core_count", lambda: 2)
    monkeypatch.setattr(blas, "blas_threads", lambda: 2)
    products.way_for.cache_clear()
    yield
    products.way_for.cache_clear()


def blas_threads_now() -> list[int]:
    """How many threads each loaded OpenBLAS would use."""
    return [info["num_threads"] for info in ThreadpoolController().info() if info["internal_api"] == "openblas"]


def matrices(m: int, depth: int, n: int, dtype: Any = np.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(m + n)
    return rng.standard_normal((m, depth)).astype(dtype), rng.standard_normal((depth, n)).astype(dtype)


def in_this_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all other threads had other things to do."""
    monkeypatch.setattr(products, "products_under_way", lambda: 9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("sizes", SIZES)
def test_a_large_product_is_the_same_to_the_last_bit_whoever_computes_its_parts(
    sizes: tuple[int, int, int], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = matrices(*sizes, dtype)
    np.testing.assert_allclose(product(np, a, b), a @ b, rtol=1e-3, atol=1e-2)
    helped = [product(np, a, b) for _ in range(5)]
    in_this_thread(monkeypatch)
    alone = product(np, a, b)
    for result in helped:
        np.testing.assert_array_equal(result, alone)


def test_other_threads_take_parts_when_they_are_free() -> None:
    both = threading.Barrier(2)
    share(lambda _: both.wait(10), [slice(0, 1), slice(1, 2)], 2)  # neither part can end before the other has begun


def test_every_part_is_computed_once() -> None:
    computed: list[int] = []
    parts = [slice(i, i + 1) for i in range(50)]
    share(lambda part: computed.append(part.start), parts, 4)
    assert sorted(computed) == list(range(50))


@pytest.mark.parametrize("error", [ValueError("no good"), KeyboardInterrupt()])
def test_what_a_part_raises_is_raised_and_blas_is_left_as_it_was(error: BaseException) -> None:
    before = blas_threads_now()

    def fails(_: slice) -> None:
        raise error

    with pytest.raises(type(error)):
        share(fails, [slice(0, 1), slice(1, 2), slice(2, 3)], 2)
    wait_for_pool()  # who was to help may come late
    assert blas.products_under_way() == 0
    assert blas_threads_now() == before


def test_ctrl_c_in_a_product_of_minutes_is_heard_between_parts_whatever_was_known_of_the_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in one of 10^5 rows, whose parts take a tenth of a second each."""
    monkeypatch.setattr(products, "_LONG", 1 << 20)
    monkeypatch.setattr(products, "_PART", 1 << 18)
    monkeypatch.setattr(products, "_AHEAD", 0)
    in_this_thread(monkeypatch)
    computed: list[slice] = []

    def stopped(_a: Any, _b: Any, _out: Any, part: slice) -> None:
        computed.append(part)
        if len(computed) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(products, "_by_rows", stopped)
    x = gc.placeholder(gc.float32, [None, None], name="x")
    session = gc.Session()
    with pytest.raises(KeyboardInterrupt):
        session.run(x @ x, {x: np.ones((256, 256), np.float32)})
    assert [part.stop - part.start for part in computed] == [16] * 3


def test_blas_uses_one_thread_until_the_last_product_under_way_is_done() -> None:
    before = blas_threads_now()
    with blas.one_thread():
        assert min(blas_threads_now()) == 1
        with blas.one_thread():
            assert blas.products_under_way() == 2
        assert min(blas_threads_now()) == 1
    assert blas_threads_now() == before
    a, b = matrices(300, 300, 300)
    product(np, a, b)
    wait_for_pool()  # who was to help may come late
    assert blas_threads_now() == before


def test_what_another_thread_has_begun_when_a_part_fails_ends_and_leaves_the_pool_idle() -> None:
    begun, gate, live, main = threading.Event(), threading.Event(), LiveThreads(), threading.current_thread()

    def compute(_: slice) -> None:
        if threading.current_thread() is main:
            assert begun.wait(30)
            raise ValueError("no good")
        begun.set()
        assert gate.wait(30)

    with pytest.raises(ValueError, match="no good"):
        share(compute, [slice(0, 1), slice(1, 2), slice(2, 3)], 2)
    assert [thread.name for thread in threads_that_compute()] == ["graphcore-kernels"]
    gate.set()
    live.check_none_is_left()
    assert blas.products_under_way() == 0


@pytest.mark.parametrize(
    ("x", "y"),
    [((6, 200, 150), (6, 150, 180)), ((6, 2, 100, 90), (6, 1, 90, 80)), ((1, 300, 200), (1, 200, 250)), ((5, 150, 130), (130, 140))],
)
def test_batches_of_products_are_shared_out_and_the_same(x: tuple[int, ...], y: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal(x).astype(np.float32), rng.standard_normal(y).astype(np.float32)
    got = batch_product(np, a, b)
    np.testing.assert_allclose(got, a @ b, rtol=1e-3, atol=1e-3)
    in_this_thread(monkeypatch)
    np.testing.assert_array_equal(batch_product(np, a, b), got)


def test_who_asks_for_one_thread_gets_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "blas_threads", lambda: 1)
    called: list[object] = []
    monkeypatch.setattr(kernel_pool, "call", called.append)
    a, b = matrices(512, 512, 512)
    np.testing.assert_allclose(product(np, a, b), a @ b, rtol=1e-3, atol=1e-2)
    assert not called


def test_threads_with_large_products_get_the_very_bits_of_one_run_after_the_other() -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [400, 700], name="x")
        y = gc.matmul(gc.matmul(x, x, transpose_b=True), x)
        image = gc.reshape(x, [1, 70, 100, 40])
        filters = gc.constant(np.random.default_rng(2).standard_normal((3, 3, 40, 32)).astype(np.float32))
        z = gc.ops.conv2d(image, filters, strides=[1, 1, 1, 1], padding="SAME")
    session = gc.Session(graph=graph)
    values = [np.random.default_rng(i).standard_normal((400, 700)).astype(np.float32) for i in range(8)]
    one_by_one = [session.run([y, z], {x: value}) for value in values]
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(lambda value: session.run([y, z], {x: value}), values))
    for mine, theirs in zip(at_once, one_by_one, strict=True):
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[1], theirs[1])
