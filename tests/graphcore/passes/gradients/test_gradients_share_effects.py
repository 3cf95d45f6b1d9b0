"""Several gradients of one branch, loop or call with side effects.

A run repeats no effect, and all gradients see the same values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphcore as gc

Tensor = Any
tf: Any = gc  # names that are loaded on demand
T, U = 0.1, 0.2
ENGINES = ["auto", "dataflow"]


Made = Callable[[Tensor, Tensor, Callable[[], Tensor]], Sequence[Tensor]]


def runs(make: Made, count: int = 2) -> dict[str, list[list[float]]]:
    """By each engine, some runs of what `make` makes of two placeholders and an iterator over 1, 2, ..."""
    with gc.Graph().as_default():
        t, u = gc.placeholder(gc.float32, []), gc.placeholder(gc.float32, [])
        iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(1, 1000))
        fetches = list(make(t, u, lambda: gc.cast(iterator.get_next(), gc.float32)))
        found: dict[str, list[list[float]]] = {}
        for engine in ENGINES:
            with gc.Session(engine=engine) as session:
                session.run(iterator.initializer)
                found[engine] = [[float(value) for value in session.run(fetches, {t: T, u: U})] for _ in range(count)]
    return found


def two(t: Tensor, u: Tensor, element: Tensor) -> list[Tensor]:
    """Two results of one element, whose gradients need different values."""
    return [gc.tanh(element * t), tf.sin(gc.square(element) * u)]


def slopes(element: float) -> list[float]:
    """The gradients of `two`."""
    return [element * (1 - math.tanh(element * T) ** 2), element**2 * math.cos(element**2 * U)]


def both_orders(element: float) -> list[float]:
    """The first result of `two`, its gradient, and the second gradients of both."""
    a, by_t = math.tanh(element * T), slopes(element)[0]
    return [a, by_t, -2 * a * by_t * element, -(element**4) * math.sin(element**2 * U)]


def branch(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> Any:
    return gc.cond(t > 0.0, lambda: two(t, u, following()), lambda: [t, u])


def case(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> Any:
    return gc.case([(t < 0.0, lambda: [t, u])], default=lambda: two(t, u, following()))


def switch(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> Any:
    return gc.switch_case(gc.constant(1), [lambda: [t, u], lambda: two(t, u, following())])


def loop(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> Any:
    return gc.while_loop(lambda i, *_: i < 1, lambda i, a, b: [i + 1, *two(a, b, following())], [0, t, u])[1:]


def call(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> Any:
    return gc.function(lambda a, b: two(a, b, following()))(t, u)


def pure_branch_in_branch(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> Any:
    def inside() -> Any:
        element = following()
        return gc.cond(element > 0.0, lambda: two(t, u, element), lambda: [t, u])

    return gc.cond(t > 0.0, inside, lambda: [t, u])


def pure_loop_in_branch(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> Any:
    def inside() -> Any:
        element = following()
        return gc.while_loop(lambda i, *_: i < 1, lambda i, a, b: [i + 1, *two(a, b, element)], [0, t, u])[1:]

    return gc.cond(t > 0.0, inside, lambda: [t, u])


def branch_in_loop(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> Any:
    return gc.while_loop(lambda i, *_: i < 1, lambda i, a, b: [i + 1, *branch(a, b, following)], [0, t, u])[1:]


def pure_branch_in_call(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> Any:
    def called(a: Tensor, b: Tensor) -> Any:
        element = following()
        return gc.cond(element > 0.0, lambda: two(a, b, element), lambda: [a, b])

    return gc.function(called)(t, u)


def mapped(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> list[Tensor]:
    rows = gc.map_fn(lambda row: gc.stack(two(t * row, u * row, following())), gc.constant([1.0]))
    return [rows[0, 0], rows[0, 1]]


def scanned(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> list[Tensor]:
    rows = gc.scan(
        lambda state, row: gc.stack(two(t * row, u * row, following())) + 0.0 * state, gc.constant([1.0]), gc.constant([0.0, 0.0])
    )
    return [rows[0, 0], rows[0, 1]]


def check(make: Made, wanted: Callable[[float], list[float]]) -> None:
    """Check two runs by each engine, with the elements 1 and 2."""
    for engine, rows in runs(make).items():
        assert rows == [pytest.approx(wanted(element), rel=1e-4) for element in (1.0, 2.0)], engine


NESTED = [pure_branch_in_branch, pure_loop_in_branch, branch_in_loop, pure_branch_in_call, mapped, scanned]
KINDS = [branch, case, switch, loop, call, *NESTED]


def name_of(kind: Callable[..., object]) -> str:
    return kind.__name__


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_gradients_taken_apart_share_one_run_of_the_effects(kind: Callable[..., list[Tensor]]) -> None:
    def make(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> list[Tensor]:
        a, b = kind(t, u, following)
        return [a, gc.gradients(a, t)[0], gc.gradients(b, u)[0]]

    check(make, lambda element: [math.tanh(element * T), *slopes(element)])


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_gradients_in_two_bodies_share_one_run_of_the_effects_outside(kind: Callable[..., list[Tensor]]) -> None:
    def make(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> list[Tensor]:
        a, b = kind(t, u, following)
        in_bodies = gc.cond(u > 0.0, lambda: gc.gradients(a * a, t)[0], lambda: gc.gradients(gc.tanh(b), u)[0])
        return [a, in_bodies, gc.cond(u < 0.0, lambda: t, lambda: gc.gradients(b, u)[0])]

    def wanted(element: float) -> list[float]:
        a, (by_t, by_u) = math.tanh(element * T), slopes(element)
        return [a, 2 * a * by_t, by_u]

    check(make, wanted)


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_second_gradients_taken_apart_share_one_run_of_the_effects(kind: Callable[..., list[Tensor]]) -> None:
    def make(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> list[Tensor]:
        a, b = kind(t, u, following)
        by_t, by_u = gc.gradients(a, t)[0], gc.gradients(b, u)[0]
        return [a, by_t, gc.gradients(by_t, t)[0], gc.gradients(by_u, u)[0]]

    check(make, both_orders)


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.slow if kind in NESTED else ()) for kind in KINDS], ids=name_of)
def test_gradients_of_a_body_that_takes_gradients_share_its_effects(kind: Callable[..., list[Tensor]]) -> None:
    def make(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> list[Tensor]:
        def inside() -> list[Tensor]:
            a, b = kind(t, u, following)
            return [a, b, gc.gradients(a, t)[0] * 1.0]

        a, b, by_t = gc.cond(u > 0.0, inside, lambda: [t, u, t])
        by_u = gc.gradients(b, u)[0]
        return [a, by_t, gc.gradients(by_t, t)[0], gc.gradients(by_u, u)[0]]

    check(make, both_orders)


def test_a_second_gradient_shares_the_effects_with_the_values_even_if_the_first_is_not_fetched() -> None:
    def make(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> list[Tensor]:
        a, b = branch(t, u, following)
        return [a, gc.gradients(gc.gradients(b, u), u)[0]]

    check(make, lambda element: [both_orders(element)[0], both_orders(element)[3]])


def read_back(variable: Tensor) -> Tensor:
    """The value of a variable before it is incremented in the same body."""
    before = gc.identity(variable.read_value())
    with gc.control_dependencies([before]), gc.control_dependencies([variable.assign_add(1.0)]):
        return before + 0.0 * variable.read_value()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [branch, loop, pure_branch_in_branch, call], ids=name_of)
@pytest.mark.parametrize("effect", ["dequeue", "resource variable", "reference variable", "reader", "Python function"])
def test_gradients_taken_apart_share_every_kind_of_effect(
    effect: str, kind: Callable[..., list[Tensor]], engine: str, tmp_path: Any
) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{number}\n" for number in range(1, 50)))
    calls: list[int] = []

    def counted() -> Any:
        calls.append(1)
        return np.float32(len(calls))

    def counting() -> Tensor:
        made = tf.py_func(counted, [], gc.float32)
        made.set_shape([])
        return made

    with gc.Graph().as_default():
        t, u = gc.placeholder(gc.float32, []), gc.placeholder(gc.float32, [])
        queue = tf.FIFOQueue(1000, gc.float32, shapes=[()])
        fill = queue.enqueue_many([[float(number) for number in range(1, 100)]])
        resource, reference = [gc.Variable(1.0, use_resource=is_resource) for is_resource in (True, False)]
        names = tf.FIFOQueue(10, gc.string, shapes=[()])
        name, reader = names.enqueue(str(path)), tf.TextLineReader()
        following = {
            "dequeue": queue.dequeue,
            "resource variable": lambda: read_back(resource),
            "reference variable": lambda: read_back(reference),
            "reader": lambda: tf.string_to_number(reader.read(names)[1]),
            "Python function": counting,
        }[effect]
        a, b = kind(t, u, following)
        fetches = [a, gc.gradients(a, t)[0], gc.gradients(b, u)[0]]
        with gc.Session(engine=engine) as session:
            session.run([fill, name, gc.global_variables_initializer()])
            for element in (1.0, 2.0):
                found = session.run(fetches, {t: T, u: U})
                assert found == pytest.approx([math.tanh(element * T), *slopes(element)], rel=1e-4)


def test_gradients_of_some_of_several_outputs_inside_share_the_effects() -> None:
    def parts(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> Any:
        def inside() -> Any:
            element = following()
            first, second = gc.unstack(gc.stack([element * t, gc.square(element) * u]))
            return [gc.tanh(first), tf.sin(second)]

        return gc.cond(t > 0.0, inside, lambda: [t, u])

    def make(t: Tensor, u: Tensor, following: Callable[[], Tensor]) -> list[Tensor]:
        a, b = parts(t, u, following)
        return [a, gc.gradients(a, t)[0], gc.gradients(b, u)[0]]

    check(make, lambda element: [math.tanh(element * T), *slopes(element)])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_refuses_to_repeat_effects_for_gradients_through_dead_values(engine: str) -> None:
    with gc.Graph().as_default():
        t, u = gc.placeholder(gc.float32, []), gc.placeholder(gc.float32, [])
        iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(1, 1000))

        def joined(a: Tensor, b: Tensor) -> list[Tensor]:
            element, graph = gc.cast(iterator.get_next(), gc.float32), gc.get_default_graph()
            dead, alive = graph.apply_op("Switch", [gc.tanh(element * a), a > 0.0]).outputs
            return [graph.apply_op("Merge", [[dead * 5.0, alive * 1.0]]).outputs[0], tf.sin(gc.square(element) * b)]

        a, b = gc.function(joined)(t, u)
        by_t, by_u = gc.gradients(a, t)[0], gc.gradients(b, u)[0]
        with gc.Session(engine=engine) as session:
            session.run(iterator.initializer)
            assert session.run([a, by_t], {t: T, u: U}) == pytest.approx([math.tanh(T), slopes(1)[0]], rel=1e-4)
            with pytest.raises(gc.errors.UnimplementedError, match=r"Two gradients need different values of 'joined'.* side effects"):
                session.run([by_t, by_u], {t: T, u: U})
            assert session.run(by_u, {t: T, u: U}) == pytest.approx(slopes(2)[1], rel=1e-4)


def test_two_gradients_of_a_loop_see_the_same_random_numbers() -> None:
    def make(t: Tensor, u: Tensor, _: Callable[[], Tensor]) -> list[Tensor]:
        def body(i: Tensor, a: Tensor, b: Tensor) -> list[Tensor]:
            noise = gc.random_uniform([], seed=3)
            return [i + 1, a * noise, gc.square(b) * noise]

        _, a, b = gc.while_loop(lambda i, *_: i < 1, body, [0, t, u])
        return [a, gc.gradients(a, t)[0], gc.gradients(b, u)[0]]

    for engine, rows in runs(make, 3).items():
        for a, by_t, by_u in rows:
            assert (by_t, by_u) == pytest.approx((a / T, 2 * U * a / T)), engine
