"""Shapes in the view: equal dimensions, paths of clashing numbers, and explanations."""

from __future__ import annotations

from typing import Any

import pytest

import graphcore as gc
from graphcore.attrs import Func
from tests.support.asking import inspect
from tests.widgets.conftest import RunCell
from tests.widgets.test_scene import node_of
from widgets import to_dot, to_html, to_mermaid, to_outline, to_svg
from widgets.inspection import Inspection
from widgets.render.compiled import build_scene
from widgets.scene import Scene, SceneState


def keys(scene: Scene, edge_id: str) -> list[str]:
    return [dim.key for dim in next(edge for edge in scene.edges if edge.id == edge_id).dims]


def told(graph: gc.Graph, box: str, state: SceneState | None = None) -> Inspection:
    found = inspect(graph, state or SceneState(), box)
    assert found is not None
    return found


@pytest.fixture
def clash(run_cell: RunCell, graph: gc.Graph) -> gc.Graph:
    """`x @ W + b`, after `W` was made again with 12 columns where `b` has 10."""
    run_cell("x", "x = gc.placeholder(gc.float32, [None, 64], name='x')")
    run_cell("w", "W = gc.Variable(gc.zeros([64, 10]), name='W')")
    run_cell("b", "b = gc.Variable(gc.zeros([10]), name='b')")
    run_cell("model", "\ny = x @ W + b")
    run_cell("w", "W = gc.Variable(gc.zeros([64, 12]), name='W')")
    return graph


# ---- equal dimensions ------------------------------------------------------------------------------------------------


def test_a_dimension_has_one_key_wherever_it_goes(softmax_regression: gc.Graph) -> None:
    scene = build_scene(softmax_regression)
    batch, features = keys(scene, "x->matmul")
    assert keys(scene, "W->matmul")[0] == features
    classes = keys(scene, "W->matmul")[1]
    assert keys(scene, "matmul->add") == [batch, classes]
    assert keys(scene, "add->y") == [batch, classes]
    assert len({batch, features, classes}) == 3


def test_sizes_that_merely_happen_to_be_equal_have_different_keys(graph: gc.Graph) -> None:
    for name in ("a", "b"):
        gc.tanh(gc.placeholder(gc.float32, [3], name=name), name=f"{name}_out")
    scene = build_scene(graph)
    assert keys(scene, "a->a_out") != keys(scene, "b->b_out")


def test_an_unknown_dimension_is_a_question_mark_of_its_own(softmax_regression: gc.Graph) -> None:
    edge = next(edge for edge in build_scene(softmax_regression).edges if edge.id == "x->matmul")
    assert [dim.text for dim in edge.dims] == ["?", "64"]


def test_a_dimension_keeps_its_key_inside_an_open_call_and_after_it(graph: gc.Graph) -> None:
    double = gc.function(lambda x: gc.tanh(x + x), name="double")
    after: Any = double(gc.placeholder(gc.float32, [None, 3], name="x"))
    gc.exp(after, name="after")
    state = SceneState()
    state.expand("double")
    scene = build_scene(graph, state)
    outside = keys(scene, "x->double:/x")
    assert keys(scene, "double:/add->double:/Tanh") == outside
    assert keys(scene, "double:/output_RetVal->after") == outside


def test_names_of_unknown_sizes_go_on_inside_an_open_call() -> None:
    graph = gc.Graph(infer="symbolic")
    with graph.as_default():
        double = gc.function(lambda x: gc.tanh(x + x), name="double")
        double(gc.placeholder(gc.float32, [None, 3], name="x"))
    state = SceneState()
    state.expand("double")
    labels = {edge.id: edge.label for edge in build_scene(graph, state).edges}
    assert labels["x->double:/x"] == "float [batch,3]"
    assert labels["double:/add->double:/Tanh"] == "float [batch,3]"
    assert '[<tspan class="unknown">batch</tspan>,3]' in to_svg(graph, state)


