"""Writes the SavedModels of `tests/data/saved_models` with TensorFlow.

Run `python -m tests.oracle.sides.make_saved_models` in `.venv-oracle`.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

FOLDER = Path(__file__).parents[2] / "data" / "saved_models"


class Module(tf.Module):  # type: ignore[misc]  # TensorFlow has no types
    """Two signatures that share a function."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
        self.b = tf.Variable([0.5, -0.5], name="b")

    @tf.function  # type: ignore[untyped-decorator]  # likewise
    def logits(self, x: Any) -> Any:
        return tf.matmul(x, self.w) + self.b

    @tf.function(input_signature=[tf.TensorSpec([None, 2], name="x")])  # type: ignore[untyped-decorator]  # likewise
    def predict(self, x: Any) -> Any:
        return {"y": tf.nn.softmax(self.logits(x))}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], name="x")])  # type: ignore[untyped-decorator]  # likewise
    def score(self, x: Any) -> Any:
        return {"largest": tf.reduce_max(self.logits(x), 1), "logits": self.logits(x)}


def network() -> Any:
    """Two layers, trained one step."""
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.Input((4,), name="x"), tf.keras.layers.Dense(3, "relu"), tf.keras.layers.Dense(2)])
    model.compile("adam", "mse")
    model.fit(np.zeros((2, 4)), np.zeros((2, 2)), verbose=0)
    return model


def keep(folder: Path, name: str) -> None:
    """Copy a SavedModel without what describes Python objects and ops."""
    model = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    for graph in model.meta_graphs:
        graph.ClearField("object_graph_def")
        graph.meta_info_def.ClearField("stripped_op_list")
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    shutil.copytree(folder / "variables", FOLDER / name / "variables")
    (FOLDER / name / "saved_model.pb").write_bytes(model.SerializeToString(deterministic=True))


def main() -> None:
    """Write the SavedModels anew."""
    with tempfile.TemporaryDirectory() as place:
        module, named, unnamed = Module(), Path(place, "module"), Path(place, "keras")
        tf.saved_model.save(module, str(named), signatures={"predict": module.predict, "score": module.score})
        keep(named, "two_signatures")
        network().export(str(unnamed), verbose=False)
        keep(unnamed, "keras")


if __name__ == "__main__":
    main()
