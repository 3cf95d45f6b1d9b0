"""If, Case and While against TensorFlow: values, gradients, second derivatives; and TensorFlow runs the gradients that are built here."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions.wire import graph_def_to_bytes
from tests.graphcore.passes.functional_programs import LOSSES, POINTS
from tests.oracle.conftest import Oracle
from tests.oracle.test_graph_files import data_folder, stored

SIDE = "tests.oracle.functional_side"
FIRST = np.array([1.0, -0.7, 0.4])
SECOND = np.array([0.3, 1.1, -0.5])


def differentiated(name: str, graph: gc.Graph) -> list[gc.Tensor]:
    """The program's value, gradient and second derivative, as in `run_with_gradients`."""
    with graph.as_default():
        x = gc.placeholder(gc.float64, [3], name="x")
        y = gc.identity(LOSSES[name](x), name="y")
        (gradient,) = gc.gradients(y, x, grad_ys=gc.constant(FIRST, gc.float64) if y.shape.rank else None)
        (again,) = gc.gradients(gradient, x, grad_ys=gc.constant(SECOND, gc.float64))
        return [y, gradient, gc.zeros_like(x) if again is None else again]


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "growing"])
def test_a_program_and_its_derivatives_are_what_they_are_in_tensorflow(name: str, oracle: Oracle) -> None:
    graph = gc.Graph()
    fetches = differentiated(name, graph)
    theirs = oracle.call(f"{SIDE}:run_with_gradients", name, POINTS, FIRST, SECOND)
    session = gc.Session(graph)
    for point, wanted in zip(POINTS, theirs, strict=True):
        for mine, other in zip(session.run(fetches, {"x:0": point}), wanted, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("lowered", [False, True], ids=["as built", "lowered"])
@pytest.mark.parametrize("name", LOSSES)
def test_tensorflow_runs_the_gradients_that_are_built_here(name: str, lowered: bool, oracle: Oracle) -> None:
    graph = gc.Graph()
    fetches = differentiated(name, graph)
    feeds = {"x:0": POINTS[0]}
    mine = gc.Session(graph).run(fetches, feeds)
    if lowered:
        gc.lower_functional_ops(gc.InstantiatedFunctions(graph.library), graph)
    names = [tensor.name for tensor in fetches]
    theirs = oracle.call("tests.oracle.graph_side:run_graph", graph_def_to_bytes(graph.as_graph_def()), "pb", feeds, names)
    for value, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("number", [0, 1, 2, 4, 5])
def test_the_gradient_of_the_file_of_functions_is_tensorflows(number: int, oracle: Oracle) -> None:
    path = data_folder() / "functions_v2.pb"
    feeds = {**stored(path)[0], "n:0": np.array(number, np.int32)}
    weights = np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3)
    graph = gc.load(path)
    with graph.as_default():
        (gradient,) = gc.gradients("Identity:0", "x:0", grad_ys=gc.constant(weights))
    theirs = oracle.call(f"{SIDE}:gradient_of_graph", path.read_bytes(), feeds, "Identity:0", "x:0", weights)
    np.testing.assert_allclose(gc.Session(graph).run(gradient, feeds), theirs, rtol=1e-5)