ZERO = "zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()"
TRUE = "Const[dtype=bool, value=Tensor<type: bool shape: [] values: true>]()"
FUNCTIONS = (
    "First(x:float, y:float) -> (z:float) {\n  z = Tanh[T=float](x)\n}",
    "Second(x:float, y:float) -> (z:float) {\n  z = Exp[T=float](y)\n}",
    f"Twice(x:float, y:float) -> (z:float) {{\n  {ZERO}\n  z = ConcatV2[T=float, N=2](x, x, zero)\n  w = Tanh[T=float](z)\n}}",
    f"Go(x:float) -> (y:bool) {{\n  y = {TRUE}\n}}",
    "Keep(x:float) -> (y:float) {\n  y = Tanh[T=float](x)\n}",
    f"Grow(x:float) -> (y:float) {{\n  {ZERO}\n  y = ConcatV2[T=float, N=2](x, x, zero)\n}}",
)


def opened(op: str, infer: str = "", **attrs: Any) -> Scene:
    """An open call of `op` on x and y (a loop: on x), with a node after it."""
    graph = gc.Graph(infer=infer)
    with graph.as_default():
        for text in FUNCTIONS:
            graph.library.add_function_def(gc.define_function(text))
        x, y = (gc.placeholder(gc.float32, [None, 3], name=name) for name in "xy")
        named = {name: Func(value) for name, value in attrs.items()}
        inputs = [[x]] if "body" in attrs else [gc.placeholder(gc.bool_, [], name="c"), [x, y]]
        types = {} if "body" in attrs else {"Tout": [gc.float32]}
        call = graph.apply_op(op, inputs, {**types, **named}, name="call")
        gc.exp(call.outputs[0], name="after")
    state = SceneState()
    state.expand("call")
    return build_scene(graph, state)


def test_what_a_branch_takes_is_what_comes_from_outside_and_what_it_gives_what_goes_on() -> None:
    scene = opened("StatelessIf", then_branch="First", else_branch="First")
    assert keys(scene, "x->call") == keys(scene, "call->call:then/x") == keys(scene, "call->call:else/x")
    assert keys(scene, "y->call") == keys(scene, "call->call:then/y")
    assert keys(scene, "call:else/z_RetVal->after") == keys(scene, "x->call")


def test_what_two_branches_give_is_one_dimension_only_where_it_is_one() -> None:
    scene = opened("StatelessIf", then_branch="First", else_branch="Second")
    assert keys(scene, "call:then/x->call:then/z") == keys(scene, "x->call")
    assert keys(scene, "call:else/y->call:else/z") == keys(scene, "y->call")
    assert keys(scene, "x->call")[0] != keys(scene, "y->call")[0]


@pytest.mark.parametrize(("body", "lasts"), [("Keep", True), ("Grow", False)])
def test_a_dimension_goes_through_a_loop_if_it_lasts(body: str, lasts: bool) -> None:
    scene = opened("StatelessWhile", cond="Go", body=body)
    outside, inside, after = (keys(scene, edge) for edge in ("x->call", "call->call:body/x", "call->after"))
    assert (outside[0] == inside[0]) is (inside[0] == after[0]) is lasts
    assert outside[1] == inside[1] == after[1]


def test_names_go_into_branches_and_are_calculated_with_there() -> None:
    scene = opened("StatelessIf", "symbolic", then_branch="Second", else_branch="Twice")
    labels = {edge.id: edge.label for edge in scene.edges}
    assert labels["call->call:then/y"] == "float [batch2,3]"
    assert labels["call:else/z->call:else/w"] == "float [2*batch,3]"


def test_a_size_that_is_another_in_each_turn_of_a_loop_has_no_name_in_it() -> None:
    labels = {edge.id: edge.label for edge in opened("StatelessWhile", "symbolic", cond="Go", body="Grow").edges}
    assert labels["call->after"] == "float [n1,3]"
    assert labels["call->call:body/x"] == "float [?1,3]"
    kept = {edge.id: edge.label for edge in opened("StatelessWhile", "symbolic", cond="Go", body="Keep").edges}
    assert kept["call->call:body/x"] == kept["call->after"] == "float [batch,3]"


