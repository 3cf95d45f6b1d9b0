"""Large products: all threads of BLAS compute one that is alone, one thread each of several, and neither shows in what they give."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import graphcore as gc
from graphcore.ops import blas, products
from graphcore.ops.products import batch_product, product

SIZES = [
    (256, 256, 256),
    (128, 784, 512),
    (300, 1000, 300),
    (40, 1500, 90),
    (3, 900, 900),
    (1, 600, 700),
    (100, 131, 701),
    (101, 700, 103),
]


@pytest.fixture(autouse=True)
def told() -> Iterator[None]:
    if blas.threads_of_blas() < 2:
        pytest.skip("NumPy's BLAS here is not OpenBLAS with threads of its own, or has one: products are left to it as they are")
    waits_for(lambda: not blas.is_settled())
    before = blas_threads_now()
    yield
    waits_for(lambda: not blas.is_settled())
    assert blas.products_under_way() == 0
    assert blas_threads_now() == before


def blas_threads_now() -> list[int]:
    """How many threads each loaded OpenBLAS would use."""
    return [info["num_threads"] for info in ThreadpoolController().info() if info["internal_api"] == "openblas"]


def matrices(m: int, depth: int, n: int, dtype: Any = np.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(m + n)
    return rng.standard_normal((m, depth)).astype(dtype), rng.standard_normal((depth, n)).astype(dtype)


def in_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if other threads had products all the time."""
    monkeypatch.setattr(products, "is_crowded", lambda: True)


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "is_crowded", lambda: False)


def waits_for(condition: Callable[[], bool]) -> None:
    """Until it holds; a test that waits for ever is one that fails."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("layout", ["rows", "first transposed", "second transposed", "every other row"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("sizes", SIZES)
def test_a_product_is_numpys_to_the_last_bit_alone_and_in_a_crowd(
    sizes: tuple[int, int, int], dtype: Any, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = matrices(*sizes, dtype)
    if layout == "first transposed":
        a = np.asfortranarray(a)
    elif layout == "second transposed":
        b = np.asfortranarray(b)
    elif layout == "every other row":
        a = np.repeat(a, 2, 0)[::2]
    alone(monkeypatch)
    wanted = np.matmul(a, b)
    np.testing.assert_array_equal(product(np, a, b), wanted)
    in_a_crowd(monkeypatch)
    np.testing.assert_array_equal(product(np, a, b), wanted)


def test_the_square_of_a_matrix_is_the_same_in_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy has it computed in another way than other products."""
    a = matrices(300, 500, 1)[0]
    part = a[:200]
    wanted = [a @ a.T, a.T @ a, part @ part.T, a @ part.T]
    in_a_crowd(monkeypatch)
    for got, value in zip([product(np, x, y) for x, y in ((a, a.T), (a.T, a), (part, part.T), (a, part.T))], wanted, strict=True):
        np.testing.assert_array_equal(got, value)


def test_in_a_crowd_blas_uses_one_thread_where_that_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = matrices(256, 256, 256)
    entered: list[bool] = []
    enter = blas.enter

    def seen(token: object, *, all_threads: bool = False) -> None:
        entered.append(all_threads)
        enter(token, all_threads=all_threads)

    monkeypatch.setattr(products, "enter", seen)
    alone(monkeypatch)
    product(np, a, b)
    in_a_crowd(monkeypatch)
    product(np, a, b)
    monkeypatch.setattr(products, "_found", {})
    monkeypatch.setattr(products, "_tried", lambda *_: None)
    product(np, a, b)
    assert entered == [True, False, True]


def test_how_one_thread_computes_a_kind_is_tried_once_while_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = matrices(256, 256, 256)
    wanted = np.matmul(a, b)
    in_a_crowd(monkeypatch)
    monkeypatch.setattr(products, "_found", {})
    tried: list[Any] = []
    others_are_done = threading.Event()
    find_out = products._tried

    def seen(*kind: Any) -> Any:
        tried.append(kind)
        assert others_are_done.wait(30)
        return find_out(*kind)

    monkeypatch.setattr(products, "_tried", seen)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(product, np, a, b)
        waits_for(lambda: bool(tried))
        for got in [pool.submit(product, np, a, b) for _ in range(20)]:
            np.testing.assert_array_equal(got.result(30), wanted)
        assert not first.done()
        others_are_done.set()
        np.testing.assert_array_equal(first.result(30), wanted)
    product(np, a, b)
    assert len(tried) == 1


