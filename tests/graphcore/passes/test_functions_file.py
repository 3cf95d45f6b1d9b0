"""`functions_v2.pb`, nested functions made by TensorFlow: run, inlined, lowered, differentiated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.passes import InstantiatedFunctions

DATA = Path(__file__).parents[2] / "data"
RESULT = "Identity:0"


def stored() -> tuple[dict[str, Any], Any]:
    with np.load(DATA / "functions_v2.npz") as arrays:
        feeds = {name.removeprefix("feed "): arrays[name] for name in arrays.files if name.startswith("feed ")}
        return feeds, arrays[f"fetch {RESULT}"]


@pytest.fixture
def graph() -> gc.Graph:
    return gc.load(DATA / "functions_v2.pb")


def assert_gives_what_is_stored(graph: gc.Graph, engine: Any = "auto") -> None:
    feeds, expected = stored()
    np.testing.assert_allclose(gc.Session(graph, engine=engine).run(RESULT, feeds), expected, rtol=1e-6)


@pytest.mark.parametrize("engine", ["auto", "dataflow"])
def test_it_gives_what_tensorflow_gave(graph: gc.Graph, engine: str) -> None:
    assert_gives_what_is_stored(graph, engine)


def test_its_calls_inline_to_the_same(graph: gc.Graph) -> None:
    functions = InstantiatedFunctions(graph.library)
    handle = gc.FunctionLibraryRuntime(graph.library)
    scale = handle.instantiate("__inference_scale_8778")
    assert handle.run(scale, [np.ones((2, 3), np.float32)])[0].tolist() == [[3, 3, 3], [3, 3, 3]]
    branch = functions.body_of("while_cond_true_8768", {}).graph
    assert gc.expand_inline_functions(functions, branch)
    assert "PartitionedCall" not in [node.op for node in branch.nodes]
    x = next(node for node in branch.nodes if node.op == "_Arg").outputs[0]
    ret = next(node for node in branch.nodes if node.op == "_Retval").inputs[0]
    assert gc.Session(branch).run(ret, {x: np.ones((2, 3), np.float32)}).tolist() == [[3, 3, 3], [3, 3, 3]]


@pytest.mark.parametrize("engine", ["auto", "dataflow"])
def test_it_lowers_to_the_same(graph: gc.Graph, engine: str) -> None:
    for node in graph.nodes:
        if node.op.startswith("Stateless"):
            graph.set_attr(node, "_lower_using_switch_merge", True)
    assert gc.lower_functional_ops(InstantiatedFunctions(graph.library), graph)
    left = {node.op for node in graph.nodes}
    assert not left & {"StatelessWhile", "StatelessIf", "StatelessCase", "PartitionedCall", *graph.library.list_function_names()}
    assert {"Switch", "Merge", "_SwitchN", "Enter", "Exit", "NextIteration", "LoopCond"} <= left
    assert_gives_what_is_stored(graph, engine)


def test_every_function_prints_and_reads_back(graph: gc.Graph) -> None:
    assert graph.library.num_functions == 8
    for function in graph.library:
        assert gc.function_defs_equal(gc.parse_function(gc.debug_string(function)), function)


def test_shapes_follow_through_all_functions(graph: gc.Graph) -> None:
    for node in graph.nodes:
        if "output_shapes" in node.node_def.attr:
            graph.set_attr(node, "output_shapes", ())
    assert graph.get_tensor_by_name(RESULT).shape == gc.Shape([2, 3])


@pytest.mark.parametrize("number", range(6))
def test_its_gradient_agrees_with_central_differences(graph: gc.Graph, number: int) -> None:
    with graph.as_default():
        y, x = graph.get_tensor_by_name(RESULT), graph.get_tensor_by_name("x:0")
        weights = gc.constant(np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3))
        loss = gc.reduce_sum(y * weights)
        (gradient,) = gc.gradients(loss, x)
    point = np.linspace(-0.5, 0.9, 6, dtype=np.float32).reshape(2, 3)
    session = gc.Session(graph)
    got = session.run(gradient, {x: point, "n:0": number})
    wanted = np.zeros((2, 3))
    for at in np.ndindex(2, 3):
        ends = []
        for step in (1e-2, -1e-2):
            moved = point.copy()
            moved[at] += step
            ends.append(float(session.run(loss, {x: moved, "n:0": number})))
        wanted[at] = (ends[0] - ends[1]) / 2e-2
    np.testing.assert_allclose(got, wanted, rtol=5e-2, atol=5e-2 * np.abs(wanted).max())
