"""Default node names in TensorFlow's interpreter. Nothing of this project is imported."""

from __future__ import annotations

import tensorflow as tf


def node_names(sources: list[str]) -> list[list[str]]:
    """The names of the nodes that each expression makes, with `tf` as TensorFlow 1's interface.

    The nodes `p`, `q`, `u`, `i` and `b` are left out.
    """
    return [_names(source) for source in sources]


def _names(source: str) -> list[str]:
    graph = tf.Graph()
    with graph.as_default():
        old = tf.compat.v1
        given = {
            **{name: old.placeholder(tf.float32, [2, 2], name=name) for name in "pq"},
            "u": old.placeholder(tf.float32, [None, 2], name="u"),
            "i": old.placeholder(tf.int32, [2], name="i"),
            "b": old.placeholder(tf.bool, [2], name="b"),
        }
        eval(source, {"tf": old, **given})
    return [node.name for node in graph.get_operations() if node.name not in given]
