"""Scenes: boxes, folding, labels."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphcore as gc
from tests.widgets.conftest import RunCell
from widgets.render.compiled import boxes_of, build_scene, reveal
from widgets.scene import Scene, SceneEdge, SceneNode, SceneState, take_snapshot
from widgets.scene.words import node_detail

DATA = Path(__file__).parents[1] / "data"


def node_of(scene: Scene, box_id: str) -> SceneNode:
    return next(node for node in scene.nodes if node.id == box_id)


def edges_between(scene: Scene, source: str, target: str) -> list[SceneEdge]:
    return [edge for edge in scene.edges if edge.source == source and edge.target == target]


def names(scene: Scene) -> set[str]:
    return {node.id for node in scene.nodes}


# ---- labels -------------------------------------------------------------------------------------------------------


def test_an_edge_carries_dtype_and_shape(softmax_regression: gc.Graph) -> None:
    scene = build_scene(softmax_regression)
    assert [edge.label for edge in edges_between(scene, "add", "y")] == ["float [?,10]"]
    assert [edge.label for edge in edges_between(scene, "x", "matmul")] == ["float [?,64]"]


def test_a_variable_and_its_helpers_are_one_box(softmax_regression: gc.Graph) -> None:
    scene = build_scene(softmax_regression)
    variable = node_of(scene, "W")
    assert (variable.kind, variable.count, variable.expandable, variable.detail) == ("variable", 4, True, "float [64,10]")
    assert "W/read" not in names(scene)
    assert [edge.kind for edge in edges_between(scene, "W", "AssignSub")] == ["reference"]


def test_kinds_tell_placeholders_constants_and_control_nodes_apart(softmax_regression: gc.Graph) -> None:
    scene = build_scene(softmax_regression)
    assert node_of(scene, "x").kind == "placeholder"
    assert node_of(scene, "Const").kind == "constant"
    assert node_of(scene, "train").kind == "control"
    assert {edge.kind for edge in scene.edges if edge.target == "train"} == {"control"}


def test_all_constants_look_alike_with_their_value_and_a_name_if_one_was_chosen(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None], name="x")
    gc.multiply(x, 0.5, name="half")
    gc.multiply(x, gc.constant(3.0, name="rate"), name="scaled")
    shared = gc.constant(7.0, name="shared")
    gc.add(gc.add(x, shared), shared)
    scene = build_scene(graph)
    unnamed = next(node for node in scene.nodes if node.kind == "constant" and node.label == "0.5")
    assert (unnamed.op, unnamed.detail) == ("", "")
    assert (node_of(scene, "rate").label, node_of(scene, "rate").detail) == ("rate", "3")
    assert (node_of(scene, "shared").op, node_of(scene, "shared").label, node_of(scene, "shared").detail) == ("", "shared", "7")


@pytest.mark.parametrize("model", ["mlp_train_v1", "functions_v2", "transformer", "mobilenetv2", "while_v1"])
def test_no_constant_has_the_op_const_as_its_title(model: str) -> None:
    graph = gc.load(DATA / f"{model}.pb", allow_unknown_ops=True, allow_internal_ops=True)
    state = SceneState()
    state.expand("*")
    titles = [(node.op, node.label) for node in build_scene(graph, state).nodes if node.kind == "constant"]
    assert titles
    assert [title for title in titles if title[0] or title[1].startswith("Const")] == []


def test_an_attr_has_a_line_only_where_it_is_not_what_it_always_is(graph: gc.Graph) -> None:
    v = gc.Variable(gc.zeros([2, 2]), name="v")
    value = gc.zeros([2, 2])
    turned = gc.matmul(value, value, transpose_a=True)
    usual = gc.ops.assign(v.handle, value)
    locked = gc.ops.assign_add(v.handle, value, use_locking=True)
    assert [node_detail(tensor.node) for tensor in (turned, usual, locked)] == ["transpose_a", "", "use_locking"]
    assert usual.node.node_def.attr["use_locking"] is True


def test_several_tensors_between_two_boxes_are_one_line_with_their_number(graph: gc.Graph) -> None:
    with gc.name_scope("first"):
        a, b = gc.placeholder(gc.float32, [2], name="a"), gc.placeholder(gc.int32, [3], name="b")
    with gc.name_scope("second"):
        gc.identity(a, name="c")
        gc.identity(b, name="d")
        gc.identity(a, name="e")
    state = SceneState()
    state.collapse("*")
    (edge,) = build_scene(graph, state).edges
    assert (edge.source, edge.target, edge.count, edge.label) == ("first/", "second/", 2, "")


def test_the_scene_is_summed_up_in_words(softmax_regression: gc.Graph) -> None:
    scene = build_scene(softmax_regression, title="digits")
    assert scene.title == "digits"
    assert f"{scene.total_nodes} nodes in {len([n for n in scene.nodes if n.kind != 'stub'])} boxes" in scene.summary
    assert "gradient nodes" in scene.summary


def test_an_empty_graph_has_an_empty_scene(graph: gc.Graph) -> None:
    scene = build_scene(graph)
    assert (scene.nodes, scene.edges, scene.groups, scene.total_nodes) == ([], [], [], 0)
    assert scene.summary == "0 nodes, 0 edges"


# ---- folding --------------------------------------------------------------------------------------------------------


def layers(count: int, size: int) -> None:
    """`count` name scopes in sequence, each a chain of `size` nodes."""
    x = gc.placeholder(gc.float32, [4], name="x")
    for layer in range(count):
        with gc.name_scope(f"layer{layer}"):
            for _ in range(size):
                x = gc.tanh(x)


def test_scopes_open_on_their_own_while_there_is_room(graph: gc.Graph) -> None:
    layers(3, 5)
    scene = build_scene(graph)
    assert [group.id for group in scene.groups] == ["layer0/", "layer1/", "layer2/"]
    assert len(scene.nodes) == 16


def test_equal_scopes_open_together_or_not_at_all(graph: gc.Graph) -> None:
    layers(12, 10)
    scene = build_scene(graph)
    assert scene.groups == []
    assert names(scene) == {"x", *(f"layer{layer}/" for layer in range(12))}
    assert node_of(scene, "layer3/").count == 10
    assert scene.hidden_nodes == 120


def test_what_the_user_opens_and_closes_wins(graph: gc.Graph) -> None:
    layers(12, 10)
    state = SceneState()
    build_scene(graph, state)
    state.expand("layer7/")
    opened = build_scene(graph, state)
    assert [group.id for group in opened.groups] == ["layer7/"]
    assert "layer7/Tanh_3" in names(opened)
    state.collapse("layer7/")
    assert build_scene(graph, state).groups == []


def test_a_closed_scope_stays_closed_though_there_is_room(graph: gc.Graph) -> None:
    layers(2, 3)
    state = SceneState()
    state.collapse("layer1/")
    scene = build_scene(graph, state)
    assert [group.id for group in scene.groups] == ["layer0/"]
    assert node_of(scene, "layer1/").expandable


def test_star_opens_helpers_too_and_closes_everything(softmax_regression: gc.Graph) -> None:
    state = SceneState()
    state.expand("*")
    assert {"W/", "gradients/y_grad/"} <= {group.id for group in build_scene(softmax_regression, state).groups}
    state.collapse("*")
    scene = build_scene(softmax_regression, state)
    assert scene.groups == []
    assert "gradients/" in names(scene)


def test_an_opened_variable_shows_its_helpers_in_a_frame(softmax_regression: gc.Graph) -> None:
    state = SceneState()
    build_scene(softmax_regression, state)
    state.expand("W")
    scene = build_scene(softmax_regression, state)
    assert {node.id for node in scene.nodes if node.group == "W/"} == {"W", "W/read", "W/Assign", "zeros"}


def test_a_long_chain_of_equal_nodes_is_a_repeat_that_opens_in_rows(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [4], name="x")
    for _ in range(1000):
        x = gc.tanh(x)
    state = SceneState()
    scene = build_scene(graph, state)
    assert [(node.repeat, node.count) for node in scene.nodes] == [(0, 1), (1000, 1000)]
    state.expand(scene.nodes[1].id)
    rows = build_scene(graph, state).nodes
    assert [node.count for node in rows] == [1] + 25 * [40]
    state.expand(rows[3].id)
    assert len(build_scene(graph, state).nodes) == 25 + 40


def test_revealing_a_node_opens_everything_around_it(graph: gc.Graph) -> None:
    with gc.name_scope("deep"):
        x = gc.placeholder(gc.float32, [4], name="x")
        for _ in range(1000):
            x = gc.tanh(x)
    state = SceneState()
    state.collapse("*")
    build_scene(graph, state)
    assert reveal(graph, state, "deep/Tanh_500")
    assert "deep/Tanh_500" in names(build_scene(graph, state))
    assert not reveal(graph, state, "deep/missing")


def test_however_much_is_opened_the_boxes_stay_few(graph: gc.Graph) -> None:
    layers(30, 60)
    state = SceneState()
    build_scene(graph, state)
    for layer in range(30):
        state.expand(f"layer{layer}/")
    scene = build_scene(graph, state)
    assert len(scene.nodes) <= 500
    assert scene.groups[-1].id == "layer29/"


def test_a_scope_of_one_node_is_that_node(graph: gc.Graph) -> None:
    with gc.name_scope("outer"), gc.name_scope("inner"):
        gc.placeholder(gc.float32, [4], name="x")
    scene = build_scene(graph)
    assert scene.groups == []
    assert [(node.id, node.label) for node in scene.nodes] == [("outer/inner/x", "outer/inner/x")]


# ---- gradients ------------------------------------------------------------------------------------------------------


def test_each_inlined_gradient_function_is_a_box_beside_its_forward_box(softmax_regression: gc.Graph) -> None:
    scene = build_scene(softmax_regression)
    box = node_of(scene, "gradients/y_grad/")
    assert (box.kind, box.role, box.mirrors) == ("function", "gradient", "y")
    assert {node.mirrors for node in scene.nodes if node.role == "gradient"} >= {"y", "Log", "mul", "loss", "add", "matmul"}
    assert all(node.role == "forward" for node in scene.nodes if not node.id.startswith("gradients/"))


def test_only_lines_within_the_backward_pass_are_given_reversed(softmax_regression: gc.Graph) -> None:
    scene = build_scene(softmax_regression)
    roles = {node.id: node.role for node in scene.nodes}
    for edge in scene.edges:
        assert edge.reversed == (roles[edge.source] == roles[edge.target] == "gradient")
    assert any(edge.reversed for edge in scene.edges)


def test_a_far_producer_of_a_gradient_gets_a_stub(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    y = x
    for _ in range(12):
        y = gc.tanh(y)
    gc.gradients(gc.reduce_sum(y * y * x), [x])
    state = SceneState()
    state.expand("*")
    scene = build_scene(graph, state)
    stubs = [node for node in scene.nodes if node.kind == "stub"]
    assert stubs
    for stub in stubs:
        assert stub.count == 0
        assert stub.stands_for in names(scene)
        assert [edge.source for edge in scene.edges if edge.source == stub.id]


# ---- states and errors ----------------------------------------------------------------------------------------------


def test_boxes_that_came_or_changed_since_are_marked(run_cell: RunCell, graph: gc.Graph) -> None:
    run_cell("a", "x = gc.placeholder(gc.float32, [None, 3], name='x'); y = gc.tanh(x)")
    before = take_snapshot(graph)
    run_cell("b", "z = gc.exp(y)")
    states = {node.id: node.state for node in build_scene(graph, previous=before).nodes}
    assert states == {"x": "normal", "Tanh": "normal", "Exp": "new"}
    before = take_snapshot(graph)
    run_cell("a", "x = gc.placeholder(gc.float32, [None, 5], name='x'); y = gc.tanh(x)")
    states = {node.id: node.state for node in build_scene(graph, previous=before).nodes}
    assert states == {"x": "changed", "Tanh": "changed", "Exp": "changed"}
    before = take_snapshot(graph)
    run_cell("a", "x = gc.placeholder(gc.float32, [None, 5], name='x'); y = gc.tanh(x)")
    assert {node.state for node in build_scene(graph, previous=before).nodes} == {"normal"}


@pytest.fixture
def misfit(run_cell: RunCell, graph: gc.Graph) -> gc.Graph:
    """A cell was run again with another shape: W and b no longer fit."""
    run_cell("x", "x = gc.placeholder(gc.float32, [None, 64], name='x')")
    run_cell("variables", "W = gc.Variable(gc.zeros([64, 10]), name='W')\nb = gc.Variable(gc.zeros([10]), name='b')")
    run_cell("model", "y = gc.softmax(x @ W + b, name='y')")
    run_cell("variables", "W = gc.Variable(gc.zeros([64, 12]), name='W')\nb = gc.Variable(gc.zeros([10]), name='b')")
    return graph


def test_edges_that_no_longer_fit_say_so(misfit: gc.Graph) -> None:
    scene = build_scene(misfit)
    wrong = {(edge.source, edge.target) for edge in scene.edges if edge.error}
    assert wrong == {("matmul", "add"), ("b", "add")}
    add = node_of(scene, "add")
    assert add.state == "error"
    assert "12 and 10" in add.error
    assert "1 with errors" in scene.summary


def test_a_closed_scope_says_what_is_wrong_inside(run_cell: RunCell, graph: gc.Graph) -> None:
    run_cell("a", "a = gc.placeholder(gc.float32, [3], name='a')")
    run_cell("b", "with gc.name_scope('inner'):\n  c = gc.add(a, gc.zeros([3]), name='c')\n  d = gc.tanh(c, name='d')")
    run_cell("a", "a = gc.placeholder(gc.float32, [4], name='a')")
    state = SceneState()
    state.collapse("inner/")
    box = node_of(build_scene(graph, state), "inner/")
    assert box.state == "error"
    assert box.error.startswith("inner/c: ")


def test_an_input_that_is_gone_is_drawn_as_a_stub_that_says_so(run_cell: RunCell, graph: gc.Graph) -> None:
    run_cell("a", "with gc.name_scope('W'):\n    a = gc.placeholder(gc.float32, [3], name='read')")
    run_cell("b", "b = gc.tanh(a, name='b')")
    run_cell("a", "pass")
    scene = build_scene(graph)
    (stub,) = [node for node in scene.nodes if node.kind == "stub"]
    assert (stub.label, stub.state) == ("W/read is gone", "error")
    (edge,) = scene.edges
    assert (edge.source, edge.target) == (stub.id, "b")
    assert "no longer in the graph" in edge.error


def test_what_a_failed_cell_made_is_stale(run_cell: RunCell, graph: gc.Graph) -> None:
    error = run_cell("a", "a = gc.placeholder(gc.float32, [3], name='a')\nraise ValueError('half way')")
    assert isinstance(error, ValueError)
    assert node_of(build_scene(graph), "a").state == "stale"


def test_the_summary_counts_what_a_failed_cell_left(run_cell: RunCell, graph: gc.Graph) -> None:
    run_cell("a", "gc.constant(1.0, name='kept')")
    assert isinstance(run_cell("b", "x = gc.constant(1.0, name='a')\ny = gc.tanh(x)\nraise ValueError"), ValueError)
    assert build_scene(graph).summary.endswith("2 from failed cells")
    run_cell("b", "x = gc.constant(1.0, name='a')")
    assert "failed" not in build_scene(graph).summary


# ---- lenses ---------------------------------------------------------------------------------------------------------


def test_the_cells_lens_says_which_cell_made_what(misfit: gc.Graph) -> None:
    scene = build_scene(misfit)
    marks = {node.id: node.lenses["cells"].text for node in scene.nodes}
    assert (marks["x"], marks["W"], marks["y"]) == ("In [1]", "In [4]", "In [3]")
    lens = next(lens for lens in scene.lenses if lens.name == "cells")
    tones = {node.lenses["cells"].text: node.lenses["cells"].tone for node in scene.nodes}
    assert {entry.text: entry.tone for entry in lens.legend} == tones


def test_the_devices_lens_marks_only_what_has_a_device(graph: gc.Graph) -> None:
    gc.placeholder(gc.float32, [3], name="here")
    with gc.device("/gpu:1"):
        gc.placeholder(gc.float32, [3], name="there")
    scene = build_scene(graph)
    assert "devices" not in node_of(scene, "here").lenses
    assert "1" in node_of(scene, "there").lenses["devices"].text


def test_the_gradients_lens_names_the_forward_node(softmax_regression: gc.Graph) -> None:
    state = SceneState()
    state.expand("*")
    scene = build_scene(softmax_regression, state)
    assert node_of(scene, "gradients/matmul_grad/dy").lenses["gradients"].text.startswith("gradient of matmul")
    assert node_of(scene, "y").lenses["gradients"].text == "forward, differentiated"
    assert node_of(scene, "train").lenses["gradients"].text == "not differentiated"


def test_more_than_six_cells_share_the_last_tone_which_is_not_the_red_of_errors(run_cell: RunCell, graph: gc.Graph) -> None:
    for cell in range(10):
        run_cell(str(cell), f"p{cell} = gc.placeholder(gc.float32, [3], name='p{cell}')")
    scene = build_scene(graph)
    assert {node.lenses["cells"].tone for node in scene.nodes} == {1, 2, 3, 4, 5, 6}
    lens = next(lens for lens in scene.lenses if lens.name == "cells")
    assert lens.legend[-1].text == "others"


def test_box_ids_of_nodes_are_those_of_the_scene(softmax_regression: gc.Graph) -> None:
    state = SceneState()
    boxes = boxes_of(softmax_regression, state)
    assert boxes["W/read"] == "W"
    assert boxes["gradients/y_grad/n0"] == "gradients/y_grad/"
    assert set(boxes.values()) <= names(build_scene(softmax_regression, state))


def test_gradients_open_only_where_there_is_space_for_everything_else(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    with gc.name_scope("model"):
        for _ in range(9):
            x = gc.tanh(x)
    gc.gradients(gc.exp(x, name="y"), [x])
    opened = [{group.id for group in build_scene(graph, SceneState(auto_boxes=boxes)).groups} for boxes in range(1, 25)]
    assert {"gradients/"} not in opened
    assert {"model/"} in opened
    assert {"model/", "gradients/"} in opened
