"""The graphs of the other modules, trained by TensorFlow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import tensorflow as tf

Array = npt.NDArray[Any]
v1 = tf.compat.v1
logging.getLogger("tensorflow").setLevel(logging.ERROR)


@dataclass
class Trained:
    """A graph to train.

    Attributes:
        loss: what is compared after each step; a tensor.
        train: what is run together with it.
        feeds: values by placeholder, the same in each step.
        before: what is run before each step, such as the filling of a queue.
        also: further tensors to compare, after the last step.
    """

    loss: Any
    train: Any
    feeds: Mapping[Any, Any] = field(default_factory=dict)
    before: Sequence[Any] = ()
    also: Sequence[Any] = ()


GRAPHS: Final[dict[str, Callable[[], Trained]]] = {}


def graph(builder: Callable[[], Trained]) -> Callable[[], Trained]:
    """List a builder under its name."""
    GRAPHS[builder.__name__] = builder
    return builder


def numbers(*shape: int, seed: int = 0) -> Array:
    """Normally distributed numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def variable(name: str, *shape: int, scale: float = 0.3) -> Any:
    """A variable that starts with numbers drawn in the graph; they follow from seeds in it."""
    return v1.get_variable(name, shape, initializer=v1.random_normal_initializer(stddev=scale))


def zeros(name: str, *shape: int) -> Any:
    """A variable that starts with zeros."""
    return v1.get_variable(name, shape, initializer=v1.zeros_initializer())


def dense(x: Any, name: str, wide: int) -> Any:
    """A fully connected layer."""
    return tf.matmul(x, variable(f"{name}_w", int(x.shape[-1]), wide)) + zeros(f"{name}_b", wide)


def half_squared(x: Any) -> Any:
    """Half the mean of the squares."""
    return tf.reduce_mean(x * x) / 2


def trained(name: str, steps: int, modern: bool) -> tuple[bytes, dict[str, Any]]:
    """Build a graph, and train it.

    Args:
        name: the builder.
        steps: how often `train` is run.
        modern: make resource variables, and control flow of functions.

    Returns:
        The GraphDef, and what to run in it with the values that TensorFlow found: names of `init`, `before`, `loss`, `train` and `also`,
        `feeds`, `losses`, `values`.
    """
    (v1.enable_resource_variables if modern else v1.disable_resource_variables)()
    (v1.enable_control_flow_v2 if modern else v1.disable_control_flow_v2)()
    try:
        with tf.Graph().as_default() as made:
            v1.set_random_seed(7)
            found = GRAPHS[name]()
            init = v1.group(v1.global_variables_initializer(), v1.local_variables_initializer(), v1.tables_initializer(), name="init_all")
            loss, also = tf.identity(found.loss), [tf.identity(each) for each in found.also]
            feeds = {tensor.name: value for tensor, value in found.feeds.items()}
            with v1.Session(graph=made) as session:
                session.run(init)
                losses = []
                for _ in range(steps):
                    for each in found.before:
                        session.run(each, feeds)
                    losses.append(session.run([loss, found.train], feeds)[0])
                values = session.run(also, feeds)
            described = {
                "init": init.name,
                "before": [each.name for each in found.before],
                "loss": loss.name,
                "train": found.train.name,
                "also": [each.name for each in also],
                "feeds": feeds,
                "losses": losses,
                "values": values,
            }
            return made.as_graph_def().SerializeToString(), described
    finally:
        v1.enable_resource_variables()
        v1.enable_control_flow_v2()
