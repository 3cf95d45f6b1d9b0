"""Loading a real model from its file, and a graph that computes the sizes of its tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.work import Array, Budget, Row, Work

MODEL = Path(__file__).parents[2] / "data" / "mobilenetv2.pb"
RESHAPES = 100
NODES_OF_RESHAPE = 12


def our_load() -> Work:
    """Read the file into a new graph."""
    import graphcore as gc

    return Work(run=lambda: gc.load(MODEL))


def tensorflow_load() -> Work:
    """The same in TensorFlow."""
    import tensorflow as tf

    def run() -> None:
        with tf.Graph().as_default():
            tf.import_graph_def(tf.compat.v1.GraphDef.FromString(MODEL.read_bytes()), name="")

    return Work(run=run)


def our_sizes() -> Work:
    """Import a chain of reshapes to products and quotients of the sizes before."""
    import graphcore as gc

    ops = gc.ops
    with gc.Graph().as_default() as graph:
        y = gc.placeholder(gc.float32, [8, 16, 4])
        zero, one, two, three, four = [gc.constant([i]) for i in (0, 1, 2, 3, 4)]
        for _ in range(RESHAPES):
            sizes = ops.shape(y)
            first, second, third = [ops.strided_slice(sizes, begin, end, one) for begin, end in ((zero, one), (one, two), (two, three))]
            product = ops.mul(second, third)
            flat = ops.reshape(y, ops.concat_v2([first, product], gc.constant(0)))
            y = ops.reshape(flat, ops.concat_v2([first, ops.floor_div(product, four), third], gc.constant(0)))
    graph_def = graph.as_graph_def()
    last = y.name

    def imported() -> gc.Graph:
        made = gc.Graph()
        gc.import_graph_def(graph_def, made, prefix="")
        return made

    def outcome() -> list[Array]:
        return [np.array(imported().get_tensor_by_name(last).shape.as_list())]

    return Work(run=imported, per=RESHAPES * NODES_OF_RESHAPE, outcome=outcome)


def tensorflow_sizes() -> Work:
    """The same in TensorFlow."""
    import tensorflow as tf

    ops = tf.raw_ops
    with tf.Graph().as_default() as graph:
        y = tf.compat.v1.placeholder(tf.float32, [8, 16, 4])
        zero, one, two, three, four = [tf.constant([i]) for i in (0, 1, 2, 3, 4)]
        for _ in range(RESHAPES):
            sizes = ops.Shape(input=y)
            first, second, third = [
                ops.StridedSlice(input=sizes, begin=begin, end=end, strides=one) for begin, end in ((zero, one), (one, two), (two, three))
            ]
            product = ops.Mul(x=second, y=third)
            flat = ops.Reshape(tensor=y, shape=ops.ConcatV2(values=[first, product], axis=tf.constant(0)))
            quotient = ops.FloorDiv(x=product, y=four)
            y = ops.Reshape(tensor=flat, shape=ops.ConcatV2(values=[first, quotient, third], axis=tf.constant(0)))
    graph_def = graph.as_graph_def()
    last = y.name

    def imported() -> Any:
        with tf.Graph().as_default() as made:
            tf.import_graph_def(graph_def, name="")
        return made

    def outcome() -> list[Array]:
        return [np.array(imported().get_tensor_by_name(last).shape.as_list())]

    return Work(run=imported, per=RESHAPES * NODES_OF_RESHAPE, outcome=outcome)


SIZES = Row(
    order=3.3,
    title="import of a graph that computes sizes, a node",
    unit="us",
    budgets=(Budget(1, "tensorflow"),),
    ours=our_sizes,
    tensorflow=tensorflow_sizes,
)
LOAD = Row(
    order=3.4,
    title="load the file of MobileNetV2 with shapes",
    unit="ms",
    budgets=(Budget(1, "tensorflow"),),
    ours=our_load,
    tensorflow=tensorflow_load,
)
