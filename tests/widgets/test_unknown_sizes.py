"""Unknown sizes in pictures: one text for those that are equal, and others for others."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import graphcore as gc
from tests.support.asking import inspect
from widgets.render.compiled import build_scene
from widgets.scene import SceneState


def labels(graph: gc.Graph, *opened: str) -> dict[str, str]:
    """The labels of the edges of a picture by their ids."""
    state = SceneState()
    build_scene(graph, state=state)
    for box in opened:
        state.expand(box)
    return {edge.id: edge.label for edge in build_scene(graph, state=state).edges}


def test_a_batch_that_a_reshape_halves_is_another_unknown(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    h = gc.tanh(x, name="h")
    halved = gc.reshape(h, [-1, 8], name="halved")
    gc.tanh(halved, name="after")
    found = labels(graph)
    assert found["x->h"] == found["h->halved"] == "float [?,4]"
    assert found["halved->after"] == "float [?1,8]"
    inspection = inspect(graph, SceneState(), "halved")
    assert inspection is not None
    assert [row.shape for row in inspection.inputs] == ["[?,4]", "[2]"]
    assert [row.shape for row in inspection.outputs] == ["[?1,8]"]


def test_sizes_that_a_merge_makes_equal_have_one_text(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    y = gc.placeholder(gc.float32, [None, 4], name="y")
    gc.tanh(gc.add_n([x, y], name="sum"), name="end")
    assert set(labels(graph).values()) == {"float [?,4]"}


def test_sizes_within_an_open_call_are_those_given_to_it(graph: gc.Graph) -> None:
    @gc.function
    def halve(v):  # type: ignore[no-untyped-def]
        return gc.reshape(gc.tanh(v, name="t"), [-1, 2], name="r")

    gc.placeholder(gc.float32, [None, 3], name="other")
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    gc.tanh(halve(x), name="end")
    found = set(labels(graph, "halve").values())
    assert {"float [?1,4]", "float [?2,2]"} <= found
    assert not any("[?," in label for label in found)


def of_a_function(x: gc.Tensor) -> gc.Tensor:
    found: gc.Tensor = gc.function(halved)(x)
    return found


def of_a_branch(x: gc.Tensor) -> gc.Tensor:
    found: gc.Tensor = gc.cond(gc.reduce_sum(x) > 0, lambda: halved(x), lambda: gc.exp(halved(x)), name="call")
    return found


def of_a_loop(x: gc.Tensor) -> gc.Tensor:
    def body(i: gc.Tensor, total: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        return i + 1, total + gc.reduce_sum(halved(x))

    found: gc.Tensor = gc.while_loop(lambda i, _: i < 3, body, [gc.constant(0), gc.constant(0.0)], name="call")[1]
    return found


def halved(x: gc.Tensor) -> gc.Tensor:
    return gc.reshape(gc.tanh(x, name="t"), [-1, 8], name="r")


@pytest.mark.parametrize("build", [of_a_function, of_a_branch, of_a_loop])
def test_in_an_open_body_boxes_rows_and_lenses_tell_unknown_sizes_apart_as_edges_do(
    graph: gc.Graph, build: Callable[[gc.Tensor], gc.Tensor]
) -> None:
    gc.placeholder(gc.float32, [None, 3], name="other")
    gc.tanh(build(gc.placeholder(gc.float32, [None, 4], name="x")), name="end")
    state = SceneState()
    state.expand("*")
    scene = build_scene(graph, state=state)
    inside = [node for node in scene.nodes if node.id.endswith("/r")]
    assert inside
    for node in inside:
        assert re.fullmatch(r"float \[\?[2-4],8\]", node.lenses["shapes"].text)
        inspection = inspect(graph, state, node.id)
        assert inspection is not None
        assert inspection.inputs[0].shape == "[?1,4]"
        assert all(row.shape == inspection.outputs[0].shape == node.lenses["shapes"].text[6:] for row in inspection.outputs)
    arguments = [node.detail for node in scene.nodes if node.op == "argument" and ",4]" in node.detail]
    assert arguments
    assert set(arguments) == {"float [?1,4]"}
    assert not any("[?," in edge.label for edge in scene.edges)


def test_the_output_is_named_on_an_edge_from_a_node_of_several(graph: gc.Graph) -> None:
    first, second = gc.split(gc.ones([4, 2]), 2, name="parts")
    gc.tanh(second, name="b")
    gc.tanh(first, name="a")
    found = labels(graph)
    assert found["parts->b"] == ":1 float [2,2]"
    assert found["parts->a"] == ":0 float [2,2]"
    assert all(label.startswith(":") for edge, label in found.items() if edge.startswith("parts->"))
