"""Calls of Keras models on JAX and on PyTorch: layers that open into the operations of the backend."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphcore.api import from_source
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.frontend import Call
from graphcore.frontends.record import foreign_of
from graphcore.graph import Graph

os.environ.setdefault("KERAS_BACKEND", "jax")
keras: Any = pytest.importorskip("keras")
layers: Any = keras.layers
ops: Any = keras.ops
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Keras makes arrays of tensors in the way of NumPy 1
BACKEND = keras.backend.backend()
IN_FIRST_DENSE = {"jax": {"dot_general", "add"}, "torch": {"matmul", "add"}}


class Block(layers.Layer):  # type: ignore[misc]  # keras is not there
    """A layer of layers."""

    def __init__(self, size: int) -> None:
        super().__init__(name="block")
        self.up, self.down = layers.Dense(size, name="up"), layers.Dense(4, name="down")

    def call(self, x: Any) -> Any:
        return x + self.down(ops.relu(self.up(x)))


class Own(keras.Model):  # type: ignore[misc]  # keras is not there
    """A subclassed model."""

    def __init__(self) -> None:
        super().__init__(name="own")
        self.block, self.dense = Block(8), layers.Dense(2, name="dense")

    def call(self, x: Any) -> Any:
        return self.dense(self.block(x))


def sequential() -> Any:
    parts = [
        layers.Input((4,)),
        layers.Dense(8, name="first"),
        layers.Dropout(0.5),
        layers.BatchNormalization(name="norm"),
        layers.Dense(2, name="last"),
    ]
    return keras.Sequential(parts, name="net")


def functional() -> Any:
    entry = keras.Input((4,))
    inner = keras.Sequential([layers.Input((4,)), layers.Dense(4, name="deep")], name="inner")
    return keras.Model(entry, layers.Dense(2, name="last")(layers.add([entry, inner(entry)])), name="net")


def own() -> Any:
    model = Own()
    model(ops.ones((1, 4)))
    return model


def classes(graph: Graph) -> dict[str, str]:
    record = foreign_of(graph)
    assert record is not None
    return record.classes


def inside(graph: Graph, scope: str) -> set[str]:
    return {node.op.rpartition(".")[2] for node in graph.op_nodes() if node.name.startswith(f"{scope}/")}


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (sequential, {"first": "Dense", "norm": "BatchNormalization", "last": "Dense"}),
        (functional, {"inner": "Sequential", "inner/deep": "Dense", "last": "Dense"}),
        (own, {"block": "Block", "block/up": "Dense", "block/down": "Dense", "dense": "Dense"}),
    ],
    ids=["sequential", "functional", "subclassed"],
)
def test_layers_open_into_the_operations_of_the_backend(make: Any, expected: dict[str, str]) -> None:
    graph = from_source(Call(make(), (ops.ones((3, 4)),)))
    assert expected.items() <= classes(graph).items()
    for scope, kind in expected.items():
        assert kind != "Dense" or inside(graph, scope) >= IN_FIRST_DENSE[BACKEND]
        assert kind != "Dense" or f"{scope}/kernel" in {node.name for node in graph.op_nodes()}
    (result,) = [node for node in graph.op_nodes() if node.op == "graph.Output"]
    assert str(result.inputs[0].shape).replace(" ", "") == "[3,2]"


def test_a_traced_call_leaves_training_as_it_is() -> None:
    model = sequential()
    model.compile("sgd", "mse")
    x, y = keras.random.normal((8, 4)), ops.ones((8, 2))
    before = [ops.convert_to_numpy(variable.value).tolist() for variable in model.variables]
    graph = from_source(Call(model, (x,), {"training": True}))
    assert [ops.convert_to_numpy(variable.value).tolist() for variable in model.variables] == before
    assert any("mean" in node.name or "moving" in node.name for node in graph.op_nodes())
    model.fit(x, y, epochs=1, verbose=0)
    assert model.predict(x, verbose=0).shape == (8, 2)


def test_a_model_without_variables_is_refused_and_not_built() -> None:
    model = Own()
    with pytest.raises(InvalidArgumentError, match=r"'own' would make the variables .*Required: a model that was called once"):
        from_source(Call(model, (ops.ones((3, 4)),)))
    assert model.variables == []


@pytest.mark.skipif(BACKEND != "jax", reason="it starts the tests on the other backend")
def test_the_same_holds_on_pytorch() -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "frameworks", __file__]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, check=False, cwd=root, env={**os.environ, "KERAS_BACKEND": "torch"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
