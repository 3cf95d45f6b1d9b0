"""The inspector and the search: content for a box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import graphcore as gc
from tests.support.asking import find, inspect
from tests.widgets.conftest import RunCell
from widgets.inspection import Inspection
from widgets.render.compiled import build_scene
from widgets.scene import SceneState
from widgets.scene.find import hits
from widgets.scene.query import Facts


def told(graph: gc.Graph, box_id: str, state: SceneState | None = None) -> Inspection:
    found = inspect(graph, state or SceneState(), box_id)
    assert found is not None
    assert found.id == box_id
    return found


def test_a_node_tells_definition_signature_and_neighbours(softmax_regression: gc.Graph) -> None:
    node = told(softmax_regression, "matmul")
    assert node.op == "MatMul"
    assert node.node_def.startswith("matmul = MatMul[T=float")
    assert node.signature.startswith("MatMul[")
    assert "matrix product" in node.doc
    assert [(row.name, row.tensor, row.dtype, row.shape, row.node) for row in node.inputs] == [
        ("a", "x:0", "float", "[?,64]", "x"),
        ("b", "W/read:0", "float", "[64,10]", "W"),
    ]
    assert node.outputs[0].tensor == "add"
    assert node.outputs[0].node == "add"
    assert ("transpose_a", "false") in node.attrs


def test_a_node_shows_what_is_known_of_its_op_and_nothing_where_that_says_nothing(softmax_regression: gc.Graph) -> None:
    assert told(softmax_regression, "add").traits == "element by element; inputs in any order; may reuse its input's memory; cannot fail"
    assert told(softmax_regression, "matmul").traits == "costs as much as a matrix product; cannot fail"
    with gc.Graph().as_default() as graph:
        gc.placeholder(gc.float32, [2], name="x")
        gc.apply_op("Reshape", [gc.constant([1.0, 2.0]), [2, 1]], name="reshaped")
        gc.apply_op("FloorMod", [gc.constant([3]), gc.constant([2])], name="rest")
        gc.stop_gradient(gc.constant([1.0]), name="stopped")
    assert told(graph, "x").traits == ""
    assert told(graph, "stopped").traits == "stops gradients; passes its inputs on without a copy; cannot fail"
    assert told(graph, "reshaped").traits.endswith("can fail only on wrong values of shape")
    assert told(graph, "rest").traits == "element by element; may reuse its input's memory; can fail only on integers"


def test_control_edges_are_told_from_both_ends(softmax_regression: gc.Graph) -> None:
    assert [row.tensor for row in told(softmax_regression, "train").control_inputs] == ["^AssignSub", "^AssignSub_1"]
    assert [row.node for row in told(softmax_regression, "AssignSub").control_outputs] == ["train"]


def test_a_gradient_node_tells_the_registered_function_and_its_instantiated_body(softmax_regression: gc.Graph) -> None:
    gradient = told(softmax_regression, "gradients/matmul_grad/dy").gradient
    assert gradient is not None
    assert (gradient.differentiates, gradient.differentiates_id, gradient.body_node) == ("matmul", "matmul", "dy")
    assert gradient.function == "MatMulGrad"
    assert gradient.definition.startswith("MatMulGrad[T:")
    assert "MatMul[T=$T" in gradient.definition
    assert gradient.instantiated.startswith("(x:float, y:float, dz:float)")
    assert "MatMul[T=float" in gradient.instantiated
    assert (
        gradient.built
        == "dy = MatMul[T=float, grad_a=false, grad_b=false, transpose_a=true, transpose_b=false](x, gradients/y_grad/grad_x)"
    )


def test_the_plain_body_and_what_simplification_left_of_it_are_told_side_by_side() -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [2, 3], name="x")
        y = gc.exp(x, name="y")
        gc.gradients(y, x)
        gc.gradients(y, x, simplify=False)
    simplified = told(graph, "gradients/y_grad/dx").gradient
    plain = told(graph, "gradients_1/y_grad/dx").gradient
    assert simplified is not None
    assert plain is not None
    assert simplified.instantiated == plain.instantiated
    assert "y = Exp[T=float](x)" in plain.instantiated
    assert simplified.built == "dx = Mul[T=float](gradients/grad_ys_0, y)"
    assert plain.built.splitlines() == ["y = Exp[T=float](x)", "dx = Mul[T=float](gradients_1/grad_ys_0, y)"]


def test_a_folded_gradient_function_tells_the_same(softmax_regression: gc.Graph) -> None:
    box = told(softmax_regression, "gradients/y_grad/")
    assert box.kind == "inlined gradient function"
    assert box.gradient is not None
    assert box.gradient.differentiates == "y"
    assert "Softmax[T=float]" in box.gradient.instantiated
    assert ("Mul", 2) in box.contents
    assert {row.tensor for row in box.inputs} >= {"y:0"}


def test_a_forward_node_tells_its_registered_gradient(softmax_regression: gc.Graph) -> None:
    registered = told(softmax_regression, "matmul").registered_gradient
    assert registered is not None
    assert "MatMul[T=$T, transpose_a=false, transpose_b=true](dz, y)" in registered.definition
    assert told(softmax_regression, "train").registered_gradient is None


def test_a_clash_tells_the_shapes_the_cells_and_where_the_odd_size_comes_from(run_cell: RunCell, graph: gc.Graph) -> None:
    run_cell("x", "x = gc.placeholder(gc.float32, [None, 64], name='x')")
    run_cell("w", "W = gc.Variable(gc.zeros([64, 10]), name='W')")
    run_cell("b", "b = gc.Variable(gc.zeros([10]), name='b')")
    run_cell("model", "\ny = x @ W + b")
    run_cell("w", "W = gc.Variable(gc.zeros([64, 12]), name='W')")
    node = told(graph, "add")
    assert "12 and 10" in node.error
    rows = [(clash.tensor, clash.shape, clash.source and (clash.source.cell, clash.source.line)) for clash in node.clashes]
    assert rows == [
        ("matmul:0", "float [?,12]", ("In [4]", 2)),
        ("W:0, where 12 comes from", "float [64,12]", ("In [5]", 1)),
        ("b/read:0", "float [10]", ("In [3]", 1)),
    ]
    assert node.source is not None
    assert (node.source.cell, node.source.line, node.source.text) == ("In [4]", 2, "y = x @ W + b")
    assert node.source.file == "", "saved notebooks would contain the folders of this machine"
    assert all(row.error for row in node.inputs)


def test_a_stub_tells_of_what_it_stands_for(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    y = x
    for _ in range(12):
        y = gc.tanh(y)
    gc.gradients(gc.reduce_sum(y * y * x), [x])
    state = SceneState()
    state.expand("*")
    stub = next(node for node in build_scene(graph, state).nodes if node.kind == "stub")
    assert told(graph, stub.id, state).name == stub.stands_for


def test_a_scope_tells_its_contents_and_what_enters_it(softmax_regression: gc.Graph) -> None:
    scope = told(softmax_regression, "gradients/")
    assert scope.kind == "scope"
    assert sum(count for _, count in scope.contents) == int(scope.summary.split()[0])
    assert {"x:0", "y:0"} <= {row.tensor for row in scope.inputs}


def test_a_hidden_node_can_be_asked_for_by_name(softmax_regression: gc.Graph) -> None:
    assert told(softmax_regression, "W/read").op == "Identity"
    assert inspect(softmax_regression, SceneState(), "nowhere") is None


@pytest.mark.parametrize("size", [100_000, 3])
def test_a_large_constant_is_told_of_in_a_short_text(graph: gc.Graph, size: int) -> None:
    gc.constant(np.zeros(size, np.float32), name="c")
    node = told(graph, "c")
    assert len(node.node_def) < 400
    assert len(node.summary) < 400
    assert dict(node.attrs)["value"].startswith(f"float [{size}]")


def test_nodes_are_found_by_name_op_and_cell(run_cell: RunCell, graph: gc.Graph) -> None:
    run_cell("a", "a = gc.placeholder(gc.float32, [3], name='alpha')")
    run_cell("b", "b = gc.tanh(a, name='beta'); c = gc.tanh(b, name='tanh_alpha')")
    assert [hit.name for hit in find(graph, "ALPHA").hits] == ["alpha", "tanh_alpha"]
    assert [hit.name for hit in find(graph, "placeholder").hits] == ["alpha"]
    assert [hit.name for hit in find(graph, "in [2]").hits] == ["beta", "tanh_alpha"]
    assert find(graph, "tanh").total == 2
    assert find(graph, "  ").hits == []


def test_a_search_gives_the_first_hits_and_counts_all(graph: gc.Graph) -> None:
    for _ in range(80):
        gc.placeholder(gc.float32, [3], name="p")
    found = find(graph, "p")
    assert (len(found.hits), found.total) == (50, 80)
    assert found.hits[0].name == "p"


SEARCH = msgspec.json.decode((Path(__file__).parents[1] / "data" / "search_cases.json").read_bytes())


@pytest.mark.parametrize("case", SEARCH["cases"], ids=lambda case: case["query"].strip() or "blank")
def test_a_query_finds_what_matches_all_its_words_and_terms(case: dict[str, Any]) -> None:
    nodes = [msgspec.convert(node, Facts) for node in SEARCH["nodes"]]
    found = hits(case["query"], nodes)
    assert [hit.name for hit in found.hits] == case["found"]
    assert found.total == len(case["found"])


def test_a_query_asks_for_op_attr_shape_dtype_and_cell_of_the_nodes_of_a_graph(run_cell: RunCell, graph: gc.Graph) -> None:
    run_cell("a", "a = gc.placeholder(gc.float32, [None, 3], name='alpha')")
    run_cell("b", "b = gc.matmul(a, gc.constant([[1.0]] * 3), name='beta'); c = gc.matmul(b, [[2.0]], name='gamma')")
    assert [hit.name for hit in find(graph, "op:matmul shape:1 cell:2").hits] == ["beta", "gamma"]
    assert [hit.name for hit in find(graph, "shape:[?,3]").hits] == ["alpha"]
    assert [hit.name for hit in find(graph, "dtype:float transpose_a=false gam").hits] == ["gamma"]


def test_more_hits_are_given_when_they_are_asked_for(graph: gc.Graph) -> None:
    for _ in range(80):
        gc.placeholder(gc.float32, [3], name="p")
    assert len(find(graph, "p", limit=70).hits) == 70
