"""Optimizers as programs of TensorFlow 1 use them."""

from __future__ import annotations

from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.tf1.names.lookup import namespace

train = namespace("train")


@pytest.fixture(autouse=True)
def graph() -> Any:
    with gc.Graph().as_default() as made:
        yield made


def test_a_counter_among_the_trainable_variables_is_left_alone() -> None:
    w = gc.Variable(1.0)
    step = gc.Variable(0, name="global_step")
    made = train.MomentumOptimizer(0.1, 0.9).minimize(w * w, global_step=step)
    session = gc.Session()
    session.run(gc.global_variables_initializer())
    session.run(made)
    assert session.run(w) == pytest.approx(0.8)
    assert session.run(step) == 1


def test_a_counter_that_sets_the_rate_is_left_alone() -> None:
    w, step = gc.Variable(1.0), gc.Variable(0)
    rate = train.exponential_decay(0.1, step, 10, 0.5)
    pairs = train.GradientDescentOptimizer(rate).compute_gradients(w * w * gc.cast(step + 1, gc.float32))
    assert [gradient is None for gradient, _ in pairs] == [False, True]


def test_a_loss_of_integers_is_refused() -> None:
    step = gc.Variable(3)
    with pytest.raises(InvalidArgumentError, match="int32"):
        train.GradientDescentOptimizer(0.1).minimize(step * step)


@pytest.mark.parametrize("counted", [False, True])
def test_the_step_is_in_the_collection_of_training_ops(counted: bool) -> None:
    w = gc.Variable(1.0)
    step = train.get_or_create_global_step() if counted else None
    made = train.GradientDescentOptimizer(0.1).minimize(w * w, global_step=step)
    assert gc.get_collection(gc.GraphKeys.TRAIN_OP) == [made]
    other = train.GradientDescentOptimizer(0.2).minimize(w * w)
    assert gc.get_collection("train_op") == [made, other]


def test_a_subclass_may_take_the_arguments_of_compute_gradients_by_keywords() -> None:
    class Clipped(train.GradientDescentOptimizer):  # type: ignore[misc, name-defined]  # a class found by name
        def compute_gradients(self, loss: Any, var_list: Any, **kwargs: Any) -> Any:
            pairs = super().compute_gradients(loss, var_list, **kwargs)
            return [(gc.clip_by_value(gradient, -1.0, 1.0), variable) for gradient, variable in pairs]

        def apply_gradients(self, grads_and_vars: Any, **kwargs: Any) -> Any:
            return super().apply_gradients(grads_and_vars, **kwargs)

    w = gc.Variable(10.0)
    step = Clipped(1.0).minimize(w * w)
    session = gc.Session()
    session.run(w.initializer)
    session.run(step)
    assert session.run(w) == 9.0


@pytest.mark.parametrize("optimizer", ["RMSPropOptimizer", "MomentumOptimizer", "AdagradOptimizer"])
@pytest.mark.parametrize("reuse", [True, gc.AUTO_REUSE])
def test_steps_in_a_variable_scope_that_shares_variables_share_their_slots(optimizer: str, reuse: Any) -> None:
    more = [0.9] if optimizer == "MomentumOptimizer" else []
    w = gc.get_variable("w", [2])
    for again in (False, reuse):
        with gc.variable_scope("opt", reuse=again):
            getattr(train, optimizer)(0.1, *more).minimize(gc.reduce_sum(w * w))
    slots = {
        "RMSPropOptimizer": ["opt/w/RMSProp", "opt/w/RMSProp_1"],
        "MomentumOptimizer": ["opt/w/Momentum"],
        "AdagradOptimizer": ["opt/w/Adagrad"],
    }
    assert sorted(variable.op.name for variable in gc.global_variables()) == [*slots[optimizer], "w"]


def test_steps_without_sharing_have_slots_of_their_own() -> None:
    w = gc.get_variable("w", [2])
    for _ in range(2):
        train.MomentumOptimizer(0.1, 0.9).minimize(gc.reduce_sum(w * w))
    assert [variable.op.name for variable in gc.global_variables()] == ["w", "w/Momentum", "w/Momentum_1"]
