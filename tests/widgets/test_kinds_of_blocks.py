"""The names of groups of known kinds: the forward computation alone tells them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import graphcore as gc
from widgets.render import to_mermaid
from widgets.render.compiled import build_scene

KINDS = re.compile(
    r"transformer layer|attention|GRU step|LSTM step|inception block|dense block|residual block|separable convolution|inverted residual"
)
TRAIN: Any = gc.train  # type: ignore[attr-defined]  # made when it is asked for
WIDTH = 16


def weights(*shape: int) -> gc.Tensor:
    return gc.Variable(gc.zeros(list(shape)), name="w").read_value()


def mlp(x: gc.Tensor) -> gc.Tensor:
    for _ in range(3):
        x = gc.nn.relu(gc.matmul(x, weights(WIDTH, WIDTH)))
    return x


def mlp_with_sums(x: gc.Tensor) -> gc.Tensor:
    for _ in range(4):
        x = gc.nn.relu(gc.matmul(x, weights(WIDTH, WIDTH)) + weights(WIDTH))
    return x


def mlp_of_sigmoids(x: gc.Tensor) -> gc.Tensor:
    for _ in range(3):
        x = gc.tanh(gc.matmul(gc.sigmoid(gc.matmul(x, weights(WIDTH, WIDTH)) + weights(WIDTH)), weights(WIDTH, WIDTH)))
    return x


def classifiers(x: gc.Tensor) -> gc.Tensor:
    for _ in range(4):
        x = gc.matmul(x, weights(WIDTH, WIDTH))
    return gc.nn.softmax(x)


def attention(x: gc.Tensor) -> gc.Tensor:
    q, k, v = (gc.matmul(x, weights(WIDTH, WIDTH)) for _ in range(3))
    return gc.matmul(gc.matmul(gc.nn.softmax(gc.matmul(q, k, transpose_b=True) * 0.25), v), weights(WIDTH, WIDTH))


def lstm(x: gc.Tensor) -> gc.Tensor:
    gates = [gc.matmul(x, weights(WIDTH, WIDTH)) for _ in range(4)]
    cell = gc.sigmoid(gates[0]) * gc.tanh(gates[1]) + gc.sigmoid(gates[2]) * x
    return gc.sigmoid(gates[3]) * gc.tanh(cell)


def plain_convolutions(x: gc.Tensor) -> gc.Tensor:
    image = gc.reshape(x, [-1, 4, 4, 1])
    for _ in range(2):
        image = gc.nn.relu(gc.nn.conv2d(image, weights(3, 3, 1, 1), strides=[1, 1, 1, 1], padding="SAME") + weights(1))
    return gc.reshape(image, [-1, WIDTH])


def residual(x: gc.Tensor) -> gc.Tensor:
    image = gc.reshape(x, [-1, 4, 4, 1])
    inner = image
    for _ in range(2):
        inner = gc.nn.relu(gc.nn.conv2d(inner, weights(3, 3, 1, 1), strides=[1, 1, 1, 1], padding="SAME") + weights(1))
    return gc.reshape(image + inner, [-1, WIDTH])


Tower = Callable[[gc.Tensor], gc.Tensor]
NONE: list[Tower] = [mlp, mlp_with_sums, mlp_of_sigmoids, classifiers, plain_convolutions]
SOME: dict[Tower, str] = {attention: "attention", lstm: "LSTM step", residual: "residual block"}


def picture(build: Tower, *, trained: bool) -> set[str]:
    """The kinds in the picture of four towers with a loss each."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [WIDTH, WIDTH], name="x")
        y = gc.placeholder(gc.int64, [WIDTH], name="y")
        losses = []
        for _ in range(4):
            loss = gc.reduce_mean(gc.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=build(x)))
            if trained:
                gc.gradients(loss, gc.trainable_variables()[-3:])
            losses.append(loss)
        total = gc.add_n(losses)
        if trained:
            TRAIN.GradientDescentOptimizer(0.1).minimize(total)
    return set(KINDS.findall(to_mermaid(build_scene(graph))))


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("build", NONE)
def test_plain_layers_have_the_name_of_no_kind(build: Tower, trained: bool) -> None:
    assert picture(build, trained=trained) == set()


@pytest.mark.parametrize("build", SOME)
def test_blocks_of_a_kind_have_its_name_with_and_without_gradients(build: Tower) -> None:
    assert picture(build, trained=False) == {SOME[build]}
    assert picture(build, trained=True) == {SOME[build]}


def test_a_sigmoid_whose_value_is_passed_on_in_pairs_many_times_is_looked_at_once() -> None:
    def paired(x: gc.Tensor) -> gc.Tensor:
        pair = [gc.sigmoid(gc.matmul(x, weights(WIDTH, WIDTH)))] * 2
        for _ in range(40):
            pair = gc.ops.identity_n(pair)
        return gc.matmul(pair[0], weights(WIDTH, WIDTH)) + pair[1]

    assert picture(paired, trained=False) == set()
