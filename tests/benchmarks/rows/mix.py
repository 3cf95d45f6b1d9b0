"""A mix of AddV2, Mul, Tanh and MatMul on 4x4 matrices: building it, differentiating it, running it."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.work import Budget, Float, Row, Work, random_floats

NODES = 1_000
MEDIUM = 10_000
LARGE = 100_000
SIDE = 4
X, A, M = (random_floats(seed, SIDE, SIDE, scale=0.5) for seed in (1, 2, 3))


def our_graph(nodes: int) -> tuple[Any, Any, list[Any]]:
    """The graph, its last tensor and its three placeholders."""
    import graphcore as gc

    ops = gc.ops
    graph = gc.Graph()
    with graph.as_default():
        x, a, m = (gc.placeholder(gc.float32, [SIDE, SIDE], name=name) for name in "xam")
        y = x
        for _ in range(nodes // 4):
            y = ops.mat_mul(ops.tanh(ops.mul(ops.add_v2(y, a), m)), m)
    return graph, y, [x, a, m]


def tensorflow_graph(nodes: int) -> tuple[Any, Any, list[Any]]:
    """The same in TensorFlow, in the fastest way from Python."""
    import tensorflow as tf

    ops = tf.raw_ops
    graph = tf.Graph()
    with graph.as_default():
        x, a, m = (tf.compat.v1.placeholder(tf.float32, [SIDE, SIDE], name=name) for name in "xam")
        y = x
        for _ in range(nodes // 4):
            y = ops.MatMul(a=ops.Tanh(x=ops.Mul(x=ops.AddV2(x=y, y=a), y=m)), b=m)
    return graph, y, [x, a, m]


def numpy_run(nodes: int) -> Float:
    """The same calls on arrays."""
    import numpy as np

    y, a, m = X, A, M
    for _ in range(nodes // 4):
        y = np.matmul(np.tanh(np.multiply(np.add(y, a), m)), m)
    return y


def our_gradients(built: tuple[Any, Any, list[Any]]) -> list[Any]:
    """Gradients of the last tensor by all three placeholders."""
    import graphcore as gc

    graph, y, xs = built
    with graph.as_default():
        return list(gc.gradients(y, xs))


def tensorflow_gradients(built: tuple[Any, Any, list[Any]]) -> list[Any]:
    """The same in TensorFlow."""
    import tensorflow as tf

    graph, y, xs = built
    with graph.as_default():
        return list(tf.gradients(y, xs))


def our_gradient_values() -> list[Float]:
    """The gradients of a short mix."""
    import graphcore as gc

    built = our_graph(16)
    fetches = our_gradients(built)
    with gc.Session(graph=built[0]) as session:
        values: list[Float] = session.run(fetches, dict(zip(built[2], (X, A, M), strict=True)))
    return values


def tensorflow_gradient_values() -> list[Float]:
    """The same in TensorFlow."""
    import tensorflow as tf

    built = tensorflow_graph(16)
    fetches = tensorflow_gradients(built)
    with tf.compat.v1.Session(graph=built[0]) as session:
        values: list[Float] = session.run(fetches, dict(zip(built[2], (X, A, M), strict=True)))
    return values


def our_session(nodes: int) -> Work:
    """A session that runs the whole mix."""
    import graphcore as gc

    graph, y, xs = our_graph(nodes)
    session = gc.Session(graph=graph)
    feeds = dict(zip(xs, (X, A, M), strict=True))
    return Work(run=lambda: session.run(y, feeds), outcome=lambda: [session.run(y, feeds)])


def tensorflow_session(nodes: int) -> Work:
    """The same in TensorFlow."""
    import tensorflow as tf

    graph, y, xs = tensorflow_graph(nodes)
    session = tf.compat.v1.Session(graph=graph)
    feeds = dict(zip(xs, (X, A, M), strict=True))
    return Work(run=lambda: session.run(y, feeds), outcome=lambda: [session.run(y, feeds)])


BUILD = Row(
    order=2.0,
    title="build a 1,000-node mix with shapes, a node",
    unit="us",
    budgets=(Budget(12),),
    ours=lambda: Work(run=lambda: our_graph(NODES), per=NODES),
    tensorflow=lambda: Work(run=lambda: tensorflow_graph(NODES), per=NODES),
)
BUILD_MEDIUM = Row(
    order=2.1,
    title="build a 10,000-node mix with shapes, a node",
    unit="us",
    budgets=(Budget(12),),
    ours=lambda: Work(run=lambda: our_graph(MEDIUM), per=MEDIUM),
    tensorflow=lambda: Work(run=lambda: tensorflow_graph(MEDIUM), per=MEDIUM, fewest=1),
    most_rounds=3,
)
BUILD_LARGE = Row(
    order=2.2,
    title="build a 100,000-node mix with shapes, a node",
    unit="us",
    budgets=(Budget(20),),
    ours=lambda: Work(run=our_graph, prepare=lambda: LARGE, fewest=1, per=LARGE),
    tensorflow=lambda: Work(run=tensorflow_graph, prepare=lambda: LARGE, fewest=1, per=LARGE),
    most_rounds=3,
)
GRADIENTS = Row(
    order=4.0,
    title="gradients of the mix, a forward node",
    unit="us",
    budgets=(Budget(45),),
    ours=lambda: Work(run=our_gradients, prepare=lambda: our_graph(NODES), per=NODES, outcome=our_gradient_values),
    tensorflow=lambda: Work(
        run=tensorflow_gradients, prepare=lambda: tensorflow_graph(NODES), per=NODES, outcome=tensorflow_gradient_values
    ),
)
RUN = Row(
    order=6.0,
    title="Session.run of the mix, 4x4",
    unit="us",
    budgets=(Budget(1.1, "numpy"),),
    ours=lambda: our_session(NODES),
    numpy=lambda: Work(run=lambda: numpy_run(NODES), outcome=lambda: [numpy_run(NODES)]),
    tensorflow=lambda: tensorflow_session(NODES),
)
