"""The devices lens: requests, assigned devices, and copies between devices."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphcore as gc
from tests.support.asking import inspect
from widgets import to_svg
from widgets.render.compiled import build_scene
from widgets.scene import Scene, SceneEdge, SceneNode, SceneState


@pytest.fixture
def graph() -> Iterator[gc.Graph]:
    graph = gc.Graph()
    with graph.as_default():
        yield graph


def node_of(scene: Scene, name: str) -> SceneNode:
    return next(node for node in scene.nodes if node.id == name)


def edge_of(scene: Scene, source: str, target: str) -> SceneEdge:
    return next(edge for edge in scene.edges if (edge.source, edge.target) == (source, target))


def placed(graph: gc.Graph, description: str = "1 cpu, 2 gpu") -> Scene:
    gc.Placer(graph, gc.simulated_devices(description), allow_soft_placement=True).run()
    return build_scene(graph)


def closed(graph: gc.Graph) -> Scene:
    state = SceneState()
    state.mode = "none"
    return build_scene(graph, state)


def two_devices(rows: int | None) -> None:
    with gc.device("/gpu:0"):
        x = gc.placeholder(gc.float32, [rows, 50], name="x")
        with gc.device("/gpu:1"):
            gc.tanh(x, name="y")
            gc.exp(x, name="z")


def test_a_request_is_told_from_an_assigned_device(graph: gc.Graph) -> None:
    two_devices(10)
    assert node_of(build_scene(graph), "y").lenses["devices"].text == "requested /device:GPU:1"
    assert node_of(placed(graph), "y").lenses["devices"].text == "/job:worker/replica:0/task:0/device:GPU:1 (simulated)"


def test_a_request_that_soft_placement_replaced_is_named_beside_the_device(graph: gc.Graph) -> None:
    with gc.device("/gpu:7"):
        gc.placeholder(gc.float32, [], name="x")
    assert (
        node_of(placed(graph), "x").lenses["devices"].text
        == "/job:worker/replica:0/task:0/device:GPU:0 (simulated) (requested /device:GPU:7)"
    )
    found = inspect(graph, SceneState(), "x")
    assert found is not None
    assert found.device == "/job:worker/replica:0/task:0/device:GPU:0 (simulated) (requested /device:GPU:7)"


def test_an_edge_between_devices_names_the_bytes_that_are_copied(graph: gc.Graph) -> None:
    two_devices(10)
    assert "devices" not in edge_of(build_scene(graph), "x", "y").lenses
    scene = placed(graph)
    assert edge_of(scene, "x", "y").lenses["devices"].text == "2.0 kB"


def test_a_copy_of_unknown_size_says_so(graph: gc.Graph) -> None:
    two_devices(None)
    assert edge_of(placed(graph), "x", "y").lenses["devices"].text == "size unknown"


def test_an_edge_within_a_device_has_no_copy(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [3], name="x")
    gc.tanh(x, name="y")
    assert "devices" not in edge_of(placed(graph), "x", "y").lenses


def test_a_tensor_copied_to_a_device_once_counts_once_in_a_closed_scope(graph: gc.Graph) -> None:
    with gc.device("/gpu:0"):
        x = gc.placeholder(gc.float32, [250], name="x")
    with gc.name_scope("part"):
        for number in range(2):
            with gc.device(f"/gpu:{number}"):
                gc.tanh(x)
                gc.exp(x)
                gc.sqrt(x)
    gc.Placer(graph, gc.simulated_devices("1 cpu, 2 gpu")).run()
    scene = closed(graph)
    assert edge_of(scene, "x", "part/").lenses["devices"].text == "1.0 kB"
    assert node_of(scene, "part/").lenses["devices"].text.count(" × 3") == 2


def test_copies_of_several_tensors_are_counted(graph: gc.Graph) -> None:
    with gc.device("/gpu:0"):
        x = gc.placeholder(gc.float32, [250], name="x")
    with gc.name_scope("part"):
        for number in range(3):
            with gc.device(f"/gpu:{number}"):
                gc.tanh(x)
    gc.Placer(graph, gc.simulated_devices("1 cpu, 3 gpu")).run()
    scene = closed(graph)
    assert edge_of(scene, "x", "part/").lenses["devices"].text == "2 copies, 2.0 kB"


def steps(graph: gc.Graph, name: str) -> list[tuple[str, str]]:
    found = inspect(graph, SceneState(), name)
    assert found is not None
    return [(step.text, step.node) for step in found.placement]


def test_the_inspector_names_the_node_that_removed_a_device(graph: gc.Graph) -> None:
    with gc.device("/gpu:1"):
        v = gc.Variable([1.0, 2.0, 3.0], name="v")
    with gc.device("/cpu:0"):
        v.assign_add([1.0, 1.0, 1.0], name="more")
    assert steps(graph, "more") == []
    placed(graph)
    found = steps(graph, "more")
    assert found[0] == ("on /job:worker/replica:0/task:0/device:GPU:1 (simulated)", "")
    assert any("CPU:0" in text and "/device:GPU:1" in text and node == "v" for text, node in found)
    assert any(text.startswith("on one device because of") and node == "v" for text, node in found)
    assert any(text.startswith("copies") and "12 bytes" in text for text, _ in found)


def test_the_inspector_names_the_nodes_that_cannot_be_placed_together(graph: gc.Graph) -> None:
    with gc.device("/gpu:0"):
        gc.constant(1.0, name="x")
    placed(graph, "1 cpu, 1 gpu")
    with gc.device("/gpu:5"):
        gc.constant(2.0, name="y")
    with pytest.raises(gc.errors.InvalidArgumentError):
        gc.Placer(graph, gc.simulated_devices("1 cpu, 1 gpu")).run()
    found = steps(graph, "y")
    assert found[0][0] == "no device"
    assert found[-1][1] == "y"


def shared_variable(graph: gc.Graph) -> None:
    """A variable on a GPU with two assignments, one of them in a scope beside a variable of its own."""
    with gc.device("/gpu:1"):
        v = gc.Variable([1.0, 2.0, 3.0], name="v")
    v.assign_add([1.0, 1.0, 1.0], name="more")
    with gc.name_scope("train"):
        v.assign_add([1.0, 1.0, 1.0], name="step")
        gc.Variable([1.0], name="w").assign_add([1.0], name="rate")
    placed(graph)


def test_boxes_of_nodes_that_must_be_on_one_device_are_enclosed_with_the_reasons(graph: gc.Graph) -> None:
    shared_variable(graph)
    scene = build_scene(graph)
    first, second = scene.colocations
    assert (first.nodes, second.nodes) == (["v", "more", "train/step"], ["train/w", "train/rate"])
    assert first.text == "together: v (3 nodes), more, train/step"
    assert second.text == "together: w (3 nodes), rate"
    assert "reference edge v:0 -> more:0" in first.reasons
    assert "_class loc:@v" in first.reasons
    assert node_of(scene, "more").together == first.text
    assert node_of(scene, "train/rate").together == second.text


def test_a_closed_box_counts_its_colocation_groups(graph: gc.Graph) -> None:
    shared_variable(graph)
    scene = closed(graph)
    assert node_of(scene, "train/").together == "together: 5 nodes in 2 groups, 1 with nodes elsewhere"
    assert [(group.nodes, group.text) for group in scene.colocations] == [(["v", "more"], "together: v (3 nodes), more, train/step")]


def test_a_graph_that_was_never_placed_has_no_colocation_groups(graph: gc.Graph) -> None:
    gc.Variable([1.0], name="v").assign_add([1.0], name="more")
    scene = build_scene(graph)
    assert scene.colocations == []
    assert node_of(scene, "more").together == ""


def test_many_members_and_reasons_are_counted(graph: gc.Graph) -> None:
    v = gc.Variable([1.0], name="v")
    for _ in range(12):
        v.assign_add([1.0])
    (group,) = placed(graph).colocations
    assert len(group.nodes) == 13
    assert group.text == "together: v (3 nodes), AssignAdd, AssignAdd_1, AssignAdd_2 and 9 more"
    assert len(group.reasons) == 9
    assert group.reasons[-1] == "and 6 more"


def test_a_node_that_left_the_graph_leaves_its_group(graph: gc.Graph) -> None:
    shared_variable(graph)
    more = graph.find("more")
    assert more is not None
    graph.remove_node(more)
    assert build_scene(graph).colocations[0].text == "together: v (3 nodes), train/step"


def test_a_still_picture_under_the_devices_lens_draws_hulls(graph: gc.Graph) -> None:
    shared_variable(graph)
    state = SceneState()
    assert "together" not in to_svg(graph, state)
    state.lens = "devices"
    hulls = [hull for hull in ET.fromstring(to_svg(graph, state)).iter("{http://www.w3.org/2000/svg}g") if hull.get("class") == "hull"]
    titles = [hull.findtext("{http://www.w3.org/2000/svg}title") or "" for hull in hulls]
    assert len(hulls) == 4
    assert titles[0].startswith("together: v (3 nodes), more, train/step\nreference edge v:0")
    assert titles[:2] == titles[2:]


def towers(graph: gc.Graph) -> None:
    """Four equal towers on four GPUs, with weights on another machine, placed."""
    x = gc.placeholder(gc.float32, [8, 8], name="x")
    with gc.device("/job:ps/task:0"):
        w = gc.constant([[1.0] * 8] * 8, name="w")
    for tower in range(4):
        with gc.device(f"/job:worker/task:{tower // 2}/gpu:{tower % 2}"), gc.name_scope(f"tower{tower}"):
            gc.reduce_sum(gc.tanh(gc.matmul(gc.tanh(gc.matmul(x, w)), w)))
    workers = gc.simulated_devices("2 tasks x (1 cpu, 2 gpu)")
    gc.Placer(graph, gc.DeviceSet([*workers, *gc.simulated_devices("1 cpu", job="ps")])).run()


def test_a_box_of_several_devices_has_the_colour_of_none_and_the_legend_has_them_all(graph: gc.Graph) -> None:
    towers(graph)
    state = SceneState()
    state.mode = "none"
    scene = build_scene(graph, state)
    lens = next(lens for lens in scene.lenses if lens.name == "devices")
    used = {node.assigned_device for node in graph.nodes if node.assigned_device}
    assert {entry.text.removesuffix(" (simulated)") for entry in lens.legend} >= used
    by_tone = {entry.tone: entry.text for entry in lens.legend}
    for node in scene.nodes:
        mark = node.lenses.get("devices")
        if mark is not None and " × " in mark.text:
            assert by_tone[mark.tone].endswith("several devices")
        elif mark is not None:
            assert by_tone[mark.tone] == mark.text


def test_devices_keep_their_colours_when_boxes_open(graph: gc.Graph) -> None:
    towers(graph)
    state = SceneState()
    state.mode = "none"
    closed_scene = build_scene(graph, state)
    state.mode = "all"
    scenes = [closed_scene, build_scene(graph, state)]
    colours = [
        {entry.text: entry.tone for lens in scene.lenses if lens.name == "devices" for entry in lens.legend if "several" not in entry.text}
        for scene in scenes
    ]
    assert colours[0] == colours[1]
    assert len(scenes[1].nodes) > len(closed_scene.nodes)


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("quantised.tflite", "No device is named in the TensorFlow Lite model"),
        ("vit.onnx.gz", "No device is named in the ONNX model"),
        ("net.pt2", "All tensors in the PyTorch exported program are on cpu"),
    ],
)
def test_a_model_without_devices_says_what_its_source_tells_of_them(name: str, note: str) -> None:
    graph = gc.from_source(Path(__file__).parents[1] / "data" / "frontends" / name)
    assert isinstance(graph, gc.Graph)
    (lens,) = [lens for lens in build_scene(graph).lenses if lens.name == "devices"]
    assert (lens.note, lens.legend) == (note, [])


def test_nodes_of_a_model_beside_those_with_devices_have_none_that_is_named() -> None:
    graph = gc.from_source(Path(__file__).parents[1] / "data" / "frontends" / "quantised.tflite")
    assert isinstance(graph, gc.Graph)
    next(node for node in graph.op_nodes() if node.op == "tfl.CONV_2D").assigned_device = "NPU"
    texts = [box.lenses["devices"].text for box in build_scene(graph).nodes if "devices" in box.lenses]
    assert any("no device named" in text for text in texts)
    assert not any("requested" in text for text in texts)
