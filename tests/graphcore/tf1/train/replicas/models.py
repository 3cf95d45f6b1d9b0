"""Small models for the tests of replicas, and their training in one process and in several replicas."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import graphcore as gc

layers: Any = gc.layers
losses: Any = gc.losses
nn: Any = gc.nn
train: Any = import_module("graphcore.train")
get_variable: Any = gc.get_variable
MakeOptimizer = Callable[[], gc.Optimizer]


def normal(seed: int, shape: tuple[int, ...]) -> Any:
    """An initializer with the same values in each graph."""
    return gc.constant_initializer(np.random.default_rng(seed).normal(size=shape) / 2)


def mlp(x: Any, y: Any) -> tuple[Any, Any]:
    """A perceptron with one hidden layer. x: [batch, 8]  y: [batch] -> loss, logits."""
    hidden = layers.dense(x, 16, gc.tanh, name="hidden", kernel_initializer=normal(1, (8, 16)))
    logits = layers.dense(hidden, 3, name="logits", kernel_initializer=normal(2, (16, 3)))
    return losses.sparse_softmax_cross_entropy(y, logits), logits


def words(x: Any, y: Any) -> Any:
    """Rows of an embedding, whose gradient is slices. x: [batch, 4] indices  y: [batch] -> loss."""
    table = get_variable("table", [20, 6], initializer=normal(3, (20, 6)))
    rows = gc.reduce_mean(nn.embedding_lookup(table, x), 1)
    return losses.sparse_softmax_cross_entropy(y, layers.dense(rows, 3, name="logits", kernel_initializer=normal(4, (6, 3))))


def examples(count: int) -> tuple[Any, Any]:
    """Inputs and classes for `mlp`."""
    values = np.random.default_rng(0)
    return values.normal(size=[count, 8]).astype(np.float32), values.integers(0, 3, count)


def sentences(count: int) -> tuple[Any, Any]:
    """Inputs and classes for `words`."""
    values = np.random.default_rng(0)
    return values.integers(0, 20, [count, 4]), values.integers(0, 3, count)


def placeholders(batch: tuple[Any, Any]) -> list[Any]:
    """Placeholders for batches of any size."""
    return [gc.placeholder(gc.as_dtype(part.dtype), [None, *part.shape[1:]], name=name) for part, name in zip(batch, "xy", strict=True)]


def trained_alone(step: Any, batches: list[Any], make: MakeOptimizer) -> list[float]:
    """The losses of a training in one process."""
    with gc.Graph().as_default(), gc.Session() as session:
        inputs = placeholders(batches[0])
        built = step(*inputs)
        loss = built[0] if isinstance(built, tuple) else built
        train_op: Any = make().minimize(loss)
        session.run(gc.initialize_all_variables())
        return [float(session.run([loss, train_op], dict(zip(inputs, batch, strict=True)))[0]) for batch in batches]


class Together:
    """A training in replicas; the arguments are those of `gc.train.replicate` and `gc.Session`."""

    def __init__(self, step: Any, batches: list[Any], make: MakeOptimizer, devices: list[str], **given: Any) -> None:
        place = {"cluster": given.pop("cluster")} if "cluster" in given else {"devices": [*devices, *given.get("ps_devices", [])]}
        with gc.Graph().as_default() as self.graph:
            self.inputs = placeholders(batches[0])
            self.model = train.replicate(step, devices, optimizer=make(), inputs=self.inputs, **given)
            with gc.Session(**place) as session:
                session.run(gc.initialize_all_variables())
                fetches = [self.model.loss, self.model.train_op]
                self.losses = [float(session.run(fetches, dict(zip(self.inputs, batch, strict=True)))[0]) for batch in batches]
                self.copies = session.run(self.model.copies)
