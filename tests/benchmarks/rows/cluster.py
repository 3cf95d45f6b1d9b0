"""A training step over two Dask workers, beside the same by hand with Dask's futures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tests.benchmarks.work import Array, Budget, Row, Work, random_floats

PAIRS: Final = 15
RATE: Final = np.float32(1e-6)  # so small that many steps stay finite
HALVES: Final = [(random_floats(seed, 128, 784), random_floats(seed + 2, 128, 10)) for seed in (1, 2)]
START: Final[list[Array]] = [random_floats(5, 784, 512, scale=0.05), random_floats(6, 512, 10, scale=0.05)]


def cluster_step(cluster: Any) -> tuple[Any, Any, dict[Any, Array], list[Any]]:
    """A session, a training step on two workers, its feeds, and the variables on the first."""
    import graphcore as gc

    with gc.Graph().as_default():
        with gc.device("/job:worker/task:0"):
            weights = [gc.Variable(gc.constant(value)) for value in START]
        feeds: dict[Any, Array] = {}
        gradients = []
        for task, (pixels, answers) in enumerate(HALVES):
            with gc.device(f"/job:worker/task:{task}"):
                x, t = (gc.placeholder(gc.float32, value.shape) for value in (pixels, answers))
                first, last = (gc.identity(variable) for variable in weights)
                h = gc.tanh(x @ first)
                error = (h @ last - t) / 128.0
                back = gc.matmul(error, last, transpose_b=True) * (1.0 - h * h)
                gradients.append([gc.matmul(x, back, transpose_a=True), gc.matmul(h, error, transpose_a=True)])
                feeds |= {x: pixels, t: answers}
        with gc.device("/job:worker/task:0"):
            train = gc.group(*[w.assign_sub((a + b) * RATE) for w, a, b in zip(weights, *gradients, strict=True)])
        session = gc.Session(cluster=cluster)
        session.run(gc.initialize_all_variables())
        return session, train, feeds, weights


def gradient(weights: Sequence[Array], pixels: Array, answers: Array) -> list[Array]:
    """The gradient on one half of the batch."""
    h = np.tanh(pixels @ weights[0])
    error = (h @ weights[1] - answers) / np.float32(128)
    return [pixels.T @ ((error @ weights[1].T) * (1 - h * h)), h.T @ error]


def updated(weights: Sequence[Array], first: Sequence[Array], second: Sequence[Array]) -> list[Array]:
    """The variables after a step."""
    return [w - (a + b) * RATE for w, a, b in zip(weights, first, second, strict=True)]


def step_by_hand(cluster: Any) -> Callable[[], Any]:
    """A function that makes the same step with futures: the variables stay on the first worker."""
    client, places = cluster.client, [place.address for place in cluster.places()]
    state = client.submit(list, START, workers=places[:1], pure=False)

    def step() -> Any:
        nonlocal state
        parts = [client.submit(gradient, state, *half, workers=[place], pure=False) for half, place in zip(HALVES, places, strict=True)]
        state = client.submit(updated, state, *parts, workers=places[:1], pure=False)
        state.exception()  # waits, without the value
        return state

    return step


def beside_futures() -> Work:
    """The ratio of the times."""
    import graphcore as gc

    cluster = gc.LocalCluster(workers=2)
    session, train, feeds, weights = cluster_step(cluster)
    by_hand = step_by_hand(cluster)
    session.run(train, feeds)
    for ours, theirs in zip(session.run(weights), by_hand().result(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)

    def seconds(step: Callable[[], Any]) -> float:
        begun = time.perf_counter()
        step()
        return time.perf_counter() - begun

    def figure() -> float:
        pairs = [(seconds(lambda: session.run(train, feeds)), seconds(by_hand)) for _ in range(PAIRS)]
        return statistics.median([ours for ours, _ in pairs]) / statistics.median([theirs for _, theirs in pairs])

    return Work(figure=figure)


def bytes_moved() -> Work:
    """The bytes between the workers, as a multiple of those of variables and gradients."""
    import graphcore as gc

    cluster = gc.LocalCluster(workers=2, processes=False)
    session, train, feeds, _ = cluster_step(cluster)

    def figure() -> float:
        metadata = gc.RunMetadata()
        session.run(train, feeds, gc.RunOptions(trace=True), metadata)
        assert metadata.trace is not None
        moved: int = sum([event.bytes for event in metadata.trace.events if event.kind == "received"])
        return moved / (2 * sum(value.nbytes for value in START))

    return Work(figure=figure)


STEP = Row(order=13.5, title="step over 2 Dask workers / futures by hand", unit="x", budgets=(Budget(1.1),), ours=beside_futures)
MOVED = Row(order=13.6, title="bytes between 2 workers / least possible", unit="x", budgets=(Budget(1.0),), ours=bytes_moved)
