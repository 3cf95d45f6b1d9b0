"""The overhead of sessions: the first run, tracing, memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.rows.mix import NODES, A, M, X, our_graph, tensorflow_graph
from tests.benchmarks.work import Budget, Float, Row, Work, random_floats

DEEP = 100_000
KERNELS = 20
SIDE = 510  # a tanh of so many numbers squared takes some 100 us
MANY_RUNS = 100_000


def our_first_run(nodes: int) -> Work:
    """A new session on a new graph, up to the first result."""
    import graphcore as gc

    def prepare() -> tuple[Any, Any, list[Any]]:
        return our_graph(nodes)

    def run(built: tuple[Any, Any, list[Any]]) -> Float:
        graph, y, xs = built
        value: Float = gc.Session(graph=graph).run(y, dict(zip(xs, (X, A, M), strict=True)))
        return value

    return Work(run=run, prepare=prepare, fewest=1, outcome=lambda: [run(prepare())] if nodes <= NODES else [])


def tensorflow_first_run(nodes: int) -> Work:
    """The same in TensorFlow."""
    import tensorflow as tf

    def prepare() -> tuple[Any, Any, list[Any]]:
        return tensorflow_graph(nodes)

    def run(built: tuple[Any, Any, list[Any]]) -> Float:
        graph, y, xs = built
        value: Float = tf.compat.v1.Session(graph=graph).run(y, dict(zip(xs, (X, A, M), strict=True)))
        return value

    return Work(run=run, prepare=prepare, fewest=1, outcome=lambda: [run(prepare())] if nodes <= NODES else [])


def tanh_session() -> tuple[Any, Any, dict[Any, Float]]:
    """A session, a chain of tanh on a large matrix, and feeds."""
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        x = y = gc.placeholder(gc.float32, [SIDE, SIDE], name="x")
        for _ in range(KERNELS):
            y = gc.ops.tanh(y)
    return gc.Session(graph=graph), y, {x: random_floats(3, SIDE, SIDE)}


def traced() -> Work:
    """The chain with tracing."""
    import graphcore as gc

    session, y, feeds = tanh_session()
    options = gc.RunOptions(trace=True)
    return Work(run=lambda: session.run(y, feeds, options), outcome=lambda: [session.run(y, feeds, options)])


def tanh_by_hand() -> Work:
    """The same calls on an array, without tracing."""
    value = random_floats(3, SIDE, SIDE)

    def run() -> Float:
        y = value
        for _ in range(KERNELS):
            y = np.tanh(y)
        return y

    return Work(run=run, outcome=lambda: [run()])


def resident_bytes() -> int:
    """The resident bytes of the process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grown_by(run: Callable[[], object]) -> Work:
    """The growth of the process in bytes over many runs."""

    def figure() -> float:
        for _ in range(2_000):
            run()
        before = resident_bytes()
        for _ in range(MANY_RUNS):
            run()
        return float(max(os.sysconf("SC_PAGE_SIZE"), resident_bytes() - before))  # at least a page, since the result is a divisor

    return Work(figure=figure)


def our_many_runs() -> Work:
    """A small step: feeds, fetches, and a variable update."""
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None], name="x")
        w = gc.Variable(np.zeros(4, np.float32), name="w")
        step = w.assign_add(gc.tanh(x))
    session = gc.Session(graph=graph)
    session.run(w.initializer)
    feeds = {x: random_floats(1, 4)}
    return grown_by(lambda: session.run(step, feeds))


def many_runs_by_hand() -> Work:
    """The same on arrays."""
    x = random_floats(1, 4)
    state = {"w": np.zeros(4, np.float32)}

    def run() -> None:
        state["w"] = state["w"] + np.tanh(x)

    return grown_by(run)


FIRST = Row(
    order=6.1,
    title="first run of a new session, the mix of 1,000 nodes",
    unit="ms",
    budgets=(Budget(40),),
    ours=lambda: our_first_run(NODES),
    tensorflow=lambda: tensorflow_first_run(NODES),
)
FIRST_DEEP = Row(
    order=6.2,
    title="first run of a new session, a mix of 100,000 nodes",
    unit="s",
    budgets=(Budget(8),),
    ours=lambda: our_first_run(DEEP),
    tensorflow=lambda: tensorflow_first_run(DEEP),
    most_rounds=1,
)
TRACED = Row(
    order=6.3,
    title=f"{KERNELS} kernels of 100 us, recorded",
    unit="ms",
    budgets=(Budget(1.1, "numpy"),),
    ours=traced,
    numpy=tanh_by_hand,
)
FLAT = Row(
    order=6.5,
    title=f"memory grown in {MANY_RUNS:,} runs",
    unit="KB",
    budgets=(Budget(512),),
    ours=our_many_runs,
    numpy=many_runs_by_hand,
    most_rounds=2,
)
