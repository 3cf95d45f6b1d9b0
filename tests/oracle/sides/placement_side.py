"""TensorFlow's side of the tests of placement: the devices of nodes, read from partition graphs."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from functools import cache
from typing import Any

import tensorflow as tf


@cache
def cluster(tasks: int, cpus: int) -> tuple[str, tuple[Any, ...]]:
    """The address of the first of some in-process tasks, and the tasks."""
    config = tf.compat.v1.ConfigProto(device_count={"CPU": cpus})
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("localhost", 0))) for _ in range(tasks)]
        spec = tf.train.ClusterSpec({"worker": [f"localhost:{free.getsockname()[1]}" for free in sockets]})
    servers = tuple([tf.compat.v1.train.Server(spec, "worker", index, config=config) for index in range(tasks)])
    return servers[0].target, servers


def placed(data: bytes, cpus: int, tasks: int, soft: bool, target: str) -> dict[str, str] | str:
    """Run node `target` of a GraphDef.

    Returns:
        The device of each node that ran, by name, or the text of the error of placement.
    """
    found = _partition_graphs(data, cpus, tasks, soft, target)
    return found if isinstance(found, str) else {node.name: node.device for part in found for node in part.node}


def partitioned(data: bytes, cpus: int, target: str) -> list[bytes] | str:
    """Run node `target` of a GraphDef.

    Returns:
        The partitions as GraphDefs, or the text of the error of placement.
    """
    found = _partition_graphs(data, cpus, 0, True, target)
    return found if isinstance(found, str) else [part.SerializeToString() for part in found]


def _partition_graphs(data: bytes, cpus: int, tasks: int, soft: bool, target: str) -> Any:
    graph_def = tf.compat.v1.GraphDef.FromString(data)
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    for node in graph_def.node:  # the importer gives a node the requested device of the nodes it is colocated with
        graph.get_operation_by_name(node.name)._set_device(node.device)
    config = tf.compat.v1.ConfigProto(device_count={"CPU": cpus}, allow_soft_placement=soft)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    address = cluster(tasks, cpus)[0] if tasks else ""
    metadata = tf.compat.v1.RunMetadata()
    options = tf.compat.v1.RunOptions(output_partition_graphs=True)
    with tf.compat.v1.Session(address, graph=graph, config=config) as session:
        try:
            session.run(graph.get_operation_by_name(target), options=options, run_metadata=metadata)
        except (tf.errors.InvalidArgumentError, tf.errors.InternalError) as error:
            return str(error.message)
    return list(metadata.partition_graphs)
