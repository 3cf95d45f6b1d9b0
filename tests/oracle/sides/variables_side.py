"""TensorFlow's side of the tests of variables that share a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

Array = npt.NDArray[Any]


def run_each(data: bytes, fetches: Sequence[str]) -> list[Array | str]:
    """Import a graph and run the fetches in one session, in order. Returns values or error messages."""
    message = tf.compat.v1.GraphDef()
    message.ParseFromString(data)
    config = tf.compat.v1.ConfigProto(operation_timeout_in_ms=60_000)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    found: list[Array | str] = []
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            for name in fetches:
                try:
                    value = session.run(name)
                    found.append(np.zeros(0) if value is None else np.asarray(value))
                except tf.errors.OpError as error:
                    found.append(error.message)
    return found
