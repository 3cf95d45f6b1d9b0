"""The mirrored picture: gradients beside what they differentiate."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphcore as gc
import widgets
from tests.support.asking import inspect
from tests.support.pictures import places_of
from widgets.port import Port
from widgets.render.compiled import boxes_of, build_scene, reveal
from widgets.scene import Scene, SceneNode, SceneState

MOBILENET = Path(__file__).parents[1] / "data" / "mobilenetv2.pb"


def mirrored(graph: gc.Graph, *opened: str) -> Scene:
    state = SceneState(mirror=True)
    for box in opened:
        state.expand(box)
    return build_scene(graph, state)


def box(scene: Scene, box_id: str) -> SceneNode:
    return next(node for node in scene.nodes if node.id == box_id)


def ids(scene: Scene) -> set[str]:
    return {node.id for node in scene.nodes}


@pytest.fixture
def two_layers(graph: gc.Graph) -> gc.Graph:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    for layer in ("first", "second"):
        with gc.name_scope(layer):
            w = gc.Variable(gc.zeros([4, 4]), name="w")
            x = gc.tanh(x @ w, name="h") + x
    loss = gc.reduce_sum(x, name="loss")
    gc.gradients(loss, gc.trainable_variables())
    return graph


@pytest.fixture
def second_derivative(graph: gc.Graph) -> gc.Graph:
    x = gc.placeholder(gc.float32, [3], name="x")
    (first,) = gc.gradients(gc.tanh(x, name="t"), [x])
    gc.gradients(first, [x])
    return graph


def test_each_gradient_names_what_it_differentiates(softmax_regression: gc.Graph) -> None:
    scene = mirrored(softmax_regression)
    backward = [node for node in scene.nodes if node.role == "gradient"]
    forward = {node.id for node in scene.nodes if node.role == "forward"}
    assert scene.mirror
    assert {node.mirrors for node in backward} <= forward
    assert box(scene, "∇y").label == "gradient of y"
    assert (box(scene, "∇y").kind, box(scene, "∇y").group) == ("function", "∇/")
    assert "function ∇y [gradient of y]" in widgets.to_outline(scene)


def test_each_gradient_is_in_the_row_of_its_origin_and_on_its_right(softmax_regression: gc.Graph) -> None:
    scene = mirrored(softmax_regression)
    places = places_of(scene).boxes
    for node in scene.nodes:
        if node.mirrors:
            own, origin = places[node.id], places[node.mirrors]
            assert own.y + own.height / 2 == pytest.approx(origin.y + origin.height / 2, abs=1), node.id
            assert own.x > origin.x + origin.width, node.id


def test_a_scope_and_its_gradient_open_and_close_together(two_layers: gc.Graph) -> None:
    state = SceneState(mirror=True)
    state.collapse("*")
    closed = build_scene(two_layers, state)
    assert box(closed, "∇first/").mirrors == "first/"
    assert box(closed, "∇first/").label == "gradient of first"
    state.expand("∇first/")
    opened = build_scene(two_layers, state)
    assert {"first/", "∇first/"} <= {group.id for group in opened.groups}
    assert {"first/h", "∇first/h"} <= ids(opened)
    assert box(opened, "∇first/h").group == "∇first/"
    state.collapse("∇first/")
    assert build_scene(two_layers, state).groups == closed.groups


def test_a_sum_of_gradients_says_what_it_sums(two_layers: gc.Graph) -> None:
    scene = mirrored(two_layers, "first", "second")
    (total,) = [node for node in scene.nodes if node.op == "AddN"]
    assert total.label == "sum of 2 gradients of add"
    assert total.mirrors == "first/add"
    arriving = [edge.source for edge in scene.edges if edge.target == total.id]
    assert len(arriving) == 2


def test_gradients_of_gradients_nest_in_the_backward_pass(second_derivative: gc.Graph) -> None:
    scene = mirrored(second_derivative)
    nested = [node for node in scene.nodes if node.label == "gradient of gradient of t"]
    assert [node.mirrors for node in nested] == ["∇t"]
    parents = {group.id: group.parent for group in scene.groups}
    assert parents[nested[0].group] == "∇/"


def test_a_gradient_function_opens_into_its_nodes_and_shows_its_text(softmax_regression: gc.Graph) -> None:
    state = SceneState(mirror=True)
    told = inspect(softmax_regression, state, "∇y")
    assert told is not None
    assert told.gradient is not None
    assert (told.name, told.gradient.differentiates) == ("gradient of y", "y")
    assert "Mul[T=float]" in told.gradient.instantiated
    state.expand("∇y")
    scene = build_scene(softmax_regression, state)
    assert "∇y/" in {group.id for group in scene.groups}
    assert box(scene, "gradients/y_grad/n1").group == "∇y/"


def test_a_gradient_node_that_is_looked_for_shows(two_layers: gc.Graph) -> None:
    state = SceneState(mirror=True)
    state.collapse("*")
    name = next(name for name, record in two_layers.gradient_records.items() if record.forward == "first/h")
    assert reveal(two_layers, state, name)
    assert name in ids(build_scene(two_layers, state))


def test_the_whole_backward_pass_closes_and_opens(softmax_regression: gc.Graph) -> None:
    state = SceneState(mirror=True)
    state.collapse("∇/")
    scene = build_scene(softmax_regression, state)
    assert [node.id for node in scene.nodes if node.role == "gradient"] == ["∇/"]
    state.expand("∇/")
    assert "∇y" in ids(build_scene(softmax_regression, state))


def test_a_loop_and_its_gradient_open_into_their_bodies(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    y = gc.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, gc.tanh(v)), [gc.constant(0), x])[1]
    gc.gradients(gc.reduce_sum(y), [x])
    loop = next(node.name for node in graph.nodes if node.op == "StatelessWhile" and node.name not in graph.gradient_records)
    backward = next(name for name, record in graph.gradient_records.items() if record.body_node == "while")
    closed = mirrored(graph)
    assert box(closed, f"∇{loop}").mirrors == loop
    scene = mirrored(graph, f"∇{loop}", backward, loop)
    frames = {group.id for group in scene.groups}
    assert {f"{loop}/", f"∇{loop}/", f"{backward}/"} <= frames


def test_every_node_is_in_one_box(two_layers: gc.Graph, second_derivative: gc.Graph) -> None:
    for graph in (two_layers, second_derivative):
        state = SceneState(mirror=True)
        assert boxes_of(graph, state).keys() == {node.name for node in graph.nodes}
        assert sum(node.count for node in build_scene(graph, state).nodes if node.kind != "stub") == len(graph)


def test_a_graph_without_gradients_looks_as_usual(graph: gc.Graph) -> None:
    gc.tanh(gc.placeholder(gc.float32, [2], name="x"))
    assert mirrored(graph) == build_scene(graph)


def test_the_choice_is_stored_and_restored(softmax_regression: gc.Graph) -> None:
    port = Port(softmax_regression, lambda _message, _buffers: None, state=SceneState(mirror=True))
    assert port.view_state.mirror
    other = Port(softmax_regression, lambda _message, _buffers: None)
    other.restore(port.view_state)
    assert other.scene.mirror
    assert other.state.copy().mirror


def test_mobilenet_opens_folded_with_its_gradient_beside_it() -> None:
    graph = gc.load(MOBILENET, allow_unknown_ops=True)
    with graph.as_default():
        (y,) = [node.outputs[0] for node in graph.nodes if node.name == "Identity"]
        gc.gradients(gc.reduce_sum(y), [node.outputs[0] for node in graph.nodes if node.op == "Conv2D"])
    scene = mirrored(graph)
    assert len(scene.nodes) <= 40
    blocks = [node for node in scene.nodes if node.repeat]
    gradients = {node.mirrors: node for node in scene.nodes if node.role == "gradient"}
    assert len(blocks) >= 4
    assert all(gradients[block.id].label == f"gradient of {block.label}" for block in blocks)
    assert places_of(scene).boxes.keys() == {node.id for node in scene.nodes}


def test_a_gradient_that_is_none_is_an_edge_that_ends_with_its_reason(graph: gc.Graph) -> None:
    w, v = gc.Variable(gc.ones([3]), name="w"), gc.Variable(gc.ones([3]), name="v")
    h = gc.stop_gradient(gc.tanh(w.value()), name="frozen")
    assert gc.gradients(gc.reduce_sum(gc.multiply(h, v, name="y")), [w, v])[0] is None
    scene = mirrored(graph)
    gap = box(scene, "gap:w")
    assert (gap.label, gap.mirrors, gap.stands_for, gap.group) == ("no gradient of w", "w", "frozen", "∇/")
    assert gap.error == "'frozen' stops gradients: that is what gc.stop_gradient is for"
    (line,) = [edge for edge in scene.edges if edge.target == gap.id]
    assert (box(scene, line.source).mirrors, line.label, line.error) == ("y", "stopped at frozen", gap.error)
    assert "no gradient of w gap:w [error]" in widgets.to_outline(scene)


def test_a_gradient_with_no_path_at_all_shows_in_a_graph_without_gradients(graph: gc.Graph) -> None:
    x, y = (gc.placeholder(gc.float32, [3], name=name) for name in "xy")
    assert gc.gradients(gc.tanh(x), [y]) == [None]
    scene = mirrored(graph)
    assert scene.mirror
    assert "does not depend on 'y:0'" in box(scene, "gap:y").error


def test_gradients_that_are_none_are_told_together_for_a_closed_scope(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    with gc.name_scope("layer"):
        weights = [gc.Variable(gc.ones([3]), name=name) for name in "ab"]
        y = gc.stop_gradient(weights[0] * weights[1], name="stopped")
    gc.gradients(gc.reduce_sum(x * y), [x, *weights])
    state = SceneState(mirror=True)
    state.collapse("layer/")
    gap = box(build_scene(graph, state), "gap:layer/")
    assert gap.label == "no gradient of a, b"
