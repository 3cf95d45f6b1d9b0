"""Pictures of differences: both graphs in one, the differences marked in words, the rest folded."""

from __future__ import annotations

import graphcore as gc
import widgets
from graphcore.difference import difference_graph
from widgets.render.compiled import build_scene
from widgets.scene import Scene, SceneState


def scene_of(before: gc.Graph, after: gc.Graph, state: SceneState | None = None) -> Scene:
    return build_scene(difference_graph(gc.graph_diff(before, after)), state)


def chain(length: int, *, at: int = -1) -> gc.Graph:
    """A chain of nodes, with an Exp behind node `at`."""
    graph = gc.Graph()
    with graph.as_default():
        h = gc.placeholder(gc.float32, [2], name="x")
        for number in range(length):
            h = gc.tanh(h, name=f"t{number}")
            h = gc.exp(h, name="new") if number == at else h
    return graph


def calling(body: str) -> gc.Graph:
    """A call of a function with this body."""
    graph = gc.Graph()
    graph.add_function_library(gc.FunctionDefLibrary((gc.parse_function(f"f(x:float) -> (y:float) {{\n{body}\n  return y = y:y:0\n}}"),)))
    with graph.as_default():
        graph.apply_op("f", [gc.placeholder(gc.float32, [2], name="x")], name="call")
    return graph


def changed_function() -> tuple[gc.Graph, gc.Graph]:
    """A call before and after its function has changed."""
    first = calling("  a = Square[T=float](x)\n  y = Tanh[T=float](a:y:0)")
    return first, calling("  a = Square[T=float](x)\n  b = Exp[T=float](a:y:0)\n  y = Tanh[T=float](b:y:0)")


def test_the_unchanged_parts_before_and_behind_a_difference_are_folded() -> None:
    scene = scene_of(chain(20), chain(20, at=9))
    assert [(node.label, node.state, node.count) for node in scene.nodes] == [
        ("unchanged", "normal", 10),
        ("t9", "normal", 1),
        ("new", "new", 1),
        ("t10", "changed", 1),
        ("t11", "normal", 1),
        ("unchanged", "normal", 8),
    ]
    assert scene.summary == "1 added, 1 changed, 20 unchanged; 22 nodes in 6 boxes"


def test_edges_say_whether_they_are_new_or_gone() -> None:
    scene = scene_of(chain(3), chain(3, at=0))
    assert sorted((edge.source, edge.target, edge.state, edge.label) for edge in scene.edges) == [
        ("new", "t1", "new", "+ float [2]"),
        ("t0", "new", "new", "+ float [2]"),
        ("t0", "t1", "removed", "− float [2]"),
        ("t1", "t2", "normal", "float [2]"),
        ("x", "t0", "normal", "float [2]"),
    ]


def test_all_forms_tell_a_removed_node() -> None:
    diff = gc.graph_diff(chain(3, at=0), chain(3))
    assert "Exp new [removed] <- t0 − float [2]" in widgets.to_outline(diff)
    assert "class n2 stateRemoved" in widgets.to_mermaid(diff)
    assert 'style="filled,dashed"' in widgets.to_dot(diff).source
    assert '<g class="op forward removed"' in widgets.to_svg(diff)


def test_scopes_say_how_much_in_them_is_different() -> None:
    before, after = gc.Graph(), gc.Graph()
    for graph in (before, after):
        with graph.as_default(), gc.name_scope("s"):
            for number in range(30):
                gc.exp(gc.constant(float(number if graph is before or number else 5), name=f"c{number}"), name=f"e{number}")
            if graph is after:
                gc.constant(1.0, name="more")
    state = SceneState()
    state.collapse("*")
    (box,) = scene_of(before, after, state).nodes
    assert (box.state, box.detail) == ("changed", "+1 ~1")
    (frame,) = scene_of(before, after).groups
    assert frame.label == "s  +1 ~1"


def test_a_call_of_a_changed_function_says_so_and_opens_to_the_marked_body() -> None:
    state = SceneState()
    nodes = {node.id: (node.state, node.detail) for node in scene_of(*changed_function(), state).nodes}
    assert nodes["call"] == ("changed", "body of f: +1 ~1")
    state.expand("call")
    inside = {node.id: (node.state, node.detail) for node in scene_of(*changed_function(), state).nodes}
    assert inside["call:/b"] == ("new", "")
    assert inside["call:/y"] == ("changed", "input 0: a:y:0 → b:y:0")
    assert inside["call:/a"] == ("normal", "")


def test_functions_whose_types_are_unknown_are_drawn_without_types() -> None:
    text = "F[T:type](x:T) -> (y:T) {\n  y = Square[T=$T](x)\n  return y = y:y:0\n}"
    outline = widgets.to_outline(gc.graph_diff(gc.parse_function(text), gc.parse_function(text.replace("Square", "Neg"))))
    assert "Neg y op: Square → Neg [changed] <- x\n" in outline


def test_a_difference_cannot_be_changed_and_is_made_once() -> None:
    diff = gc.graph_diff(chain(2), chain(3))
    graph = difference_graph(diff)
    assert graph is difference_graph(diff)
    assert graph.finalized
