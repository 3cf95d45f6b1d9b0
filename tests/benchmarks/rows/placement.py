"""Placing the mix on six devices; in TensorFlow, the first run of the graph, which places it."""

from __future__ import annotations

from typing import Any

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
