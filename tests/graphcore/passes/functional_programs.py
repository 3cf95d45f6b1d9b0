"""Programs of branches and loops for differentiation: functions of a vector of three."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import graphcore as gc

Loss = Callable[[gc.Tensor], Any]


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
    """Variables that exchange their places; one is dropped, one never used."""

    def step(i: gc.Tensor, a: gc.Tensor, b: gc.Tensor, c: gc.Tensor, d: gc.Tensor) -> Any:
        return i + 1, b * d, gc.tanh(a) + c, gc.zeros_like(c) + 0.5, d

    found = gc.while_loop(lambda i, *_: i < 4, step, (0, x, x * 2.0, x * x, x + 1.0))
    return found[1] + found[2] * found[4]


def growing(x: gc.Tensor) -> Any:
    """A variable that changes its size between iterations."""
    return gc.reduce_sum(
        gc.while_loop(lambda y: gc.reduce_sum(gc.ones_like(y)) < 10.0, lambda y: gc.concat([y, y * y], 0), x, shape_invariants=[None])
    )


def from_a_case(x: gc.Tensor) -> Any:
    index = gc.cast(gc.reduce_sum(x) * 10.0 + 0.37, gc.int32)
    return gc.switch_case(gc.ops.floor_mod(index, 3), [lambda: x * x, lambda: gc.exp(x), lambda: gc.sigmoid(x) * x])


def halving(x: gc.Tensor) -> Any:
    """A number of iterations that depends on the values."""
    return gc.while_loop(lambda y: gc.reduce_sum(y) > 0.1, lambda y: y * gc.sigmoid(y) * x, x, maximum_iterations=20)


LOSSES: Final[dict[str, Loss]] = {
    function.__name__: function for function in (clipped, nested_loops, cond_in_loop, loop_in_cond, carried, growing, from_a_case, halving)
}
POINTS: Final = [np.array([0.3, 0.55, -0.2]), np.array([0.9, 0.4, 0.7]), np.array([-0.8, 0.1, 0.2])]
