"""Moving averages of replicas, and optimizers of one's own, work as in one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.graphcore.tf1.train.replicas.models import Together, examples, get_variable, layers, losses, mlp, normal, train, trained_alone

PS: dict[str, Any] = {"ps_devices": ["/cpu:5"]}
MIRRORED: dict[str, Any] = {"variables": "mirrored"}
cpus = [f"/cpu:{number}" for number in range(3)]


class Clipped(train.AdamOptimizer):  # type: ignore[misc]  # a class that is found on demand
    """Clips the sums of gradients by their common norm."""

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        gradients, variables = zip(*grads_and_vars, strict=True)
        clipped, _ = gc.clip_by_global_norm(gradients, 0.01)
        return super().apply_gradients(list(zip(clipped, variables, strict=True)), *args, **kwargs)


@pytest.mark.parametrize("place", [PS, MIRRORED], ids=["ps", "mirrored"])
@pytest.mark.parametrize("reduce", ["tree", "ring"])
def test_a_norm_of_all_gradients_contains_each_variable_once(place: dict[str, Any], reduce: str) -> None:
    def make() -> Any:
        return Clipped(0.01, epsilon=0.1)  # Adam alone hides the scale of gradients

    batches = [examples(7)] * 5
    found = Together(mlp, batches, make, cpus, reduce=reduce, **place)
    np.testing.assert_allclose(found.losses, trained_alone(mlp, batches, make), atol=1e-6)
    for copies in found.copies:
        for first, copy in zip(found.copies[0], copies, strict=True):
            np.testing.assert_array_equal(first, copy)


def test_losses_of_half_precision_are_weighted_by_shares_of_any_size() -> None:
    def step(x: Any) -> Any:
        weights = get_variable("weights", [1], gc.float16, initializer=gc.ones_initializer())
        return gc.cast(gc.reduce_mean(gc.square(gc.cast(x * weights, gc.float32))), gc.float16)

    with gc.Graph().as_default():
        x = gc.placeholder(gc.float16, [None, 1])
        model = train.replicate(step, cpus, optimizer=train.GradientDescentOptimizer(0.25), inputs=[x])
        with gc.Session(devices=cpus) as session:
            session.run(gc.initialize_all_variables())
            assert session.run(model.loss, {x: np.ones([200_000, 1], np.float16)}) == 1.0
            session.run(model.train_op, {x: np.ones([200_000, 1], np.float16)})
            np.testing.assert_allclose(session.run(model.variables[0]), [0.5], atol=1e-3)


@pytest.mark.parametrize("place", [PS, MIRRORED], ids=["ps", "mirrored"])
@pytest.mark.parametrize("use_resource", [False, True])
def test_moving_averages_of_a_batch_normalization_follow_the_mean_of_the_replicas(place: dict[str, Any], use_resource: bool) -> None:
    images = np.arange(7, dtype=np.float32).reshape([7, 1])

    def step(x: Any) -> Any:
        with gc.variable_scope("model", use_resource=use_resource):
            outputs = layers.batch_normalization(x, training=True, momentum=0.5, name="norm")
        with gc.control_dependencies(gc.get_collection(gc.GraphKeys.UPDATE_OPS)):
            return gc.reduce_mean(gc.square(outputs))

    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [None, 1])
        model = train.replicate(step, cpus, optimizer=train.GradientDescentOptimizer(0.0), inputs=[x], **place)
        averages = [variable for variable in gc.global_variables() if "moving" in variable.op.name]
        shares = [[0, 1, 2], [3, 4], [5, 6]]
        if place is PS:
            weights = np.array([len(share) for share in shares]) / 7
            expected = [weights @ [np.mean(share) for share in shares] * 0.75, weights @ [np.var(share) for share in shares] * 0.75 + 0.25]
        else:
            expected = [of(share) * 0.75 + begin for share in shares for of, begin in ((np.mean, 0), (np.var, 0.25))]
        with gc.Session(devices=[*cpus, "/cpu:5"]) as session:
            session.run(gc.initialize_all_variables())
            for _ in range(2):
                session.run(model.train_op, {x: images})
            np.testing.assert_allclose(np.concatenate(session.run(averages)), expected, atol=1e-6)


def test_moving_averages_of_variables_move_once_in_a_step() -> None:
    averages = train.ExponentialMovingAverage(0.5)

    def step(x: Any) -> Any:
        own = get_variable("own", [8, 1], initializer=normal(0, (8, 1)))
        with gc.control_dependencies([averages.apply([shared])]):
            return gc.reduce_mean(gc.square(gc.matmul(x, shared + own)))

    with gc.Graph().as_default():
        shared = gc.Variable(gc.ones([8, 1]), name="shared")
        averages.apply([shared])
        model = train.replicate(step, cpus, optimizer=train.GradientDescentOptimizer(0.0), inputs=[examples(7)[0]])
        with gc.Session(devices=cpus) as session:
            session.run(gc.initialize_all_variables())
            session.run(shared.assign(gc.zeros([8, 1])))
            session.run(model.train_op)
            np.testing.assert_allclose(session.run(averages.average(shared)), np.full([8, 1], 0.5), atol=1e-6)


def test_copies_have_moving_averages_of_their_own() -> None:
    def step(x: Any, y: Any) -> Any:
        logits = layers.dense(x, 3, name="logits", kernel_initializer=normal(2, (8, 3)))
        with gc.control_dependencies([train.ExponentialMovingAverage(0.5).apply(gc.trainable_variables())]):
            return losses.sparse_softmax_cross_entropy(y, logits)

    def make() -> Any:
        return train.GradientDescentOptimizer(0.5)

    batches = [examples(7)] * 3
    found = Together(step, batches, make, cpus, **MIRRORED)
    np.testing.assert_allclose(found.losses, trained_alone(step, batches, make), atol=1e-6)
    assert len([node for node in found.graph.nodes if node.op == "VariableV2" and node.name.endswith("ExponentialMovingAverage")]) == 6


def test_a_copy_that_only_one_replica_makes_is_refused_with_advice() -> None:
    def step(x: Any) -> Any:
        train.get_or_create_global_step()
        return gc.reduce_mean(gc.matmul(x, get_variable("weights", [8, 1])))

    with (
        gc.Graph().as_default(),
        pytest.raises(gc.errors.InvalidArgumentError, match="the first replica made global_step, weights") as raised,
    ):
        train.replicate(step, cpus, optimizer=train.GradientDescentOptimizer(0.5), inputs=[examples(4)[0]], **MIRRORED)
    assert "before the call" in raised.value.suggestion
