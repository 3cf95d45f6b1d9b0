"""Gradients of If, Case and While: through the functions that they run, once and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc

Loss = Callable[[gc.Tensor], Any]


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def rounds(count: Any, step: Loss, start: gc.Tensor) -> Any:
    _, result = gc.while_loop(lambda i, _: i < count, lambda i, value: (i + 1, step(value)), (0, start))
    return result


def clipped(x: gc.Tensor) -> Any:
    return gc.cond(gc.reduce_sum(x) > 1.0, lambda: gc.tanh(x) * x, lambda: x * 3.0)


def nested_loops(x: gc.Tensor) -> Any:
    return rounds(3, lambda a: rounds(2, lambda b: gc.tanh(b * x), a + x), x)


def cond_in_loop(x: gc.Tensor) -> Any:
    return rounds(4, lambda a: gc.cond(gc.reduce_sum(a) > 1.5, lambda: gc.sigmoid(a) * x, lambda: a * a + x), x)


def loop_in_cond(x: gc.Tensor) -> Any:
    return gc.cond(gc.reduce_sum(x) > 0.0, lambda: rounds(3, lambda a: gc.tanh(a) * x, x), lambda: x)


def carried(x: gc.Tensor) -> Any:
    """What one variable is now, another is in the next round; one is forgotten, one never touched."""

    def step(i: gc.Tensor, a: gc.Tensor, b: gc.Tensor, c: gc.Tensor, d: gc.Tensor) -> Any:
        return i + 1, b * d, gc.tanh(a) + c, gc.zeros_like(c) + 0.5, d

    found = gc.while_loop(lambda i, *_: i < 4, step, (0, x, x * 2.0, x * x, x + 1.0))
    return found[1] + found[2] * found[4]


def growing(x: gc.Tensor) -> Any:
    """A variable whose size changes from round to round."""
    return gc.reduce_sum(
        gc.while_loop(lambda y: gc.reduce_sum(gc.ones_like(y)) < 10.0, lambda y: gc.concat([y, y * y], 0), x, shape_invariants=[None])
    )


def from_a_case(x: gc.Tensor) -> Any:
    index = gc.cast(gc.reduce_sum(x) * 10.0 + 0.37, gc.int32)
    return gc.switch_case(gc.ops.floor_mod(index, 3), [lambda: x * x, lambda: gc.exp(x), lambda: gc.sigmoid(x) * x])


def halving(x: gc.Tensor) -> Any:
    """How many rounds there are depends on the values."""
    return gc.while_loop(lambda y: gc.reduce_sum(y) > 0.1, lambda y: y * gc.sigmoid(y) * x, x, maximum_iterations=20)


LOSSES: dict[str, Loss] = {
    function.__name__: function for function in (clipped, nested_loops, cond_in_loop, loop_in_cond, carried, growing, from_a_case, halving)
}
POINTS = [np.array([0.3, 0.55, -0.2]), np.array([0.9, 0.4, 0.7]), np.array([-0.8, 0.1, 0.2])]


def differences(session: gc.Session, y: Any, x: Any, point: Any) -> Any:
    size = 1e-6
    result = np.zeros(3)
    for i in range(3):
        ends = [session.run(y, {x: point + sign * size * np.eye(3)[i]}) for sign in (1, -1)]
        result[i] = (ends[0] - ends[1]) / (2 * size)
    return result


@pytest.mark.parametrize("known", [True, False], ids=["known shapes", "unknown shapes"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_and_second_derivatives_agree_with_central_differences(name: str, known: bool) -> None:
    x = gc.placeholder(gc.float64, [3] if known else [None], name="x")
    y = LOSSES[name](x)
    loss = gc.reduce_sum(y * gc.constant([1.0, -0.7, 0.4], gc.float64)) if name != "growing" else y
    (first,) = gc.gradients(loss, x)
    assert first.shape.is_compatible_with(x.shape)
    second_loss = gc.reduce_sum(first * gc.constant([0.3, 1.1, -0.5], gc.float64))
    (second,) = gc.gradients(second_loss, x)
    with gc.Session() as session:
        for point in POINTS:
            for value, gradient in ((loss, first), (second_loss, second)):
                got = np.zeros(3) if gradient is None else session.run(gradient, {x: point})
                np.testing.assert_allclose(got, differences(session, value, x, point), rtol=1e-5, atol=1e-7)


def test_the_loop_that_goes_back_takes_what_the_rounds_have_left_and_computes_nothing_again(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    (gradient,) = gc.gradients(rounds(5, lambda a: gc.tanh(a) * x, x), x)
    back = graph.get_operation_by_name("gradients/while_grad/while")
    body = graph.library.find("gradients_while_grad_while_body")
    assert body is not None
    assert "Tanh" not in [node.op for node in body.node_def]
    assert "TensorListPopBack" in [node.op for node in body.node_def]
    record = graph.gradient_records[back.name]
    assert record.forward == "while"
    assert gradient.shape == x.shape


def test_loops_of_many_rounds_take_time_in_proportion() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    n = gc.placeholder(gc.int32, [], name="n")
    (gradient,) = gc.gradients(rounds(n, lambda a: a * x, x), x)
    with gc.Session() as session:
        assert session.run(gradient, {x: 1.0, n: 2000}) == 2001


def test_what_no_output_depends_on_has_no_gradient() -> None:
    x, z = gc.placeholder(gc.float32, [], name="x"), gc.placeholder(gc.float32, [], name="z")
    y = gc.cond(True, lambda: (x * x, z), lambda: (x, z * 2.0))
    assert gc.gradients(y[0], [x, z])[1] is None
    a, b = gc.while_loop(lambda a, _: a < 3.0, lambda a, b: (a + x, b * z), (x, z))
    assert gc.gradients(a, [x, z])[1] is None
    assert gc.gradients(b, [x, z])[0] is None, "how long it goes on is no value"


def test_random_numbers_of_a_branch_are_those_of_its_gradient() -> None:
    x = gc.placeholder(gc.float32, [100], name="x")
    y = gc.cond(True, lambda: x * gc.random_uniform([100]), lambda: x)
    (gradient,) = gc.gradients(y, x)
    with gc.Session() as session:
        values, slopes = session.run([y, gradient], {x: np.ones(100, np.float32)})
        np.testing.assert_array_equal(values, slopes)
