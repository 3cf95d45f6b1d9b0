"""`gc.while_loop` and its gradient: the cost of an iteration, and linear growth with iterations."""

from __future__ import annotations

import numpy as np

from tests.benchmarks.work import Array, Budget, Row, Work, random_floats

TURNS = 1_000
X = random_floats(12, 4, 4)


def ours() -> Work:
    """A While that keeps the values for its gradient, and the gradient."""
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [4, 4], name="x")
        _, y = gc.while_loop(lambda i, _: i < TURNS, lambda i, a: (i + 1, gc.tanh(a * x) + x), (0, x))
        results = [y, *gc.gradients(y, x)]
    session = gc.Session(graph=graph)
    return Work(run=lambda: session.run(results, {x: X}), outcome=lambda: session.run(results, {x: X}))


def numpy() -> Work:
    """The same by hand."""

    def run() -> list[Array]:
        i, a = 0, X
        kept = []
        while i < TURNS:
            i += 1
            t = np.tanh(a * X)
            kept.append((a, t))
            a = t + X
        da, dx = np.ones_like(a), np.zeros_like(a)
        while kept:
            before, t = kept.pop()
            inner = da * (1 - t * t)
            dx = dx + da + inner * before
            da = inner * X
        return [a, da + dx]

    return Work(run=run, outcome=run)


def tensorflow() -> Work:
    """The same in TensorFlow's while_v2."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    tf1.enable_control_flow_v2()
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [4, 4], name="x")
        _, y = tf1.while_loop(lambda i, _: i < TURNS, lambda i, a: (i + 1, tf.tanh(a * x) + x), [0, x])
        results = [y, *tf1.gradients(y, x)]
    session = tf1.Session(graph=graph)
    return Work(run=lambda: session.run(results, {x: X}), outcome=lambda: session.run(results, {x: X}))


ROW = Row(
    order=5.6,
    title="while_loop and its gradient, 1,000 rounds",
    unit="ms",
    budgets=(Budget(1.3, "tensorflow"),),
    ours=ours,
    numpy=numpy,
    tensorflow=tensorflow,
)
"""A while loop and its gradient: what a round costs there and back."""
