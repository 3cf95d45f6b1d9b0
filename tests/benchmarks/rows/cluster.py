"""A training step over two Dask workers, beside one process, and by hand with Dask's futures."""

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
WHOLE: Final = [tuple([np.concatenate(parts) for parts in zip(*HALVES, strict=True)])]
START: Final[list[Array]] = [random_floats(5, 784, 512, scale=0.05), random_floats(6, 512, 10, scale=0.05)]
WORKERS: Final = ["/job:worker/task:0", "/job:worker/task:1"]


class Training:
    """A session that trains on batches in several places, with the variables in the first.

    Args:
        batches: pixels and answers for each place.
        places: the device of each batch.
        given: arguments for the session.
    """

    def __init__(self, batches: Sequence[Sequence[Array]], places: Sequence[str], **given: Any) -> None:
        import graphcore as gc

        with gc.Graph().as_default():
            with gc.device(places[0]):
                self.weights = [gc.Variable(gc.constant(value)) for value in START]
            self.feeds: dict[Any, Array] = {}
            gradients = []
            for place, (pixels, answers) in zip(places, batches, strict=True):
                with gc.device(place):
                    x, t = (gc.placeholder(gc.float32, value.shape) for value in (pixels, answers))
                    first, last = (gc.identity(variable) for variable in self.weights)
                    h = gc.tanh(x @ first)
                    error = (h @ last - t) / 128.0
                    back = gc.matmul(error, last, transpose_b=True) * (1.0 - h * h)
                    gradients.append([gc.matmul(x, back, transpose_a=True), gc.matmul(h, error, transpose_a=True)])
                    self.feeds |= {x: pixels, t: answers}
            with gc.device(places[0]):
                sums = [gc.add_n(list(each)) for each in zip(*gradients, strict=True)]
                self.train = gc.group(*[w.assign_sub(total * RATE) for w, total in zip(self.weights, sums, strict=True)])
            self.session = gc.Session(**given)
            self.session.run(gc.initialize_all_variables())

    def step(self) -> None:
        """Run a step."""
        self.session.run(self.train, self.feeds)

    def values(self) -> list[Array]:
        """The values of the variables."""
        found: list[Array] = self.session.run(self.weights)
        return found


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


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any]) -> float:
    """The ratio of the median times of two steps that take turns."""
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(PAIRS)]
    return statistics.median([mine for mine, _ in pairs]) / statistics.median([other for _, other in pairs])


def _seconds(step: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    step()
    return time.perf_counter() - begun


def beside_futures() -> Work:
    """The time of a step on the cluster as a multiple of that by hand."""
    import graphcore as gc

    cluster = gc.LocalCluster(workers=2)
    spread, by_hand = Training(HALVES, WORKERS, cluster=cluster), step_by_hand(cluster)
    spread.step()
    _compare(spread.values(), by_hand().result())
    return Work(figure=lambda: ratio(spread.step, by_hand))


def beside_one_process() -> Work:
    """The time of a step on the cluster as a multiple of that in this process."""
    import graphcore as gc

    spread, one = Training(HALVES, WORKERS, cluster=gc.LocalCluster(workers=2)), Training(WHOLE, [""])
    spread.step()
    one.step()
    _compare(spread.values(), one.values())
    return Work(figure=lambda: ratio(spread.step, one.step))


def _compare(ours: Sequence[Array], theirs: Sequence[Array]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


_written = [0]


def count_bytes() -> None:
    """Begin to count the bytes that this process writes to others."""
    from distributed.comm.tcp import TCP

    write: Any = TCP.write

    async def counted(self: TCP, *given: Any, **named: Any) -> int:
        number: int = await write(self, *given, **named)
        _written[0] += number
        return number

    TCP.write = counted  # type: ignore[method-assign]  # workers of the benchmark only


def counted_bytes() -> int:
    """The bytes since `count_bytes`."""
    return _written[0]


def bytes_moved() -> Work:
    """The bytes that both workers write in a step, as a multiple of those of variables and gradients."""
    import graphcore as gc

    cluster = gc.LocalCluster(workers=2)
    spread = Training(HALVES, WORKERS, cluster=cluster)
    cluster.client.run(count_bytes)
    spread.step()

    def figure() -> float:
        before = sum(cluster.client.run(counted_bytes).values())
        for _ in range(PAIRS):
            spread.step()
        moved: int = sum(cluster.client.run(counted_bytes).values()) - before
        return moved / PAIRS / (2 * sum(value.nbytes for value in START))

    return Work(figure=figure)


STEP = Row(order=13.5, title="step over 2 Dask workers / futures by hand", unit="x", budgets=(Budget(1.1),), ours=beside_futures)
# One process has the cores of both workers, and moves nothing: every step here moves all variables and gradients.
ALONE = Row(order=13.55, title="step over 2 Dask workers / one process", unit="x", budgets=(Budget(8),), ours=beside_one_process)
# The rest are the requests, their answers, and the signs of life for Dask.
MOVED = Row(order=13.6, title="bytes between 2 workers / least possible", unit="x", budgets=(Budget(1.01),), ours=bytes_moved)
