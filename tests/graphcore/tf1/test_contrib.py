"""`tf.contrib.layers`: names as in TensorFlow 1.15, numbers of the ops by hand."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import graphcore as gc

CONTRIB: Any = import_module("graphcore.contrib")
LAYERS = CONTRIB.layers


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as made:
        yield made


def run(*fetches: Any) -> list[Any]:
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        return [np.asarray(value) for value in session.run(list(fetches))]


def names(collection: str = gc.GraphKeys.GLOBAL_VARIABLES) -> list[str]:
    return [item.name for item in gc.get_collection(collection)]


def test_a_fully_connected_layer_has_weights_and_biases_of_the_model() -> None:
    x = gc.constant([[1.0, -2.0]])
    y = LAYERS.fully_connected(x, 3, weights_regularizer=LAYERS.l2_regularizer(0.5), variables_collections={"weights": ["w"]})
    assert names() == names(gc.GraphKeys.MODEL_VARIABLES) == ["fully_connected/weights:0", "fully_connected/biases:0"]
    assert names("w") == ["fully_connected/weights:0"]
    assert names(gc.GraphKeys.REGULARIZATION_LOSSES) == ["fully_connected/kernel/Regularizer/l2_regularizer:0"]
    weights, value, loss = run(gc.global_variables()[0], y, gc.get_collection(gc.GraphKeys.REGULARIZATION_LOSSES)[0])
    np.testing.assert_allclose(value, np.maximum([[1.0, -2.0]] @ weights, 0), rtol=1e-6)
    np.testing.assert_allclose(loss, 0.25 * np.sum(weights**2), rtol=1e-6)


def test_layers_share_their_variables_by_scope() -> None:
    x = gc.ones([1, 2])
    one = LAYERS.fully_connected(x, 3, scope="f", weights_regularizer=LAYERS.l1_regularizer(0.1))
    two = LAYERS.fully_connected(x, 3, scope="f", weights_regularizer=LAYERS.l1_regularizer(0.1), reuse=True)
    LAYERS.linear(x, 2)
    assert names() == ["f/weights:0", "f/biases:0", "fully_connected/weights:0", "fully_connected/biases:0"]
    assert len(gc.get_collection(gc.GraphKeys.REGULARIZATION_LOSSES)) == 1
    np.testing.assert_array_equal(*run(one, two))


def test_convolutions_with_normalization_have_no_biases() -> None:
    x = gc.ones([2, 8, 8, 3])
    y = LAYERS.conv2d(x, 4, 3, normalizer_fn=LAYERS.batch_norm, normalizer_params={"is_training": True, "scale": True})
    assert names() == [
        f"Conv/{name}:0" for name in ("weights", *[f"BatchNorm/{n}" for n in ("gamma", "beta", "moving_mean", "moving_variance")])
    ]
    assert len(gc.get_collection(gc.GraphKeys.UPDATE_OPS)) == 2
    z = LAYERS.conv2d_transpose(LAYERS.max_pool2d(y, 2), 2, 3, stride=2)
    assert names()[-2:] == ["Conv2d_transpose/weights:0", "Conv2d_transpose/biases:0"]
    assert LAYERS.flatten(LAYERS.avg_pool2d(z, [2, 2])).shape == [2, 32]
    assert np.isfinite(run(z)[0]).all()


def test_updates_of_moving_averages_may_come_before_the_outputs() -> None:
    x = gc.constant([[1.0], [3.0]])
    y = LAYERS.batch_norm(x, decay=0.9, updates_collections=None, scope="bn")
    assert gc.get_collection(gc.GraphKeys.UPDATE_OPS) == []
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        session.run(y)
        assert session.run(gc.global_variables()[1]) == pytest.approx([0.2])


def test_layer_normalization_is_over_the_values_of_an_example() -> None:
    x = np.array([[1.0, 2.0, 6.0], [0.0, 4.0, 8.0]], np.float32)
    (y,) = run(LAYERS.layer_norm(gc.constant(x), scope="ln"))
    np.testing.assert_allclose(y, (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True), rtol=1e-5)
    assert names() == ["ln/beta:0", "ln/gamma:0"]
    cell = CONTRIB.rnn.LayerNormBasicLSTMCell(3)
    state = cell.zero_state(2, gc.float32)
    (_, memory) = run(*cell(gc.constant(x), state)[1])[::-1]
    np.testing.assert_allclose([memory.mean(1), memory.std(1)], [[0, 0], [1, 1]], atol=1e-4)
    parts = [f"{part}/{name}" for part in ("input", "transform", "forget", "output", "state") for name in ("gamma", "beta")]
    assert names()[2:] == [f"layer_norm_basic_lstm_cell/{name}:0" for name in ("kernel", *parts)]


def test_losses_of_sequences_are_means_over_what_is_chosen() -> None:
    rng = np.random.default_rng(0)
    logits, targets = rng.normal(size=(2, 3, 4)).astype(np.float32), rng.integers(0, 4, (2, 3))
    weights = np.array([[1, 1, 0], [1, 0, 0]], np.float32)
    each = -np.take_along_axis(logits - np.log(np.exp(logits).sum(2, keepdims=True)), targets[..., None], 2)[..., 0] * weights
    loss = CONTRIB.seq2seq.sequence_loss
    whole, by_row, by_step, all_losses = run(
        *[loss(logits, targets, weights, time, batch) for time, batch in ((True, True), (True, False), (False, True), (False, False))]
    )
    np.testing.assert_allclose(whole, each.sum() / 3, rtol=1e-5)
    np.testing.assert_allclose(by_row, each.sum(1) / weights.sum(1), rtol=1e-5)
    np.testing.assert_allclose(by_step, each.sum(0) / [2, 1, 1], rtol=1e-5)
    np.testing.assert_allclose(all_losses, each, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"required targets of rank 2, got \[2\]"):
        loss(logits, targets[:, 0], weights)


def test_dropout_and_one_hot_encodings() -> None:
    kept, dropped, vectors = run(
        LAYERS.dropout(gc.ones([50]), is_training=False), LAYERS.dropout(gc.ones([50]), 0.5), LAYERS.one_hot_encoding([1, 0], 3)
    )
    assert (kept == 1).all()
    assert set(dropped.tolist()) == {0.0, 2.0}
    assert vectors.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_regularizers_add_up() -> None:
    w = gc.constant([[1.0, -2.0]])
    both = LAYERS.l1_l2_regularizer(0.5, 0.1)(w)
    total = LAYERS.apply_regularization(LAYERS.l2_regularizer(1.0), [w, w])
    assert [float(value) for value in run(both, total)] == pytest.approx([0.5 * 3 + 0.1 * 2.5, 5.0])
    assert gc.get_collection(gc.GraphKeys.REGULARIZATION_LOSSES) == [total]
    assert LAYERS.sum_regularizer([None]) is None
    assert LAYERS.l2_regularizer(0.0)(w) is None


def test_initializers_draw_within_their_limits() -> None:
    uniform, normal = run(LAYERS.xavier_initializer(seed=1)([30, 50]), LAYERS.variance_scaling_initializer(seed=1)([3, 3, 10, 20]))
    assert 0.8 * np.sqrt(6 / 80) < np.abs(uniform).max() <= np.sqrt(6 / 80)
    assert normal.std() == pytest.approx(np.sqrt(2.6 / 90) * 0.88, rel=0.1)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: LAYERS.l2_regularizer(1), "scale cannot be an integer: 1"),
        (lambda: LAYERS.l1_regularizer(-0.5), "less than 0 on a regularizer: -0.5"),
        (lambda: LAYERS.apply_regularization(LAYERS.l2_regularizer(1.0)), "No weights to regularize"),
        (lambda: LAYERS.variance_scaling_initializer(mode="FAN"), "Unknown mode FAN"),
        (lambda: LAYERS.conv2d(gc.ones([2, 3, 4]), 2, 3), "expects input with rank 4, got 3"),
        (lambda: LAYERS.batch_norm(gc.ones([2, 3]), zero_debias_moving_mean=True), "zero_debias_moving_mean are not available"),
        (lambda: CONTRIB.legacy_seq2seq.sequence_loss([1], [1, 2], [1]), "must be the same 1, 1, 2"),
    ],
)
def test_what_cannot_be_done_is_refused(make: Any, text: str) -> None:
    with pytest.raises((ValueError, NotImplementedError), match=text):
        make()


def test_names_that_are_not_here_say_so() -> None:
    with pytest.raises(AttributeError, match="sequence_to_images"):
        _ = LAYERS.sequence_to_images
    with pytest.raises(AttributeError, match="LSTMBlockCell"):
        _ = CONTRIB.rnn.LSTMBlockCell
