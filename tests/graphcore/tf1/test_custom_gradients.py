"""Gradients that programs define: for nodes by name, and for functions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import graphcore as gc
from graphcore.api import ops
from graphcore.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, UnimplementedError
from graphcore.tf1.train.custom_gradients import NotDifferentiable, RegisterGradient, custom_gradient, grad_pass_through
from tests.graphcore.api.cell_runs import Cells


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def value(fetches: Any) -> Any:
    found = gc.Session().run(fetches)
    return [each.tolist() for each in found] if isinstance(found, list) else found.tolist()


def test_nodes_take_the_gradient_of_another_op_or_of_a_function(graph: gc.Graph) -> None:
    x = gc.constant([-1.5, 0.25, 2.0])

    @RegisterGradient("Guided")
    def guided(op: gc.Node, grad: gc.Tensor) -> gc.Tensor:
        assert (op.op, len(op.inputs), len(op.outputs)) == ("Relu", 1, 1)
        return gc.where(op.outputs[0] > 0.0, gc.ops.relu(grad), gc.zeros_like(grad))

    with graph.gradient_override_map({"Round": "Identity", "Relu": "Guided"}):
        rounded = ops.round(x)
        with graph.gradient_override_map({"Round": "Square"}):
            squared = ops.round(x)
        relu = gc.relu(x)
    plain = gc.relu(x)
    found = [gc.gradients(y, x, grad_ys=gc.constant([1.0, -2.0, 3.0]))[0] for y in (rounded, squared, relu, plain)]
    assert value(found) == [[1, -2, 3], [-3, -1, 12], [0, 0, 3], [0, -2, 3]]
    assert gc.gradients(ops.round(x), x) == [None]
    assert {record.forward for name, record in graph.gradient_records.items() if name.startswith("gradients_2/Relu_grad/")} == {"Relu"}
    assert gc.explain_gradient(rounded, x).steps[0].node == "Round"
    assert not gc.explain_gradient(relu, x).is_none


def test_a_cell_that_registers_its_gradient_again_changes_the_gradients_built_with_it(graph: gc.Graph) -> None:
    cells = Cells(graph)
    made: dict[str, Any] = {}

    def register(factor: float) -> None:
        RegisterGradient("Scaled")(lambda _, grad: grad * factor)

    def model() -> None:
        made["x"] = gc.constant([1.0, 2.0], name="x")
        with graph.gradient_override_map({"Tanh": "Scaled"}):
            made["y"] = gc.tanh(made["x"], name="y")

    cells.run("gradient", lambda: register(2.0))
    cells.run("model", model)
    cells.run("use", lambda: made.update(g=gc.gradients(made["y"], made["x"])[0]))
    assert value(made["g"]) == [2, 2]
    cells.run("gradient", lambda: register(5.0))
    assert value(made["g"]) == [5, 5]


def test_nodes_of_a_gradient_that_are_made_again_are_still_known_as_its_nodes(graph: gc.Graph) -> None:
    cells = Cells(graph)
    x = gc.placeholder(gc.float32, [], name="x")

    def limited(low: float) -> None:
        @custom_gradient
        def function(v: gc.Tensor) -> Any:
            return gc.identity(v), lambda dv: gc.clip_by_value(dv, low, 1.0, name="limit")

        gc.gradients(gc.square(function(x), name="y"), [x])

    for low in (-1.0, -2.0):
        cells.run("limited", partial(limited, low))
        found = gc.explain_gradient("y:0", x)
        step = next(step for step in found.steps if step.op == "IdentityN")
        assert [node.op for node in step.backward] == ["Const", "Minimum", "Const", "Maximum"]
        made = {node.name for node in graph.nodes if node.name.startswith("gradients/")}
        assert made == set(graph.gradient_records)


def test_a_function_has_the_gradient_that_it_returns(graph: gc.Graph) -> None:
    @custom_gradient
    def log1pexp(x: gc.Tensor) -> Any:
        e = gc.exp(x)
        return gc.log(1.0 + e), lambda dy: dy * (1.0 - 1.0 / (1.0 + e))

    @custom_gradient
    def swapped(a: gc.Tensor, b: gc.Tensor) -> Any:
        return [a * b, a + b], lambda da, db: [da * 10.0, db * 100.0]

    x = gc.constant(100.0)
    assert value(gc.gradients(log1pexp(x), x)) == [1.0]
    a, b = gc.constant(2.0), gc.constant(3.0)
    product, total = swapped(a, b)
    assert value([product, total, *gc.gradients([product, total], [a, b])]) == [6, 5, 10, 100]
    assert value(gc.gradients(grad_pass_through(ops.round)(a * 3.0), a)) == [3.0]
    assert graph.find("IdentityN") is not None


def test_gradients_that_do_not_fit_are_refused(graph: gc.Graph) -> None:
    x = gc.constant([1.0, 2.0])
    RegisterGradient("Long")(lambda _, grad: [grad, grad])
    RegisterGradient("Wide")(lambda _, grad: gc.stack([grad, grad]))
    for name, error, text in (
        ("Long", InvalidArgumentError, "The gradient of 'Tanh.*' must return a gradient for each of 1 inputs, got 2"),
        ("Wide", InvalidArgumentError, r"with respect to input 0 must be float \[2\], got .* float \[2,2\]"),
        ("Unknown", NotFoundError, "asks for the gradient 'Unknown', which is not registered"),
    ):
        with graph.gradient_override_map({"Tanh": name}):
            y = gc.tanh(x)
        with pytest.raises(error, match=text):
            gc.gradients(y, x)
    with pytest.raises(AlreadyExistsError, match="'Tanh' is an op"):
        RegisterGradient("Tanh")(lambda _, grad: grad)
    with pytest.raises(KeyError, match="'Tanh' is an op"):
        RegisterGradient("Tanh")(lambda _, grad: grad)
    with pytest.raises(AlreadyExistsError):
        NotDifferentiable("Tanh")
    with pytest.raises(InvalidArgumentError, match="required a dict of names"):
        graph.gradient_override_map({"Tanh": 1})
    w = gc.Variable(2.0, name="w")

    @custom_gradient
    def f(v: gc.Tensor) -> Any:
        return v * w, lambda dy: dy

    with pytest.raises(UnimplementedError, match="f has a custom gradient and uses variable 'w': pass its value as an argument"):
        f(x)
    with pytest.raises(InvalidArgumentError, match="required a function that returns its result and a gradient function"):
        custom_gradient(lambda v: v)(x)
