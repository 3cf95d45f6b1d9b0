"""TensorFlow's side of the tests of branches and loops: the same programs, differentiated twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tests.oracle.sides.graph_side import read

Array = npt.NDArray[Any]


def gradient_of_graph(data: bytes, feeds: Mapping[str, Array], y: str, x: str, weights: Array) -> Array:
    """The gradient of a weighted sum of `y` by `x` in an imported graph."""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(read(data, "pb"), name="")
        loss = tf.reduce_sum(graph.get_tensor_by_name(y) * weights)
        (gradient,) = tf.gradients(loss, [graph.get_tensor_by_name(x)])
        with tf.compat.v1.Session(graph=graph) as session:
            return np.asarray(session.run(gradient, dict(feeds)))


def lowered_nodes(data: bytes, feeds: Mapping[str, Array], fetch: str) -> list[tuple[str, str, list[str]]]:
    """Op, name and colocation of each node of a run after lowering by TensorFlow."""
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
    options, metadata = tf.compat.v1.RunOptions(output_partition_graphs=True), tf.compat.v1.RunMetadata()
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(read(data, "pb"), name="")
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            session.run(fetch, dict(feeds), options=options, run_metadata=metadata)
    nodes = [node for partition in metadata.partition_graphs for node in partition.node]
    return [(node.op, node.name, [group.decode() for group in node.attr["_class"].list.s]) for node in nodes]


def gather_gradient(values: Array, indices: Array, weights: Array) -> Array:
    """The gradient, for a variable, of a weighted sum of squares of rows gathered by its handle."""
    table = tf.Variable(values)
    with tf.GradientTape() as tape:
        rows = table.sparse_read(indices)
        loss = tf.reduce_sum(rows * rows * weights)
    return np.asarray(tf.convert_to_tensor(tape.gradient(loss, table)))


def run_with_gradients(name: str, points: Sequence[Array], first: Array, second: Array) -> list[list[Array]]:
    """By point: the program's value, the gradient of a weighted sum of it, and that one's gradient."""
    tf.compat.v1.enable_control_flow_v2()
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float64, [3])
        y = PROGRAMS[name](x)
        (gradient,) = tf.gradients(tf.reduce_sum(y * first) if name != "growing" else y, [x])
        (again,) = tf.gradients(tf.reduce_sum(gradient * second), [x])
        wanted = [y, gradient, tf.zeros_like(x) if again is None else again]
        with tf.compat.v1.Session(graph=graph) as session:
            return [[np.asarray(value) for value in session.run(wanted, {x: point})] for point in points]


def rounds(count: int, step: Callable[[Any], Any], start: Any) -> Any:
    """Apply `step` to its own results so many times."""
    return tf.while_loop(lambda i, _: i < count, lambda i, value: (i + 1, step(value)), (0, start))[1]


def clipped(x: Any) -> Any:
    """One branch or the other."""
    return tf.cond(tf.reduce_sum(x) > 1.0, lambda: tf.tanh(x) * x, lambda: x * 3.0)


def nested_loops(x: Any) -> Any:
    """A loop in a loop."""
    return rounds(3, lambda a: rounds(2, lambda b: tf.tanh(b * x), a + x), x)


def cond_in_loop(x: Any) -> Any:
    """Another branch in each iteration."""
    return rounds(4, lambda a: tf.cond(tf.reduce_sum(a) > 1.5, lambda: tf.sigmoid(a) * x, lambda: a * a + x), x)


def loop_in_cond(x: Any) -> Any:
    """A loop that may not run."""
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: rounds(3, lambda a: tf.tanh(a) * x, x), lambda: x)


def carried(x: Any) -> Any:
    """Variables that exchange their places."""

    def step(i: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        return i + 1, b * d, tf.tanh(a) + c, tf.zeros_like(c) + 0.5, d

    found = tf.while_loop(lambda i, *_: i < 4, step, (0, x, x * 2.0, x * x, x + 1.0))
    return found[1] + found[2] * found[4]


def from_a_case(x: Any) -> Any:
    """One of three."""
    index = tf.cast(tf.reduce_sum(x) * 10.0 + 0.37, tf.int32)
    return tf.switch_case(tf.math.floormod(index, 3), [lambda: x * x, lambda: tf.exp(x), lambda: tf.sigmoid(x) * x])


def halving(x: Any) -> Any:
    """A number of iterations that depends on the values."""
    return tf.while_loop(lambda y: tf.reduce_sum(y) > 0.1, lambda y: (y * tf.sigmoid(y) * x,), (x,), maximum_iterations=20)[0]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    function.__name__: function for function in (clipped, nested_loops, cond_in_loop, loop_in_cond, carried, from_a_case, halving)
}
