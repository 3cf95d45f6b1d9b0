"""Edges across the whole picture are cut."""

from __future__ import annotations

import graphcore as gc
from widgets.function import Definition
from widgets.render.compiled import build_scene
from widgets.scene import SceneState


def test_a_scene_of_three_hundred_boxes_shows_them_all(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [None, 8], name="x")
    for _ in range(149):
        x = gc.tanh(x) + x
    state = SceneState()
    state.expand("*")
    scene = build_scene(graph, state)
    assert len([node for node in scene.nodes if node.kind != "stub"]) == 299


def test_the_diagram_of_a_long_definition_has_stubs(graph: gc.Graph) -> None:
    lines = ["n0 = Neg[T=float](x)", *(f"n{place} = Neg[T=float](n{place - 1}:y:0)" for place in range(1, 100))]
    lines += [f"far{place} = AddV2[T=float](n{place}:y:0, n{place + 60}:y:0)" for place in range(0, 40, 4)]
    text = "long(x:float) -> (y:float) {\n" + "\n".join(lines) + "\n return y = n99:y:0\n}"
    scene = Definition(gc.parse_function(text), graph.library).scene()
    stubs = [node for node in scene.nodes if node.kind == "stub"]
    assert stubs
    assert all(stub.stands_for in {node.id for node in scene.nodes} for stub in stubs)
