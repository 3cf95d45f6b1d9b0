"""The relative error of predicted times of nodes, as a median over nodes and runs.

The recorded runs are on a real CPU. Rows without TensorFlow: the wall clock is what the predictions are compared with.
"""

from __future__ import annotations

import statistics
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.benchmarks.rows.images import lenet_graph, pictures, weights
from tests.benchmarks.work import Budget, Float, Row, Work, random_floats

if TYPE_CHECKING:
    import graphcore as gc

BATCH = 100
SIZES = (64, 128, 10)
WARM_UP = 5
RUNS = 7


def digits_perceptron() -> tuple[gc.Graph, Any, Any, dict[Any, Float]]:
    """A training step of a perceptron for 8 x 8 pictures: graph, initializer, step and feeds."""
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [BATCH, SIZES[0]], name="x")
        labels = gc.placeholder(gc.float32, [BATCH, SIZES[-1]], name="labels")
        w1, w2 = (gc.Variable(random_floats(80 + i, *SIZES[i : i + 2], scale=0.1)) for i in range(2))
        b1, b2 = (gc.Variable(np.zeros(size, np.float32)) for size in SIZES[1:])
        y = gc.softmax(gc.relu(x @ w1 + b1) @ w2 + b2)
        loss = -gc.reduce_mean(gc.reduce_sum(labels * gc.log(y), 1))
        variables = [w1, b1, w2, b2]
        step = gc.group(*(v.assign_sub(0.1 * g) for v, g in zip(variables, gc.gradients(loss, variables), strict=True)))
        init = gc.initialize_all_variables()
    answers = np.eye(SIZES[-1], dtype=np.float32)[np.arange(BATCH) % SIZES[-1]]
    return graph, init, step, {x: random_floats(90, BATCH, SIZES[0]), labels: answers}


def lenet() -> tuple[gc.Graph, Any, Any, dict[Any, Float]]:
    """The gradient of LeNet: graph, no initializer, fetches and feeds."""
    graph, x, parameters, fetches = lenet_graph(gradient=True)
    return graph, [], fetches, dict(zip([x, *parameters], [pictures(), *weights()], strict=True))


def error(title: str, model: tuple[gc.Graph, Any, Any, dict[Any, Float]], *, measured: bool) -> Work:
    """The median error of the cost model, as it is, or with the measured times of the run before."""
    import graphcore as gc

    graph, init, fetches, feeds = model
    cpu = gc.Device("/cpu:0")
    session = gc.Session(graph, [cpu])
    session.run(init)

    def trace() -> gc.Trace:
        session.run(fetches, feeds, gc.RunOptions(trace=True))
        found = session.trace
        assert found is not None
        return found

    def figure() -> float:
        for _ in range(WARM_UP):
            trace()
        before = trace()
        errors = []
        for _ in range(RUNS):
            now = trace()
            ran = now.node_seconds()
            devices = {node: cpu for node in graph.nodes if node.name in ran}
            times = before.node_seconds() if measured else None
            errors.append(gc.prediction_error(gc.predict_step(devices, gc.CostModel(times, now.node_runs())), now))
            before = now
        best = sorted(errors, key=lambda found: found.median)[RUNS // 2]
        sys.stderr.write(f"{title}: {best}\n")
        return statistics.median([found.median for found in errors])

    return Work(figure=figure)


def row(order: float, title: str, model: Any, limit: float, *, measured: bool) -> Row:
    """A row for a model."""
    return Row(order=order, title=title, unit="x", budgets=(Budget(limit),), ours=lambda: error(title, model(), measured=measured))


DIGITS = row(5.41, "error of predicted node times, digits perceptron, cost model", digits_perceptron, 1.0, measured=False)
DIGITS_MEASURED = row(5.42, "error of predicted node times, digits perceptron, measured", digits_perceptron, 0.5, measured=True)
LENET = row(5.43, "error of predicted node times, LeNet gradient, cost model", lenet, 1.0, measured=False)
LENET_MEASURED = row(5.44, "error of predicted node times, LeNet gradient, measured", lenet, 0.5, measured=True)
