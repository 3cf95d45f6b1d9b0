"""Gradients that programs define, in branches, loops and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.tf1.train.custom_gradients import RegisterGradient, custom_gradient
from tests.graphcore.api.cell_runs import Cells
from tests.support.custom_gradient_programs import PLACES, values


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


@pytest.mark.slow
@pytest.mark.parametrize("function", ["override", "two"])
@pytest.mark.parametrize("place", PLACES)
def test_a_custom_gradient_in_a_body_gives_what_it_gives_without_bodies(place: str, function: str) -> None:
    found = values(gc, place, function, unrolled=False, second=True)
    np.testing.assert_allclose(found, values(gc, place, function, unrolled=True, second=True), rtol=1e-4, atol=1e-5)


def test_overrides_around_a_branch_hold_in_it_and_not_in_functions(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [], name="x")

    @gc.function
    def rounded(v: gc.Tensor) -> gc.Tensor:
        return gc.round(v)

    def within() -> gc.Tensor:
        with graph.gradient_override_map({"Floor": "Square"}):
            made: gc.Tensor = gc.round(x) + gc.ops.floor(x) + rounded(x)
            return made

    with graph.gradient_override_map({"Round": "Identity"}):
        y = gc.cond(x > 0.0, within, lambda: x)
    (gradient,) = gc.gradients(y, x)
    assert gc.Session().run([y, gradient], {x: 1.4}) == pytest.approx([3.0, 1.0 + 2 * 1.4])


def test_a_gradient_that_is_registered_again_changes_those_of_branches_loops_and_functions(graph: gc.Graph) -> None:
    cells, made = Cells(graph), dict[str, Any]()

    def register(factor: float) -> None:
        RegisterGradient("ScaledInBodies")(lambda _, grad: grad * factor)

    def scaled(v: gc.Tensor) -> gc.Tensor:
        with gc.get_default_graph().gradient_override_map({"Tanh": "ScaledInBodies"}):
            return gc.tanh(v)

    def model() -> None:
        x = gc.constant(0.5)
        branch, call = gc.cond(x > 0.0, lambda: scaled(x), lambda: x), gc.function(scaled)(x)
        loop = gc.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, gc.cond(a > 0.0, lambda: scaled(a), lambda: a)), [0, x])[1]
        made["gradients"] = [gc.gradients(y, x)[0] for y in (branch, call, loop)]

    cells.run("gradient", lambda: register(2.0))
    cells.run("model", model)
    assert gc.Session().run(made["gradients"]) == [2.0, 2.0, 4.0]
    cells.run("gradient", lambda: register(5.0))
    assert gc.Session().run(made["gradients"]) == [5.0, 5.0, 25.0]


def test_a_branch_that_is_made_again_with_an_equal_gradient_keeps_its_function(graph: gc.Graph) -> None:
    cells = Cells(graph)
    x = gc.placeholder(gc.float32, [], name="x")

    def model(factor: float) -> None:
        @custom_gradient
        def scaled(v: gc.Tensor) -> Any:
            return v * 1.0, lambda dy: dy * factor

        gc.identity(gc.cond(x > 0.0, lambda: scaled(x), lambda: x), name="y")

    def derived() -> float:
        return float(gc.Session().run("dy:0", {x: 1.0}))

    cells.run("model", lambda: model(2.0))
    cells.run("use", lambda: gc.identity(gc.gradients(graph.get_tensor_by_name("y:0"), x)[0], name="dy"))
    assert derived() == 2.0
    names = [function.name for function in graph.library]
    cells.run("model", lambda: model(2.0))
    assert (derived(), [function.name for function in graph.library]) == (2.0, names)
    cells.run("model", lambda: model(3.0))
    assert derived() == 3.0


def test_a_custom_gradient_holds_for_nodes_that_are_imported_into_another_graph(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [], name="x")

    @custom_gradient
    def f(v: gc.Tensor) -> Any:
        e = gc.exp(v)
        return e, lambda dy: dy * gc.cond(e > 2.0, lambda: e * 2.0, lambda: e)

    gc.identity(gc.cond(x > 0.0, lambda: f(x), lambda: x), name="y")
    with gc.Graph().as_default() as other:
        gc.import_graph_def(graph.as_graph_def(), name="")
        (gradient,) = gc.gradients(other.get_tensor_by_name("y:0"), other.get_tensor_by_name("x:0"))
        assert [float(gc.Session().run(gradient, {"x:0": value})) for value in (1.0, 0.5, -1.0)] == pytest.approx(
            [2 * np.exp(1.0), np.exp(0.5), 1.0], rel=1e-6
        )


def test_gradients_of_results_and_arguments_may_be_none() -> None:
    x = gc.placeholder(gc.float32, [], name="x")

    @custom_gradient
    def f(v: gc.Tensor, count: gc.Tensor) -> Any:
        return [v * 1.0, gc.cast(v, gc.int32) + count], lambda dy, dcount: (None if dcount is not None else dy * 3.0, None)

    @custom_gradient
    def stopped(v: gc.Tensor) -> Any:
        return v * 1.0, lambda _: None

    y = gc.cond(x > 0.0, lambda: f(x, 2)[0], lambda: stopped(x))
    (gradient,) = gc.gradients(y, x)
    assert [float(gc.Session().run(gradient, {x: value})) for value in (1.0, -1.0)] == [3.0, 0.0]


def test_nothing_depends_on_a_tensor_that_only_a_gradient_in_a_body_takes() -> None:
    x = gc.placeholder(gc.float32, [], name="x")

    @custom_gradient
    def f(v: gc.Tensor) -> Any:
        return v * 1.0, lambda dy: dy * x

    start = gc.constant(2.0)
    loop = gc.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, f(a)), [0, start])[1]
    branch = gc.cond(start > 0.0, lambda: gc.cond(start > 1.0, lambda: f(start), lambda: start), lambda: start)
    call = gc.function(f)(start)
    assert [gc.gradients(y, x)[0] for y in (loop, branch, call)] == [None] * 3
    found = [gc.gradients(y, start)[0] for y in (loop, branch, call)]
    assert gc.Session().run(found, {x: 3.0}) == [9.0, 3.0, 3.0]


def test_a_gradient_in_a_body_takes_variables() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    factors = [gc.Variable(2.0, use_resource=kind) for kind in (False, True)]

    @custom_gradient
    def f(v: gc.Tensor) -> Any:
        return v * 1.0, lambda dy: dy * factors[0] * factors[1]

    y = gc.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, gc.cond(a > 0.0, lambda: f(a), lambda: a)), [0, x])[1]
    (gradient,) = gc.gradients(y, x)
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        assert session.run(gradient, {x: 1.0}) == 16.0


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_function_in_a_body_that_uses_a_variable_is_refused(use_resource: bool) -> None:
    x, w = gc.placeholder(gc.float32, [], name="x"), gc.Variable(2.0, name="w", use_resource=use_resource)

    @custom_gradient
    def f(v: gc.Tensor) -> Any:
        return v * w, lambda dy: dy

    with pytest.raises(UnimplementedError, match="f has a custom gradient and uses variable 'w': pass its value as an argument"):
        gc.cond(x > 0.0, lambda: f(x), lambda: x)


def test_a_gradient_with_too_many_results_leaves_no_branch(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    pred = x > 0.0
    names = [node.name for node in graph.nodes]

    @custom_gradient
    def f(v: gc.Tensor) -> Any:
        return v * 1.0, lambda dy: [dy, dy]

    with pytest.raises(InvalidArgumentError, match="required a gradient for each of 1 arguments, got 2"):
        gc.cond(pred, lambda: f(x), lambda: x)
    assert ([node.name for node in graph.nodes], list(graph.library)) == (names, [])


def branch(x: gc.Tensor, f: Callable[[gc.Tensor], gc.Tensor]) -> Any:
    return gc.cond(x > 0.0, lambda: f(x), lambda: x)


def loop(x: gc.Tensor, f: Callable[[gc.Tensor], gc.Tensor]) -> Any:
    return gc.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, f(a)), [0, x])[1]


def call(x: gc.Tensor, f: Callable[[gc.Tensor], gc.Tensor]) -> Any:
    return gc.function(f)(x)


@pytest.mark.parametrize("body", [branch, loop, call])
def test_a_registered_gradient_in_a_body_that_takes_a_tensor_from_outside_is_refused(body: Any) -> None:
    x, scale = gc.placeholder(gc.float32, [], name="x"), gc.placeholder(gc.float32, [], name="scale")
    RegisterGradient(f"FromOutside{body.__name__}")(lambda _, grad: grad * scale)

    def f(v: gc.Tensor) -> gc.Tensor:
        with gc.get_default_graph().gradient_override_map({"Tanh": f"FromOutside{body.__name__}"}):
            return gc.tanh(v)

    y = body(x, f)
    with pytest.raises(UnimplementedError, match=r"The gradient of 'Tanh' in function '.*' takes 'scale:0' from outside of it"):
        gc.gradients(y, x)


def test_a_registered_gradient_in_a_function_that_calls_itself_is_refused(graph: gc.Graph) -> None:
    RegisterGradient("InRecursion")(lambda _, grad: grad)
    for text in (
        "Base(x:float) -> (y:float) {\n  return y = x\n}",
        """Again(x:float) -> (y:float) {
          t = Tanh[T=float, _gradient_op_type="InRecursion"](x)
          y = Down[](t:y:0)
          return y = y:y:0
        }""",
        """Down(x:float) -> (y:float) {
          least = Const[dtype=float, value=Tensor<type: float shape: [] values: 0.7>]()
          more = Greater[T=float](x, least:output:0)
          if = StatelessIf[Tcond=bool, Tin={float}, Tout={float}, else_branch=Base, then_branch=Again](more:z:0, x)
          return y = if:output:0
        }""",
    ):
        graph.library.add_function_def(gc.parse_function(text))
    x = gc.placeholder(gc.float32, [], name="x")
    y = graph.apply_op("Down", [x]).outputs[0]
    (gradient,) = gc.gradients(y, x)
    with pytest.raises(UnimplementedError, match="The gradient of 't' is a Python function"):
        gc.Session().run(gradient, {x: 1.0})
