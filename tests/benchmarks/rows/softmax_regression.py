"""One training step of softmax regression: forward, loss, gradients, update.

All three use the same formulas; the NumPy step is the chain rule through softmax, logarithm and mean as written by hand, without the
shortcut `y - t` that an optimiser would have to find.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.benchmarks.work import Budget, Float, Row, Work, random_floats

CLASSES = 10
RATE = 0.01  # small enough that thousands of timed steps neither overflow nor saturate
STEPS = 20


def batch(inputs: int, size: int) -> tuple[Float, Float]:
    """Inputs in [0, 1) and one-hot labels."""
    labels = np.random.default_rng(11).integers(0, CLASSES, size)
    return random_floats(10, size, inputs), np.eye(CLASSES, dtype=np.float32)[labels]


def ours(inputs: int, size: int) -> Work:
    """The step in a session."""
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None, inputs], name="x")
        t = gc.placeholder(gc.float32, [None, CLASSES], name="t")
        w = gc.Variable(np.zeros((inputs, CLASSES), np.float32), name="w")
        b = gc.Variable(np.zeros(CLASSES, np.float32), name="b")
        y = gc.softmax(x @ w + b)
        loss = -gc.reduce_mean(gc.reduce_sum(t * gc.log(y), 1), 0)
        slopes = gc.gradients(loss, [w, b])
        step = gc.group(*(v.assign_sub(RATE * g) for v, g in zip((w, b), slopes, strict=True) if g is not None))
        init = gc.initialize_all_variables()
    session = gc.Session(graph=graph)
    session.run(init)
    return training(session, init, step, [w, b], dict(zip((x, t), batch(inputs, size), strict=True)))


def tensorflow(inputs: int, size: int) -> Work:
    """The same in TensorFlow."""
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, inputs], name="x")
        t = tf.compat.v1.placeholder(tf.float32, [None, CLASSES], name="t")
        w = tf.compat.v1.Variable(np.zeros((inputs, CLASSES), np.float32), name="w", use_resource=False)
        b = tf.compat.v1.Variable(np.zeros(CLASSES, np.float32), name="b", use_resource=False)
        y = tf.nn.softmax(tf.matmul(x, w) + b)
        loss = -tf.reduce_mean(tf.reduce_sum(t * tf.math.log(y), 1), 0)
        gw, gb = tf.gradients(loss, [w, b])
        step = tf.group(w.assign_sub(RATE * gw), b.assign_sub(RATE * gb))
        init = tf.compat.v1.global_variables_initializer()
    session = tf.compat.v1.Session(graph=graph)
    session.run(init)
    return training(session, init, step, [w, b], dict(zip((x, t), batch(inputs, size), strict=True)))


def training(session: Any, init: Any, step: Any, variables: list[Any], feeds: dict[Any, Float]) -> Work:
    """The work of a training session; its outcome is the variables after some steps from the start."""

    def outcome() -> list[Float]:
        session.run(init)
        for _ in range(STEPS):
            session.run(step, feeds)
        values: list[Float] = session.run(variables)
        return values

    return Work(run=lambda: session.run(step, feeds), outcome=outcome)


def numpy(inputs: int, size: int) -> Work:
    """The same by hand."""
    x, t = batch(inputs, size)
    w, b = np.zeros((inputs, CLASSES), np.float32), np.zeros(CLASSES, np.float32)
    rate, share = np.float32(RATE), np.float32(-1 / size)

    def step() -> None:
        nonlocal w, b
        z = x @ w + b
        e = np.exp(z - z.max(axis=1, keepdims=True))
        y = e / e.sum(axis=1, keepdims=True)
        dy = t * share / y
        dz = (dy - (dy * y).sum(axis=1, keepdims=True)) * y
        w = w - rate * (x.T @ dz)
        b = b - rate * dz.sum(axis=0)

    def outcome() -> list[Float]:
        nonlocal w, b
        w, b = np.zeros_like(w), np.zeros_like(b)
        for _ in range(STEPS):
            step()
        return [w, b]

    return Work(run=step, outcome=outcome)


MNIST = Row(
    order=7.0,
    title="softmax regression step, 784x10, batch 100",
    unit="us",
    budgets=(Budget(1.5, "numpy"),),
    ours=lambda: ours(784, 100),
    numpy=lambda: numpy(784, 100),
    tensorflow=lambda: tensorflow(784, 100),
)
DIGITS = Row(
    order=7.1,
    title="quick-start training step, 64x10, batch 1437",
    unit="us",
    budgets=(Budget(1.5, "numpy"),),
    ours=lambda: ours(64, 1437),
    numpy=lambda: numpy(64, 1437),
    tensorflow=lambda: tensorflow(64, 1437),
)
