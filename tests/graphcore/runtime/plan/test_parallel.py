"""Heavy independent nodes run concurrently, and only those, and only if it pays."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError
from graphcore.runtime.plan import parallel
from graphcore.runtime.plan.plan import Plan
from graphcore.support import thread_pool as pool
from tests.support.threads import LiveThreads

SIDE = 600


@pytest.fixture(autouse=True)
def graph(monkeypatch: pytest.MonkeyPatch) -> Iterator[gc.Graph]:
    monkeypatch.setattr(parallel, "core_count", lambda: 2)
    with gc.Graph().as_default() as graph:
        yield graph


def two_branches() -> tuple[gc.Tensor, gc.Tensor]:
    x = gc.placeholder(gc.float32, [SIDE, SIDE], name="x")
    left, right = gc.exp(x, name="left"), gc.tanh(x, name="right")
    return x, gc.add(gc.sqrt(left), right, name="sum")


def test_heavy_branches_run_concurrently_and_are_joined_at_their_common_consumer() -> None:
    x, y = two_branches()
    session = gc.Session()
    plan = session.plan(y, {x: None})
    assert plan.source.count("submit(") == 1
    assert plan.source.count(".result()") == 1
    assert sorted(node.name for node in plan.nodes) == ["Sqrt", "left", "right", "sum"]
    value = np.linspace(0, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    for _ in range(3):
        np.testing.assert_allclose(session.run(y, {x: value}), np.sqrt(np.exp(value)) + np.tanh(value), rtol=1e-5)


def test_light_nodes_and_chains_stay_in_one_thread() -> None:
    x = gc.placeholder(gc.float32, [4, 4], name="x")
    assert "submit" not in gc.Session().plan(gc.exp(x) + gc.tanh(x), {x: None}).source
    big = gc.placeholder(gc.float32, [SIDE, SIDE], name="big")
    assert "submit" not in gc.Session().plan(gc.exp(gc.tanh(big)), {big: None}).source
    unknown = gc.placeholder(gc.float32, None, name="unknown")
    assert "submit" not in gc.Session().plan(gc.exp(unknown) + gc.tanh(unknown), {unknown: None}).source


def test_a_session_may_ask_for_one_thread() -> None:
    x, y = two_branches()
    assert "submit" not in gc.Session(options=gc.SessionOptions(inter_op_threads=1)).plan(y, {x: None}).source


@pytest.mark.parametrize("blas_threads", ["1", "2"])
def test_matrix_products_never_run_concurrently_for_any_setting_of_blas(blas_threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """BLAS has its own threads, or was configured without."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", blas_threads)
    x = gc.placeholder(gc.float32, [SIDE, SIDE], name="x")
    batch = gc.reshape(x, [1, SIDE, SIDE])
    batches = gc.ops.batch_mat_mul_v2(batch, batch) + gc.ops.batch_mat_mul_v2(batch, batch * 2.0)
    y = (x @ x) + gc.matmul(x, x, transpose_a=True) + gc.reshape(batches, [SIDE, SIDE])
    session = gc.Session()
    assert "submit" not in session.plan(y, {x: None}).source
    value = np.random.default_rng(0).random((SIDE, SIDE), np.float32)
    np.testing.assert_allclose(session.run(y, {x: value}), 4 * (value @ value) + value.T @ value, rtol=1e-4)


def test_inputs_of_a_kernel_in_another_thread_are_not_overwritten_before_its_end() -> None:
    x = gc.placeholder(gc.float32, [SIDE, SIDE], name="x")
    shared = gc.square(x)
    slow = gc.exp(shared)
    other = gc.tanh(shared)
    y = gc.reduce_sum(gc.negative(shared) + gc.sqrt(other)) + gc.reduce_sum(slow)
    session = gc.Session()
    value = np.random.default_rng(0).random((SIDE, SIDE), np.float32)
    squared = value * value
    expected = (-squared + np.sqrt(np.tanh(squared))).sum() + np.exp(squared).sum()
    for _ in range(5):
        assert session.run(y, {x: value}) == pytest.approx(expected, rel=1e-3)


