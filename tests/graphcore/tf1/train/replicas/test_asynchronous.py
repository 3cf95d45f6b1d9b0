"""Asynchronous training: steps of each replica on its own, and their staleness."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from tests.graphcore.tf1.train.replicas.models import examples, get_variable, mlp, placeholders, sentences, train, trained_alone, words

CPUS = ["/cpu:0", "/cpu:1", "/cpu:2"]
PS = ["/cpu:5", "/cpu:6"]


def adam() -> gc.AdamOptimizer:
    made: gc.AdamOptimizer = train.AdamOptimizer(0.02)
    return made


def replicated(step: Any = mlp, batch: Any = None, **given: Any) -> tuple[Any, list[Any]]:
    """An asynchronous training, and its placeholders."""
    inputs = placeholders(batch or examples(4))
    arguments = {"optimizer": adam(), "inputs": inputs, "ps_devices": PS, "synchronous": False} | given
    return train.replicate(step, arguments.pop("devices", CPUS), **arguments), inputs


def started() -> gc.Session:
    session = gc.Session(devices=[*CPUS, *PS])
    session.run(gc.initialize_all_variables())
    return session


@pytest.mark.parametrize(("step", "batch"), [(mlp, examples(9)), (words, sentences(9))], ids=["dense", "rows"])
def test_replicas_that_take_turns_train_as_one_process_without_staleness(step: Any, batch: tuple[Any, Any]) -> None:
    with gc.Graph().as_default():
        model, inputs = replicated(step, batch)
        feeds = dict(zip(inputs, batch, strict=True))
        with started() as session:
            found = []
            for turn in range(12):
                replica = turn % 3
                loss, staleness, _ = session.run([model.losses[replica], model.staleness[replica], model.train_ops[replica]], feeds)
                found.append(loss)
                assert staleness == 0
                assert session.run(model.global_step) == turn + 1
    np.testing.assert_allclose(found, trained_alone(step, [batch] * 12, adam), atol=1e-6)


def step_of_weights(x: Any) -> Any:
    """The product of two weights and the mean input. x: [batch] -> loss."""
    return gc.reduce_mean(x) * gc.reduce_sum(get_variable("weights", [2], initializer=gc.constant_initializer(1.0)))


def test_staleness_is_the_number_of_steps_of_others_between_read_and_change() -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [None])
        model, _ = replicated(step_of_weights, optimizer=train.GradientDescentOptimizer(1.0), inputs=[x])
        begun = graph.get_tensor_by_name("replica_0/step:0")
        with started() as session:
            rest = [model.losses[0], model.staleness[0], model.train_ops[0]]
            slow = session.partial_run_setup([begun, *rest], [x])
            assert session.partial_run(slow, begun) == 0
            for replica, expected in ((1, 0), (2, 0), (1, 0)):
                assert session.run([model.staleness[replica], model.train_ops[replica]], {x: [2.0]})[0] == expected
            assert session.run(model.variables[0]).tolist() == [-5.0, -5.0]
            loss, staleness, _ = session.partial_run(slow, rest, {x: [10.0]})
            assert (loss, staleness) == (20.0, 3)  # of the variables before the other steps
            assert session.run(model.variables[0]).tolist() == [-15.0, -15.0]
            assert session.run(model.global_step) == 4


def test_run_async_takes_all_steps_in_threads_and_shows_loss_and_staleness_of_each_replica() -> None:
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [None])
        counter = gc.Variable(np.int32(0), name="counter", trainable=False)
        model, _ = replicated(step_of_weights, optimizer=train.GradientDescentOptimizer(1.0), inputs=[x], global_step=counter)
        assert repr(model).splitlines() == [
            "<gc.train.Replicated: 3 replicas, loss 'loss/loss:0', asynchronous",
            "  replica 0 on /cpu:0",
            "  replica 1 on /cpu:1",
            "  replica 2 on /cpu:2",
            "  weights float [2], on /cpu:5>",
        ]
        with started() as session:
            run = model.run_async(session, 20, lambda replica, step: {x: [(replica + step) % 2]})
            assert session.run(model.variables[0]).tolist() == [-29.0, -29.0]  # no change is lost
            assert session.run(counter) == 60
            assert [len(each) for each in (*run.losses, *run.staleness)] == [20] * 6
            assert all(0 <= staleness <= 40 for each in run.staleness for staleness in each)
            assert [line.partition(", staleness")[0].partition(", last loss")[0] for line in repr(run).splitlines()] == [
                "<gc.train.AsyncRun",
                *[f"  replica {replica}: 20 steps" for replica in range(3)],
            ]
            assert " on average " in repr(run)
            assert "replica 2: 0 steps>" in repr(model.run_async(session, 0))


def test_a_step_that_fails_ends_all_replicas_with_its_error() -> None:
    with gc.Graph().as_default():
        model, (x, y) = replicated()

        def feeds(replica: int, step: int) -> dict[Any, Any]:
            inputs, classes = examples(4)
            return {x: inputs, y: classes + (100 if (replica, step) == (1, 3) else 0)}

        with started() as session:
            with pytest.raises(InvalidArgumentError, match=r"replica_1/"):
                model.run_async(session, 10_000, feeds)
            assert session.run(model.global_step) < 30_000
            session.run(model.train_ops[0], feeds(0, 0))


def test_wrong_input_is_refused_with_what_was_required() -> None:
    with gc.Graph().as_default():
        with pytest.raises(InvalidArgumentError, match="variables: required 'ps' with synchronous=False"):
            replicated(variables="mirrored", ps_devices=None)
        with pytest.raises(InvalidArgumentError, match="global_step: required a variable of int32 or int64, got 3"):
            replicated(global_step=3)
        weights = gc.Variable(gc.ones([8, 1]), name="before")
        with pytest.raises(InvalidArgumentError, match=r"required resource variables, .*; 'before' is a reference"):
            replicated(lambda x, _: gc.reduce_mean(gc.matmul(x, weights)))
        model, _ = replicated()
        with pytest.raises(AttributeError, match="no train_op of all replicas"):
            _ = model.train_op
        with started() as session, pytest.raises(InvalidArgumentError, match="steps: required a number of steps, got -1"):
            model.run_async(session, -1)
    with gc.Graph().as_default():
        together, _ = replicated(synchronous=True)
        with started() as session, pytest.raises(FailedPreconditionError, match="required an asynchronous training"):
            together.run_async(session, 1)
