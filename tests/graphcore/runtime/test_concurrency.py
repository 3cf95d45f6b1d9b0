"""One session, several threads: nothing is lost, nothing is mixed up, memory stays flat."""

from __future__ import annotations

import gc as collector
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphcore as gc


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads are switched as often as can be."""
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


def test_threads_that_plan_the_same_run_at_once_agree() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    y = gc.exp(x)
    session = gc.Session()
    barrier = threading.Barrier(8)

    def work(_: int) -> None:
        barrier.wait()
        assert session.run(y, {x: [0.0, 0.0]}).tolist() == [1, 1]

    in_threads(8, work)
    assert len(session._plans) == 1


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