def test_several_tensors_on_one_line_show_dimensions_only_where_these_are_the_same(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2, 5], name="x")
    a, b = graph.apply_op("Unpack", [x], {"num": 2}, "parts").outputs
    gc.add(a, b, name="sum")
    edge = next(edge for edge in build_scene(graph).edges if edge.target == "sum")
    assert (edge.count, len(edge.dims)) == (2, 1)


# ---- clashes --------------------------------------------------------------------------------------------------------


def test_a_clash_draws_the_ways_of_both_numbers_and_names_both_cells(clash: gc.Graph) -> None:
    scene = build_scene(clash)
    ways = {edge.id: edge.clash for edge in scene.edges if edge.clash}
    assert ways == {"W->matmul": 1, "matmul->add": 1, "b->add": 2}
    assert node_of(scene, "W").clash == "12 from In [5], line 1"
    assert node_of(scene, "b").clash == "10 from In [3], line 1"
    assert node_of(scene, "x").clash == ""


def test_the_ways_are_gone_when_the_shapes_fit_again(clash: gc.Graph, run_cell: RunCell) -> None:
    run_cell("w", "W = gc.Variable(gc.zeros([64, 10]), name='W')")
    scene = build_scene(clash)
    assert not any(edge.clash for edge in scene.edges)
    assert not any(node.clash for node in scene.nodes)


def test_the_inspector_follows_both_numbers_to_where_they_were_written(clash: gc.Graph) -> None:
    chains = told(clash, "add").chains
    assert [(chain.size, chain.what) for chain in chains] == [("12", "dimension 1 of `matmul:0`"), ("10", "dimension 0 of `b/read:0`")]
    ends = [chain.steps[-1].source for chain in chains]
    assert [(end.cell, end.line) for end in ends if end is not None] == [("In [5]", 1), ("In [3]", 1)]
    assert [chain.steps[-1].node for chain in chains] == ["W", "b"]


def test_every_still_form_tells_of_a_clash(clash: gc.Graph) -> None:
    assert "12 from In [5], line 1" in to_svg(clash)
    assert 'class="data forward error clash2"' in to_svg(clash)
    assert "12 from In" in to_dot(clash).source
    assert "stroke-dasharray:7 3" in to_mermaid(clash) or "stroke:#c32222" in to_mermaid(clash)
    assert "Dimensions must be equal" in to_outline(clash)


# ---- explanations ----------------------------------------------------------------------------------------------------


def test_the_inspector_says_of_each_dimension_where_it_came_from(softmax_regression: gc.Graph) -> None:
    why = told(softmax_regression, "add").why
    assert [(item.what, item.size) for item in why] == [("dimension 0", "?"), ("dimension 1", "10")]
    batch, classes = why
    assert batch.steps[-1].node == "x"
    assert "leaves it open" in batch.steps[-1].text
    assert any(step.text.startswith("merged with dimension 0 of `b/read:0`") for step in classes.steps)
    scene = build_scene(softmax_regression)
    assert [item.key for item in why] == keys(scene, "add->y")


def test_an_unknown_rank_is_explained_too(graph: gc.Graph) -> None:
    gc.tanh(gc.placeholder(gc.float32, None, name="x"), name="y")
    (why,) = told(graph, "y").why
    assert (why.what, why.size) == ("rank", "?")


def test_of_a_long_way_the_middle_is_left_out(graph: gc.Graph) -> None:
    y: Any = gc.placeholder(gc.float32, [7], name="x")
    for _ in range(200):
        y = gc.tanh(y)
    (why,) = told(graph, y.node.name).why
    assert len(why.steps) < 30
    assert any("more" in step.text for step in why.steps)
    assert why.steps[-1].node == "x" or why.steps[-1].name == "x"


