"""TensorFlow's side of the tests of large models: GraphDefs of Keras models with untrained weights."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import layers
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

LARGE = 4096
"""Bytes of a constant beyond which its values are left out."""


def transformer(count: int) -> Any:
    """An encoder with an attention mask."""
    tokens = keras.Input((16,), dtype="int32")
    mask = keras.Input((16, 16), dtype="bool")
    x = layers.LayerNormalization()(layers.Embedding(100, 32)(tokens))
    for _ in range(count):
        attended = layers.MultiHeadAttention(4, 8)(x, x, attention_mask=mask)
        x = layers.LayerNormalization()(layers.Add()([x, attended]))
        fed = layers.Dense(32)(layers.Dense(64, activation="gelu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, fed]))
    return keras.Model([tokens, mask], layers.Dense(2)(x[:, 0]))


def translator(count: int) -> Any:
    """An encoder, and a decoder whose every layer looks at what the encoder makes."""

    def normal(*terms: Any) -> Any:
        return layers.LayerNormalization()(layers.Add()(terms))

    def fed(x: Any) -> Any:
        return normal(x, layers.Dense(32)(layers.Dense(64, activation="relu")(x)))

    source, target = keras.Input((16,), dtype="int32"), keras.Input((12,), dtype="int32")
    x, y = layers.Embedding(100, 32)(source), layers.Embedding(100, 32)(target)
    for _ in range(count):
        x = fed(normal(x, layers.MultiHeadAttention(4, 8)(x, x)))
    for _ in range(count):
        y = normal(y, layers.MultiHeadAttention(4, 8)(y, y, use_causal_mask=True))
        y = fed(normal(y, layers.MultiHeadAttention(4, 8)(y, x)))
    return keras.Model([source, target], layers.Dense(100)(y))


def unet(depth: int) -> Any:
    """An encoder and a decoder with skips between them."""

    def twice(x: Any, filters: int) -> Any:
        for _ in range(2):
            x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(filters, 3, padding="same")(x)))
        return x

    x = image = keras.Input((64, 64, 3))
    skips = []
    for level in range(depth):
        x = twice(x, 8 << level)
        skips.append(x)
        x = layers.MaxPool2D()(x)
    x = twice(x, 8 << depth)
    for level in reversed(range(depth)):
        x = layers.Conv2DTranspose(8 << level, 2, strides=2, padding="same")(x)
        x = twice(layers.Concatenate()([x, skips.pop()]), 8 << level)
    return keras.Model(image, layers.Conv2D(2, 1)(x))


def lstm(steps: int) -> Any:
    """An unrolled recurrence."""
    x = keras.Input((steps, 8))
    return keras.Model(x, layers.Dense(3)(layers.LSTM(16, unroll=True)(x)))


def stacked(count: int) -> Any:
    """Recurrences on top of one another, each a while loop."""
    x = given = keras.Input((12, 16))
    for _ in range(count):
        x = layers.LSTM(16, return_sequences=True)(x)
    return keras.Model(given, layers.Dense(3)(x))


def writer(count: int) -> Any:
    """A decoder without an encoder, with its normalisations first."""
    tokens = keras.Input((16,), dtype="int32")
    x = layers.Embedding(100, 32)(tokens)
    for _ in range(count):
        before = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(4, 8)(before, before, use_causal_mask=True)])
        fed = layers.Dense(128, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(32)(fed)])
    return keras.Model(tokens, layers.Dense(100)(layers.LayerNormalization()(x)))


def graph_of(name: str, arguments: list[int], frozen: bool) -> bytes:
    """The GraphDef of a model of this module or of `keras.applications`; frozen, or with its variables."""
    own = {"transformer": transformer, "translator": translator, "unet": unet, "lstm": lstm, "stacked": stacked, "writer": writer}
    keras.utils.clear_session()
    model = own[name](*arguments) if name in own else getattr(keras.applications, name)(weights=None)
    call = tf.function(lambda *given: model(given[0] if len(given) == 1 else list(given), training=False))
    concrete = call.get_concrete_function(*[tf.TensorSpec((1, *given.shape[1:]), given.dtype) for given in model.inputs])
    graph_def = (convert_variables_to_constants_v2(concrete) if frozen else concrete).graph.as_graph_def()
    for node in graph_def.node:
        tensor = node.attr["value"].tensor if node.op == "Const" else None
        if tensor is not None and len(tensor.tensor_content) > LARGE:
            tensor.tensor_content = b""
            tensor.float_val.append(0.5)
    return bytes(graph_def.SerializeToString())
