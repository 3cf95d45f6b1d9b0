"""Explanations of gradients within branches and loops, and of what stops inside of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import graphcore

gc: Any = graphcore  # its namespaces are found on demand


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with gc.Graph().as_default() as graph:
        yield graph


def in_branch(inside: Callable[[], Any]) -> None:
    gc.cond(gc.placeholder(gc.bool_, []), inside, lambda: gc.constant(0.0))


def in_map(inside: Callable[[], Any]) -> None:
    gc.map_fn(lambda _: inside(), gc.zeros([2]))


def in_branch_of_a_loop(inside: Callable[[], Any]) -> None:
    gc.while_loop(lambda i, _: i < 2, lambda i, _: (i + 1, gc.cond(i > 0, inside, lambda: gc.constant(0.0))), [0, gc.constant(0.0)])


def explained(where: Callable[[Callable[[], Any]], None], explain: Callable[[], Any]) -> Any:
    found = []

    def inside() -> Any:
        found.append(explain())
        return gc.constant(0.0)

    where(inside)
    return found[0]


@pytest.mark.parametrize("where", [in_branch, in_map, in_branch_of_a_loop])
def test_an_explanation_within_a_body_follows_the_path_outside(where: Any) -> None:
    x = gc.constant([1.0, 2.0], name="x")
    z = gc.multiply(x, x, name="z")
    found = explained(where, lambda: gc.explain_gradient(gc.multiply(x, z, name="y"), x))
    assert found.path_count == 3
    assert ("x", "y") in found.paths
    assert ("x", "z", "y") in found.paths
    assert [step.node for step in found.steps] == ["y", "z"]
    assert found.cuts == ()


@pytest.mark.parametrize("where", [in_branch, in_map, in_branch_of_a_loop])
def test_an_explanation_within_a_body_of_two_tensors_outside_is_that_outside(where: Any) -> None:
    x = gc.constant([1.0, 2.0], name="x")
    z = gc.multiply(x, x, name="z")
    assert explained(where, lambda: gc.explain_gradient(z, x)).paths[0] == ("x", "z")


@pytest.mark.parametrize("use_resource", [False, True])
def test_an_explanation_within_a_body_reaches_a_variable(use_resource: bool) -> None:
    v = gc.Variable(2.0, name="v", use_resource=use_resource)
    z = v * v
    found = explained(in_branch, lambda: gc.explain_gradient(v * z, v))
    assert found.path_count == 3


def test_an_explanation_within_a_body_names_the_cuts_inside_and_outside() -> None:
    x = gc.constant([1.0, 2.0], name="x")
    outside = gc.stop_gradient(x * 2.0, name="stop_outside")
    found = explained(in_branch, lambda: gc.explain_gradient(x * outside + gc.stop_gradient(x, name="stop_inside"), x))
    assert {cut.node for cut in found.cuts} == {"stop_outside", "stop_inside"}
    none = explained(in_branch, lambda: gc.explain_gradient(outside * 3.0, x))
    assert none.is_none
    assert [cut.node for cut in none.cuts] == ["stop_outside"]
    other = explained(in_branch, lambda: gc.explain_gradient(gc.constant(1.0) * 2.0, x))
    assert [cut.kind for cut in other.cuts] == ["no path"]


def test_a_start_of_a_loop_variable_that_depends_on_the_x_is_an_error_in_the_explanation_too() -> None:
    x, found = gc.constant(3.0), []

    def body(i: Any, a: Any) -> Any:
        found.append(gc.explain_gradient(a * 2.0, x))
        return i + 1, a

    gc.while_loop(lambda i, _: i < 2, body, [0, x * x])
    assert "initial value of a loop variable" in found[0].error


def stopped(x: Any) -> Any:
    return x * 2.0 + gc.stop_gradient(x * 3.0, name="inner_stop")


@pytest.mark.parametrize(
    "through",
    [
        lambda x: gc.cond(gc.reduce_sum(x) > 0.0, lambda: gc.stop_gradient(x * 3.0, name="inner_stop"), lambda: x * 2.0),
        lambda x: gc.while_loop(lambda i, _: i < 5, lambda i, h: (i + 1, stopped(h)), [0, x])[1],
        lambda x: gc.while_loop(lambda i, _: i < 5, lambda i, h: (i + 1, h + gc.stop_gradient(x, name="inner_stop")), [0, x])[1],
        gc.function(stopped),
        lambda x: gc.map_fn(stopped, x),
        lambda x: gc.cond(gc.reduce_sum(x) > 0.0, lambda: gc.function(stopped)(x), lambda: x),
        lambda x: gc.switch_case(1, [lambda: x, lambda: stopped(x), lambda: -x]),
    ],
    ids=["a branch", "a loop", "a captured tensor of a loop", "a function", "map_fn", "a function in a branch", "one of three branches"],
)
def test_a_stop_on_some_ways_inside_a_function_is_told(through: Any) -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    found = gc.explain_gradient(gc.reduce_sum(through(x)), x)
    assert not found.is_none
    assert any("'inner_stop' stops gradients" in cut.reason for cut in found.cuts)


def test_a_branch_without_a_stop_has_no_cut() -> None:
    x, p = gc.placeholder(gc.float32, [3], name="x"), gc.placeholder(gc.bool_, [])
    assert gc.explain_gradient(gc.reduce_sum(gc.cond(p, lambda: x * 3.0, lambda: gc.tanh(x))), x).cuts == ()
