"""Runs that record the values of every tensor, beside runs that record nothing."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from tests.benchmarks.rows.images import MOBILENET, lenet_graph, picture, pictures, weights
from tests.benchmarks.rows.perceptron import our_training
from tests.benchmarks.work import Budget, Row, Work

PAIRS: Final = 15


def perceptron() -> Work:
    """The ratio for a training step of the perceptron."""
    session, init, step, _, feeds = our_training()
    session.run(init)
    return _ratio(session, step, feeds)


def lenet() -> Work:
    """The ratio for LeNet with its gradient."""
    import graphcore as gc

    graph, x, parameters, fetches = lenet_graph(gradient=True)
    return _ratio(gc.Session(graph=graph), fetches, dict(zip([x, *parameters], [pictures(), *weights()], strict=True)))


def mobilenet() -> Work:
    """The ratio for MobileNetV2 from its file."""
    import graphcore as gc

    return _ratio(gc.Session(graph=gc.load(MOBILENET.with_suffix(".pb"))), "Identity:0", {"x:0": picture()})


def _ratio(session: Any, fetches: Any, feeds: Any) -> Work:
    import graphcore as gc

    options = gc.RunOptions(values=True)

    def seconds(run: Callable[[], Any]) -> float:
        begun = time.perf_counter()
        run()
        return time.perf_counter() - begun

    def figure() -> float:
        pairs = [
            (seconds(lambda: session.run(fetches, feeds, options)), seconds(lambda: session.run(fetches, feeds))) for _ in range(PAIRS)
        ]
        return statistics.median([recorded for recorded, _ in pairs]) / statistics.median([plain for _, plain in pairs])

    return Work(figure=figure)


PERCEPTRON = Row(order=8.2, title="perceptron step, values recorded / not recorded", unit="x", budgets=(Budget(1.5),), ours=perceptron)
LENET = Row(order=8.3, title="LeNet gradient, values recorded / not recorded", unit="x", budgets=(Budget(1.5),), ours=lenet)
MOBILENET_VALUES = Row(order=8.4, title="MobileNetV2, values recorded / not recorded", unit="x", budgets=(Budget(1.5),), ours=mobilenet)
