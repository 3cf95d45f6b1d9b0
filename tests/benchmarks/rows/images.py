"""Image models: LeNet-5 forward and with its gradient, batch 32; MobileNetV2 from its file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.work import Array, Budget, Float, Row, Work, random_floats

BATCH = 32
# Filters and matrices; the first convolution keeps the size, the second reduces it.
SHAPES = ((5, 5, 1, 6), (5, 5, 6, 16), (400, 120), (120, 84), (84, 10))
MOBILENET = Path(__file__).parents[2] / "data" / "mobilenetv2"


def weights() -> list[Float]:
    """The parameters, small numbers around 0."""
    return [
        (random_floats(50 + i, *shape) - np.float32(0.5)) * np.float32(2 / np.sqrt(np.prod(shape[:-1]))) for i, shape in enumerate(SHAPES)
    ]


def pictures() -> Float:
    """The images to classify: [batch, 28, 28, 1]."""
    return random_floats(60, BATCH, 28, 28, 1)


def layers(x: Any, w: Sequence[Any], conv: Callable[..., Any], pool: Callable[..., Any], relu: Any, dot: Any, flat: Any) -> Any:
    x = pool(relu(conv(x, w[0], "SAME")))
    x = pool(relu(conv(x, w[1], "VALID")))
    return dot(relu(dot(relu(dot(flat(x), w[2])), w[3])), w[4])


def lenet_graph(*, gradient: bool) -> tuple[Any, Any, list[Any], list[Any]]:
    """LeNet as graph, pictures, parameters and fetches.

    With `gradient`, the fetches are the derivatives of the sum of squares by all parameters.
    """
    import graphcore as gc

    ops = gc.ops
    one = {"strides": [1, 1, 1, 1]}
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [BATCH, 28, 28, 1], name="x")
        parameters = [gc.placeholder(gc.float32, shape) for shape in SHAPES]
        y = layers(
            x,
            parameters,
            lambda x, w, padding: ops.conv2d(x, w, padding=padding, **one),
            lambda x: ops.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
            gc.relu,
            lambda x, w: x @ w,
            lambda x: gc.reshape(x, [BATCH, 400]),
        )
        return graph, x, parameters, gc.gradients(gc.reduce_sum(y * y), parameters) if gradient else [y]


def our_lenet(*, gradient: bool) -> Work:
    """LeNet in a session."""
    import graphcore as gc

    graph, x, parameters, fetches = lenet_graph(gradient=gradient)
    session = gc.Session(graph=graph)
    feeds = dict(zip([x, *parameters], [pictures(), *weights()], strict=True))
    return _work(lambda: session.run(fetches, feeds))


def tensorflow_lenet(*, gradient: bool) -> Work:
    """The same in TensorFlow."""
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [BATCH, 28, 28, 1])
        parameters = [tf.compat.v1.placeholder(tf.float32, shape) for shape in SHAPES]
        y = layers(
            x,
            parameters,
            lambda x, w, padding: tf.nn.conv2d(x, w, 1, padding),
            lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"),
            tf.nn.relu,
            tf.matmul,
            lambda x: tf.reshape(x, [BATCH, 400]),
        )
        fetches = tf.gradients(tf.reduce_sum(y * y), parameters) if gradient else [y]
    session = tf.compat.v1.Session(graph=graph)
    feeds = dict(zip([x, *parameters], [pictures(), *weights()], strict=True))
    return _work(lambda: session.run(fetches, feeds))


def _work(run: Callable[[], list[Array]]) -> Work:
    return Work(run=run, outcome=run)


def picture() -> Array:
    """The input of the file's network."""
    with np.load(MOBILENET.with_suffix(".npz")) as stored:
        array: Array = stored["feed x:0"]
        return array


def our_mobilenet() -> Work:
    """Read and run the file."""
    import graphcore as gc

    session = gc.Session(graph=gc.load(MOBILENET.with_suffix(".pb")))
    feeds = {"x:0": picture()}
    return _work(lambda: [np.asarray(session.run("Identity:0", feeds))])


def tensorflow_mobilenet() -> Work:
    """The same in TensorFlow."""
    import tensorflow as tf

    graph, graph_def = tf.Graph(), tf.compat.v1.GraphDef()
    graph_def.ParseFromString(MOBILENET.with_suffix(".pb").read_bytes())
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    session = tf.compat.v1.Session(graph=graph)
    feeds = {"x:0": picture()}
    return _work(lambda: [session.run("Identity:0", feeds)])


FORWARD = Row(
    order=15.0,
    title="LeNet forward, batch 32",
    unit="ms",
    budgets=(Budget(1.5, "tensorflow"),),
    ours=lambda: our_lenet(gradient=False),
    tensorflow=lambda: tensorflow_lenet(gradient=False),
)
GRADIENT = Row(
    order=15.1,
    title="LeNet gradient, batch 32",
    unit="ms",
    budgets=(Budget(1.5, "tensorflow"),),
    ours=lambda: our_lenet(gradient=True),
    tensorflow=lambda: tensorflow_lenet(gradient=True),
    tolerance=1e-3,
)
MOBILENET_FORWARD = Row(
    order=15.2,
    title="MobileNetV2 forward, one 96x96 picture",
    unit="ms",
    budgets=(Budget(3, "tensorflow"),),
    ours=our_mobilenet,
    tensorflow=tensorflow_mobilenet,
)
