"""Lenses of users."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import graphcore as gc
import widgets
from graphcore.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from widgets.render.compiled import build_scene
from widgets.scene import Lens, Scene, lens_names


@pytest.fixture
def own_lens() -> Iterator[Callable[..., object]]:
    """`widgets.lens` for one test."""
    before = lens_names()
    yield widgets.lens
    for name in lens_names()[len(before) :]:
        widgets.remove_lens(name)


@pytest.fixture
def two_nodes(graph: gc.Graph) -> gc.Graph:
    gc.tanh(gc.placeholder(gc.float32, [3], name="x"), name="y")
    return graph


def lens_of(scene: Scene, name: str) -> Lens:
    return next(lens for lens in scene.lenses if lens.name == name)


def test_a_function_that_classifies_nodes_is_a_lens_with_marks_and_a_legend(two_nodes: gc.Graph, own_lens: Callable[..., object]) -> None:
    @widgets.lens(title="Fan-in")
    def fan_in(node: gc.Node) -> str | None:
        return f"{len(node.inputs)} inputs" if node.inputs else None

    scene = build_scene(two_nodes)
    marks = {node.id: node.lenses["fan_in"].text for node in scene.nodes if "fan_in" in node.lenses}
    assert marks == {"y": "1 inputs"}
    found = lens_of(scene, "fan_in")
    assert found.title == "Fan-in"
    assert [(row.tone, row.text) for row in found.legend] == [(1, "1 inputs")]
    assert found.note == ""


def test_the_example_of_the_how_to_is_a_lens(two_nodes: gc.Graph, own_lens: Callable[..., object]) -> None:
    guide = (Path(__file__).parents[2] / "notebooks" / "docs" / "howto" / "extend.md").read_text(encoding="utf-8")
    section = guide.partition("## Add a lens")[2].partition("\n## ")[0]
    (example,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(example.splitlines()) <= 10
    exec(compile(example, "extend.md", "exec"), {})
    scene = build_scene(two_nodes)
    assert lens_of(scene, "fan_in").title == "Fan-in"
    assert {node.id: node.lenses["fan_in"].text for node in scene.nodes if "fan_in" in node.lenses} == {"y": "1 inputs"}


def test_a_scope_counts_the_classes_of_its_nodes(graph: gc.Graph, own_lens: Callable[..., object]) -> None:
    @widgets.lens
    def parity(node: gc.Node) -> str:
        return "even" if int(node.name[-1]) % 2 == 0 else "odd"

    with gc.name_scope("layer"):
        for number in range(7):
            gc.placeholder(gc.float32, [3], name=f"x{number}")
    state = widgets.SceneState()
    state.collapse("layer/")
    (box,) = build_scene(graph, state).nodes
    assert box.lenses["parity"].text == "even × 4, odd × 3"


def test_a_lens_that_fails_costs_no_picture_and_its_note_names_the_error(two_nodes: gc.Graph, own_lens: Callable[..., object]) -> None:
    @widgets.lens
    def broken(node: gc.Node) -> str:
        return node.name[1 // 0]

    scene = build_scene(two_nodes)
    assert {node.id for node in scene.nodes} == {"x", "y"}
    assert lens_of(scene, "broken").note == "The lens failed: ZeroDivisionError: integer division or modulo by zero"


def test_a_lens_of_the_same_name_replaces_it_and_removal_takes_it_away(two_nodes: gc.Graph, own_lens: Callable[..., object]) -> None:
    for text in ("first", "second"):

        @widgets.lens
        def again(node: gc.Node, text: str = text) -> str:
            return text

    assert [row.text for row in lens_of(build_scene(two_nodes), "again").legend] == ["second"]
    widgets.remove_lens("again")
    assert "again" not in {lens.name for lens in build_scene(two_nodes).lenses}
    with pytest.raises(NotFoundError, match="no lens 'again' to remove"):
        widgets.remove_lens("again")


def test_the_names_of_built_in_lenses_are_taken() -> None:
    with pytest.raises(AlreadyExistsError, match="'devices' is built in"):

        @widgets.lens
        def devices(node: gc.Node) -> str:
            return "x"


def test_a_view_restores_a_lens_of_ones_own(two_nodes: gc.Graph, own_lens: Callable[..., object]) -> None:
    view = widgets.GraphView(two_nodes)
    with pytest.raises(InvalidArgumentError, match="no lens 'mine'"):
        view.state = {"lens": "mine"}

    @widgets.lens
    def mine(node: gc.Node) -> str:
        return node.op

    view.state = {"lens": "mine"}
    assert view.state["lens"] == "mine"
    assert "mine" in {lens.name for lens in view.scene.lenses}
