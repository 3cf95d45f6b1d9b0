"""Small files of Keras that the tests read; this needs Keras."""

from __future__ import annotations

from pathlib import Path

import keras
from keras import layers

FOLDER = Path(__file__).parents[2] / "data" / "frontends"


def shared_and_nested() -> keras.Model:
    """A model with a layer that is called twice, a model in a model, and operators."""
    shared = layers.Dense(8, activation="relu", name="shared")
    entry = keras.Input((8,), name="z")
    inner = keras.Model(entry, layers.Dropout(0.1, name="drop")(layers.Dense(8, name="in_dense")(entry)), name="inner")
    first, second = keras.Input((8,), name="a"), keras.Input((8,), name="b")
    left, right = shared(first), shared(second)
    joined = layers.Concatenate(name="cat")([inner(layers.Add(name="adding")([left, right])), inner(left)])
    head = layers.Dense(3, name="head")(joined)
    return keras.Model([first, second], [head, head * 2.0 + left[:, :3]], name="shared_nested")


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    model = shared_and_nested()
    model.save(FOLDER / "shared.keras")
    model.save(FOLDER / "shared.h5")
