"""TensorFlow's side of the tests of branches and loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

Array = npt.NDArray[Any]


def run_twice(data: bytes, feeds: Mapping[str, Array], fetches: Sequence[str], start: Sequence[str]) -> list[Array]:
    """Import a graph, run the nodes of `start` one after the other, then `fetches` twice; what these gave."""
    message = tf.compat.v1.GraphDef()
    message.ParseFromString(data)
    # The graph as it is, not what the graph optimiser makes of it.
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            for name in start:
                session.run(name)
            return [np.asarray(value) for _ in range(2) for value in session.run(list(fetches), dict(feeds))]
