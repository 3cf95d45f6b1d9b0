"""Edges across the whole picture are cut; all others are unchanged."""

from __future__ import annotations

import graphcore as gc
from widgets.render.compiled import build_scene
from widgets.scene import SceneEdge, SceneNode, SceneState
from widgets.scene.ranks import estimate_ranks
from widgets.scene.stubs import cut_long_edges
from widgets.scene.types import EdgeKind


def chain(length: int) -> tuple[list[SceneNode], list[SceneEdge]]:
    nodes = [SceneNode(id=f"n{i}", label=f"n{i}", kind="op", op="Add") for i in range(length)]
    return nodes, [edge(f"n{i}", f"n{i + 1}") for i in range(length - 1)]


def edge(source: str, target: str, kind: EdgeKind = "data") -> SceneEdge:
    return SceneEdge(id=f"{source}->{target}", source=source, target=target, kind=kind, label="float [3]")


def test_ranks_grow_along_every_arrow() -> None:
    ranks = estimate_ranks("abcd", [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")])
    assert [ranks[box] for box in "abcd"] == [0, 1, 2, 3]


def test_what_only_feeds_a_deep_box_stands_right_above_it() -> None:
    ranks = estimate_ranks("abcdwz", [("a", "b"), ("b", "c"), ("c", "d"), ("z", "w"), ("w", "d")])
    assert (ranks["d"], ranks["w"], ranks["z"]) == (3, 2, 1)


def test_a_cycle_of_closed_scopes_has_ranks_too() -> None:
    ranks = estimate_ranks("abc", [("a", "b"), ("b", "c"), ("c", "a")])
    assert sorted(ranks.values()) == [0, 1, 2]


def test_control_lines_do_not_pull() -> None:
    ranks = estimate_ranks(["a", "b", "c", "w", "init"], [("a", "b"), ("b", "c"), ("w", "c")], [("w", "init")])
    assert (ranks["w"], ranks["init"]) == (1, 2)


def test_a_short_picture_keeps_all_its_lines() -> None:
    nodes, edges = chain(12)
    edges.append(edge("n0", "n11"))
    assert cut_long_edges(nodes, edges) == (nodes, edges)


def test_the_longest_lines_of_a_long_picture_end_in_stubs() -> None:
    nodes, edges = chain(100)
    edges += [edge(f"n{i}", f"n{i + 40}") for i in range(0, 50, 10)] + [edge("n0", "n3")]
    cut_nodes, cut_edges = cut_long_edges(nodes, edges)
    stubs = [node for node in cut_nodes if node.kind == "stub"]
    assert stubs
    assert all(stub.id == f"stub:{stub.stands_for}:n{int(stub.stands_for[1:]) + 40}" for stub in stubs)
    assert len(cut_edges) == len(edges)
    assert "n0->n3" in {item.id for item in cut_edges if item.source == "n0"}
    again = cut_long_edges(nodes, edges)
    assert again == (cut_nodes, cut_edges)


def test_many_far_producers_share_one_stub() -> None:
    nodes, edges = chain(100)
    edges += [edge(f"n{i}", "n99") for i in range(0, 40, 4)]
    cut_nodes, cut_edges = cut_long_edges(nodes, edges)
    (crowd,) = [node for node in cut_nodes if node.kind == "stub"]
    (line,) = [item for item in cut_edges if item.source == crowd.id]
    far = int(crowd.label.split()[0])
    assert far > 6
    assert crowd.label == f"{far} boxes far above"
    assert (line.target, line.count, line.label) == ("n99", far, "float [3]")
    assert len(cut_edges) == len(edges) - far + 1


def test_a_scene_of_three_hundred_boxes_shows_them_all(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 8], name="x")
    for _ in range(149):
        x = gc.tanh(x) + x
    state = SceneState()
    state.expand("*")
    scene = build_scene(graph, state)
    assert len([node for node in scene.nodes if node.kind != "stub"]) == 299
