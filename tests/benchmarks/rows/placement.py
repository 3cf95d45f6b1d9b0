"""Placing the mix on six devices; in TensorFlow, the first run of the graph, which places it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from tests.benchmarks.rows.mix import LARGE, NODES, A, M, X, our_graph, tensorflow_graph
from tests.benchmarks.work import Budget, Row, Work

DEVICES = "2 tasks x (1 cpu, 2 gpu)"


def our_placing(nodes: int) -> Work:
    """A placement of nodes without devices."""
    import graphcore as gc

    graph = our_graph(nodes)[0]
    devices = gc.simulated_devices(DEVICES)

    def place() -> None:
        for node in graph.nodes:
            node.assigned_device = ""
        gc.Placer(graph, devices).run()

    return Work(run=place, per=nodes)


def tensorflow_first_run(built: tuple[Any, Any, list[Any]]) -> None:
    """A run in a new session, with Grappler off: it places, partitions and computes."""
    import tensorflow as tf
    from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

    graph, y, xs = built
    config = tf.compat.v1.ConfigProto(device_count={"CPU": 6})
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.rewrite_options.constant_folding = RewriterConfig.OFF
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        session.run(y, dict(zip(xs, (X, A, M), strict=True)))


PLACE = Row(
    order=4.5,
    title="place a 1,000-node mix on 6 devices, a node",
    unit="us",
    budgets=(Budget(15),),
    ours=lambda: our_placing(NODES),
    tensorflow=lambda: Work(run=tensorflow_first_run, prepare=lambda: tensorflow_graph(NODES), per=NODES),
)
PLACE_LARGE = Row(
    order=4.6,
    title="place a 100,000-node mix on 6 devices, a node",
    unit="us",
    budgets=(Budget(15),),
    ours=lambda: our_placing(LARGE),
    tensorflow=lambda: Work(run=tensorflow_first_run, prepare=lambda: tensorflow_graph(LARGE), fewest=1, per=LARGE),
    most_rounds=3,
)


def our_partitioning(nodes: int) -> Work:
    """The partitions of a mix whose nodes take turns on four devices, ten at a time."""
    import graphcore as gc

    graph = our_graph(nodes)[0]
    for number, node in enumerate(graph.nodes):
        node.assigned_device = f"/job:localhost/replica:0/task:0/device:CPU:{number // 10 % 4}"
    return Work(run=lambda: gc.partition_graph(graph), per=nodes)


def our_chain(*devices: str) -> Callable[[], object]:
    """A step of a chain of 20 ops; those in the middle are on the last device."""
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        x = y = gc.placeholder(gc.float32, [4], name="x")
        for number in range(20):
            with gc.device(devices[-1] if 7 <= number < 14 else devices[0]):
                y = gc.ops.tanh(y)
    session = gc.Session(graph, devices=devices)
    feeds = {x: np.ones(4, np.float32)}
    return lambda: session.run(y, feeds)


def tensorflow_chain(*devices: str) -> Callable[[], object]:
    """The chain of 20."""
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        x = y = tf.compat.v1.placeholder(tf.float32, [4])
        for number in range(20):
            with tf.device(devices[-1] if 7 <= number < 14 else devices[0]):
                y = tf.tanh(y)
    session = tf.compat.v1.Session(graph=graph, config=tf.compat.v1.ConfigProto(device_count={"CPU": len(devices)}))
    feeds = {x: np.ones(4, np.float32)}
    return lambda: session.run(y, feeds)


def over_one_device(chain: Callable[..., Callable[[], object]]) -> Work:
    """The seconds that a step on two devices takes more than on one, run in turns."""
    one, two = chain("/cpu:0"), chain("/cpu:0", "/cpu:1")

    def figure() -> float:
        steps = [(_seconds(one), _seconds(two)) for _ in range(40)]
        return float(np.median([more - less for less, more in steps]))

    return Work(figure=figure, outcome=lambda: [np.asarray(one()), np.asarray(two())])


def _seconds(step: Callable[[], object], times: int = 50) -> float:
    begun = time.perf_counter()
    for _ in range(times):
        step()
    return (time.perf_counter() - begun) / times


def our_conflict(nodes: int) -> Work:
    """The explanation of a chain whose ends request different devices.

    Every 100th node must be where the one before is.
    """
    import graphcore as gc

    graph = gc.Graph()
    with graph.as_default():
        y = last = gc.placeholder(gc.float32, [4], name="x")
        for number in range(nodes):
            with gc.device({0: "/cpu:0", nodes - 1: "/cpu:1"}.get(number, "")):
                y = gc.ops.tanh(y)
                if number % 100 in (0, 99):
                    y.node.add_attr("_class", [f"loc:@{last.node.name}"])
            last = y if number % 100 == 0 else last
    devices = gc.simulated_devices("2 cpu")
    return Work(run=lambda: gc.explain_placement(y.node, devices), fewest=5)


def tensorflow_conflict(nodes: int) -> Work:
    """A first run of the same chain.

    TensorFlow gives colocated nodes one device in Python, so that there is no conflict.
    """
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        y = last = tf.compat.v1.placeholder(tf.float32, [4])
        for number in range(nodes):
            colocated = tf.compat.v1.colocate_with(last) if number % 100 in (0, 99) else nullcontext()
            with colocated, tf.device({0: "/cpu:0", nodes - 1: "/cpu:1"}.get(number)):
                y = tf.tanh(y)
            last = y if number % 100 == 0 else last
    config = tf.compat.v1.ConfigProto(device_count={"CPU": 2})

    def first_run() -> None:
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            session.run(y, {"Placeholder:0": np.ones(4, np.float32)})

    return Work(run=first_run, fewest=1)


PARTITION_LARGE = Row(
    order=4.7,
    title="partition a 100,000-node mix on 4 devices, a node",
    unit="us",
    budgets=(Budget(20),),
    ours=lambda: our_partitioning(LARGE),
    tensorflow=lambda: Work(run=tensorflow_first_run, prepare=lambda: tensorflow_graph(LARGE), fewest=1, per=LARGE),
    most_rounds=3,
)
CHAIN_ON_TWO = Row(
    order=5.3,
    title="Session.run of a chain of 20 on 2 devices, there and back: over one device",
    unit="us",
    budgets=(Budget(100),),
    ours=lambda: over_one_device(our_chain),
    tensorflow=lambda: over_one_device(tensorflow_chain),
)
EXPLAIN_CONFLICT = Row(
    order=4.8,
    title="explain a minimal conflict among 10,000 nodes; TensorFlow: a first run",
    unit="ms",
    budgets=(Budget(50),),
    ours=lambda: our_conflict(10_000),
    tensorflow=lambda: tensorflow_conflict(10_000),
)
