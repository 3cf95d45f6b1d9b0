"""The devices lens: requests, assigned devices, and copies between devices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import graphcore as gc
from widgets.scene import Scene, SceneEdge, SceneNode, SceneState, build_scene
from widgets.scene.inspect import inspect


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
