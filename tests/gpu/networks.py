"""The networks that are timed on the GPU, written once over the functions of a library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.rows import images, perceptron, training_steps
from tests.benchmarks.work import Float

BATCH = training_steps.BATCH
UNITS = 128


class Library(NamedTuple):
    """Functions under the names that the networks use.

    Attributes:
        split: (x, n) -> x in n equal parts along axis 1.
        concat: arrays joined along axis 1.
        conv: (x, w, padding), channels last.
        pool: the maximum of windows of 2 x 2, channels last.
        loss: (logits, labels) -> the mean cross entropy of one-hot labels.
    """

    matmul: Callable[[Any, Any], Any]
    relu: Callable[[Any], Any]
    sigmoid: Callable[[Any], Any]
    tanh: Callable[[Any], Any]
    reshape: Callable[[Any, Sequence[int]], Any]
    split: Callable[[Any, int], Sequence[Any]]
    concat: Callable[[Sequence[Any]], Any]
    conv: Callable[[Any, Any, str], Any]
    pool: Callable[[Any], Any]
    loss: Callable[[Any, Any], Any]


class Network(NamedTuple):
    """A network.

    Attributes:
        start: its parameters before the first step.
        logits: (library, parameters, images) -> [batch, classes].
        rate: the learning rate.
    """

    start: Callable[[], list[Float]]
    logits: Callable[[Library, Sequence[Any], Any], Any]
    rate: float


def _dense_start() -> list[Float]:
    weights, biases = perceptron.start()
    return [array for pair in zip(weights, biases, strict=True) for array in pair]


def _dense(f: Library, p: Sequence[Any], x: Any) -> Any:
    h = x
    for w, b in zip(p[:-2:2], p[1:-2:2], strict=True):
        h = f.relu(f.matmul(h, w) + b)
    return f.matmul(h, p[-2]) + p[-1]


def _lenet(f: Library, p: Sequence[Any], x: Any) -> Any:
    pictures = f.reshape(x, (BATCH, 28, 28, 1))
    return images.layers(pictures, p, f.conv, f.pool, f.relu, f.matmul, lambda y: f.reshape(y, (BATCH, 400)))


def _lstm_start() -> list[Float]:
    shapes = [(training_steps.IMAGE + UNITS, 4 * UNITS), (4 * UNITS,), (UNITS, training_steps.CLASSES), (training_steps.CLASSES,)]
    return [training_steps.started(60 + i, *shape) if len(shape) > 1 else np.zeros(shape, np.float32) for i, shape in enumerate(shapes)]


def _lstm(f: Library, p: Sequence[Any], x: Any) -> Any:
    """An LSTM over the rows of an image, unrolled."""
    kernel, bias, w, b = p
    state: Any = None
    output: Any = None
    for row in f.split(x, training_steps.IMAGE):
        before = f.matmul(row, kernel[: training_steps.IMAGE]) if output is None else f.matmul(f.concat([row, output]), kernel)
        i, j, forget, o = f.split(before + bias, 4)
        new = f.sigmoid(i) * f.tanh(j)
        state = new if state is None else state * f.sigmoid(forget + 1.0) + new
        output = f.tanh(state) * f.sigmoid(o)
    return f.matmul(output, w) + b


NETWORKS = {
    "perceptron": Network(_dense_start, _dense, 0.01),
    "LeNet-5": Network(images.weights, _lenet, 0.01),
    "LSTM": Network(_lstm_start, _lstm, 0.01),
}
