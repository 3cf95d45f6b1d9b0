"""Models of Keras in a kernel, and their files, as Keras itself has them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")

import numpy as np
import pytest

from graphcore.errors import GraphError
from graphcore.frontends.lowering import lower
from graphcore.frontends.record import foreign_of
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # as above
@pytest.mark.parametrize("ending", ["keras", "h5"])
def test_files_of_a_transformer_have_all_weights_of_its_attention_and_read_as_its_layers(ending: str, tmp_path: Path) -> None:
    inputs = keras.Input((8,), dtype="int32")
    x = layers.Embedding(100, 16)(inputs)
    for _ in range(4):
        x = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(2, 8)(x, x)]))
        y = layers.Dense(16)(layers.Dense(32, activation="gelu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, y]))
    model = keras.Model(inputs, x)
    path = tmp_path / f"model.{ending}"
    model.save(path)
    source = open_source(path)
    stored = [node.weight.shape for node in source.main.nodes if node.weight is not None]
    assert sorted(stored) == sorted(tuple(weight.shape) for weight in model.weights)
    scene = build_scene(lower(source), SceneState())
    assert [(node.label, node.repeat) for node in scene.nodes if node.repeat] == [("transformer layer", 4)]


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


def opened(model: Any, name: str) -> Any:
    """The body of a layer of a model."""
    graph = lower(open_source(model))
    record = foreign_of(graph)
    assert record is not None
    return record.body(record.nodes[name].name, "")


def test_a_layer_opens_into_the_operations_of_its_backend() -> None:
    inputs = keras.Input((8, 8, 3))
    x = layers.Conv2D(4, 3, activation="relu", name="conv")(inputs)
    model = keras.Model(inputs, layers.Dense(2, name="dense")(layers.Flatten()(x)))
    body = opened(model, "conv")
    operations = {node.op: node for node in body.graph.op_nodes()}
    held = foreign_of(body.graph)
    assert held is not None
    assert held.nodes[operations["jax.conv_general_dilated"].name].outputs[0].shape == ("batch", 6, 6, 4)
    kernels = [node.weight for node in held.nodes.values() if node.weight is not None and len(node.weight.shape) == 4]
    assert kernels[0].load is not None
    assert (kernels[0].load() == np.asarray(model.get_layer("conv").kernel.value)).all()
    state = SceneState()
    state.opened["conv"] = None
    scene = build_scene(lower(open_source(model)), state)
    assert any(node.label.startswith("conv_general_dilated") for node in scene.nodes)


def test_layers_of_several_inputs_and_of_open_lengths_open() -> None:
    one, other = keras.Input((None, 4)), keras.Input((None, 4))
    attended = layers.MultiHeadAttention(2, 3, name="attention")(one, value=other)
    model = keras.Model([one, other], layers.LSTM(5, name="lstm")(attended))
    attention, lstm = opened(model, "attention"), opened(model, "lstm")
    assert len(attention.args) == 2
    assert any("dot_general" in node.op for node in attention.graph.op_nodes())
    assert any("scan" in node.op or "while" in node.op for node in lstm.graph.op_nodes())


class Odd(layers.Layer):  # type: ignore[misc, name-defined]  # keras is not there
    """A layer whose call needs whole numbers as sizes, or fails."""

    def compute_output_spec(self, x: Any) -> Any:
        return keras.KerasTensor(x.shape, x.dtype)

    def call(self, x: Any) -> Any:
        if self.name == "odd":
            raise RuntimeError("only at night")
        return x * len(range(x.shape[0]))


def test_a_layer_that_needs_whole_sizes_is_drawn_with_such_and_says_so() -> None:
    inputs = keras.Input((3,))
    body = opened(keras.Model(inputs, Odd(name="counting")(inputs)), "counting")
    assert "drawn as 8" in body.doc
    assert any(node.op == "jax.mul" for node in body.graph.op_nodes())


def test_opening_a_layer_changes_no_variable_and_says_what_fails() -> None:
    inputs = keras.Input((3,))
    model = keras.Model(inputs, Odd(name="odd")(layers.Dropout(0.5, name="drop")(layers.BatchNormalization(name="norm")(inputs))))
    before = [variable.value for variable in model.variables]
    opened(model, "norm")
    opened(model, "drop")
    assert all(one is variable.value for one, variable in zip(before, model.variables, strict=True))
    with pytest.raises(GraphError, match=r"Layer 'odd' cannot be traced: .*only at night"):
        opened(model, "odd")
