"""Names with many scopes: pictures, trees and pages are made in bounded time and memory."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest

import graphcore as gc
from tests.support.asking import find, inspect
from tests.widgets.test_scene import node_of
from widgets import to_dot, to_html, to_mermaid, to_outline, to_svg
from widgets.render.compiled import build_scene, reveal
from widgets.scene import SceneState


def names(*given: str) -> gc.Graph:
    """A graph of placeholders with these names."""
    graph = gc.Graph()
    with graph.as_default():
        for name in given:
            gc.ops.placeholder(dtype=gc.float32, name=name)
    return graph


def one_per_level(count: int) -> gc.Graph:
    return names(*["s/" * level + "x" for level in range(count)])


HOSTILE: dict[str, Callable[[], gc.Graph]] = {
    "one name of 100,000 scopes": lambda: names("a/" * 100_000 + "b"),
    "two names that part after 50,000 scopes": lambda: names("a/" * 50_000 + "b/" * 50_000 + "x", "a/" * 50_000 + "c/" * 50_000 + "x"),
    "1,000 names of 1,000 scopes": lambda: names(*["a/" * 1000 + f"b{number}" for number in range(1000)]),
    "1,000 scopes with a node each": lambda: one_per_level(1000),
    "one component of 200,000 letters": lambda: names("a" * 200_000 + "/b", "a" * 200_000 + "/c"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_every_form_of_names_with_very_many_scopes_is_made_in_bounded_time(case: str) -> None:
    graph = HOSTILE[case]()
    begun = time.process_time()
    for form in (to_svg, to_outline, to_mermaid, to_dot, to_html):
        assert form(graph)
    state = SceneState()
    last = list(graph.nodes)[-1].name
    assert reveal(graph, state, last)
    state.expand("*")
    scene = build_scene(graph, state)
    assert scene.nodes
    assert inspect(graph, state, scene.nodes[0].id) is not None
    assert find(graph, last[-1]).hits
    assert time.process_time() - begun < 30


@pytest.mark.parametrize("case", HOSTILE)
def test_scenes_of_names_with_very_many_scopes_take_bounded_memory(case: str) -> None:
    graph = HOSTILE[case]()
    tracemalloc.start()
    assert build_scene(graph, SceneState()).nodes
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 2**20


def test_scopes_that_hold_nothing_but_the_next_one_are_one_box() -> None:
    graph = names(*["/".join(f"s{level}" for level in range(400)) + f"/{name}" for name in "xy"])
    state = SceneState()
    state.collapse("*")
    scene = build_scene(graph, state)
    (box,) = scene.nodes
    assert (box.label, box.count, box.expandable) == ("s0/…/s399", 2, True)
    state.expand(box.id)
    scene = build_scene(graph, state)
    assert [group.label for group in scene.groups] == ["s0/…/s399"]
    assert [node.label for node in scene.nodes] == ["x", "y"]


def test_a_few_scopes_in_a_row_keep_their_frames() -> None:
    scene = build_scene(names("a/b/c/x", "a/b/c/y"))
    assert [group.label for group in scene.groups] == ["a", "b", "c"]
    assert [group.label for group in build_scene(names("a/b/c/d/e/f/x", "a/b/c/d/e/f/y")).groups] == ["a/b/c/d/e/f"]


def test_a_chain_of_scopes_ends_where_a_node_or_a_second_scope_is() -> None:
    scene = build_scene(names("a/b/c/d/e/f/x", "a/b/c/d/e/f/g/h/i/j/k/l/y", "a/b/c/d/e/f/g/h/i/j/k/l/z"))
    assert [group.label for group in scene.groups] == ["a/b/c/d/e/f", "g/h/i/j/k/l"]


def test_a_node_stays_with_the_chain_of_scopes_of_its_name() -> None:
    scene = build_scene(names("W", "W/a/b/c/d/e/f/x"))
    assert [node.id for node in scene.nodes] == ["W"]


def test_frames_within_each_other_end_at_a_box_that_says_so() -> None:
    graph = one_per_level(100)
    state = SceneState()
    state.expand("*")
    scene = build_scene(graph, state)
    assert len(scene.groups) == 64
    box = node_of(scene, "s/" * 65)
    assert (box.detail, box.expandable, box.count) == ("closed: 64 frames around it", False, 35)
    assert reveal(graph, state, "s/" * 99 + "x")
    assert {node.id for node in build_scene(graph, state).nodes} >= {box.id}
