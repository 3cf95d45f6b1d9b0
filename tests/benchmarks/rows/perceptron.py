"""One training step of a perceptron with two hidden layers, 784-512-512-10, batch 128."""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

import numpy as np

from tests.benchmarks.rows.softmax_regression import CLASSES, RATE, STEPS, batch, training
from tests.benchmarks.work import Budget, Float, Row, Work, random_floats

SIZES = (784, 512, 512, CLASSES)
BATCH = 128
PAIRS = 40
"""Recorded and other steps take turns, so that the load of the machine is the same for both."""


def start() -> tuple[list[Float], list[Float]]:
    """Weights and biases before the first step."""
    pairs = list(itertools.pairwise(SIZES))
    weights = [(random_floats(20 + i, *pair) - np.float32(0.5)) * np.float32(2 / pair[0] ** 0.5) for i, pair in enumerate(pairs)]
    return weights, [np.zeros(pair[1], np.float32) for pair in pairs]


def ours() -> Work:
    """The step in a session."""
    return training(*our_training())


def traced() -> Work:
    """The time of a recorded step, divided by that of a step that is not recorded."""
    import graphcore as gc

    session, init, step, _, feeds = our_training()
    options = gc.RunOptions(trace=True)

    def seconds(options: Any) -> float:
        begun = time.perf_counter()
        session.run(step, feeds, options)
        return time.perf_counter() - begun

    def figure() -> float:
        session.run(init)
        pairs = [(seconds(options), seconds(None)) for _ in range(PAIRS)]
        return statistics.median([recorded for recorded, _ in pairs]) / statistics.median([plain for _, plain in pairs])

    return Work(figure=figure)


def our_training(devices: Any = None) -> tuple[Any, Any, Any, list[Any], dict[Any, Float]]:
    """A session on `devices`, the initializer, the step, the variables, and feeds."""
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None, SIZES[0]], name="x")
        t = gc.placeholder(gc.float32, [None, CLASSES], name="t")
        weights, biases = ([gc.Variable(value) for value in values] for values in start())
        h = x
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            h = gc.relu(h @ w + b)
        y = gc.softmax(h @ weights[-1] + biases[-1])
        loss = -gc.reduce_mean(gc.reduce_sum(t * gc.log(y), 1), 0)
        variables = [*weights, *biases]
        slopes = gc.gradients(loss, variables)
        step = gc.group(*(v.assign_sub(RATE * g) for v, g in zip(variables, slopes, strict=True) if g is not None))
        init = gc.initialize_all_variables()
    session = gc.Session(graph=graph, devices=devices)
    session.run(init)
    return session, init, step, variables, dict(zip((x, t), batch(SIZES[0], BATCH), strict=True))


def tensorflow() -> Work:
    """The same in TensorFlow."""
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, SIZES[0]], name="x")
        t = tf.compat.v1.placeholder(tf.float32, [None, CLASSES], name="t")
        weights, biases = ([tf.compat.v1.Variable(value, use_resource=False) for value in values] for values in start())
        h = x
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            h = tf.nn.relu(tf.matmul(h, w) + b)
        y = tf.nn.softmax(tf.matmul(h, weights[-1]) + biases[-1])
        loss = -tf.reduce_mean(tf.reduce_sum(t * tf.math.log(y), 1), 0)
        variables = [*weights, *biases]
        gradients = tf.gradients(loss, variables)
        step = tf.group(*(v.assign_sub(RATE * g) for v, g in zip(variables, gradients, strict=True)))
        init = tf.compat.v1.global_variables_initializer()
    session = tf.compat.v1.Session(graph=graph)
    session.run(init)
    return training(session, init, step, variables, dict(zip((x, t), batch(SIZES[0], BATCH), strict=True)))


def numpy() -> Work:
    """The same by hand."""
    x, t = batch(SIZES[0], BATCH)
    weights, biases = start()
    rate, share = np.float32(RATE), np.float32(-1 / BATCH)

    def step() -> None:
        layers = [x]
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            layers.append(np.maximum(layers[-1] @ w + b, 0))
        z = layers[-1] @ weights[-1] + biases[-1]
        e = np.exp(z - z.max(axis=1, keepdims=True))
        y = e / e.sum(axis=1, keepdims=True)
        dy = t * share / y
        dz = (dy - (dy * y).sum(axis=1, keepdims=True)) * y
        for i in range(len(weights) - 1, -1, -1):
            dw, db = layers[i].T @ dz, dz.sum(axis=0)
            if i:
                dz = (dz @ weights[i].T) * (layers[i] > 0)
            weights[i] = weights[i] - rate * dw
            biases[i] = biases[i] - rate * db

    def outcome() -> list[Float]:
        weights[:], biases[:] = start()
        for _ in range(STEPS):
            step()
        return [*weights, *biases]

    return Work(run=step, outcome=outcome)


STEP = Row(
    order=8.0,
    title="perceptron 784-512-512-10 step, batch 128",
    unit="ms",
    budgets=(Budget(1.1, "numpy"),),
    ours=ours,
    numpy=numpy,
    tensorflow=tensorflow,
    tolerance=1e-3,
)
TRACED = Row(
    order=8.1,
    title="perceptron step, recorded / not recorded",
    unit="x",
    budgets=(Budget(1.4),),
    ours=traced,
)
