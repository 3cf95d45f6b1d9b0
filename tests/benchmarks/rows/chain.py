"""`Session.run` of a chain of small ops: the overhead of a run."""

from __future__ import annotations

from collections.abc import Callable

from tests.benchmarks.work import Budget, Float, Row, Work, random_floats

X = random_floats(7, 4)


def ours(length: int) -> Work:
    """A chain of Tanh on four numbers, fed."""
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        x = y = gc.placeholder(gc.float32, [4], name="x")
        for _ in range(length):
            y = gc.ops.tanh(y)
    session = gc.Session(graph=graph)
    feeds = {x: X}
    return Work(run=lambda: session.run(y, feeds), outcome=lambda: [session.run(y, feeds)])


def numpy(length: int) -> Work:
    """The same calls on an array."""
    import numpy as np

    def run() -> Float:
        y = X
        for _ in range(length):
            y = np.tanh(y)
        return y

    return Work(run=run, outcome=lambda: [run()])


def tensorflow(length: int) -> Work:
    """The same in TensorFlow."""
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        x = y = tf.compat.v1.placeholder(tf.float32, [4], name="x")
        for _ in range(length):
            y = tf.raw_ops.Tanh(x=y)
    session = tf.compat.v1.Session(graph=graph)
    feeds = {x: X}
    return Work(run=lambda: session.run(y, feeds), outcome=lambda: [session.run(y, feeds)])


def of_length(make: Callable[[int], Work], length: int) -> Callable[[], Work]:
    """One variant for one length."""
    return lambda: make(length)


def row(order: float, length: int, budget: float) -> Row:
    """The row for one length."""
    return Row(
        order=order,
        title=f"Session.run of a chain of {length}",
        unit="us",
        budgets=(Budget(budget),),
        ours=of_length(ours, length),
        numpy=of_length(numpy, length),
        tensorflow=of_length(tensorflow, length),
    )


ONE, TEN, HUNDRED = row(5.0, 1, 6), row(5.1, 10, 12), row(5.2, 100, 60)
