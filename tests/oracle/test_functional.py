"""If, Case and While against TensorFlow: values and derivatives; TensorFlow runs ours too."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions.node_names import colocated_with
from graphcore.definitions.wire import graph_def_to_bytes
from graphcore.errors import NotFoundError
from tests.graphcore.passes.functional_programs import LOSSES, POINTS
from tests.oracle.conftest import Oracle
from tests.oracle.test_graph_files import data_folder, stored
from tests.support.remote import RemoteError

SIDE = "tests.oracle.sides.functional_side"
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
    theirs = oracle.call("tests.oracle.sides.graph_side:run_graph", graph_def_to_bytes(graph.as_graph_def()), "pb", feeds, names)
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


def called(graph: gc.Graph) -> list[gc.Tensor]:
    """Calls of functions that call others, with their gradients and second derivatives."""
    with graph.as_default():
        inner = gc.function(lambda v, w: gc.tanh(v) * w, name="inner")
        outer = gc.function(lambda v, w: (gc.exp(inner(inner(v, w), w)), inner(w, v)), name="outer")
        x, w = gc.placeholder(gc.float64, [3], name="x"), gc.constant([1.0, 0.5, -0.25], gc.float64)
        y = outer(x, w)[0] * inner(x, x) + outer(w, x)[1]
        (gradient,) = gc.gradients(y, x, grad_ys=gc.constant(FIRST, gc.float64))
        (again,) = gc.gradients(gradient, x, grad_ys=gc.constant(SECOND, gc.float64))
        return [y, gradient, again]


def test_tensorflow_runs_the_gradients_of_calls_that_are_built_here_and_finds_the_same_itself(oracle: Oracle) -> None:
    graph = gc.Graph()
    fetches = called(graph)
    feeds = {"x:0": POINTS[0]}
    mine = gc.Session(graph).run(fetches, feeds)
    data = graph_def_to_bytes(graph.as_graph_def())
    theirs = oracle.call("tests.oracle.sides.graph_side:run_graph", data, "pb", feeds, [tensor.name for tensor in fetches])
    for value, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-9, atol=1e-12)
    own = oracle.call(f"{SIDE}:gradient_of_graph", data, feeds, fetches[0].name, "x:0", FIRST)
    np.testing.assert_allclose(mine[1], own, rtol=1e-9)


def test_the_gradient_of_a_gather_from_a_variable_is_tensorflows_made_dense(oracle: Oracle) -> None:
    values, indices = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([[2, 0], [2, 2]])
    weights = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 2, 2)
    with gc.Graph().as_default() as graph:
        table = gc.Variable(values, name="table", use_resource=True)
        rows = graph.apply_op("ResourceGather", [table.handle, indices], {"dtype": gc.float32}).outputs[0]
        (slices,) = gc.gradients(gc.reduce_sum(rows * rows * weights), table)
        gradient = gc.convert_to_tensor(slices)
        with gc.Session() as session:
            session.run(table.initializer)
            mine = session.run(gradient)
    np.testing.assert_allclose(mine, oracle.call(f"{SIDE}:gather_gradient", values, indices, weights), rtol=1e-6)


LOOP_OPS = ("Enter", "Merge", "Switch", "Exit", "NextIteration", "LoopCond")
LOOP_LABELS = ("LoopControlInputs", "loop_body_control", "LoopExecuted")


def loop_nodes(nodes: list[tuple[str, str, list[str]]]) -> list[tuple[str, list[str]]]:
    """The colocations of each node of a lowered loop, by op, and by label if it is ambiguous."""
    by_label = [(label, groups) for _, name, groups in nodes for label in LOOP_LABELS if f"/{label}" in name]
    return sorted(by_label + [(op, groups) for op, _, groups in nodes if op in LOOP_OPS])


def test_a_lowered_loop_is_colocated_as_in_tensorflow(oracle: Oracle) -> None:
    graph = gc.Graph()
    with graph.as_default():
        a = gc.placeholder(gc.float32, [], name="A")
        fixed = gc.identity(gc.constant(3.0), name="fixed")
        b = graph.apply_op("Identity", [fixed], {"_class": [b"loc:@fixed"]}, "B").outputs[0]
        with gc.control_dependencies([fixed]):
            gc.while_loop(lambda x, _: x < 8.0, lambda x, y: (x * 2.0, y + 1.0), (a, b), name="while")
    loop = next(node for node in graph.nodes if node.op.endswith("While"))
    graph.set_attr(loop, "_class", [b"loc:@B"])
    graph.set_attr(loop, "_lower_using_switch_merge", True)
    with graph.as_default(), gc.control_dependencies([loop]):
        after = gc.identity(loop.outputs[1], name="after")
    theirs = oracle.call(f"{SIDE}:lowered_nodes", graph_def_to_bytes(graph.as_graph_def()), {"A:0": np.float32(1.0)}, after.name)
    gc.lower_functional_ops(gc.InstantiatedFunctions(graph.library), graph)
    mine = [(node.op, node.name, [f"loc:@{name}" for name in colocated_with(node.node_def)]) for node in graph.nodes]
    assert loop_nodes(mine) == loop_nodes(theirs)
    assert ("LoopCond", ["loc:@B"]) in loop_nodes(mine)


@pytest.mark.parametrize("noinline", [False, True], ids=["", "noinline"])
@pytest.mark.parametrize("named", ["", "DEFAULT", "SINGLE_THREADED_EXECUTOR", "UNKNOWN"])
@pytest.mark.parametrize("op", ["PartitionedCall", "StatefulPartitionedCall", "Twice"])
def test_an_executor_that_a_call_names_is_found_or_missed_alike(op: str, named: str, noinline: bool, oracle: Oracle) -> None:
    graph = gc.Graph()
    mark = "  @attr _noinline = true\n" if noinline else ""
    graph.library.add_function_def(
        gc.parse_function(f"Twice(x:float) -> (y:float) {{\n{mark}  y = Add[T=float](x, x)\n  return y = y:z:0\n}}")
    )
    with graph.as_default():
        x = gc.placeholder(gc.float32, [], name="x")
        if op == "Twice":
            graph.apply_op(op, [x], {"_executor": named.encode()}, "y")
        else:
            graph.apply_op(op, [[x]], {"Tout": (gc.float32,), "f": gc.Func("Twice"), "executor_type": named.encode()}, "y")
    feeds = {"x:0": np.float32(3.0)}

    def theirs() -> float:
        data = graph_def_to_bytes(graph.as_graph_def())
        return float(oracle.call("tests.oracle.sides.graph_side:run_graph", data, "pb", feeds, ["y:0"])[0])

    if named != "UNKNOWN":
        assert gc.Session(graph).run("y:0", feeds) == theirs() == 6.0
        return
    text = f"No executor factory registered for the given executor type: {named} Registered factories are {{"
    with pytest.raises(NotFoundError) as mine:
        gc.Session(graph).run("y:0", feeds)
    with pytest.raises(RemoteError) as other:
        theirs()
    assert other.value.kind == "NotFoundError"
    assert text in mine.value.message
    assert text in str(other.value)
