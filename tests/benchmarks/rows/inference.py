"""Shape inference: its cost for a new node, and for a change at the head of a large graph."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

from tests.benchmarks.rows.mix import NODES, our_graph, tensorflow_graph
from tests.benchmarks.work import Budget, Row, Work

LONG = 10_000


def our_inference() -> Work:
    """Infer every node of the mix again, producers first."""
    graph = our_graph(NODES)[0]
    nodes, infer = graph.nodes, graph.refiner.add_node

    def run() -> None:
        for node in nodes:
            infer(node)

    return Work(run=run, per=len(nodes))


def tensorflow_inference() -> Work:
    """Import into TensorFlow, which infers shapes as part of it."""
    return tensorflow_import(tensorflow_graph(NODES)[0], NODES)


def tensorflow_import(graph: Any, per: int) -> Work:
    """Import a graph with shape inference."""
    import tensorflow as tf

    graph_def = graph.as_graph_def()

    def run() -> None:
        with tf.Graph().as_default():
            tf.import_graph_def(graph_def, name="")

    return Work(run=run, per=per)


def our_replacement(*sizes: int) -> Work:
    """Rerun a cell that makes the head of a long chain: a placeholder with the next of `sizes`."""
    import graphcore as gc
    from graphcore.source import CellRun, current_run

    ops = gc.ops
    graph = gc.Graph()
    run = CellRun(cell="head", execution=1, label="In [1]")

    def make_head(size: int) -> Any:
        graph.begin_cell(run)
        token = current_run.set(run)
        with graph.as_default():
            head = gc.placeholder(gc.float32, [size, 4], name="x")
        current_run.reset(token)
        graph.end_cell(run)
        return head

    y = make_head(sizes[-1])
    with graph.as_default():
        m = gc.placeholder(gc.float32, [4, 4], name="m")
        for _ in range(LONG // 4):
            y = ops.mat_mul(ops.neg(ops.tanh(ops.square(y))), m)
    following = cycle(sizes)
    graph.nx.number_of_nodes()  # edges are made lazily on access: not a part of this measurement
    return Work(run=lambda: make_head(next(following)))


def tensorflow_replacement() -> Work:
    """TensorFlow cannot replace nodes: the changed graph is imported again."""
    import tensorflow as tf

    ops = tf.raw_ops
    with tf.Graph().as_default() as graph:
        y = tf.compat.v1.placeholder(tf.float32, [8, 4], name="x")
        m = tf.compat.v1.placeholder(tf.float32, [4, 4], name="m")
        for _ in range(LONG // 4):
            y = ops.MatMul(a=ops.Neg(x=ops.Tanh(x=ops.Square(x=y))), b=m)
    return tensorflow_import(graph, 1)


def replacing(*sizes: int) -> Callable[[], Work]:
    """The work for these sizes."""
    return lambda: our_replacement(*sizes)


INFERENCE = Row(
    order=2.5,
    title="shape inference of the 1,000-node mix, a node",
    unit="us",
    budgets=(Budget(5),),
    ours=our_inference,
    tensorflow=tensorflow_inference,
)
SAME_SHAPE = Row(
    order=2.6,
    title="replace the head of 10,000 nodes, same shape",
    unit="ms",
    budgets=(Budget(1),),
    ours=replacing(8),
    tensorflow=tensorflow_replacement,
    most_rounds=3,
)
OTHER_SHAPE = Row(
    order=2.7,
    title="replace the head of 10,000 nodes, all shapes change",
    unit="ms",
    budgets=(Budget(60),),
    ours=replacing(8, 16),
    tensorflow=tensorflow_replacement,
    most_rounds=3,
)
