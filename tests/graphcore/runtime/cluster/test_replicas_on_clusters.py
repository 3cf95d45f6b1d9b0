"""Data-parallel training over clusters gives the losses of one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import graphcore as gc
from tests.graphcore.tf1.train.replicas.models import Together, layers, losses, normal, placeholders, train, trained_alone


def batches(count: int) -> list[Any]:
    """Batches of the digits, whose sizes differ: 8x8 pixels and classes."""
    digits = load_digits()
    pixels, classes = (digits.data / 16).astype(np.float32), digits.target.astype(np.int64)
    return [(pixels[start : start + 50 - start % 3], classes[start : start + 50 - start % 3]) for start in range(0, 50 * count, 50)]


def digits_mlp(x: Any, y: Any) -> Any:
    """The perceptron for digits. x: [batch, 64]  y: [batch] -> loss."""
    hidden = layers.dense(x, 32, gc.tanh, name="hidden", kernel_initializer=normal(1, (64, 32)))
    return losses.sparse_softmax_cross_entropy(y, layers.dense(hidden, 10, name="logits", kernel_initializer=normal(2, (32, 10))))


def adam() -> gc.AdamOptimizer:
    made: gc.AdamOptimizer = train.AdamOptimizer(0.01)
    return made


def test_replicas_over_tasks_give_the_losses_of_one_process(cluster: gc.DaskCluster) -> None:
    data = batches(5)
    *workers, ps = cluster.devices
    expected = trained_alone(digits_mlp, data, adam)
    for place in ({"ps_devices": [ps]}, {"variables": "mirrored", "reduce": "ring"}):
        found = Together(digits_mlp, data, adam, workers, cluster=cluster, **place)
        np.testing.assert_allclose(found.losses, expected, atol=1e-6)


def test_replicas_over_tasks_train_without_waiting_for_each_other(cluster: gc.DaskCluster) -> None:
    data = batches(6)
    *workers, ps = cluster.devices
    with gc.Graph().as_default():
        inputs = placeholders(data[0])
        model = train.replicate(digits_mlp, workers, optimizer=adam(), inputs=inputs, ps_devices=[ps], synchronous=False)
        with gc.Session(cluster=cluster) as session:
            session.run(gc.initialize_all_variables())
            run = model.run_async(session, 15, lambda replica, step: dict(zip(inputs, data[3 * replica + step % 3], strict=True)))
            assert session.run(model.global_step) == 30
        assert all(losses[-1] < 0.8 * losses[0] for losses in run.losses)


@pytest.mark.slow
def test_two_and_four_processes_train_the_digits_to_the_losses_of_one_process() -> None:
    data = batches(20)
    expected = trained_alone(digits_mlp, data, adam)
    assert expected[-1] < 0.5 * expected[0]
    with gc.LocalCluster(workers=4, ps=1) as cluster:
        names = cluster.tasks["worker"]
        for count in (2, 4):
            part = gc.DaskCluster(cluster.client, {"worker": names[:count], "ps": cluster.tasks["ps"]})
            *workers, ps = part.devices
            for place in ({"ps_devices": [ps]}, {"variables": "mirrored", "reduce": "ring"}):
                found = Together(digits_mlp, data, adam, workers, cluster=part, **place)
                np.testing.assert_allclose(found.losses, expected, atol=1e-6)
                for copies in found.copies:
                    for first, copy in zip(found.copies[0], copies, strict=True):
                        np.testing.assert_array_equal(first, copy)
