"""Invariants of scenes, however they are folded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphcore import Graph, Node, NodeDef, float32
from graphcore.graph import GradientRecord
from tests.support.pictures import places_of
from widgets.render import to_dot, to_mermaid, to_outline
from widgets.render.compiled import boxes_of, build_scene, reveal
from widgets.scene import Scene, SceneState

PARTS = st.sampled_from(["a", "b", "c", "W", "grad"])
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph of AddN nodes in nested scopes, with control edges and some gradient nodes."""
    graph = Graph()
    for name in draw(st.lists(NAMES, unique=True, max_size=40)):
        earlier = graph.nodes
        inputs: list[Node] = draw(st.lists(st.sampled_from(earlier), max_size=3)) if earlier else []
        controls: list[Node] = draw(st.lists(st.sampled_from(earlier), max_size=2, unique=True)) if earlier else []
        texts = (*(node.name for node in inputs), *(f"^{node.name}" for node in controls))
        if inputs:
            graph.add_node(NodeDef(name, "AddN", texts, "", {"N": len(inputs), "T": float32}))
        else:
            graph.add_node(NodeDef(name, "Placeholder", texts, "", {"dtype": float32}))
        recorded = draw(st.booleans())
        if earlier and recorded:
            forward = draw(st.sampled_from(earlier))
            graph.gradient_records[name] = GradientRecord(forward.name, None, {}, "")
    return graph


@st.composite
def states(draw: st.DrawFn) -> SceneState:
    state = SceneState(max_boxes=draw(st.integers(1, 60)))
    for action, target in draw(st.lists(st.tuples(st.booleans(), st.one_of(st.just("*"), NAMES)), max_size=6)):
        (state.expand if action else state.collapse)(target)
    return state


def check(graph: Graph, state: SceneState) -> Scene:
    scene = build_scene(graph, state)
    boxes = boxes_of(graph, state)
    real = [node for node in scene.nodes if node.kind != "stub"]
    ids = [node.id for node in scene.nodes]
    groups = {group.id for group in scene.groups}
    assert len(set(ids)) == len(ids)
    assert boxes.keys() == {node.name for node in graph.nodes}
    assert set(boxes.values()) == {node.id for node in real}
    assert sum(node.count for node in real) == len(graph) == scene.total_nodes
    assert len({edge.id for edge in scene.edges}) == len(scene.edges)
    assert all(edge.source in ids and edge.target in ids for edge in scene.edges)
    assert all(not node.group or node.group in groups for node in scene.nodes)
    assert all(not group.parent or group.parent in groups for group in scene.groups)
    assert all(node.stands_for in boxes.values() for node in scene.nodes if node.kind == "stub" and not node.id.startswith("stub:*"))
    crossing = {
        (tensor.name, boxes[node.name]) for node in graph.nodes for tensor in node.inputs if boxes[tensor.node.name] != boxes[node.name]
    }
    assert sum(edge.count for edge in scene.edges if edge.kind == "data") == len(crossing)
    return scene


@given(graphs(), states())
def test_every_node_is_in_exactly_one_box_and_every_edge_has_both_ends(graph: Graph, state: SceneState) -> None:
    check(graph, state)


@given(graphs(), states(), NAMES)
def test_opening_and_closing_any_scope_keeps_every_node_in_one_box(graph: Graph, state: SceneState, name: str) -> None:
    build_scene(graph, state)
    state.expand(name)
    check(graph, state)
    state.collapse(name)
    check(graph, state)


@given(graphs(), states(), st.data())
def test_a_revealed_node_has_a_box_of_its_own_name(graph: Graph, state: SceneState, data: st.DataObject) -> None:
    if not graph.nodes:
        return
    build_scene(graph, state)
    node = data.draw(st.sampled_from(graph.nodes))
    assert reveal(graph, state, node.name)
    assert boxes_of(graph, state)[node.name] == node.name


@given(graphs(), states())
def test_every_renderer_draws_every_scene(graph: Graph, state: SceneState) -> None:
    scene = build_scene(graph, state)
    drawn = [edge for edge in scene.edges if edge.source != edge.target]
    assert to_dot(scene).count("->") >= len(drawn)
    assert to_mermaid(scene).startswith("flowchart TB\n")
    assert to_outline(scene).count("\n") >= len(scene.groups)
    rects = list(places_of(scene).boxes.values())
    assert len(rects) == len(scene.nodes)
    for number, one in enumerate(rects):
        assert not [other for other in rects[number + 1 :] if one.meets(other)]
