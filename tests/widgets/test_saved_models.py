"""Pictures of SavedModels begin with the body of the signature that is served."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import graphcore as gc
from graphcore.__main__ import main
from graphcore.definitions.wire import schema
from widgets.files import to_outline
from widgets.render.compiled import build_scene, reveal
from widgets.scene import SceneState
from widgets.scene.types import Scene, SceneNode

MODELS = Path(__file__).parents[1] / "data" / "saved_models"
SAVED_MODELS: Any = import_module("graphcore.tf1.saved_model")
SAVING = "saving and restoring"


def loaded(name: str) -> gc.Graph:
    """A SavedModel of TensorFlow's."""
    return gc.load(MODELS / name, allow_unknown_ops=True)


def ops(scene: Scene) -> list[str]:
    """The ops of the boxes, sorted."""
    return sorted(node.op for node in scene.nodes if node.op)


def labelled(scene: Scene, label: str) -> SceneNode:
    """The box with this label."""
    (found,) = [node for node in scene.nodes if node.label == label]
    return found


def test_the_first_picture_of_a_keras_model_has_its_layers() -> None:
    scene = build_scene(loaded("keras"))
    assert [op for op in ops(scene) if op in {"MatMul", "BiasAdd", "Relu"}] == ["BiasAdd", "BiasAdd", "MatMul", "MatMul", "Relu"]
    labels = [group.label for group in scene.groups]
    assert labels[0] == "signature serving_default"
    assert {"sequential_1", "dense_1", "dense_1_2"} <= set(labels)


def test_few_boxes_of_a_keras_model_are_variables() -> None:
    scene = build_scene(loaded("keras"))
    assert labelled(scene, "8 variables").count == 16, "four of each signature, each with its ReadVariableOp"
    assert "VarHandleOp" not in ops(scene)
    assert len([node for node in scene.nodes if node.kind == "placeholder" and ":/" in node.id]) == 2, "x of each body, and no handles"


def test_what_saves_and_restores_is_one_closed_box_without_what_is_served() -> None:
    graph = loaded("keras")
    scene = build_scene(graph)
    box = labelled(scene, SAVING)
    assert (box.kind, box.expandable) == ("scope", True)
    state = SceneState()
    build_scene(graph, state)
    state.expand(box.id)
    opened = build_scene(graph, state)
    inside = {node.id for node in opened.nodes if node.group == box.id}
    assert {"saver_filename", "StatefulPartitionedCall_2", "StatefulPartitionedCall_3", "NoOp"} <= inside
    assert not inside & {"StatefulPartitionedCall", "StatefulPartitionedCall_1", "serving_default_x"}


def test_the_first_signature_is_open_where_none_is_the_default() -> None:
    scene = build_scene(loaded("two_signatures"))
    assert scene.groups[0].label == "signature predict"
    assert labelled(scene, "signature score").expandable
    assert "Softmax" in ops(scene)


@pytest.mark.parametrize("name", ["keras", "two_signatures"])
def test_each_node_of_a_saved_model_is_reached_by_search(name: str) -> None:
    graph = loaded(name)
    for node in graph.nodes:
        state = SceneState()
        assert reveal(graph, state, node.name)
        ids = {box.id for box in build_scene(graph, state).nodes} | {group.id for group in build_scene(graph, state).groups}
        assert node.name in ids or f"{node.name}/" in ids, node.name


def test_what_is_open_first_closes_and_opens_again() -> None:
    graph, state = loaded("two_signatures"), SceneState()
    frame = build_scene(graph, state).groups[0]
    state.collapse(frame.id)
    assert labelled(build_scene(graph, state), "signature predict").expandable
    state.expand(frame.id)
    assert build_scene(graph, state).groups[0].label == "signature predict"
    state.collapse("*")
    assert not build_scene(graph, state).groups


def test_the_results_of_a_body_with_several_are_one_box() -> None:
    graph, state = loaded("two_signatures"), SceneState()
    scene = build_scene(graph, state)
    state.expand(labelled(scene, "signature score").id)
    state.expand("StatefulPartitionedCall_1")
    assert [node.label for node in build_scene(graph, state).nodes if node.label.endswith("results")] == ["2 results"]


def test_a_result_that_waits_for_two_nodes_belongs_to_one_of_them() -> None:
    @gc.function
    def doubled(x: gc.float32) -> Any:  # type: ignore[valid-type]  # a dtype
        twice = x * 2.0
        with gc.control_dependencies([gc.no_op(name="first"), gc.no_op(name="second")]):
            return gc.identity(twice, name="out")

    with gc.Graph().as_default() as graph:
        call = doubled(gc.constant(1.0)).op
        state = SceneState()
        state.expand(call.name)
        scene = build_scene(graph, state)
    assert len([node for node in scene.nodes if node.op == "NoOp"]) == 1


def test_the_page_of_a_saved_model_without_signatures_comes_with_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, page = MODELS / "two_signatures", str(tmp_path / "page.txt")
    assert main(["view", str(model), "-o", page]) == 0
    assert capsys.readouterr().err == ""
    message = schema.SavedModel.FromString((model / "saved_model.pb").read_bytes())
    for name in ("predict", "score"):
        del message.meta_graphs[0].signature_def[name]
    (tmp_path / "saved_model.pb").write_bytes(message.SerializeToString())
    assert main(["view", str(tmp_path), "-o", page]) == 0
    assert "serves no signature; `inspect` lists its functions" in capsys.readouterr().err


def test_an_outline_names_the_groups_of_a_saved_model() -> None:
    lines = to_outline(loaded("two_signatures")).splitlines()
    assert "scope 2 variables/ (4 nodes)" in lines
    assert "signature predict/ (2 nodes)" in lines
    assert f"scope {SAVING}/ (5 nodes) <- 2 variables/ 2 x resource []" in lines


def test_a_model_of_tensorflow_1_is_its_graph_with_the_saver_folded(tmp_path: Path) -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        x = gc.placeholder(gc.float32, [None, 2], name="x")
        y = gc.identity(gc.matmul(x, gc.Variable([[1.0], [2.0]], name="w")), name="y")
        session.run(gc.initialize_all_variables())
        SAVED_MODELS.simple_save(session, str(tmp_path / "model"), {"x": x}, {"y": y})
    scene = build_scene(gc.load(tmp_path / "model"))
    assert {"x", "MatMul", "y"} <= {node.id for node in scene.nodes}
    assert labelled(scene, SAVING).expandable
    assert not [node.id for node in scene.nodes if node.id.startswith("save/")]


def test_a_model_that_only_saves_is_shown_as_it_is(tmp_path: Path) -> None:
    with gc.Graph().as_default(), gc.Session() as session:
        gc.Variable(1.0, name="w")
        session.run(gc.initialize_all_variables())
        SAVED_MODELS.simple_save(session, str(tmp_path / "model"), {}, {})
    assert "w" in to_outline(gc.load(tmp_path / "model"))


def test_the_shapes_of_layers_follow_from_those_of_variables() -> None:
    labels = [edge.label for edge in build_scene(loaded("keras")).edges]
    assert [label for label in labels if label.endswith(",3]")] == ["float [4,3]", "float [?1,3]", "float [?1,3]", "float [?1,3]"]
    assert not [label for label in labels if label.startswith("float ?")]
