"""Slices of variables are assigned to, as in TensorFlow 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError

BEGIN = [0.0, 1.0, 2.0, 3.0]


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with gc.Graph().as_default():
        yield


def variable(use_resource: bool) -> gc.Variable:
    return gc.Variable(BEGIN, name="v", use_resource=use_resource)


def run(fetches: Any, feeds: Any = None) -> Any:
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        return session.run(fetches, feeds)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (slice(1, 3), [7.0, 8.0], [0.0, 7.0, 8.0, 3.0]),
        (slice(1, 3), 5.0, [0.0, 5.0, 5.0, 3.0]),
        (slice(1, 3), [5.0], [0.0, 5.0, 5.0, 3.0]),
        (-1, 9.0, [0.0, 1.0, 2.0, 9.0]),
        (slice(None, None, -2), [1.0, 2.0], [0.0, 2.0, 2.0, 1.0]),
        ((None, slice(0, 2)), [[1.0, 2.0]], [1.0, 2.0, 2.0, 3.0]),
        (..., 4, [4.0] * 4),
        (slice(3, 1), [1.0], BEGIN),
    ],
)
def test_a_slice_is_replaced_by_a_value_that_is_broadcast_to_it(use_resource: bool, key: Any, value: Any, expected: list[float]) -> None:
    v = variable(use_resource)
    changed = v[key].assign(value)
    assert changed.shape == [4]
    np.testing.assert_array_equal(run(changed), expected)


@pytest.mark.parametrize("use_resource", [False, True])
def test_what_waits_for_the_assignment_reads_the_variable_after_it(use_resource: bool) -> None:
    v = variable(use_resource)
    place = gc.placeholder(gc.int32, [])
    before = v.read_value()
    with gc.control_dependencies([before]):
        changed = v[place : place + 2].assign([7.0, 8.0])
    with gc.control_dependencies([changed]):
        total = gc.reduce_sum(v * 2.0)
    with gc.control_dependencies([total]):
        last = v[0].assign(total)
    np.testing.assert_array_equal(np.array(run([before, total, last], {place: 1})[2]), [36.0, 7.0, 8.0, 3.0])


@pytest.mark.parametrize("use_resource", [False, True])
def test_branches_and_loops_assign_to_slices(use_resource: bool) -> None:
    v = variable(use_resource)
    chosen = gc.cond(gc.constant(True), lambda: v[1:3].assign([7.0, 8.0]), lambda: v[0].assign(1.0))
    with gc.control_dependencies([chosen]):
        _, total = gc.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s + gc.reduce_sum(v[i].assign(10.0))), [0, 0.0])
    with gc.control_dependencies([total]):
        after = v.read_value()
    total, after = run([total, after])
    assert (total, list(after)) == (28 + 31 + 33, [10.0, 10.0, 10.0, 3.0])


def test_a_slice_of_a_variable_is_a_tensor_that_is_fetched_fed_and_sliced() -> None:
    v = variable(False)
    part, index = v[1:], gc.constant(1)
    doubled = part * 2.0
    np.testing.assert_array_equal(run([part, doubled, part[index]])[1], [2.0, 4.0, 6.0])
    np.testing.assert_array_equal(run(doubled, {part: [1.0, 1.0, 2.0]}), [2.0, 2.0, 4.0])
    (gradient,) = gc.gradients(doubled, [v])
    np.testing.assert_array_equal(run(gradient), [0.0, 2.0, 2.0, 2.0])


def test_values_that_do_not_fit_are_refused() -> None:
    v = variable(False)
    with pytest.raises(GraphError, match=r"\[1:3:1\] of the variable has the shape \[2\], and the value \[3\]"):
        run(v[1:3].assign([1.0, 2.0, 3.0]))
    with pytest.raises(InvalidArgumentError):
        v[1:3].assign("text")
    with pytest.raises(AttributeError):
        (v * 2.0)[1:3].assign(1.0)  # type: ignore[attr-defined]  # a tensor is no variable
