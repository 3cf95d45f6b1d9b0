"""The small picture of the place of an error."""

from __future__ import annotations

import pytest

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.source import CellRun, current_run
from widgets.scene.surroundings import surroundings
from widgets.scene.types import Scene


def scene_of(error: GraphError) -> Scene:
    scene = surroundings(gc.get_default_graph(), error)
    assert scene is not None
    return scene


def edges(scene: Scene) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in scene.edges}


@pytest.fixture(autouse=True)
def fresh() -> None:
    gc.reset_default_graph()


def test_a_refused_node_is_drawn_with_its_inputs_and_the_lines_that_wrote_the_clashing_numbers() -> None:
    x = gc.placeholder(gc.float32, [2, 3], name="x")
    w = gc.ones([5, 2], name="w")
    with pytest.raises(InvalidArgumentError) as raised:
        gc.matmul(x, w, name="y")
    scene = scene_of(raised.value)
    assert [(node.id, node.state) for node in scene.nodes] == [("y", "error"), ("x", "normal"), ("w", "normal")]
    assert edges(scene) == {("x", "y"), ("w", "y")}
    assert [edge.clash for edge in scene.edges] == [1, 2]
    assert ["3 from" in node.clash for node in scene.nodes] == [False, True, False]


def test_a_long_path_of_a_number_shows_its_two_ends_and_counts_what_is_between() -> None:
    h = gc.placeholder(gc.float32, [2, 3], name="x")
    for number in range(30):
        h = gc.tanh(h, name=f"h{number}")
    with pytest.raises(InvalidArgumentError) as raised:
        gc.matmul(h, gc.ones([5, 2], name="w"), name="y")
    scene = scene_of(raised.value)
    assert {node.id for node in scene.nodes} == {"y", "h29", "x", "w"}
    assert ("x", "h29") in edges(scene)
    assert [edge.label for edge in scene.edges if edge.source == "x"] == ["29 nodes between"]


def test_a_node_of_the_graph_is_drawn_between_its_inputs_and_those_that_take_its_outputs() -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    y = gc.tanh(x, name="y")
    gc.square(y, name="z")
    with pytest.raises(InvalidArgumentError) as raised:
        bool(y)
    assert edges(scene_of(raised.value)) == {("x", "y"), ("y", "z")}


@pytest.mark.parametrize(("last", "circle"), [("h", {("h", "h")}), ("k", {("h", "k"), ("k", "h")})])
def test_a_node_that_would_feed_on_itself_is_drawn_with_the_circle(last: str, circle: set[tuple[str, str]]) -> None:
    graph = gc.get_default_graph()
    runs = [CellRun(cell=cell, execution=number, label=f"In [{number}]") for number, cell in enumerate("aba", 1)]
    tensors = {}

    def begin(run: CellRun) -> None:
        current_run.set(run)
        graph.begin_cell(run)

    begin(runs[0])
    tensors["h"] = gc.tanh(gc.constant(1.0, name="start"), name="h")
    graph.end_cell(runs[0])
    begin(runs[1])
    tensors["k"] = gc.square(tensors["h"], name="k")
    graph.end_cell(runs[1])
    begin(runs[2])
    try:
        with pytest.raises(InvalidArgumentError, match="a cycle") as raised:
            gc.tanh(tensors[last], name="h")
    finally:
        graph.end_cell(runs[2], failed=True)
        current_run.set(None)
    scene = scene_of(raised.value)
    assert edges(scene) == circle
    assert all(edge.error for edge in scene.edges)


def test_an_error_without_a_place_has_no_picture() -> None:
    assert surroundings(gc.get_default_graph(), InvalidArgumentError("somewhere")) is None
    assert surroundings(gc.get_default_graph(), InvalidArgumentError("gone", node="gone")) is None
