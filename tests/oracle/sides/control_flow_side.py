"""TensorFlow's side of the tests of branches and loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

Array = npt.NDArray[Any]


def run_twice(data: bytes, feeds: Mapping[str, Array], fetches: Sequence[str], start: Sequence[str]) -> list[Array]:
    """Import a graph, run the nodes of `start` in order, then `fetches` twice. Returns their values."""
    with _session(data, start) as session:
        return [np.asarray(value) for _ in range(2) for value in session.run(list(fetches), dict(feeds))]


def run_in_steps(
    data: bytes, feeds: Mapping[str, Array], gives: Sequence[Sequence[str]], refuses: Sequence[Sequence[str]], start: Sequence[str]
) -> tuple[list[Array], list[str]]:
    """Make a partial run that is fed one value a step.

    Args:
        gives: the fetches of each step.
        refuses: fetches to try before those of each step.

    Returns:
        The values, and the messages of refusals.
    """
    with _session(data, start) as session:
        handle = session.partial_run_setup([name for names in gives for name in names], list(feeds))
        found: list[Array] = []
        refused: list[str] = []
        for (name, value), now, later in zip(feeds.items(), gives, refuses, strict=True):
            session.partial_run(handle, [], {name: value})
            for fetch in later:
                try:
                    session.partial_run(handle, fetch)
                except tf.errors.InvalidArgumentError as error:
                    refused.append(error.message)
            found += [np.asarray(session.partial_run(handle, fetch)) for fetch in now]
        return found, refused


@contextmanager
def _session(data: bytes, start: Sequence[str]) -> Iterator[Any]:
    """A session of an imported graph after running the nodes of `start`, in order."""
    message = tf.compat.v1.GraphDef()
    message.ParseFromString(data)
    # The graph without TensorFlow's graph optimiser.
    config = tf.compat.v1.ConfigProto(operation_timeout_in_ms=60_000)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            for name in start:
                session.run(name)
            yield session
