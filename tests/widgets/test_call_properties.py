"""Invariants of scenes with function calls, however they are folded."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.support.asking import inspect
from tests.support.pictures import places_of
from widgets.render import to_dot, to_mermaid, to_outline
from widgets.render.compiled import boxes_of, build_scene
from widgets.scene import Scene, SceneState

DATA = Path(__file__).parents[1] / "data"
NAMES = ("f0", "f1", "f2", "f3")
OPS = ("Neg", "Tanh", "Exp")
TEST = "is_small(x:float) -> (z:bool) {\n  a = Less[T=float](x, x)\n  return z = a:z:0\n}"


@st.composite
def bodies(draw: st.DrawFn, name: str) -> str:
    """A function of one tensor that may call others, and itself."""
    lines = []
    last = "x"
    for number, op in enumerate(
        draw(
            st.lists(
                st.sampled_from([*OPS, *NAMES[: NAMES.index(name) + 1], *(["If", "SymbolicGradient"] if name != "f0" else [])]),
                min_size=1,
                max_size=4,
            )
        )
    ):
        node = f"n{number}"
        earlier = NAMES[: NAMES.index(name)] or ("is_small",)
        called = draw(st.sampled_from(earlier))
        output = "y:0"
        if op == "If":
            chosen = f"then_branch={called}, else_branch={draw(st.sampled_from([*earlier, name]))}"
            lines.append(f"p{number} = is_small({last})")
            lines.append(f"{node} = If[Tcond=bool, Tin={{float}}, Tout={{float}}, {chosen}, output_shapes=[]](p{number}:z:0, {last})")
            output = "output:0"
        elif op == "SymbolicGradient":
            lines.append(f"{node} = SymbolicGradient[Tin={{float, float}}, Tout={{float}}, f={called}]({last}, {last})")
            output = "output:0"
        else:
            lines.append(f"{node} = {op}{'[T=float]' if op in OPS else ''}({last})")
        last = f"{node}:{output}"
    return f"{name}(x:float) -> (y:float) {{\n  " + "\n  ".join([*lines, f"return y = {last}"]) + "\n}"


@st.composite
def graphs(draw: st.DrawFn) -> gc.Graph:
    graph = gc.Graph()
    signatures = {name: gc.parse_function(f"{name}(x:float) -> (y:float) {{\n  return y = x\n}}").signature for name in NAMES}
    signatures["is_small"] = gc.parse_function(TEST).signature

    def look_up(op: str) -> gc.OpDef:
        return signatures[op] if op in signatures else graph.library.look_up_op_def(op)

    graph.library.add_function_def(gc.parse_function(TEST))
    for name in NAMES:
        graph.library.add_function_def(gc.parse_function(draw(bodies(name)), look_up))
    with graph.as_default():
        tensor = gc.placeholder(gc.float32, draw(st.sampled_from([None, [3], [None, 2]])), name="x")
        which = gc.placeholder(gc.bool_, [], name="which")
        for number in range(draw(st.integers(1, 4))):
            first, second = draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))
            kind = draw(st.sampled_from(["call", "If", "While", "PartitionedCall"]))
            with gc.name_scope(draw(st.sampled_from(["s", "t"]))):
                if kind == "call":
                    node = graph.apply_op(first, [tensor], None, f"c{number}")
                elif kind == "PartitionedCall":
                    node = graph.apply_op(kind, [[tensor]], {"Tout": [gc.float32], "f": gc.Func(first, {})}, f"c{number}")
                elif kind == "If":
                    branches = {"then_branch": gc.Func(first, {}), "else_branch": gc.Func(second, {})}
                    node = graph.apply_op(kind, [which, [tensor]], {"Tout": [gc.float32], **branches}, f"c{number}")
                else:
                    parts = {"cond": gc.Func("is_small", {}), "body": gc.Func(first, {})}
                    node = graph.apply_op(kind, [[tensor]], parts, f"c{number}")
            tensor = node.outputs[0]
    return graph


def check(graph: gc.Graph, state: SceneState) -> Scene:
    """Check a scene: unique ids, edges with both ends, existing frames, and every node in a box."""
    scene = build_scene(graph, state)
    boxes = boxes_of(graph, state)
    ids = [node.id for node in scene.nodes]
    groups = {group.id for group in scene.groups}
    assert len(set(ids)) == len(ids)
    assert len({edge.id for edge in scene.edges}) == len(scene.edges)
    assert all(edge.source in ids and edge.target in ids for edge in scene.edges)
    assert all(not node.group or node.group in groups for node in scene.nodes)
    assert all(not group.parent or group.parent in groups for group in scene.groups)
    assert all(node.name in boxes or f"{node.name}/" in groups for node in graph.nodes)
    assert all(box in ids for box in boxes.values())
    assert not [node for node in scene.nodes if node.id.startswith("gone:")], "an open call still gives what it gave"
    return scene


@settings(max_examples=12, deadline=None)
@given(graphs(), st.data())
def test_calls_open_in_any_order_and_the_picture_stays_whole(graph: gc.Graph, data: st.DataObject) -> None:
    state = SceneState()
    scene = check(graph, state)
    for _ in range(5):
        foldable = [node.id for node in scene.nodes if node.expandable] + [group.id for group in scene.groups]
        if not foldable:
            return
        box = data.draw(st.sampled_from(foldable))
        (state.collapse if box in {group.id for group in scene.groups} else state.expand)(box)
        scene = check(graph, state)
    for node in scene.nodes[:6]:
        told = inspect(graph, state, node.id)
        assert node.kind == "stub" or told is not None


@settings(max_examples=8, deadline=None)
@given(graphs())
def test_everything_opens_as_far_as_there_is_room_and_every_renderer_draws_it(graph: gc.Graph) -> None:
    state = SceneState(max_boxes=120)
    state.expand("*")
    scene = check(graph, state)
    assert len(scene.nodes) < 600
    assert to_mermaid(scene).startswith("flowchart TB\n")
    assert to_dot(scene).count("->") >= len(scene.edges)
    assert to_outline(scene)
    assert places_of(scene).boxes.keys() == {node.id for node in scene.nodes}


def test_functions_that_tensorflow_wrote_open_to_the_bottom() -> None:
    graph = gc.load(DATA / "functions_v2.pb")
    state = SceneState()
    state.expand("*")
    scene = check(graph, state)
    assert {group.kind for group in scene.groups} >= {"function"}
    assert not [node for node in scene.nodes if node.error]


def test_a_gradient_that_contains_itself_is_told_and_not_followed() -> None:
    graph = gc.Graph()
    text = "f(x:float) -> (y:float) {\n  a = SymbolicGradient[Tin={float, float}, Tout={float}, f=f](x, x)\n  return y = a:output:0\n}"
    graph.library.add_function_def(gc.parse_function(text))
    with graph.as_default():
        x = gc.placeholder(gc.float32, [], name="x")
        graph.apply_op("SymbolicGradient", [[x, x]], {"Tout": [gc.float32], "f": gc.Func("f", {})}, "g")
    state = SceneState()
    state.expand("g")
    (box,) = [node for node in check(graph, state).nodes if node.id == "g"]
    assert "does not open: The gradient of f, which calls itself, cannot be differentiated" in box.error
