"""One session, several threads: no lost or mixed values, constant memory."""

from __future__ import annotations

import gc as collector
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import graphcore as gc


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads are switched as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(work, i) for i in range(count)]:
            done.result()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("engine", ["plan", "dataflow"])
@pytest.mark.parametrize("kind", ["ref", "resource", "rows", "optimizer"])
def test_eight_threads_that_update_a_variable_lose_nothing(kind: str, engine: str) -> None:
    w = gc.Variable(np.zeros(4, np.float32), name="w")
    init: object = w.initializer
    step: object
    read: object = w
    if kind == "ref":
        step = w.assign_add([1.0] * 4)
    elif kind == "rows":
        step = w.scatter_add([0, 1, 2, 3], [1.0] * 4)
    elif kind == "optimizer":
        step = gc.apply_op("ApplyGradientDescent", inputs=[w, -1.0, np.ones(4, np.float32)])
    else:
        handle = gc.ops.var_handle_op(dtype=gc.float32, shape=gc.Shape([4]), shared_name="v")
        init = gc.ops.assign_variable_op(handle, gc.constant(np.zeros(4, np.float32)))
        step = gc.ops.assign_add_variable_op(handle, gc.constant(np.ones(4, np.float32)))
        read = gc.ops.read_variable_op(handle, dtype=gc.float32)
    session = gc.Session(engine=engine)
    session.run(init)

    def work(_: int) -> None:
        for _ in range(50):
            session.run(step)

    in_threads(8, work)
    assert session.run(read).tolist() == [400.0] * 4


@pytest.mark.usefixtures("impatient")
def test_runs_of_several_threads_do_not_mix_even_while_the_graph_grows() -> None:
    x = gc.placeholder(gc.float32, [None], name="x")
    y = gc.tanh(gc.exp(x) * 2.0) + x
    session = gc.Session()
    graph = y.graph

    def work(i: int) -> None:
        value = np.full(5 + i, i / 10, np.float32)
        expected = np.tanh(np.exp(value) * 2) + value
        for turn in range(40):
            np.testing.assert_allclose(session.run(y, {x: value}), expected, rtol=1e-6)
            if i == 0 and turn % 10 == 0:
                with graph.as_default():
                    gc.constant(float(turn))

    in_threads(8, work)


@pytest.mark.slow
def test_eight_threads_with_large_products_get_the_results_of_one() -> None:
    x = gc.placeholder(gc.float32, [400, 700], name="x")
    y = gc.matmul(gc.matmul(x, x, transpose_b=True), x)
    filters = gc.constant(np.random.default_rng(2).standard_normal((3, 3, 40, 32)).astype(np.float32))
    z = gc.ops.conv2d(gc.reshape(x, [1, 70, 100, 40]), filters, strides=[1, 1, 1, 1], padding="SAME")
    session = gc.Session()
    values = [np.random.default_rng(i).standard_normal((400, 700)).astype(np.float32) for i in range(8)]
    one_by_one = [session.run([y, z], {x: value}) for value in values]
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(lambda value: session.run([y, z], {x: value}), values))
    for mine, theirs in zip(at_once, one_by_one, strict=True):
        # Rounding of sums of up to 700 products of float32, in any order.
        for got, wanted in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * float(np.abs(wanted).max()))


def test_threads_that_plan_the_same_run_at_once_agree() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    y = gc.exp(x)
    session = gc.Session()
    barrier = threading.Barrier(8)

    def work(_: int) -> None:
        barrier.wait()
        assert session.run(y, {x: [0.0, 0.0]}).tolist() == [1, 1]

    in_threads(8, work)
    assert len(session.planner.plans) == 1


def test_memory_stays_flat_over_many_runs() -> None:
    x = gc.placeholder(gc.float32, [None, 16], name="x")
    w = gc.Variable(np.zeros((16, 4), np.float32), name="w")
    loss = gc.reduce_mean(gc.square(x @ w))
    step = w.assign_sub(gc.gradients(loss, [w])[0] * 0.1)
    session = gc.Session()
    session.run(w.initializer)
    values = [np.ones((rows, 16), np.float32) for rows in range(1, 40)]

    def run(times: int) -> None:
        for i in range(times):
            session.run([step, loss], {x: values[i % 3]})

    run(200)
    for value in values:
        session.run(loss, {x: value})
    collector.collect()
    tracemalloc.start()
    run(200)
    before = tracemalloc.get_traced_memory()[0]
    run(3000)
    collector.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 20_000


class Updating:
    """A variable, or a slot of an optimizer, during an update by another thread."""

    def __init__(self, session: gc.Session, name: str) -> None:
        self.storage = next(storage for (_, key), storage in session.resources.variables.items() if key == name)

    def check_waits(self, work: Callable[[], object]) -> None:
        """Check that `work` ends after the update, and not before."""
        done = threading.Event()

        def call() -> None:
            work()
            done.set()

        with self.storage.lock:
            thread = threading.Thread(target=call)
            thread.start()
            assert not done.wait(0.2)
        thread.join(30)
        assert done.is_set()


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_a_value_given_while_an_update_is_under_way_is_not_lost_to_it(kind: str, engine: str) -> None:
    if kind == "ref":
        assign: gc.Node | gc.Tensor = gc.Variable(0.0, name="v").initializer
    else:
        assign = gc.ops.assign_variable_op(gc.ops.var_handle_op(dtype=gc.float32, shape=gc.Shape([]), shared_name="v"), gc.constant(0.0))
    session = gc.Session(engine=engine)
    session.run(assign)
    Updating(session, "v").check_waits(lambda: session.run(assign))


def test_forgetting_and_restoring_values_wait_for_updates_under_way(tmp_path: Path) -> None:
    v = gc.Variable(0.0, name="v")
    session = gc.Session()
    session.run(v.initializer)
    gc.save_variables(session, tmp_path / "v.npz")
    Updating(session, "v").check_waits(session.reset)
    Updating(session, "v").check_waits(lambda: gc.restore_variables(session, tmp_path / "v.npz"))


@pytest.mark.parametrize("name", ["w", "slot"])
def test_an_optimizer_waits_for_updates_of_the_variable_and_of_its_slots(name: str) -> None:
    w, slot = gc.Variable(np.zeros(2, np.float32), name="w"), gc.Variable(np.zeros(2, np.float32), name="slot")
    step = gc.apply_op("ApplyMomentum", inputs=[w, slot, 0.1, np.ones(2, np.float32), 0.9])
    session = gc.Session()
    session.run(gc.initialize_all_variables())
    Updating(session, name).check_waits(lambda: session.run(step))


def test_an_optimizer_whose_slot_is_its_variable_does_not_wait_for_itself() -> None:
    w = gc.Variable(np.zeros(2, np.float32), name="w")
    step = gc.apply_op("ApplyMomentum", inputs=[w, w, 0.1, np.ones(2, np.float32), 0.9])
    session = gc.Session()
    session.run(w.initializer)
    assert np.isfinite(session.run(step)).all()


def test_several_threads_may_be_in_a_session_at_once() -> None:
    x = gc.constant(2.0)
    session, barrier = gc.Session(), threading.Barrier(3)

    def leave_in_turn(turn: int) -> None:
        with session:
            barrier.wait(30)
            time.sleep(0.05 * turn)
            assert gc.get_default_session() is session
            assert x.eval() == 2.0
        assert gc.get_default_session() is None

    in_threads(3, leave_in_turn)
