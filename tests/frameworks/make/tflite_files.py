"""Writes the TFLite models in `tests/data/frontends`.

Run it with the Python of the oracle's environment: `python tests/frameworks/make/tflite_files.py`.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import tensorflow as tf

FILES = Path(__file__).parents[2] / "data" / "frontends"


class Looping(tf.Module):  # type: ignore[misc]  # TensorFlow is absent where types are checked
    """A loop, a branch and a variable."""

    def __init__(self) -> None:
        super().__init__()
        self.count = tf.Variable(tf.zeros([2]), name="count")

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x"), tf.TensorSpec([], tf.bool, "double")])  # type: ignore[untyped-decorator]
    def forward(self, x: Any, double: Any) -> Any:
        """Adds and doubles."""
        self.count.assign_add(tf.reduce_sum(x, 0))
        x = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 0.5 + 1.0), [tf.constant(0), x])[1]
        return {"y": tf.cond(double, lambda: x * 2.0 + self.count, lambda: tf.tanh(x))}


def network() -> Any:
    """A small convnet."""
    tf.keras.utils.set_random_seed(1)
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((8, 8, 1), name="image"),
            *[tf.keras.layers.Conv2D(4, 3, padding="same", activation="relu", name=f"conv_{number}") for number in range(3)],
            tf.keras.layers.GlobalAveragePooling2D(name="pool"),
            tf.keras.layers.Dense(3, name="logits"),
        ]
    )


def quantised(model: Any) -> bytes:
    """The network with 8-bit weights and values."""
    rng = random.Random(1)
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([tf.random.stateless_normal([1, 8, 8, 1], [rng.randrange(99), 1])] for _ in range(5))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    return bytes(converter.convert())


def main() -> None:
    """Write the files."""
    model = network()
    (FILES / "floating.tflite").write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())
    (FILES / "quantised.tflite").write_bytes(quantised(model))
    module = Looping()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.forward.get_concrete_function()], module)
    converter.experimental_enable_resource_variables = True
    (FILES / "looping.tflite").write_bytes(converter.convert())


if __name__ == "__main__":
    main()
