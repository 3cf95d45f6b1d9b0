"""Captures: tensors of the surrounding graph that a `gc.function` uses become arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.graphcore.api.cell_runs import Cells

POINT = {"x:0": np.array([0.1, -0.2, 0.3], np.float32)}
each_kind = pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def placeholder() -> gc.Tensor:
    return gc.placeholder(gc.float32, [3], name="x")


def started() -> gc.Session:
    session = gc.Session()
    session.run(gc.initialize_all_variables())
    return session


@each_kind
def test_gradients_reach_variables_and_tensors_that_a_function_uses(use_resource: bool) -> None:
    weight = gc.Variable(np.full(3, 2.0, np.float32), name="weight", use_resource=use_resource)
    shift = gc.constant(3.0)

    @gc.function
    def layer(v: gc.Tensor) -> Any:
        return gc.tanh(v) * weight + shift

    x = placeholder()
    y = layer(x) + layer(x * 2.0)
    gradients = gc.gradients(y, [weight, x, shift])
    value, by_weight, by_x, by_shift = started().run([y, *gradients], POINT)
    once, twice = np.tanh(POINT["x:0"]), np.tanh(2 * POINT["x:0"])
    np.testing.assert_allclose(value, 2 * (once + twice) + 6, rtol=1e-6)
    np.testing.assert_allclose(by_weight, once + twice, rtol=1e-6)
    np.testing.assert_allclose(by_x, 2 * (1 - once**2) + 4 * (1 - twice**2), rtol=1e-6)
    assert by_shift == 6.0


def test_captured_values_are_the_last_arguments_and_are_captured_once(graph: gc.Graph) -> None:
    scale = gc.constant([2.0, 3.0, 4.0], name="scale")

    @gc.function
    def scaled(v: gc.Tensor) -> Any:
        return v * scale + scale

    x = placeholder()
    scaled(x)
    y = scaled(x)
    (made,) = scaled.instantiations
    assert [arg.name for arg in made.fdef.signature.input_arg] == ["v", "scale"]
    assert made.captured == (scale,)
    assert [tensor.name for tensor in y.node.inputs] == ["x:0", "scale:0"]
    assert graph.library.num_functions == 1


def test_a_function_that_captures_is_called_within_branches_loops_and_other_functions() -> None:
    weight = gc.Variable(np.full(3, 2.0, np.float32), name="weight", use_resource=True)

    @gc.function
    def scaled(v: gc.Tensor) -> Any:
        return gc.tanh(v * weight)

    @gc.function
    def outer(v: gc.Tensor) -> Any:
        chosen = gc.cond(gc.reduce_sum(v) > 0.0, lambda: scaled(v), lambda: v)
        return gc.while_loop(lambda i, _: i < 2, lambda i, u: (i + 1, scaled(u) + chosen), (0, v))[1]

    x = placeholder()
    y = outer(x)
    session = started()
    with session.as_default():
        assert gc.check_gradient(gc.reduce_sum(y), [x], {x: POINT["x:0"]}).passed
    (by_weight,) = gc.gradients(y, weight)
    ends = []
    for step in (1e-2, -1e-2):
        session.run(weight.assign(np.full(3, 2.0 + step, np.float32)))
        ends.append(session.run(gc.reduce_sum(y), POINT))
    session.run(weight.initializer)
    np.testing.assert_allclose(np.sum(session.run(by_weight, POINT)), (ends[0] - ends[1]) / 2e-2, rtol=1e-2)


def test_a_function_within_a_function_uses_what_that_has_computed(graph: gc.Graph) -> None:
    @gc.function
    def outer(v: gc.Tensor) -> Any:
        twice = v * 2.0

        @gc.function
        def inner(u: gc.Tensor) -> Any:
            return u * twice

        return inner(v) + inner(twice)

    x = placeholder()
    y = outer(x)
    (by_x,) = gc.gradients(y, x)
    value, slope = gc.Session().run([y, by_x], POINT)
    np.testing.assert_allclose(value, 6 * POINT["x:0"] ** 2, rtol=1e-6)
    np.testing.assert_allclose(slope, 12 * POINT["x:0"], rtol=1e-6)
    assert "inner" in graph.library


@each_kind
def test_a_call_on_arrays_takes_the_present_values_of_what_is_captured(use_resource: bool) -> None:
    weight = gc.Variable(np.full(3, 2.0, np.float32), name="weight", use_resource=use_resource)

    @gc.function
    def scaled(v: gc.Tensor) -> Any:
        return v * weight

    with started() as session:
        assert scaled(np.ones(3, np.float32)).tolist() == [2.0, 2.0, 2.0]
        session.run(weight.assign(np.full(3, 5.0, np.float32)))
        assert scaled(np.ones(3, np.float32)).tolist() == [5.0, 5.0, 5.0]


def test_a_resource_and_a_reference_are_changed_within_functions() -> None:
    resource = gc.Variable(np.zeros(3, np.float32), name="resource", use_resource=True)
    reference = gc.Variable(np.zeros(3, np.float32), name="reference")

    @gc.function
    def add(v: gc.Tensor) -> Any:
        return resource.assign_add(v)

    @gc.function
    def add_to_reference(v: gc.Tensor) -> Any:
        return reference.assign_add(v)

    x = placeholder()
    changed = [add(x), add_to_reference(x)]
    for value in started().run(changed, POINT):
        np.testing.assert_array_equal(value, POINT["x:0"])


def test_a_cell_that_makes_what_was_captured_again_is_followed(graph: gc.Graph) -> None:
    cells, value = Cells(graph), [2.0]
    held: dict[str, Any] = {}
    x = placeholder()

    def make() -> None:
        held["scale"] = gc.constant([value[0]] * 3, name="scale")

    @gc.function
    def scaled(v: gc.Tensor) -> Any:
        return v * held["scale"]

    def use() -> None:
        gc.identity(scaled(x), name="y")

    for factor in (2.0, 3.0):
        value[0] = factor
        cells.run("make", make)
        cells.run("use", use)
        np.testing.assert_allclose(gc.Session().run("y:0", POINT), factor * POINT["x:0"], rtol=1e-6)
