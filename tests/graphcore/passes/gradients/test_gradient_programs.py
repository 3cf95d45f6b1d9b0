"""A gradient built again from cached templates equals one built from scratch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.passes.gradients.bodies import template as gradient_template

Make = Callable[[], tuple[gc.Tensor, list[gc.Tensor]]]


def pair(x_shape: list[int | None] | None, y_shape: list[int | None] | None) -> Make:
    def make() -> tuple[gc.Tensor, list[gc.Tensor]]:
        x, y = gc.placeholder(gc.float32, x_shape, name="x"), gc.placeholder(gc.float32, y_shape, name="y")
        return x * y, [x, y]

    return make


def twice(shape: list[int | None] | None) -> Make:
    def make() -> tuple[gc.Tensor, list[gc.Tensor]]:
        x = gc.placeholder(gc.float32, shape, name="x")
        return x * x, [x]

    return make


def same_unknown() -> tuple[gc.Tensor, list[gc.Tensor]]:
    x = gc.placeholder(gc.float32, [None, 3], name="x")
    y = gc.tanh(x)
    return x * y, [x, y]


def constant(value: float) -> Make:
    def make() -> tuple[gc.Tensor, list[gc.Tensor]]:
        x = gc.placeholder(gc.float32, [2, 3], name="x")
        c = gc.constant(value, name="c")
        return x * c, [x, c]

    return make


def reduction(axis: int | list[int] | None, shape: list[int | None] | None) -> Make:
    def make() -> tuple[gc.Tensor, list[gc.Tensor]]:
        x = gc.placeholder(gc.float32, shape, name="x")
        return gc.reduce_sum(x, axis), [x]

    return make


def unknown_axis() -> tuple[gc.Tensor, list[gc.Tensor]]:
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    return gc.reduce_sum(x, gc.placeholder(gc.int32, [1], name="axis")), [x]


def one_of_two_outputs(index: int) -> Make:
    def make() -> tuple[gc.Tensor, list[gc.Tensor]]:
        x = gc.placeholder(gc.float32, [4], name="x")
        parts = gc.apply_op("Split", [0, x], {"num_split": 2})
        assert isinstance(parts, list)
        return parts[index] * 2.0, [x]

    return make


def by_the_other() -> tuple[gc.Tensor, list[gc.Tensor]]:
    y, (_, second) = pair([2, 3], [2, 3])()
    return y, [second]


FAMILIES: dict[str, list[Make]] = {
    "Mul": [
        pair([2, 3], [2, 3]),
        pair([2, 3], [3]),
        pair([3], [2, 3]),
        pair([2, 1], [1, 3]),
        pair([None, 3], [None, 3]),
        pair(None, None),
        pair([2, 3], None),
        twice([2, 3]),
        twice([None, 3]),
        twice(None),
        same_unknown,
        constant(2.0),
        constant(3.0),
        by_the_other,
    ],
    "Sum": [
        reduction(0, [2, 3]),
        reduction(1, [2, 3]),
        reduction([0, 1], [2, 3]),
        reduction(0, [3, 2]),
        reduction(0, [None, 3]),
        reduction(1, [None, 3]),
        reduction(0, None),
        unknown_axis,
    ],
    "Split": [one_of_two_outputs(0), one_of_two_outputs(1)],
}


def built(make: Make) -> gc.Graph:
    with gc.Graph().as_default() as graph:
        y, xs = make()
        gc.gradients(y, xs)
    return graph


def description(graph: gc.Graph) -> list[object]:
    return [(node.node_def, [str(tensor.shape) for tensor in node.outputs]) for node in graph.nodes]


def records(graph: gc.Graph) -> list[tuple[str, str, str]]:
    return [(name, record.forward, record.body_node) for name, record in graph.gradient_records.items()]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_was_built_before_makes_no_difference(family: str) -> None:
    makes = FAMILIES[family]
    fresh = []
    for make in makes:
        gradient_template.forget()
        fresh.append(built(make))
    pairs = list(zip(makes, fresh, strict=True))
    for order in (pairs, pairs[::-1]):
        gradient_template.forget()
        for make, expected in order * 2:
            graph = built(make)
            assert description(graph) == description(expected)
            assert sorted(records(graph)) == sorted(records(expected))


def test_a_gradient_from_memory_gets_the_device_the_controls_and_the_line_of_its_own_call() -> None:
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        first = gc.gradients(gc.tanh(x), x)[0]
        with gc.device("/cpu:0"), gc.control_dependencies([x]):
            y = gc.tanh(x)
            (gradient,) = gc.gradients(y, x)
        assert gradient.node.device == "/device:CPU:0"
        assert gradient.node.control_inputs == [x.node]
        assert gradient.node.source is not None
        assert gradient.node.source.text == "(gradient,) = gc.gradients(y, x)"
        assert first.node.source is not None
        assert first.node.source.line < gradient.node.source.line
        np.testing.assert_array_equal(*gc.Session().run([first, gradient], {x: [0.5, -1.0]}))
