"""First pictures of models that TensorFlow and Keras export: they say what the model is."""

from __future__ import annotations

import re

import networkx as nx
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle
from tests.support.renaming import renamed
from widgets.render import to_svg
from widgets.render.compiled import build_scene
from widgets.scene import Scene

pytestmark = pytest.mark.oracle

SIDE = "tests.oracle.sides.models_side:graph_of"
MODELS: dict[str, tuple[str, tuple[int, ...], list[int]]] = {
    "DenseNet121": ("DenseNet121", (), [6, 12, 24, 16]),
    "ResNet50": ("ResNet50", (), [3, 4, 6, 3]),
    "MobileNet": ("MobileNet", (), [6]),
    "MobileNetV2": ("MobileNetV2", (), [2, 3, 4, 3, 3]),
    "EfficientNetB0": ("EfficientNetB0", (), [2, 2, 3, 3, 4]),
    "VGG16": ("VGG16", (), [2, 2, 3, 3, 3, 2]),
    "InceptionV3": ("InceptionV3", (), [3, 4, 2]),
    "Xception": ("Xception", (), [8]),
    "NASNetMobile": ("NASNetMobile", (), [4, 4, 4]),
    "transformer": ("transformer", (6,), [6]),
    "translator": ("translator", (4,), [4, 4]),
    "unet": ("unet", (4,), 9 * [2]),
    "lstm": ("lstm", (20,), [20]),
    "stacked": ("stacked", (4,), [4]),
    "writer": ("writer", (5,), [5]),
    "MobileNetV3Small": ("MobileNetV3Small", (), [2, 3, 2, 3]),
}
NAMED: list[str] = [model for model in MODELS if model not in {"translator", "unet", "lstm"}]
_loaded: dict[tuple[str, bool], gc.Graph] = {}


def load(oracle: Oracle, model: str, *, frozen: bool) -> gc.Graph:
    if (model, frozen) not in _loaded:
        name, arguments, _ = MODELS[model]
        data = oracle.call(SIDE, name, list(arguments), frozen)
        graph = gc.Graph()
        gc.import_graph_def(data, graph, allow_unknown_ops=True, prefix="")
        _loaded[model, frozen] = graph
    return _loaded[model, frozen]


def check(scene: Scene, counts: list[int]) -> None:
    shown = [node for node in scene.nodes if node.kind != "stub"]
    assert [node.repeat for node in shown if node.repeat] == counts
    assert len(shown) <= 40
    assert sum(node.count for node in shown) == scene.total_nodes
    arrows = nx.DiGraph([(edge.source, edge.target) for edge in scene.edges])
    assert [clump for clump in nx.strongly_connected_components(arrows) if len(clump) > 1] == []
    assert not [node.op for node in shown if node.op in {"Identity", "NoOp", "ReadVariableOp"}]
    labels = [(node.label, node.op) for node in shown if node.repeat]
    assert len(set(labels)) == len(labels)
    titles = re.findall(r'class="title"[^>]*>([^<]*)', to_svg(scene))
    assert [title for title in titles if "…" in title] == []


@pytest.mark.parametrize("model", NAMED)
def test_a_model_reads_as_its_stages(model: str, oracle: Oracle) -> None:
    check(build_scene(load(oracle, model, frozen=True)), MODELS[model][2])


@pytest.mark.parametrize("model", [*NAMED, "translator", "unet"])
def test_a_model_with_variables_reads_as_its_stages(model: str, oracle: Oracle) -> None:
    check(build_scene(load(oracle, model, frozen=False)), MODELS[model][2])


@pytest.mark.parametrize("model", MODELS)
def test_a_model_with_random_names_reads_as_its_stages(model: str, oracle: Oracle) -> None:
    check(build_scene(renamed(load(oracle, model, frozen=True), 7)), MODELS[model][2])


@pytest.mark.parametrize("model", MODELS)
def test_a_model_with_variables_and_random_names_reads_as_its_stages(model: str, oracle: Oracle) -> None:
    check(build_scene(renamed(load(oracle, model, frozen=False), 7)), MODELS[model][2])


@pytest.mark.parametrize(("model", "row"), [("NASNetMobile", [0, 0, 4, 0, 4, 0, 4]), ("InceptionV3", [3, 0, 4, 0, 2])])
def test_reductions_stand_between_the_stages_of_cells(model: str, row: list[int], oracle: Oracle) -> None:
    scene = build_scene(renamed(load(oracle, model, frozen=True), 7))
    assert [node.repeat for node in scene.nodes if node.count > 90] == row


@pytest.mark.parametrize("model", ["MobileNetV2", "EfficientNetB0"])
def test_a_stage_of_one_block_reads_as_a_block(model: str, oracle: Oracle) -> None:
    scene = build_scene(renamed(load(oracle, model, frozen=True), 7))
    row = [(node.label, node.repeat) for node in scene.nodes]
    stages = [place for place, (_, repeat) in enumerate(row) if repeat]
    beside = [row[stages[0] - 1][0], row[stages[-1] + 1][0]]
    assert all("block" in label or "separable" in label for label in beside), beside