def test_explanations_go_on_outside_of_an_open_call(graph: gc.Graph, run_cell: RunCell) -> None:
    run_cell("x", "x = gc.placeholder(gc.float32, [None, 4], name='x')")
    run_cell("w", "w = gc.placeholder(gc.float32, [4, 5], name='w')")
    run_cell("call", "gc.function(lambda x, w: gc.tanh(x @ w), name='f')(x, w)")
    state = SceneState()
    state.expand("f")
    why = told(graph, "f:/Tanh", state).why[1]
    assert [step.text for step in why.steps[1:]] == [
        "is dimension 1 of `f:/w:0`",
        "is dimension 1 of `w:0`, given by the call",
        "is a literal of `w` (op Placeholder): shape=[4,5]",
    ]
    run_cell("w", "w = gc.placeholder(gc.float32, [3, 5], name='w')")
    scene = build_scene(graph, state)
    assert {edge.id: edge.clash for edge in scene.edges if edge.clash} == {
        "x->f:/x": 1,
        "f:/x->f:/matmul": 1,
        "w->f:/w": 2,
        "f:/w->f:/matmul": 2,
    }
    assert node_of(scene, "w").clash == "3 from In [4], line 1"


# ---- one look for failed cells --------------------------------------------------------------------------------------


def test_boxes_of_a_failed_cell_have_a_quiet_mark_in_every_still_form_as_in_the_live_view(graph: gc.Graph, run_cell: RunCell) -> None:
    run_cell("a", "gc.placeholder(gc.float32, [2], name='x')\nraise ValueError")
    scene = build_scene(graph)
    assert node_of(scene, "x").state == "stale"
    assert 'class="badge" cx=' in to_svg(scene)
    assert "stateStale stroke:#5b6878" in to_mermaid(scene)
    assert '"#5b6878"' in to_dot(scene).source
    assert not any('"#c32222"' in text for text in (to_dot(scene).source, to_mermaid(scene)))


def test_unknown_sizes_are_called_by_their_names_where_they_have_any() -> None:
    graph = gc.Graph(infer="symbolic")
    with graph.as_default():
        x = gc.placeholder(gc.float32, [None, None], name="x")
        gc.concat([x, x], 1, name="both")
    scene = build_scene(graph)
    assert [dim.text for dim in next(edge for edge in scene.edges if edge.source == "x").dims] == ["batch", "n1"]
    assert [row.shape for row in told(graph, "both").outputs] == ["[batch,2*n1]"]


def test_what_several_ways_lead_to_is_told_once_in_the_inspector(graph: gc.Graph) -> None:
    x: Any = gc.placeholder(gc.float32, name="x")
    for _ in range(60):
        x = x + gc.tanh(x)
    (why,) = told(graph, x.node.name).why
    assert len(why.steps) < 30
    assert any(step.text.endswith(", as above") for step in why.steps)
    (why,) = told(graph, "add_3").why
    assert "x" in [step.name for step in why.steps]


def test_a_page_of_many_shared_ways_is_written(graph: gc.Graph) -> None:
    x: Any = gc.placeholder(gc.float32, [None, 4], name="x")
    for _ in range(100):
        x = gc.concat([x, gc.tanh(x)[:, :4]], 1)
    assert len(to_html(graph)) < 2_000_000


def test_explanations_through_nested_calls_visit_each_argument_once(graph: gc.Graph) -> None:
    x: Any = gc.placeholder(gc.float32, [None, 4], name="x")
    w: Any = gc.placeholder(gc.float32, name="w")
    called: Any = gc.function(lambda x, w: x + w + gc.tanh(x * w), name="f")
    for _ in range(24):
        x = called(x, w)
    state = SceneState()
    for node in graph.nodes:
        if node.registration.is_function:
            state.expand(node.name)
    found = [why for node in graph.nodes if node.outputs for why in told(graph, node.name, state).why]
    assert max(len(why.steps) for why in found) < 30