def test_a_kind_whose_trial_was_interrupted_is_tried_another_time(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = matrices(256, 256, 256)
    in_a_crowd(monkeypatch)
    monkeypatch.setattr(products, "_found", {})

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(products, "_tried", interrupted)
        with pytest.raises(KeyboardInterrupt):
            product(np, a, b)
    product(np, a, b)
    assert len(products._found) == 1


def test_who_comes_while_another_product_is_under_way_or_was_a_moment_ago_is_in_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "_AGAIN", 3600.0)
    monkeypatch.setattr(blas, "_crowded_until", [0.0])
    assert not blas.is_crowded()
    with blas.all_threads():
        assert blas.is_crowded()
    assert blas.is_crowded()


def keep_on(stop: threading.Event, a: Any, b: Any, wanted: Any) -> int:
    """Products until told to stop, each compared with what it has to be."""
    count = 0
    while not stop.is_set():
        np.testing.assert_array_equal(product(np, a, b), wanted)
        count += 1
    return count


def test_a_crowd_that_goes_on_settles_and_blas_gets_its_threads_back_when_it_is_over() -> None:
    before = blas_threads_now()
    stop = threading.Event()
    pairs = [matrices(160, 900 + i, 170) for i in range(4)]
    wanted = [np.matmul(a, b) for a, b in pairs]
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(keep_on, stop, a, b, value) for (a, b), value in zip(pairs, wanted, strict=True)]
        try:
            waits_for(lambda: blas.is_settled() and min(blas_threads_now()) == 1)
            a, b = matrices(257, 391, 263, np.float64)
            got = product(np, a, b)
            with blas.all_threads():
                np.testing.assert_array_equal(got, np.matmul(a, b))
            waits_for(blas.is_settled)
        finally:
            stop.set()
        assert min(done.result(30) for done in running) > 0
    waits_for(lambda: blas_threads_now() == before)
    assert not blas.is_settled()


def test_a_product_for_all_threads_unsettles_a_crowd_and_gets_them() -> None:
    before = blas_threads_now()
    stop = threading.Event()
    a, b = matrices(200, 300, 200)
    wanted = np.matmul(a, b)
    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(keep_on, stop, a, b, wanted) for _ in range(3)]
        try:
            for _ in range(3):
                waits_for(blas.is_settled)
                with blas.all_threads():
                    assert not blas.is_settled()
                    assert blas_threads_now() == before
        finally:
            stop.set()
        for done in running:
            done.result(30)


def test_one_thread_alone_never_settles_however_many_products_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_crowd(monkeypatch)
    a, b = matrices(200, 300, 200)
    end = time.monotonic() + 10 * blas._AGAIN
    while time.monotonic() < end:
        product(np, a, b)
        assert not blas.is_settled()


def test_ctrl_c_as_a_crowd_begins_to_be_watched_is_no_reason_not_to_watch_it_later(monkeypatch: pytest.MonkeyPatch) -> None:
    waits_for(lambda: not blas._watched[0])

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(blas._watcher, "submit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            blas.join_crowd()
    assert blas._watched == [False]
    blas.join_crowd()
    assert blas._watched == [True]
    waits_for(lambda: not blas._watched[0])


def test_blas_uses_one_thread_until_the_last_product_of_one_is_done() -> None:
    with blas.one_thread():
        assert min(blas_threads_now()) == 1
        with blas.one_thread():
            assert blas.products_under_way() == 2
        assert min(blas_threads_now()) == 1


def test_products_of_one_thread_and_of_all_take_turns() -> None:
    """How many threads BLAS uses is one number for the process: nobody may change it under another's product."""
    now = threading.Lock()
    kinds: set[bool] = set()
    counts: dict[bool, int] = {True: 0, False: 0}

    def turn(kind: bool) -> None:
        for _ in range(30):
            with blas.all_threads() if kind else blas.one_thread():
                with now:
                    counts[kind] += 1
                    kinds.add(kind)
                    assert len(kinds) == 1
                time.sleep(0.0005)
                with now:
                    counts[kind] -= 1
                    if not counts[kind]:
                        kinds.discard(kind)

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(turn, kind) for kind in (True, False) * 3]:
            done.result(60)


