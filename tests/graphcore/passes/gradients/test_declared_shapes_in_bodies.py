"""Shapes in bodies that only `set_shape`, a queue or a variable tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions.wire import graph_def_from_bytes, graph_def_to_bytes
from graphcore.tf1.python_calls import py_func
from graphcore.tf1.queues.queues import FIFOQueue
from graphcore.tf1.train.custom_gradients import RegisterGradient
from tests.graphcore.api.cell_runs import Cells

Source = Callable[[], gc.Tensor]


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def ones() -> Any:
    return np.ones((2, 3), np.float32)


def by_python() -> gc.Tensor:
    made: gc.Tensor = py_func(ones, [], gc.float32)
    assert made.shape.rank is None
    made.set_shape([2, 3])
    return made


def sources() -> dict[str, Source]:
    queue = FIFOQueue(10, gc.float32, shapes=[(2, 3)])
    variables = [gc.Variable(ones(), use_resource=kind) for kind in (False, True)]
    return {
        "py_func": by_python,
        "queue": queue.dequeue,
        "variable": variables[0].read_value,
        "resource variable": variables[1].read_value,
    }


def branch(x: gc.Tensor, f: Callable[[gc.Tensor], gc.Tensor]) -> Any:
    return gc.cond(gc.reduce_sum(x) > 0.0, lambda: f(x), lambda: x)


def loop(x: gc.Tensor, f: Callable[[gc.Tensor], gc.Tensor]) -> Any:
    return gc.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, branch(a, f)), [0, x])[1]


def call(x: gc.Tensor, f: Callable[[gc.Tensor], gc.Tensor]) -> Any:
    return gc.function(f)(x)


@pytest.mark.parametrize("body", [branch, loop, call])
@pytest.mark.parametrize("source", ["py_func", "queue", "variable", "resource variable"])
def test_gradients_of_bodies_know_the_shapes_that_their_bodies_knew(body: Any, source: str) -> None:
    seen: list[str] = []
    name = f"SeesShapes{body.__name__}{source}"

    @RegisterGradient(name)
    def note(op: gc.Node, grad: gc.Tensor) -> gc.Tensor:
        seen.append(str(op.inputs[0].shape))
        return grad

    take = sources()[source]

    def f(v: gc.Tensor) -> gc.Tensor:
        with gc.get_default_graph().gradient_override_map({"Tanh": name}):
            return gc.tanh(take()) * v + gc.tanh(take() * v)

    x = gc.placeholder(gc.float32, [2, 3], name="x")
    assert body(x, f).shape == gc.Shape([2, 3])
    gc.gradients(body(x, f), x)
    assert set(seen) == {"[2,3]"}


def test_a_branch_gives_the_shape_that_set_shape_gives_in_it(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    gc.identity(gc.cond(gc.reduce_sum(x) > 0.0, lambda: gc.cond(x[0, 0] > 0.0, by_python, lambda: x), lambda: -x), name="y")
    assert graph.get_tensor_by_name("y:0").shape == gc.Shape([2, 3])
    data = graph_def_to_bytes(graph.as_graph_def())
    with gc.Graph().as_default() as other:
        gc.import_graph_def(graph_def_from_bytes(data), name="")
        assert other.get_tensor_by_name("y:0").shape == gc.Shape([2, 3])


def test_a_loop_in_a_branch_of_a_loop_keeps_shapes_that_set_shape_gives() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    rows = gc.stack([x, x * x])

    def doubled(v: gc.Tensor) -> gc.Tensor:
        made: gc.Tensor = py_func(lambda a: np.float32(2 * a), [v], gc.float32)
        made.set_shape([])
        return made * v

    def step(s: gc.Tensor, a: gc.Tensor) -> Any:
        return gc.cond(a > 0.0, lambda: doubled(a) * s, lambda: gc.foldl(lambda t, b: t * doubled(b), rows, initializer=s))

    y = gc.reduce_sum(gc.scan(step, rows, initializer=x))
    (gradient,) = gc.gradients(y, x)
    with gc.Session() as session:
        # 2 x^2 x + 2 x^4 (2 x^2 x) by x, where TensorFlow 1 takes the result of py_func for a constant
        assert session.run([y, gradient], {x: 0.4}) == pytest.approx([0.1345536, 0.70552], rel=1e-4)


def test_a_branch_that_declared_shapes_is_marked_when_those_of_its_inputs_change(graph: gc.Graph) -> None:
    cells, variable = Cells(graph), gc.Variable(ones(), use_resource=True)

    def same(v: gc.Tensor) -> gc.Tensor:
        made: gc.Tensor = py_func(lambda a: a, [v], gc.float32)
        made.set_shape(v.shape)
        return made

    def model() -> None:
        x = graph.get_tensor_by_name("x:0")
        gc.identity(gc.cond(x[0] > 0.0, lambda: gc.cond(x[1] > 0.0, lambda: same(x), lambda: x), lambda: x), name="y")
        gc.identity(gc.cond(x[0] > 0.0, lambda: x * gc.reduce_sum(variable.read_value()), lambda: x), name="z")

    cells.run("x", lambda: gc.placeholder(gc.float32, [2], name="x"))
    cells.run("model", model)
    cells.run("x", lambda: gc.placeholder(gc.float32, [3], name="x"))
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        assert session.run("z:0", {"x:0": [1.0, 2.0, 3.0]}).tolist() == [6.0, 12.0, 18.0]
        with pytest.raises(gc.errors.FailedPreconditionError, match="its Python functions were called for other tensors"):
            session.run("y:0", {"x:0": [1.0, 2.0, 3.0]})
