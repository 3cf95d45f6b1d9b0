"""`tf.contrib.slim` and `tf.contrib.framework`: default arguments, variables, and training."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc

CONTRIB: Any = import_module("graphcore.contrib")
slim: Any = CONTRIB.slim
TRAIN: Any = import_module("graphcore.train")


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as made:
        yield made


def network(x: Any) -> Any:
    with (
        slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(0.01), activation_fn=gc.nn.relu),
        slim.arg_scope([slim.conv2d, slim.max_pool2d], outputs_collections="ends"),
        slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, normalizer_params={"is_training": True, "decay": 0.9}),
    ):
        net = slim.repeat(x, 2, slim.conv2d, 4, [3, 3], scope="conv1")
        net = slim.max_pool2d(net, [2, 2], scope="pool1")
        net = slim.conv2d(net, 2, [1, 1], normalizer_fn=None)
        net = slim.stack(slim.flatten(net), slim.fully_connected, [6, 5], scope="fc")
        return slim.fully_connected(net, 3, activation_fn=None, scope="logits")


def test_layers_take_the_default_arguments_of_the_scopes_around_them() -> None:
    x = gc.placeholder(gc.float32, [None, 4, 4, 1])
    with gc.variable_scope("net"):
        y = network(x)
    assert [variable.op.name for variable in gc.trainable_variables()] == [
        *[f"net/conv1/conv1_{n}/{name}" for n in (1, 2) for name in ("weights", "BatchNorm/beta")],
        *[f"net/{layer}/{name}" for layer in ("Conv", "fc/fc_1", "fc/fc_2", "logits") for name in ("weights", "biases")],
    ]
    assert list(slim.utils.convert_collection_to_dict("ends")) == ["net/conv1/conv1_1", "net/conv1/conv1_2", "net/pool1", "net/Conv"]
    assert len(gc.losses.get_regularization_losses()) == 6
    assert len(gc.get_collection(gc.GraphKeys.UPDATE_OPS)) == 4
    assert y.node.op == "BiasAdd"
    assert slim.model_analyzer.analyze_vars(gc.trainable_variables()) == (9 * 4 + 4 + 9 * 16 + 4 + 10 + 8 * 6 + 6 + 35 + 18, 4 * 305)
    assert [each.op.name for each in slim.get_variables_by_name("beta", "net/conv1")] == [
        f"net/conv1/conv1_{n}/BatchNorm/beta" for n in (1, 2)
    ]
    assert len(slim.get_variables_to_restore(exclude=["net/conv1"])) == 8
    assert [each.op.name for each in slim.get_model_variables("net/logits", "biases")] == ["net/logits/biases"]


def test_a_scope_of_arguments_can_be_entered_again_and_an_argument_by_position_wins() -> None:
    calls = []

    def noted(x: int, size: int = 1, rate: float = 0.5) -> None:
        calls.append((x, size, rate))

    layer = slim.add_arg_scope(noted)
    with slim.arg_scope([layer], size=2) as scope:
        layer(0)
        with slim.arg_scope([layer], rate=0.1):
            layer(1)
            layer(2, 7)
            layer(3, rate=0.9)
    layer(4)
    with slim.arg_scope(scope):
        layer(5)
    assert calls == [(0, 2, 0.5), (1, 2, 0.1), (2, 7, 0.1), (3, 2, 0.9), (4, 1, 0.5), (5, 2, 0.5)]
    assert slim.arg_scoped_arguments(layer) == ("size", "rate")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: slim.arg_scope([gc.nn.relu], name="x").__enter__(), "required functions decorated by add_arg_scope, got relu"),
        (lambda: slim.arg_scope(slim.conv2d).__enter__(), "required a list of functions or a scope"),
        (lambda: slim.arg_scope({}, stride=2).__enter__(), "no further arguments to enter a scope again, got stride"),
        (lambda: slim.stack(gc.ones([1, 2]), slim.fully_connected, 3), "required a list as stack_args, got 3"),
        (lambda: slim.get_variables_to_restore("net"), "required a list of scopes as include, got 'net'"),
        (lambda: slim.get_unique_variable("net"), "Couldn't find variable net"),
        (lambda: CONTRIB.layers.optimize_loss(gc.constant(1.0), None, 0.1, "Sgd"), "required an optimizer of Adagrad, .*got 'Sgd'"),
        (
            lambda: CONTRIB.layers.optimize_loss(gc.constant(1.0), None, 1, "SGD"),
            "required a float or a scalar tensor as learning_rate, got 1",
        ),
        (lambda: CONTRIB.layers.embed_sequence([[1]], 5), "Must specify vocab size and embedding dimension"),
    ],
)
def test_wrong_arguments_are_refused(make: Any, text: str) -> None:
    with pytest.raises((ValueError, KeyError), match=text):
        make()


def test_a_separable_convolution_is_one_of_each_channel_and_one_of_each_pixel() -> None:
    x = gc.constant(np.random.default_rng(0).normal(size=(1, 4, 4, 2)).astype(np.float32))
    y = slim.separable_conv2d(x, 3, [3, 3], depth_multiplier=2, activation_fn=None, scope="s")
    depthwise, pointwise, biases = gc.trainable_variables()
    assert [each.op.name for each in gc.trainable_variables()] == ["s/depthwise_weights", "s/pointwise_weights", "s/biases"]
    alone = slim.separable_conv2d(x, None, [3, 3], 2, activation_fn=None, biases_initializer=None, scope="t", reuse=gc.AUTO_REUSE)
    by_hand = gc.nn.bias_add(gc.nn.conv2d(gc.nn.depthwise_conv2d(x, depthwise, [1, 1, 1, 1], "SAME"), pointwise, 1, "SAME"), biases)
    copied = gc.assign(gc.trainable_variables()[3], depthwise)
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        session.run(copied)
        found, wanted, first, part = session.run([y, by_hand, alone, gc.nn.depthwise_conv2d(x, depthwise, [1, 1, 1, 1], "SAME")])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(first, part)


def test_normalization_by_instance_is_over_the_pixels_of_a_channel() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 3, 4)).astype(np.float32)
    last, first = (
        CONTRIB.layers.instance_norm(gc.constant(x)),
        CONTRIB.layers.instance_norm(gc.constant(x.transpose(0, 3, 1, 2)), data_format="NCHW"),
    )
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        found, turned = session.run([last, first])
    wanted = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-6)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(turned.transpose(0, 2, 3, 1), wanted, rtol=1e-4, atol=1e-5)


def test_a_train_op_updates_averages_clips_gradients_and_counts_steps() -> None:
    x = gc.constant([[1.0, 2.0], [3.0, 6.0]])
    hidden = slim.batch_norm(x, decay=0.5, scope="bn")
    loss = gc.reduce_sum(slim.fully_connected(hidden, 1, activation_fn=None, weights_initializer=gc.ones_initializer(), scope="f") * 100.0)
    train = slim.learning.create_train_op(loss, TRAIN.GradientDescentOptimizer(1.0), clip_gradient_norm=0.5, summarize_gradients=True)
    mean, biases = slim.get_variables("bn/moving_mean")[0], slim.get_variables_by_name("biases")[0]
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        value = session.run(train)
        assert session.run([mean, biases, slim.get_global_step()])[1:] == [pytest.approx([-0.5]), 1]
        assert session.run(mean).tolist() == [1.0, 2.0]
    assert value == pytest.approx(0.0, abs=1e-3)


def test_training_ends_at_a_step_and_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    for steps, expected in ((3, 0.5**2), (5, 0.5**4)):
        with gc.Graph().as_default():
            v = gc.get_variable("v", [], initializer=gc.ones_initializer())
            train = CONTRIB.layers.optimize_loss(gc.square(v), TRAIN.get_or_create_global_step(), 0.25, "SGD", clip_gradients=10.0)
            loss = slim.learning.train(train, str(tmp_path), number_of_steps=steps, save_summaries_secs=0, log_every_n_steps=0)
            assert loss == pytest.approx(expected**2)
            restore = slim.assign_from_checkpoint_fn(TRAIN.latest_checkpoint(str(tmp_path)), [v])
            node, feeds = slim.assign_from_values({"v": 7.0})
            with gc.Session() as session:
                restore(session)
                assert session.run(v) == pytest.approx(expected / 2)
                session.run(node, feeds)
                assert session.run(v) == 7.0


def test_losses_and_metrics_take_the_predictions_first() -> None:
    logits, labels = gc.constant([[2.0, 0.0], [0.0, 1.0]]), gc.constant([[1.0, 0.0], [1.0, 0.0]])
    one, two = slim.losses.softmax_cross_entropy(logits, labels), gc.losses.softmax_cross_entropy(labels, logits)
    values, updates = slim.metrics.aggregate_metric_map({"accuracy": slim.metrics.streaming_accuracy(gc.argmax(logits, 1), [0, 0])})
    with gc.Session() as session:
        session.run(gc.local_variables_initializer())
        session.run(updates)
        assert session.run([one, slim.losses.get_total_loss(), values["accuracy"]]) == [
            pytest.approx(session.run(two)),
            pytest.approx(2 * session.run(two)),
            0.5,
        ]


def test_settings_of_a_model_keep_their_types() -> None:
    settings = CONTRIB.training.HParams(rate=0.1, sizes=[1, 2], name="a", deep=False)
    settings.parse("rate=1,sizes=[3,4,5],deep=true")
    settings.add_hparam("units", 8)
    assert settings.values() == {"rate": 1.0, "sizes": [3, 4, 5], "name": "a", "deep": True, "units": 8}
    assert "units" in settings
    assert settings.override_from_dict({"units": 9}).units == 9
    for change in ("sizes=3", "frob=1", "units=x", "units"):
        with pytest.raises(ValueError, match=r"required|Unknown hyperparameter"):
            settings.parse(change)
    with pytest.raises(ValueError, match=r"units: required a value of type int, got 1\.5"):
        settings.set_hparam("units", 1.5)
    assert settings.parse_json('{"units": 3}').units == 3
    for text in ("{units: 4}", "[4]", "", 4, None):
        with pytest.raises(gc.GraphError, match=r"required an object in JSON, .*, got "):
            settings.parse_json(text)
