"""A while loop of five small ops with Switch and Merge: the overhead of an iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.benchmarks.work import Array, Budget, Row, Work, random_floats

TURNS = 2_000
X = random_floats(11, 4, 4)
SLOPE, OFFSET = np.float32(1.01), np.float32(0.5)


def ours() -> Work:
    """The nodes that TensorFlow 1 makes for such a loop."""
    import graphcore as gc

    graph = gc.Graph()

    def op(name: str, *inputs: Any, **attrs: Any) -> Any:
        return graph.apply_op(name, list(inputs), attrs)

    def enter(value: Any, constant: bool) -> Any:
        return op("Enter", value, frame_name="loop", is_constant=constant, parallel_iterations=10).outputs[0]

    with graph.as_default():
        x = gc.placeholder(gc.float32, [4, 4], name="x")
        turns, one, slope, offset = (enter(gc.constant(value), True) for value in (TURNS, 1, SLOPE, OFFSET))
        starts = [enter(value, False) for value in (gc.constant(0), x)]
        merges = [op("Merge", [value, value]) for value in starts]
        pivot = op("LoopCond", op("Less", merges[0].outputs[0], turns).outputs[0]).outputs[0]
        switches = [op("Switch", node.outputs[0], pivot) for node in merges]
        i, a = (op("Identity", node.outputs[1]).outputs[0] for node in switches)
        turned = [i + one, gc.ops.tanh(a * slope) + offset]
        for node, value in zip(merges, turned, strict=True):
            graph.update_edge(op("NextIteration", value), 0, node, 1)
        results = [op("Exit", node.outputs[0]).outputs[0] for node in switches]
    session = gc.Session(graph=graph)
    return Work(run=lambda: session.run(results, {x: X}), outcome=lambda: session.run(results, {x: X}))


def numpy() -> Work:
    """The same by hand."""

    def run() -> list[Array]:
        i, a = 0, X
        while i < TURNS:
            i += 1
            a = np.tanh(a * SLOPE) + OFFSET
        return [np.asarray(i, np.int32), a]

    return Work(run=run, outcome=run)


def tensorflow() -> Work:
    """The same in TensorFlow 1."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    tf1.disable_control_flow_v2()
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [4, 4], name="x")
        results = tf1.while_loop(lambda i, _: i < TURNS, lambda i, a: (i + 1, tf.tanh(a * SLOPE) + OFFSET), [0, x])
    session = tf1.Session(graph=graph)
    return Work(run=lambda: session.run(results, {x: X}), outcome=lambda: session.run(results, {x: X}))


ROW = Row(
    order=5.5,
    title="while loop of 5 ops, 2,000 iterations",
    unit="ms",
    budgets=(Budget(1.3, "tensorflow"),),
    ours=ours,
    numpy=numpy,
    tensorflow=tensorflow,
)
