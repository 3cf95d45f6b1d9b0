"""Layers in cells that run again, and after changes of earlier cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.kernelext.conftest import NotebookShell


def run(shell: NotebookShell, **cells: str) -> None:
    for cell, code in cells.items():
        result = shell.run(code, cell)
        assert result.success, result.error_in_exec


def names() -> list[str]:
    gc.get_default_graph().settle()
    return sorted(variable.name for variable in gc.global_variables())


def node_names() -> set[str]:
    return {node.name for node in gc.get_default_graph().nodes if not node.name.startswith("init")}


MODEL = 'h = gc.layers.dense(x, 3, activation=gc.nn.relu)\ny = gc.layers.dense(h, 2, name="out", kernel_regularizer=gc.nn.l2_loss)'
TRAIN = "step = gc.train.GradientDescentOptimizer(0.1).minimize(gc.reduce_sum(y) + gc.losses.get_regularization_loss())"


def train(shell: NotebookShell, size: int) -> Any:
    variables = shell.user_ns
    session = gc.Session()
    session.run(gc.global_variables_initializer())
    return session.run([variables["y"], variables["step"]], {variables["x"]: np.ones([4, size])})[0]


def test_a_model_follows_the_shape_of_its_input(tracked: NotebookShell) -> None:
    run(tracked, x="x = gc.placeholder(gc.float32, [None, 5])", model=MODEL, train=TRAIN)
    before = names()
    assert train(tracked, 5).shape == (4, 2)
    run(tracked, x="x = gc.placeholder(gc.float32, [None, 7])")
    assert names() == before
    assert gc.get_default_graph().get_tensor_by_name("dense/kernel:0").shape == [7, 3]
    assert train(tracked, 7).shape == (4, 2)
    assert not [node for node in gc.get_default_graph().nodes if node.error]


def test_a_model_cell_that_runs_again_keeps_its_names(tracked: NotebookShell) -> None:
    run(tracked, x="x = gc.placeholder(gc.float32, [None, 5])", model=MODEL, train=TRAIN)
    before, count = names(), len(gc.get_default_graph())
    run(tracked, model=MODEL)
    assert (names(), len(gc.get_default_graph())) == (before, count)
    run(tracked, model=MODEL.replace("x, 3", "x, 6"))
    assert names() == before
    assert train(tracked, 5).shape == (4, 2)


def test_layers_that_are_objects_of_an_earlier_cell_are_built_again(tracked: NotebookShell) -> None:
    run(tracked, x="x = gc.placeholder(gc.float32, [None, 5])", layer="layer = gc.layers.Dense(3)")
    run(tracked, first="a = layer(x)", second="b = layer(x)")
    assert names() == ["dense/bias:0", "dense/kernel:0"]
    run(tracked, first="a = layer(x)")
    assert names() == ["dense/bias:0", "dense/kernel:0"]
    run(tracked, x="x = gc.placeholder(gc.float32, [None, 8])")
    assert names() == ["dense/bias:0", "dense/kernel:0"]
    session = gc.Session()
    session.run(gc.global_variables_initializer())
    a, b = session.run([tracked.user_ns["a"], tracked.user_ns["b"]], {tracked.user_ns["x"]: np.ones([1, 8])})
    np.testing.assert_array_equal(a, b)
    run(tracked, first="a = None", second="b = layer(x)")
    assert names() == ["dense/bias:0", "dense/kernel:0"], "the second cell is now the first to call it"


def test_updates_of_a_batch_normalization_follow(tracked: NotebookShell) -> None:
    run(tracked, x="x = gc.placeholder(gc.float32, [None, 5])", norm="y = gc.layers.batch_normalization(x, training=True)")
    run(tracked, x="x = gc.placeholder(gc.float32, [None, 2])", again="z = 1")
    gc.get_default_graph().settle()
    updates = gc.get_collection(gc.GraphKeys.UPDATE_OPS)
    session = gc.Session()
    session.run(gc.global_variables_initializer())
    mean, _ = session.run(updates, {tracked.user_ns["x"]: [[1.0, 2.0], [3.0, 4.0]]})
    np.testing.assert_allclose(mean, [0.02, 0.03], rtol=1e-5)


def test_a_recurrent_model_follows_the_size_of_its_inputs_and_its_cell(tracked: NotebookShell) -> None:
    run(
        tracked,
        x="x = gc.placeholder(gc.float32, [None, 4, 2])",
        cell="cell = gc.nn.rnn_cell.MultiRNNCell([gc.nn.rnn_cell.BasicLSTMCell(3), gc.nn.rnn_cell.GRUCell(2)])",
        model="outputs, state = gc.nn.dynamic_rnn(cell, x, dtype=gc.float32)\ny = gc.layers.dense(outputs[:, -1], 2)",
        static="steps, _ = gc.nn.static_rnn(gc.nn.rnn_cell.BasicRNNCell(3), gc.unstack(x, 4, 1), dtype=gc.float32)",
        train="step = gc.train.GradientDescentOptimizer(0.1).minimize(gc.reduce_sum(y) + gc.reduce_sum(steps[-1]))",
    )
    before = names()

    def train_on(size: int) -> None:
        user = tracked.user_ns
        session = gc.Session()
        session.run(gc.global_variables_initializer())
        found = session.run([user["y"], user["steps"][-1], user["step"]], {user["x"]: np.ones([5, 4, size])})
        assert [each.shape for each in found[:2]] == [(5, 2), (5, 3)]

    train_on(2)
    run(tracked, x="x = gc.placeholder(gc.float32, [None, 4, 6])")
    assert names() == before
    assert gc.get_default_graph().get_tensor_by_name("rnn/multi_rnn_cell/cell_0/basic_lstm_cell/kernel:0").shape == [9, 12]
    train_on(6)
    run(tracked, model="outputs, state = gc.nn.dynamic_rnn(cell, x, dtype=gc.float32)\ny = gc.layers.dense(outputs[:, -1], 2)")
    assert names() == before
    train_on(6)
    assert not [node for node in gc.get_default_graph().nodes if node.error]


NETWORKS = """
def discriminator(x, reuse=None):
    with gc.variable_scope("D", reuse=reuse):
        return gc.layers.dense(gc.layers.batch_normalization(gc.layers.dense(x, 4), training=True), 1)
