"""`gc.while_loop`: Python functions as condition and body of one node."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def run(fetches: Any, feed: dict[Any, Any] | None = None) -> Any:
    with gc.Session() as session:
        return session.run(fetches, feed)


def test_a_loop_is_one_node_and_takes_what_its_functions_use(graph: gc.Graph) -> None:
    x, n = gc.placeholder(gc.float32, [2], name="x"), gc.placeholder(gc.int32, [], name="n")
    i, y = gc.while_loop(lambda i, _y: i < n, lambda i, y: (i + 1, y * x), (0, gc.ones([2])))
    assert i.node.op == "StatelessWhile"
    assert [tensor.name for tensor in i.node.inputs] == ["Const:0", "ones:0", "n:0", "x:0"]
    assert graph.library.list_function_names() == ["while_cond", "while_body"]
    assert (i.shape, y.shape) == (gc.Shape([]), gc.Shape([2]))
    assert run([i, y], {x: [2.0, 3.0], n: 3})[1].tolist() == [8, 27]
    assert run([i, y], {x: [2.0, 3.0], n: 0})[1].tolist() == [1, 1]


def test_a_single_variable_and_structures_come_back_as_they_went_in() -> None:
    single = gc.while_loop(lambda i: i < 10, lambda i: i * 2, 3)
    listed = gc.while_loop(lambda i: i < 10, lambda i: [i * 2], [3], return_same_structure=True)
    nested = gc.while_loop(lambda _s, i: i < 3, lambda s, i: ({"a": s["a"] + 1.0, "b": s["a"]}, i + 1), ({"a": 0.0, "b": 0.0}, 0))
    assert run([single, listed, nested]) == [12, [12], ({"a": 3.0, "b": 2.0}, 3)]


def test_maximum_iterations_end_a_loop() -> None:
    limit = gc.placeholder(gc.int32, [], name="limit")
    y = gc.while_loop(lambda y: y < 1000.0, lambda y: y * 2.0, 1.0, maximum_iterations=limit)
    assert [float(run(y, {limit: n})) for n in (0, 3, 100)] == [1.0, 8.0, 1024.0]


def test_loops_and_conds_nest() -> None:
    def collatz(n: gc.Tensor, steps: gc.Tensor) -> Any:
        return gc.cond(gc.equal(gc.ops.floor_mod(n, 2), 0), lambda: n // 2, lambda: n * 3 + 1), steps + 1

    start = gc.placeholder(gc.int32, [], name="start")
    _, steps = gc.while_loop(lambda n, _: n > 1, collatz, (start, 0))
    assert [int(run(steps, {start: n})) for n in (1, 6, 27)] == [0, 8, 111]


def test_a_variable_is_read_once_for_the_whole_loop() -> None:
    w = gc.Variable(2.0, name="w")
    y = gc.while_loop(lambda y: y < 30.0, lambda y: y * w, 1.0)
    with gc.Session() as session:
        session.run(gc.initialize_all_variables())
        assert session.run(y) == 32


@pytest.mark.parametrize(
    ("cond", "body", "text"),
    [
        (
            lambda i: i < 3,
            lambda _: gc.constant(2.5),
            r"Loop variable 0 of 'while' must keep its type: it begins as int32 \[\] from 'Const",
        ),
        (lambda i: i < 3, lambda i: (i, i), r"required the form \*, got \(\*, \*\)"),
        (lambda i: i, lambda i: i, r"The condition of 'while' must give one bool, got int32 \[\] from"),
        (lambda _: gc.constant([True]), lambda i: i, r"must give one bool, got bool \[1\]"),
        (
            lambda i: i < 3,
            lambda i: gc.stack([i, i]),
            r"must keep its shape: it begins as int32 \[\].*\n  and is after one round int32 \[2\]",
        ),
    ],
)
def test_a_body_that_does_not_fit_is_refused_and_leaves_nothing(
    graph: gc.Graph, cond: Callable[..., Any], body: Callable[..., Any], text: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        gc.while_loop(cond, body, 0)
    assert len(graph) == 0
    assert graph.library.num_functions == 0


def test_a_body_that_gives_too_little_is_told_what_to_return() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        gc.while_loop(lambda i, _: i < 3, lambda i, _: i + 1, [0, 1.0])
    assert (caught.value.required, caught.value.came) == ("the form [*, *]", "the form *")
    assert "a value for each loop variable" in caught.value.suggestion


def test_shape_invariants_let_sizes_change() -> None:
    def grow(y: gc.Tensor) -> gc.Tensor:
        return gc.concat([y, y], 0)

    y = gc.while_loop(lambda y: gc.reduce_sum(y) < 30.0, grow, gc.ones([3]), shape_invariants=[None])
    assert y.shape == gc.Shape([None])
    assert run(y).shape == (48,)
    with pytest.raises(InvalidArgumentError, match="does not cover what it begins as"):
        gc.while_loop(lambda _: True, grow, gc.ones([3]), shape_invariants=[4])


def test_an_endless_loop_can_be_interrupted() -> None:
    y = gc.while_loop(lambda y: y >= 0.0, lambda y: y + 0.0, 1.0)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    with gc.Session() as session:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            session.run(y)
        assert session.run(gc.constant(1)) == 1, "and the session goes on"