def test_nobody_waits_for_ever_while_others_come_and_go() -> None:
    """Those of the other kind that come later wait for who came before them."""
    stop = threading.Event()

    def all_the_time() -> None:
        while not stop.is_set():
            with blas.one_thread():
                time.sleep(0.001)

    def now_and_then() -> None:
        for _ in range(10):
            with blas.all_threads():
                time.sleep(0.001)

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(all_the_time) for _ in range(3)]
        try:
            waits_for(lambda: blas.products_under_way() > 1)
            pool.submit(now_and_then).result(30)
        finally:
            stop.set()
        for done in running:
            done.result(30)


def test_ctrl_c_while_waiting_for_others_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with blas.all_threads():
        monkeypatch.setattr(blas._changed, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt), blas.one_thread():
            raise AssertionError("it must wait")
        monkeypatch.undo()
        assert blas.products_under_way() == 1
    assert not any(blas._waiting)
    with blas.one_thread():
        assert blas.products_under_way() == 1


@pytest.mark.parametrize("kind", ["alone", "in a crowd"])
def test_what_a_product_raises_leaves_blas_as_it_was(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (alone if kind == "alone" else in_a_crowd)(monkeypatch)
    a, b = matrices(256, 256, 256)
    with pytest.raises(ValueError, match="Output"):
        product(np, a, b, np.empty((3, 3), np.float32))


def test_ctrl_c_in_a_product_of_minutes_is_heard_between_parts_whatever_was_known_of_the_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in one of 10^5 rows, whose parts take a tenth of a second each."""
    monkeypatch.setattr(products, "_LONG", 1 << 20)
    products.way_for.cache_clear()
    computed: list[int] = []

    def stopped(a: Any, _b: Any, _out: Any) -> None:
        computed.append(len(a))
        if len(computed) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(products, "_by_free_threads", stopped)
    x = gc.placeholder(gc.float32, [None, None], name="x")
    y = gc.placeholder(gc.float32, [None, None], name="y")
    session = gc.Session()
    try:
        with pytest.raises(KeyboardInterrupt):
            session.run(x @ y, {x: np.ones((512, 256), np.float32), y: np.ones((256, 128), np.float32)})
    finally:
        products.way_for.cache_clear()
    assert computed == [32] * 3


@pytest.mark.parametrize(("m", "n"), [(700, 90), (90, 700), (1, 9000)])
def test_a_product_in_long_parts_is_the_product(m: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_LONG", 1 << 20)
    products.way_for.cache_clear()
    a, b = matrices(m, 300, n)
    try:
        np.testing.assert_allclose(product(np, a, b), a @ b, rtol=1e-4, atol=1e-4)
    finally:
        products.way_for.cache_clear()


@pytest.mark.parametrize(
    ("x", "y"),
    [((6, 200, 150), (6, 150, 180)), ((6, 2, 100, 90), (6, 1, 90, 80)), ((1, 300, 200), (4, 200, 250)), ((5, 150, 130), (130, 140))],
)
def test_batches_of_products_are_numpys_to_the_last_bit(x: tuple[int, ...], y: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal(x).astype(np.float32), rng.standard_normal(y).astype(np.float32)
    alone(monkeypatch)
    np.testing.assert_array_equal(batch_product(np, a, b), a @ b)
    in_a_crowd(monkeypatch)
    np.testing.assert_array_equal(batch_product(np, a, b), a @ b)


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
