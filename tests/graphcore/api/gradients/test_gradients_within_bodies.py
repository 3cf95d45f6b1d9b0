"""Gradients within branches, loops and functions are those of variables and tensors outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with gc.Graph().as_default():
        yield


def variable(use_resource: bool) -> gc.Variable:
    return gc.Variable([0.5, -0.3], name="w", use_resource=use_resource)


def run(*fetches: Any) -> Any:
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        return [session.run(fetch) for fetch in fetches]


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_branch_differentiates_with_respect_to_a_variable_and_a_tensor_outside(use_resource: bool) -> None:
    w, x, yes = variable(use_resource), gc.constant([1.0, 2.0]), gc.constant(True)

    def both() -> Any:
        of_w, of_x = gc.gradients(gc.reduce_sum(w * w * x), [w, x])
        return of_w + 10.0 * of_x

    expected = 2 * np.array([0.5, -0.3]) * [1, 2] + 10 * np.array([0.25, 0.09])
    for found in run(gc.cond(yes, both, lambda: x), gc.cond(yes, lambda: gc.cond(yes, both, lambda: x), lambda: x), gc.function(both)()):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert run(gc.cond(yes, lambda: gc.constant(gc.gradients(gc.reduce_sum(x), [w]) == [None]), lambda: yes)) == [True]


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_gradient_contains_reads_after_a_change_in_the_branch(use_resource: bool) -> None:
    w = variable(use_resource)

    def step() -> Any:
        with gc.control_dependencies([w.assign_add([1.0, 1.0])]):
            return gc.gradients(gc.reduce_sum(gc.square(w)), [w])[0]

    np.testing.assert_allclose(run(gc.cond(gc.constant(True), step, lambda: gc.zeros([2]))), [[3.0, 1.4]], rtol=1e-6)


def test_a_loop_takes_steps_along_gradients() -> None:
    w = variable(False)

    def step(i: Any) -> Any:
        with gc.control_dependencies([w.assign_sub(0.25 * gc.gradients(gc.reduce_sum(gc.square(w)), [w])[0])]):
            return i + 1

    with gc.control_dependencies([gc.while_loop(lambda i: i < 3, step, [0])]):
        after = w.read_value()
    np.testing.assert_allclose(run(after), [[0.0625, -0.0375]], rtol=1e-6)


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_training_step_in_a_branch_is_refused_with_a_way_to_write_it(use_resource: bool) -> None:
    w = variable(use_resource)

    def minimized() -> Any:
        with gc.control_dependencies([gc.AdamOptimizer(0.1).minimize(gc.reduce_sum(w * w))]):
            return gc.constant(1.0)

    def applied() -> Any:
        with gc.control_dependencies([gc.AdamOptimizer(0.1).apply_gradients([(gc.ones([2]), w)])]):
            return gc.constant(1.0)

    for branch in (minimized, applied):
        with pytest.raises(gc.errors.UnimplementedError, match="training step of an optimizer within a branch, loop or function") as raised:
            gc.cond(gc.constant(True), branch, lambda: gc.constant(0.0))
        assert "assign_sub" in raised.value.suggestion
