"""Gradients within branches, loops and functions are those of variables and tensors outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore
from tests.graphcore.api.cell_runs import Cells

gc: Any = graphcore  # its namespaces are found on demand


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


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
@pytest.mark.parametrize("use_resource", [False, True])
def test_a_gradient_goes_on_outside_of_the_branch_or_loop(use_resource: bool, engine: Any) -> None:
    w, x, yes = gc.Variable(3.0, use_resource=use_resource), gc.constant(3.0), gc.constant(True)
    of_w, of_x = w * w, x * x
    _, looped = gc.while_loop(lambda i, _: i < 1, lambda i, a: (i + 1, a + gc.gradients(x * of_x, x)[0]), [0, 0.0])
    found = [
        gc.cond(yes, lambda: gc.gradients(x * of_x, x)[0], lambda: x),
        gc.cond(yes, lambda: gc.gradients(w * of_w, w)[0], lambda: x),
        looped,
        gc.function(lambda: gc.gradients(w * of_w, w)[0], name="f")(),
        gc.cond(yes, lambda: gc.cond(yes, lambda: gc.gradients(w * of_w, w)[0], lambda: x), lambda: x),
        gc.cond(yes, lambda: gc.gradients(x * of_x, of_x)[0] * 9.0, lambda: x),
    ]
    rows = gc.map_fn(lambda e: gc.gradients(e * w * of_w, w)[0], gc.constant([1.0, 2.0]))
    with gc.Session(engine=engine) as session:
        session.run(gc.initialize_all_variables())
        assert session.run(found) == [27.0] * 6
        assert session.run(rows).tolist() == [27.0, 54.0]


def test_a_gradient_in_a_branch_goes_through_branches_loops_and_functions_outside() -> None:
    x, yes = gc.constant(3.0), gc.constant(True)
    branch = gc.cond(x > 0.0, lambda: x * x, lambda: x)
    _, loop = gc.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, a * x), [0, x])
    call = gc.function(lambda a: a * a * x, name="cube")(x)
    found = [gc.cond(yes, lambda z=z: gc.gradients(x * z, x)[0], lambda: x) for z in (branch, loop, call)]
    rows = gc.map_fn(lambda e: gc.gradients(e * x * loop, x)[0], gc.constant([1.0, 2.0]))
    with gc.Session() as session:
        assert session.run(found) == [27.0, 108.0, 108.0]
        assert session.run(rows).tolist() == [108.0, 216.0]


def test_a_gradient_of_what_is_outside_belongs_to_the_branch_that_takes_it() -> None:
    x, p = gc.placeholder(gc.float32, []), gc.placeholder(gc.bool_, [])
    y = gc.log(x) * x
    found = gc.cond(p, lambda: gc.gradients(y, x)[0], lambda: gc.constant(0.0))
    assert not any("gradients" in node.name for node in gc.get_default_graph().nodes)
    with gc.Session() as session:
        np.testing.assert_allclose(session.run(found, {p: True, x: 1.0}), 1.0)
        assert session.run(found, {p: False, x: 0.0}) == 0.0


def test_a_gradient_in_an_inner_body_goes_through_the_body_around_it() -> None:
    x = gc.constant(3.0)

    def body(e: Any) -> Any:
        m = e * x
        squared = m * m
        return gc.cond(e > 1.0, lambda: gc.gradients(squared * m, m)[0], lambda: gc.gradients(squared * m * x, x)[0])

    with gc.Session() as session:
        assert session.run(gc.map_fn(body, gc.constant([1.0, 2.0]))).tolist() == [108.0, 108.0]


def test_rows_of_map_fn_are_differentiated_by_all_elements() -> None:
    x = gc.constant([1.0, 2.0, 3.0])
    found = gc.map_fn(lambda e: gc.gradients(e * e, x)[0], x)
    with gc.Session() as session:
        np.testing.assert_array_equal(session.run(found), np.diag([2.0, 4.0, 6.0]))


def test_loop_variables_count_as_constants_unless_their_start_depends_on_the_x() -> None:
    x = gc.constant(3.0)
    _, _, total = gc.while_loop(
        lambda i, *_: i < 3, lambda i, a, g: (i + 1, a * x, g + gc.gradients(a * x, x)[0]), [0, gc.constant(1.0), gc.constant(0.0)]
    )
    with gc.Session() as session:
        assert session.run(total) == 13.0
    with pytest.raises(gc.errors.UnimplementedError, match=r"initial value of a loop variable, 'mul:0'"):
        gc.while_loop(lambda i, *_: i < 3, lambda i, a, g: (i + 1, a, g + gc.gradients(a * 1.0, x)[0]), [0, x * x, gc.constant(0.0)])


def test_stopped_tensors_outside_stop_gradients_within() -> None:
    x = gc.constant(3.0)
    z = x * x
    found = gc.cond(gc.constant(True), lambda: gc.gradients(x * z, x, stop_gradients=[z])[0], lambda: x)
    none = gc.cond(gc.constant(True), lambda: gc.constant(gc.gradients(gc.constant(1.0) * 2.0, x) == [None]), lambda: gc.constant(False))
    with gc.Session() as session:
        assert session.run([found, none]) == [9.0, True]


def test_a_gradient_is_none_without_a_way_and_zeros_on_request() -> None:
    x, y = gc.constant([3.0, 4.0]), gc.constant(1.0)
    zeros = gc.cond(gc.constant(True), lambda: gc.gradients(y * y, x, unconnected_gradients="zero")[0], lambda: x)
    with gc.Session() as session:
        assert session.run(zeros).tolist() == [0.0, 0.0]


OPTIMIZERS = [
    gc.train.GradientDescentOptimizer,
    lambda rate: gc.train.MomentumOptimizer(rate, 0.9),
    gc.train.AdamOptimizer,
    gc.train.RMSPropOptimizer,
    gc.train.AdagradOptimizer,
    gc.train.AdadeltaOptimizer,
    gc.train.FtrlOptimizer,
]


@pytest.mark.slow
@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_training_step_in_a_branch_or_loop_does_what_it_does_outside(make: Any, use_resource: bool) -> None:
    values = []
    for place in ("outside", "branch", "loop"):
        with gc.Graph().as_default():
            w, steps = variable(use_resource), gc.Variable(0, trainable=False)
            optimizer, loss = make(0.1), gc.reduce_sum(gc.square(w - 3.0))
            yes = gc.placeholder_with_default(True, [])

            def body(i: Any, optimizer: Any = optimizer, steps: Any = steps, w: Any = w) -> Any:
                with gc.control_dependencies([optimizer.minimize(gc.reduce_sum(gc.square(w - 3.0)), steps)]):
                    return i + 1

            if place == "outside":
                step = optimizer.minimize(loss, steps)
            elif place == "branch":
                step = gc.cond(yes, lambda o=optimizer, s=steps, y=loss: o.minimize(y, s), gc.no_op)
            else:
                step = gc.while_loop(lambda i: i < 3, body, [0])
            with gc.Session() as session:
                session.run(gc.initialize_all_variables())
                for _ in range(1 if place == "loop" else 3):
                    session.run([step])
                if place == "branch":
                    session.run([step], {yes: False})
                values.append(session.run(w).tolist())
                assert session.run(steps) == 3
            assert sorted(each.op.name for each in gc.trainable_variables()) == ["w"]
    np.testing.assert_allclose(values[1:], [values[0]] * 2, rtol=1e-5)


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_step_in_a_branch_changes_only_the_gathered_rows(use_resource: bool) -> None:
    w = gc.Variable([[1.0], [2.0], [3.0]], use_resource=use_resource)
    optimizer = gc.train.MomentumOptimizer(0.1, 0.9)

    def step() -> Any:
        return optimizer.minimize(gc.reduce_sum(gc.square(gc.gather(w, [0, 2]))))

    p = gc.placeholder(gc.bool_, [])
    done = gc.cond(p, step, gc.no_op)
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        session.run([done], {p: True})
        session.run([done], {p: False})
        np.testing.assert_allclose(session.run(w), [[0.8], [2.0], [2.4]], rtol=1e-6)


def test_gradients_from_outside_are_applied_in_a_branch() -> None:
    w, p = gc.Variable(1.0), gc.placeholder(gc.bool_, [])
    optimizer = gc.train.MomentumOptimizer(0.1, 0.9)
    pairs = optimizer.compute_gradients(gc.square(w - 3.0))
    done = gc.cond(p, lambda: optimizer.apply_gradients(pairs), gc.no_op)
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        for value in (True, False, True):
            session.run([done], {p: value})
        np.testing.assert_allclose(session.run(w), 2.08, rtol=1e-6)


def test_a_branch_whose_gradient_goes_through_a_changed_node_outside_is_marked() -> None:
    cells = Cells(gc.get_default_graph())
    x = gc.placeholder(gc.float32, [], name="x")
    made: dict[str, Any] = {}
    factor = 2.0
    cells.run("z", lambda: made.update(z=gc.multiply(x, factor, name="z")))
    cells.run("y", lambda: made.update(y=gc.cond(gc.constant(True), lambda: gc.gradients(gc.square(made["z"]), x)[0], lambda: x)))
    with gc.Session() as session:
        assert session.run(made["y"], {x: 3.0}) == 24.0
    factor = 5.0
    cells.run("z", lambda: made.update(z=gc.multiply(x, factor, name="z")))
    with gc.Session() as session, pytest.raises(gc.errors.GraphError, match="run its cell again"):
        session.run(made["y"], {x: 3.0})