def test_updates_of_variables_keep_their_order() -> None:
    w = gc.Variable(np.zeros((SIDE, SIDE), np.float32), name="w")
    x = gc.placeholder(gc.float32, [SIDE, SIDE], name="x")
    first = w.assign(gc.exp(x))
    with gc.control_dependencies([first]):
        read = w.read_value()
        after = gc.reduce_sum(gc.tanh(read) + gc.sigmoid(x))
    with gc.control_dependencies([after]):
        last = w.assign(gc.zeros([SIDE, SIDE]))
    session = gc.Session()
    session.run(w.initializer)
    value = np.ones((SIDE, SIDE), np.float32)
    total, _ = session.run([after, last.node], {x: value})
    assert total == pytest.approx(SIDE * SIDE * (np.tanh(math.e) + 1 / (1 + np.exp(-1))), rel=1e-4)
    assert not session.run(w).any()


def test_an_error_in_another_thread_names_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = two_branches()
    session = gc.Session()
    plan = session.plan(y, {x: None})
    (handed,) = [operation for operation in plan.schedule.operations if operation.apart == "begin"]

    def fails(_: object) -> None:
        raise ValueError("no good")

    name = getattr(handed.kernel, "__name__", "")
    assert f"submit({name}, " in plan.source
    monkeypatch.setitem(plan.run.__globals__, name, fails)
    with pytest.raises(ValueError, match="no good") as caught:
        plan.run(np.zeros((SIDE, SIDE), np.float32))
    explained = plan.explain(caught.value)
    assert isinstance(explained, GraphError)
    assert explained.node == handed.node.name


def test_traces_show_every_node_once() -> None:
    x, y = two_branches()
    session = gc.Session()
    session.run(y, {x: np.ones((SIDE, SIDE), np.float32)}, options=gc.RunOptions(trace=True))
    assert session.trace is not None
    ended = [event.node for event in session.trace.events if event.kind == "end"]
    assert sorted(ended) == ["Sqrt", "left", "right", "sum"]
    plan = session.plan(y, {x: None})
    assert plan.peak_memory().bytes == session.trace.peak_bytes == 2 * SIDE * SIDE * 4


def test_a_trace_shows_thread_and_time_of_a_concurrent_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kernel waits for the other, so they can end only if they run concurrently."""
    x, y = two_branches()
    session = gc.Session()
    feeds = {x: np.ones((SIDE, SIDE), np.float32)}
    session.run(y, feeds)
    plan = next(iter(session.planner.plans.values())).program
    assert isinstance(plan, Plan)
    (handed,) = [operation for operation in plan.schedule.operations if operation.apart == "begin"]
    both = threading.Barrier(2)

    def meets(kernel: Callable[..., object]) -> Callable[..., object]:
        def run(*inputs: object) -> object:
            both.wait(10)
            return kernel(*inputs)

        return run

    for operation in plan.schedule.operations:
        if operation.node.name in ("left", "right") and operation.kernel is not None:
            monkeypatch.setattr(operation, "kernel", meets(operation.kernel))
    session.run(y, feeds, options=gc.RunOptions(trace=True))
    assert session.trace is not None
    times = {name: {event.kind: event for event in session.trace.events if event.node == name} for name in ("left", "right")}
    apart, here = times.pop(handed.node.name), next(iter(times.values()))
    assert {apart[kind].thread for kind in ("start", "end")} != {threading.get_ident()}
    assert apart["start"].thread == apart["end"].thread != apart["scheduled"].thread == threading.get_ident()
    assert {event.thread for event in here.values()} == {threading.get_ident()}
    assert apart["start"].ns < here["end"].ns
    assert here["start"].ns < apart["end"].ns
    tracks = {entry["name"]: entry["tid"] for entry in session.trace.chrome_trace()["traceEvents"] if entry["ph"] == "X"}
    assert tracks["left"] != tracks["right"]


def test_threads_go_when_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.05)
    some = pool.Pool(2)
    live = LiveThreads()
    assert [task.result() for task in [some.submit(divmod, i, 3) for i in range(20)]] == [divmod(i, 3) for i in range(20)]
    assert 1 <= len(live.new()) <= 2
    with pytest.raises(ZeroDivisionError):
        some.submit(divmod, 1, 0).result()
    live.check_all_ended()
    assert some.submit(divmod, 7, 3).result() == (2, 1)
