"""What sessions cost besides the arithmetic: the first run, tracing, threads, memory."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.rows.mix import NODES, A, M, X, our_graph, tensorflow_graph
from tests.benchmarks.work import Budget, Float, Row, Work, random_floats

DEEP = 100_000
KERNELS = 20
SIDE = 510  # a tanh of so many numbers squared takes some 100 us
THREADS, RUNS_A_THREAD = 8, 5
SMALL, WIDE, LARGE = 128, 256, 512
GAIN_TURNS = 5
TURNS = 12
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
    """A session, a chain of tanh on a large matrix, and what to feed."""
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        x = y = gc.placeholder(gc.float32, [SIDE, SIDE], name="x")
        for _ in range(KERNELS):
            y = gc.ops.tanh(y)
    return gc.Session(graph=graph), y, {x: random_floats(3, SIDE, SIDE)}


def traced() -> Work:
    """The chain, recorded."""
    import graphcore as gc

    session, y, feeds = tanh_session()
    options = gc.RunOptions(trace=True)
    return Work(run=lambda: session.run(y, feeds, options), outcome=lambda: [session.run(y, feeds, options)])


def tanh_by_hand() -> Work:
    """The same calls on an array, with nobody watching."""
    value = random_floats(3, SIDE, SIDE)

    def run() -> Float:
        y = value
        for _ in range(KERNELS):
            y = np.tanh(y)
        return y

    return Work(run=run, outcome=lambda: [run()])


def in_threads(work: Callable[[int], Float]) -> list[Float]:
    """What `work` gives in each of the threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS)))


def concurrent(product: bool = True) -> Work:
    """One session, run by eight threads at once; no result may be lost or mixed up.

    OpenBLAS serves one product of several threads at a time, and its threads spin while they wait for each other: by hand the same
    calls take from once to four times as long. So a figure takes several turns, and another row has the same without products, where
    nothing but sessions can stand in the way of threads.
    """
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [WIDE, WIDE], name="x")
        y = gc.reduce_sum(gc.tanh(gc.tanh(x @ x) @ x) if product else gc.tanh(gc.tanh(x * x) * x), 0)
    session = gc.Session(graph=graph)
    values = [random_floats(seed, WIDE, WIDE) for seed in range(THREADS)]

    def work(i: int) -> Float:
        results: list[Float] = [session.run(y, {x: values[i]}) for _ in range(RUNS_A_THREAD)]
        return results[-1]

    return Work(run=lambda: in_threads(work), fewest=TURNS, outcome=lambda: in_threads(work))


def concurrent_by_hand(product: bool = True) -> Work:
    """The same calls on arrays in as many threads."""
    values = [random_floats(seed, WIDE, WIDE) for seed in range(THREADS)]

    def work(i: int) -> Float:
        result = values[i]
        for _ in range(RUNS_A_THREAD):
            x = values[i]
            result = (np.tanh(np.tanh(x @ x) @ x) if product else np.tanh(np.tanh(x * x) * x)).sum(0)
        return result

    return Work(run=lambda: in_threads(work), fewest=TURNS, outcome=lambda: in_threads(work))


def one_core() -> AbstractContextManager[Any]:
    """Within the block BLAS has one thread."""
    from threadpoolctl import threadpool_limits  # where TensorFlow is measured there is none

    limit: AbstractContextManager[Any] = threadpool_limits(1, user_api="blas")
    return limit


def gain(work: Callable[[int], Float], runs: int, within: Callable[[], AbstractContextManager[Any]] = nullcontext) -> Work:
    """How long each thread's runs take at once, in times of how long they take one after another, `within` which block."""

    def several(i: int) -> Float:
        results = [work(i) for _ in range(runs)]
        return results[-1]

    def figure() -> float:
        taken: list[float] = []
        for _ in range(GAIN_TURNS):
            with within():
                begun = time.perf_counter()
                for i in range(THREADS):
                    several(i)
                between = time.perf_counter()
            after = time.perf_counter()
            in_threads(several)
            taken.append((time.perf_counter() - after) / (between - begun))
        return statistics.median(taken)

    return Work(figure=figure, outcome=lambda: in_threads(work))


def our_gain(size: int, runs: int, product: bool = True, within: Callable[[], AbstractContextManager[Any]] = nullcontext) -> Work:
    """Runs of one session with two products each."""
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [size, size], name="x")
        y = gc.reduce_sum(gc.tanh(gc.tanh(x @ x) @ x) if product else gc.tanh(gc.tanh(x * x) * x), 0)
    session = gc.Session(graph=graph)
    values = [random_floats(seed, size, size) for seed in range(THREADS)]
    return gain(lambda i: session.run(y, {x: values[i]}), runs, within)


