"""Training in replicas gives the losses of one process, as a graph one can look at."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import AlreadyExistsError, InvalidArgumentError
from graphcore.tf1.indexed_slices import IndexedSlices
from tests.graphcore.tf1.train.replicas.models import (
    Together,
    examples,
    get_variable,
    layers,
    losses,
    mlp,
    placeholders,
    sentences,
    train,
    trained_alone,
    words,
)

PS = {"ps_devices": ["/cpu:5", "/cpu:6"]}
MIRRORED = {"variables": "mirrored"}
OPTIMIZERS = {
    "descent": lambda: train.GradientDescentOptimizer(0.5),
    "momentum": lambda: train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: train.AdamOptimizer(0.02),
    "rmsprop": lambda: train.RMSPropOptimizer(0.01),
    "adagrad": lambda: train.AdagradOptimizer(0.2),
}


def cpus(count: int) -> list[str]:
    return [f"/cpu:{number}" for number in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("place", [PS, MIRRORED], ids=["ps", "mirrored"])
def test_losses_of_replicas_are_those_of_one_process_with_equal_and_unequal_shares(optimizer: str, place: dict[str, Any]) -> None:
    make = OPTIMIZERS[optimizer]
    batches = [examples(10)] * 20 + [examples(7)] * 10
    expected = trained_alone(mlp, batches, make)
    assert expected[-1] < 0.5 * expected[0]
    for count, reduce in ((2, "auto"), (3, "tree"), (4, "ring")):
        found = Together(mlp, batches, make, cpus(count), reduce=reduce, **place)
        np.testing.assert_allclose(found.losses, expected, atol=1e-6)
        for copies in found.copies:
            for first, copy in zip(found.copies[0], copies, strict=True):
                np.testing.assert_array_equal(first, copy)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_gradients_that_are_slices_are_listed_and_train_as_in_one_process(optimizer: str) -> None:
    make = OPTIMIZERS[optimizer]
    batches = [sentences(7)] * 15
    expected = trained_alone(words, batches, make)
    for place in (PS, MIRRORED):
        found = Together(words, batches, make, cpus(3), **place)
        np.testing.assert_allclose(found.losses, expected, atol=1e-6)
        assert next(iter(found.model.ways.values())) == "rows"
        assert isinstance(found.model.gradients[0][0], IndexedSlices)


def test_replicas_are_scopes_on_their_devices_and_variables_go_to_the_device_with_fewest_bytes() -> None:
    graph = Together(mlp, [examples(8)], OPTIMIZERS["adam"], cpus(2), **PS).graph
    for number in range(2):
        nodes = [node for node in graph.nodes if node.name.startswith(f"replica_{number}/")]
        assert {node.device for node in nodes} == {f"/job:localhost/replica:0/task:0/device:CPU:{number}"}
        assert {"MatMul", "Tanh", "SparseSoftmaxCrossEntropyWithLogits", "BiasAddGrad"} <= {node.op for node in nodes}
    places = {node.name: node.device[-1] for node in graph.nodes if node.op in {"VariableV2", "ApplyAdam"} and "power" not in node.name}
    assert places == {
        **dict.fromkeys(["hidden/kernel", "hidden/kernel/Adam", "hidden/kernel/Adam_1", "Adam/update_hidden/kernel/ApplyAdam"], "5"),
        **{
            name: "6"
            for of in ("hidden/bias", "logits/kernel", "logits/bias")
            for name in (of, f"{of}/Adam", f"{of}/Adam_1", f"Adam/update_{of}/ApplyAdam")
        },
    }


def test_names_of_replicas_are_completed_and_documented() -> None:
    assert {"replicate", "Replicated", "AsyncRun"} <= set(dir(train))
    assert "train_op" in (train.Replicated.__doc__ or "")
    assert "gc.train.replicate(step" in (train.replicate.__doc__ or "")


def test_mirrored_copies_begin_with_the_same_random_values_each_time_they_are_initialised() -> None:
    def step(x: Any) -> Any:
        made = gc.Variable(gc.random_normal([8, 2]), name="made")
        return gc.reduce_mean(gc.square(gc.matmul(x, made) + get_variable("got", [2])))

    with gc.Graph().as_default():
        model = train.replicate(step, cpus(3), optimizer=OPTIMIZERS["descent"](), inputs=[examples(6)[0]], variables="mirrored")
        assert [variable.op.name for variable in model.copies[2]] == ["replica_2/made", "replica_2/got"]
        start = gc.initialize_all_variables()
        with gc.Session(devices=cpus(3)) as session:
            seen = []
            for _ in range(2):
                session.run(start)
                first, *others = session.run(model.copies)
                for copies in others:
                    np.testing.assert_array_equal(copies[0], first[0])
                    np.testing.assert_array_equal(copies[1], first[1])
                seen.append(first[0])
            assert not np.array_equal(*seen)


def test_the_loss_is_the_weighted_mean_and_each_replica_gives_its_other_results() -> None:
    with gc.Graph().as_default():
        x, y = placeholders(examples(5))
        step = train.create_global_step()
        model = train.replicate(mlp, cpus(2), optimizer=OPTIMIZERS["descent"](), inputs=[x, y], global_step=step)
        with gc.Session(devices=cpus(2)) as session:
            session.run(gc.initialize_all_variables())
            feeds = dict(zip((x, y), examples(5), strict=True))
            loss, parts, logits = session.run([model.loss, model.losses, [other for (other,) in model.outputs]], feeds)
            assert [len(each) for each in logits] == [3, 2]
            assert loss == pytest.approx(0.6 * parts[0] + 0.4 * parts[1])
            session.run(model.train_op, feeds)
            assert session.run(step) == 1
        assert repr(model).splitlines()[:4] == [
            "<gc.train.Replicated: 2 replicas, loss 'loss/loss:0', train_op 'GradientDescent'",
            "  replica 0 on /cpu:0",
            "  replica 1 on /cpu:1",
            "  hidden/kernel float [8,16], on /cpu:0, summed as tree (predicted alone: tree 11 us, ring 23 us)",
        ]


def test_variables_made_before_are_shared_by_replicas_that_mirror_their_own() -> None:
    def step(x: Any) -> Any:
        return gc.reduce_mean(gc.square(gc.matmul(x, weights) + get_variable("bias", [1])))

    with gc.Graph().as_default():
        weights = gc.Variable(gc.ones([8, 1]))
        model = train.replicate(step, cpus(2), optimizer=OPTIMIZERS["descent"](), inputs=[gc.ones([4, 8])], variables="mirrored")
        assert [variable.op.name for _, variable in model.gradients] == ["Variable", "replica_0/bias", "replica_1/bias"]
        with gc.Session(devices=cpus(2)) as session:
            session.run(gc.initialize_all_variables())
            bias = session.run(model.copies[0][1])
            session.run(model.train_op)
            np.testing.assert_allclose(session.run(weights), np.full([8, 1], 1 - 0.5 * 2 * (8 + bias[0])), rtol=1e-6)
            assert "Variable float [8,1], on any device, summed" in repr(model)
            assert "replica_0/bias float [1], a copy on each device, summed" in repr(model)


def test_variables_made_before_are_shared_and_a_variable_that_one_replica_leaves_out_trains_by_the_others() -> None:
    count = iter(range(2))

    def step(x: Any) -> Any:
        product = gc.reduce_mean(gc.square(gc.matmul(x, weights)))
        return product + bias if next(count) else product

    with gc.Graph().as_default():
        weights, bias, _unused = gc.Variable(gc.ones([8, 1])), gc.Variable(1.0), gc.Variable(1.0)
        model = train.replicate(step, cpus(2), optimizer=OPTIMIZERS["descent"](), inputs=[examples(4)[0]])
        assert model.variables == [weights, bias]
        with gc.Session(devices=cpus(2)) as session:
            session.run(gc.initialize_all_variables())
            session.run(model.train_op)
            assert session.run(bias) == 1.0 - 0.5 * 0.5


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"devices": []}, "devices: required at least one device, got none"),
        ({"devices": "/cpu:0"}, r"devices: required a list of devices, such as .*, got '/cpu:0'"),
        ({"devices": ["/cpu:0", 1]}, "devices: required names of devices or gc.Device, got 1"),
        ({"devices": ["nothing:"]}, "devices: required names of devices such as '/cpu:0', got 'nothing:'"),
        ({"ps_devices": []}, "ps_devices: required at least one device, got none"),
        ({"variables": "mirrored", "ps_devices": ["/cpu:0"]}, "ps_devices: required None with variables='mirrored'"),
        ({"variables": "everywhere"}, "variables: required 'ps' or 'mirrored', got 'everywhere'"),
        ({"reduce": "star"}, "reduce: required 'auto', 'tree' or 'ring', got 'star'"),
        ({"optimizer": 0.1}, "optimizer: required an optimizer, such as gc.train.AdamOptimizer"),
        ({"step": 3}, "step: required a function that builds the model of one replica, got 3"),
        ({"inputs": np.zeros([4, 8])}, "inputs: required a list of tensors"),
        ({"inputs": [np.zeros([4, 8]), 3.0]}, r"inputs\[1\]: '.*' is a scalar, which cannot be split"),
        ({"inputs": [np.zeros([1, 8]), [0]]}, "inputs: required at least 2 examples, one for each replica, got 1 in"),
        ({"inputs": [np.zeros([4, 8]), [0, 1, 2]]}, "inputs: required the same number of examples .* has 4, .* has 3"),
        ({"inputs": [np.zeros([4, 8])]}, "step: required a function that takes 1 arguments"),
        ({"step": lambda _x, _y: None}, "step: required the loss, a scalar tensor, .* for replica 0 it returned None"),
        ({"step": lambda x, _: x}, "step: required a loss that is a scalar of floats, got 'shares/.*"),
        ({"step": lambda x, _: gc.reduce_mean(x)}, "step: the loss '.*' depends on no trainable variable"),
        (
            {"step": lambda x, _: gc.reduce_mean(gc.matmul(x, gc.Variable(gc.zeros([8, 2]), name="W")))},
            "replica 1 made 'replica_1/W', and the first replica made 'replica_0/W'",
        ),
    ],
)
def test_wrong_input_is_refused_with_what_was_required_and_leaves_the_graph_as_it_was(given: dict[str, Any], text: str) -> None:
    arguments = {"step": mlp, "devices": cpus(2), "optimizer": OPTIMIZERS["adam"](), "inputs": list(examples(4))} | given
    with gc.Graph().as_default() as graph:
        with pytest.raises(InvalidArgumentError, match=text):
            train.replicate(**arguments)
        assert not [node.name for node in graph.nodes if not node.name.startswith("Const")]
        assert not graph.get_collection("variables")


def test_replicas_that_make_other_variables_are_refused() -> None:
    count = iter(range(4))

    def step(x: Any) -> Any:
        return gc.reduce_mean(gc.matmul(x, get_variable(f"W{next(count)}", [8, 2])))

    with gc.Graph().as_default():
        given = {"optimizer": OPTIMIZERS["adam"](), "inputs": [examples(4)[0]]}
        with pytest.raises(InvalidArgumentError, match="the first replica made W0, and replica 1 made W1"):
            train.replicate(step, cpus(2), variables="mirrored", **given)
        with pytest.raises(InvalidArgumentError, match="Variable W3 does not exist"):
            train.replicate(step, cpus(2), **given)


def test_a_batch_that_cannot_be_split_is_refused_in_the_run() -> None:
    with gc.Graph().as_default():
        x, y = placeholders(examples(4))
        model = train.replicate(mlp, cpus(3), optimizer=OPTIMIZERS["adam"](), inputs=[x, y])
        with gc.Session(devices=cpus(3)) as session:
            session.run(gc.initialize_all_variables())
            with pytest.raises(InvalidArgumentError, match=r"at least 3 examples, one for each replica; the batch 'x:0' has\] \[2\]"):
                session.run(model.train_op, dict(zip((x, y), examples(2), strict=True)))
            with pytest.raises(InvalidArgumentError, match=r"as many examples in 'y:0' as in 'x:0', got\] \[4\] \[and\] \[5\]"):
                session.run(model.train_op, {x: examples(5)[0], y: examples(4)[1]})
        with gc.Session(devices=cpus(2)) as session, pytest.raises(InvalidArgumentError, match=r"replica_2.* device:CPU:2|CPU:2"):
            session.run(model.train_op, dict(zip((x, y), examples(4), strict=True)))
        with pytest.raises(AlreadyExistsError, match="Variable hidden/kernel already exists"):
            train.replicate(mlp, cpus(3), optimizer=OPTIMIZERS["adam"](), inputs=[x, y])


def test_layers_without_names_are_shared_and_a_model_is_replicated_twice_in_scopes_of_its_own() -> None:
    def step(x: Any, y: Any) -> Any:
        return losses.sparse_softmax_cross_entropy(y, layers.dense(layers.dense(x, 4, gc.tanh), 3))

    with gc.Graph().as_default():
        for scope in ("first", "second"):
            with gc.variable_scope(scope):
                model = train.replicate(step, cpus(2), optimizer=OPTIMIZERS["adam"](), inputs=list(examples(4)))
            names = [f"{scope}/{layer}/{part}" for layer in ("dense", "dense_1") for part in ("kernel", "bias")]
            assert [variable.op.name for variable in model.variables] == names


def regularized(x: Any, y: Any) -> Any:
    """A loss with all that is in the collections. x: [batch, 8]  y: [batch] -> loss."""
    regularizer = import_module("graphcore.contrib.layers").l2_regularizer(0.1)
    logits = layers.dense(x, 3, name="logits", kernel_initializer=gc.ones_initializer(), kernel_regularizer=regularizer)
    losses.sparse_softmax_cross_entropy(y, logits)
    decay = gc.add_n([gc.reduce_sum(gc.square(variable)) for variable in gc.trainable_variables()])
    return losses.get_total_loss() + 0.01 * decay


@pytest.mark.parametrize("place", [PS, MIRRORED], ids=["ps", "mirrored"])
def test_collections_of_losses_and_variables_are_those_of_the_replica_that_reads_them(place: dict[str, Any]) -> None:
    batches = [examples(7)] * 5
    expected = trained_alone(regularized, batches, OPTIMIZERS["momentum"])
    found = Together(regularized, batches, OPTIMIZERS["momentum"], cpus(3), **place)
    np.testing.assert_allclose(found.losses, expected, atol=1e-6)
    with found.graph.as_default():
        assert len(losses.get_losses()) == 3
        assert len(gc.trainable_variables()) == (2 if place is PS else 6)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 5), st.integers(0, 7), st.sampled_from([PS, MIRRORED]), st.sampled_from(["auto", "tree", "ring"]))
def test_any_number_of_replicas_takes_the_step_of_one_process_with_any_batch(
    count: int, more: int, place: dict[str, Any], reduce: str
) -> None:
    batches = [examples(count + more)] * 3
    found = Together(mlp, batches, OPTIMIZERS["momentum"], cpus(count), reduce=reduce, **place)
    np.testing.assert_allclose(found.losses, trained_alone(mlp, batches, OPTIMIZERS["momentum"]), atol=1e-6)