def generator(z, size):
    with gc.variable_scope("G"):
        return gc.layers.dense(z, size)
"""
GAN = """
real = discriminator(x)
fake = discriminator(generator(z, int(x.shape[-1])), reuse=True)
d_vars = gc.get_collection(gc.GraphKeys.TRAINABLE_VARIABLES, scope="D")
with gc.control_dependencies(gc.get_collection(gc.GraphKeys.UPDATE_OPS, "D")):
    d_step = gc.train.AdamOptimizer(0.01).minimize(gc.reduce_mean(real) - gc.reduce_mean(fake), var_list=d_vars)
"""


def test_shared_networks_say_what_does_not_fit_until_their_cell_runs_again(tracked: NotebookShell) -> None:
    x = 'x, z = gc.placeholder(gc.float32, [None, {}], name="x"), gc.placeholder(gc.float32, [None, 3], name="z")'
    run(tracked, networks=NETWORKS, x=x.format(5), gan=GAN)
    before, nodes = names(), node_names()

    def step(size: int) -> None:
        user = tracked.user_ns
        session = gc.Session()
        session.run(gc.global_variables_initializer())
        session.run(user["d_step"], {user["x"]: np.ones([4, size]), user["z"]: np.ones([4, 3])})

    step(5)
    run(tracked, x=x.format(7))
    with pytest.raises(gc.errors.GraphError, match=r"D_1/dense/MatMul"):
        step(7)
    run(tracked, gan=GAN)
    assert names() == before
    assert node_names() == nodes
    step(7)
    assert not [node for node in gc.get_default_graph().nodes if node.error]