def tensorflow_gain(size: int, runs: int, product: bool = True) -> Work:
    """The same in TensorFlow."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [size, size], name="x")
        y = tf.reduce_sum(tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, x)), x)) if product else tf.tanh(tf.tanh(x * x) * x), 0)
    session = tf1.Session(graph=graph)
    values = [random_floats(seed, size, size) for seed in range(THREADS)]
    return gain(lambda i: session.run(y, {x: values[i]}), runs)


def numpy_gain(size: int, runs: int, product: bool = True, within: Callable[[], AbstractContextManager[Any]] = nullcontext) -> Work:
    """The same calls on arrays."""
    values = [random_floats(seed, size, size) for seed in range(THREADS)]

    def work(i: int) -> Float:
        x = values[i]
        result: Float = (np.tanh(np.tanh(x @ x) @ x) if product else np.tanh(np.tanh(x * x) * x)).sum(0)
        return result

    return gain(work, runs, within)


def gain_row(order: float, size: int, runs: int = 1, product: bool = True) -> Row:
    """All threads' runs at once beside the same runs one after another; no more may be lost than one gains."""
    what = f"{'products of' if product else 'no products,'} {size}x{size}"
    return Row(
        order=order,
        title=f"{THREADS} threads at once, in times of one after another, {what if runs == 1 else f'{runs} runs each, {what}'}",
        unit="x",
        budgets=(Budget(1.0),),
        ours=lambda: our_gain(size, runs, product),
        numpy=lambda: numpy_gain(size, runs, product),
        tensorflow=lambda: tensorflow_gain(size, runs, product),
    )


def parallel_row(order: float, size: int, runs: int = 1) -> Row:
    """The same beside what one core does: where there are more, threads at once are to gain from them whatever BLAS does by itself."""
    return Row(
        order=order,
        title=f"{THREADS} threads at once, in times of one after another on one core, {f'{runs} runs' if runs > 1 else 'one run'} each, products of {size}x{size}",
        unit="x",
        budgets=(Budget(1.0),),
        ours=lambda: our_gain(size, runs, within=one_core),
        numpy=lambda: numpy_gain(size, runs, within=one_core),
    )


def resident_bytes() -> int:
    """What the process has in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grown_by(run: Callable[[], object]) -> Work:
    """How many bytes the process grows by in many runs."""

    def figure() -> float:
        for _ in range(2_000):
            run()
        before = resident_bytes()
        for _ in range(MANY_RUNS):
            run()
        return float(max(os.sysconf("SC_PAGE_SIZE"), resident_bytes() - before))  # a page is nothing, but one can divide by it

    return Work(figure=figure)


def our_many_runs() -> Work:
    """A small step: fed, fetched, with a variable updated."""
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
CONCURRENT = Row(
    order=6.4,
    title=f"{THREADS} threads run one session at once",
    unit="ms",
    budgets=(Budget(1.2, "numpy"),),
    ours=concurrent,
    numpy=concurrent_by_hand,
)
CONCURRENT_LIGHT = Row(
    order=6.45,
    title=f"{THREADS} threads run one session at once, no products",
    unit="ms",
    budgets=(Budget(1.2, "numpy"),),
    ours=lambda: concurrent(product=False),
    numpy=lambda: concurrent_by_hand(product=False),
)
GAIN = gain_row(6.47, LARGE)
GAIN_LONG = gain_row(6.475, LARGE, 15)
GAIN_MIDDLING = gain_row(6.48, WIDE, 100)
GAIN_SMALL = gain_row(6.485, SMALL, 400)
GAIN_LIGHT = gain_row(6.49, SMALL, 1000, product=False)
PARALLEL = parallel_row(6.491, LARGE)
PARALLEL_LONG = parallel_row(6.492, LARGE, 15)
PARALLEL_MIDDLING = parallel_row(6.493, WIDE, 100)
PARALLEL_SMALL = parallel_row(6.494, SMALL, 400)
FLAT = Row(
    order=6.5,
    title=f"memory grown in {MANY_RUNS:,} runs",
    unit="KB",
    budgets=(Budget(512),),
    ours=our_many_runs,
    numpy=many_runs_by_hand,
    most_rounds=2,
)
