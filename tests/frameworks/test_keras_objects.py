"""Models of Keras in a kernel, and their files, as Keras itself has them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")

import pytest

from graphcore.frontends.lowering import lower
from graphcore.frontends.sources import open_source
from widgets.render.compiled import build_scene
from widgets.scene import SceneState

keras: Any = pytest.importorskip("keras")
layers = keras.layers
pytestmark = pytest.mark.frameworks
NETWORKS: dict[str, Callable[[], Any]] = {
    "resnet50": lambda: keras.applications.ResNet50(weights=None),
    "mobilenetv2": lambda: keras.applications.MobileNetV2(weights=None),
}


def compared(model: Any, source: Any) -> None:
    """Compare the calls of layers, their inputs, shapes and weights with those of the model."""
    nodes = {node.name: node for node in open_source(source).main.nodes}
    assert [node.op for node in nodes.values() if node.kind == "parameter"] == ["keras.Variable"] * len(model.weights)
    for operation in model.operations:
        node = nodes[operation.name]
        assert node.op == f"keras.{type(operation).__name__}"
        assert node.outputs[0].shape == tuple(operation.output.shape)
        given = [ref[0] for ref in node.inputs if ref is not None and nodes[ref[0]].kind != "parameter"]
        assert given == [tensor._keras_history.operation.name for tensor in operation._inbound_nodes[0].input_tensors]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Keras saves arrays of JAX by a protocol that NumPy will drop
@pytest.mark.parametrize("name", list(NETWORKS))
def test_a_network_is_read_as_keras_has_it(name: str, tmp_path: Path) -> None:
    model = NETWORKS[name]()
    compared(model, model)
    model.save(tmp_path / "model.keras")
    compared(model, tmp_path / "model.keras")


def test_the_first_picture_of_resnet50_reads_its_blocks() -> None:
    scene = build_scene(lower(open_source(NETWORKS["resnet50"]())), SceneState())
    assert [node.repeat for node in scene.nodes if node.repeat] == [3, 4, 6, 3]


def test_a_subclassed_model_is_a_tree_of_weights_and_says_so() -> None:
    class Own(keras.Model):  # type: ignore[misc]  # keras is not there
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(2)

        def call(self, x: Any) -> Any:
            return self.dense(x)

    model = Own()
    model(keras.ops.zeros((1, 3)))
    source = open_source(model)
    assert "is a class of its own" in source.notes[0]
    assert sum(node.kind == "parameter" for node in source.main.nodes) == 2
