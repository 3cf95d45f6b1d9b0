"""Layers: properties, sharing and errors."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as made:
        yield made


def test_a_layer_makes_its_variables_in_the_first_call_and_shares_them() -> None:
    layer = gc.layers.Dense(3, name="d")
    assert (layer.built, layer.variables, layer.name) == (False, [], "d")
    first, second = layer(gc.ones([2, 4])), layer(gc.zeros([5, 4]))
    assert [variable.name for variable in layer.trainable_variables] == ["d/kernel:0", "d/bias:0"]
    assert layer.kernel is layer.variables[0]
    assert (first.name, second.name) == ("d/BiasAdd:0", "d/BiasAdd_1:0")
    assert layer.count_params() == 15
    assert gc.layers.Dense(3)(gc.ones([1, 2])).name == "dense/BiasAdd:0"


def test_a_layer_that_is_not_trainable_has_no_trainable_variables_and_no_updates() -> None:
    layer = gc.layers.BatchNormalization(trainable=False)
    layer(gc.ones([2, 4]), training=True)
    assert gc.trainable_variables() == layer.trainable_variables == layer.updates == []
    assert len(layer.non_trainable_variables) == 4


def test_training_that_is_known_while_the_graph_is_built_needs_no_branch(graph: gc.Graph) -> None:
    gc.layers.batch_normalization(gc.ones([2, 4]), training=gc.constant(True))
    gc.layers.dropout(gc.ones([2, 4]), training=gc.constant(False))
    assert not [node for node in graph.nodes if node.op in {"If", "StatelessIf"}]
    assert len(gc.get_collection(gc.GraphKeys.UPDATE_OPS)) == 2


def test_names_of_activations_and_initializers_are_taken() -> None:
    y = gc.layers.dense(gc.ones([1, 2]), 3, activation="relu", kernel_initializer="ones", bias_initializer="zeros")
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        np.testing.assert_array_equal(session.run(y), [[2.0, 2.0, 2.0]])


def test_a_name_gives_a_scope_that_a_second_layer_shares_only_by_reuse() -> None:
    x = gc.ones([1, 2])
    gc.layers.dense(x, 3, name="d")
    with pytest.raises(ValueError, match="d/kernel already exists"):
        gc.layers.dense(x, 3, name="d")
    with pytest.raises(ValueError, match=r"Trying to share variable d/kernel, but specified shape \[2,4\] and found shape \[2,3\]"):
        gc.layers.dense(x, 4, name="d", reuse=True)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: gc.layers.dense(gc.ones([3]), 2),
            "Input 0 of layer dense is incompatible with the layer: expected min_ndim=2, found ndim=1",
        ),
        (lambda: gc.layers.dense(gc.placeholder(gc.float32, [2, None]), 2), "last dimension of the inputs to `Dense` should be defined"),
        (lambda: gc.layers.conv2d(gc.ones([2, 3, 3]), 2, 3), "expected ndim=4, found ndim=3"),
        (lambda: gc.layers.conv2d(gc.ones([1, 3, 3, 1]), 2, 3, padding="full"), "must be one of valid, same, got 'full'"),
        (lambda: gc.layers.conv2d(gc.ones([1, 3, 3, 1]), 2, [3, 3, 3]), r"`kernel_size` argument must be 2 ints, got \[3, 3, 3\]"),
        (lambda: gc.layers.conv2d(gc.ones([1, 3, 3, 1]), 2, 3, data_format="NHWC"), 'must be "channels_first" or "channels_last"'),
        (lambda: gc.layers.dense(gc.ones([1, 3]), 2, activation="relo"), "required an activation, such as gc.nn.relu, got 'relo'"),
        (lambda: gc.layers.dense(gc.ones([1, 3]), 2, kernel_initializer="glorot"), "required an initializer, .* got 'glorot'"),
        (lambda: gc.layers.dense(gc.ones([1, 3])), "missing a required argument: 'units'"),
        (lambda: gc.layers.Dense(3, colour=1), "Dense takes no argument called 'colour'"),
        (lambda: gc.layers.batch_normalization(gc.ones([2, 3]), renorm=True), "renorm is not available here; required False"),
        (
            lambda: gc.layers.batch_normalization(gc.ones([2, 3]), virtual_batch_size=2),
            "virtual_batch_size is not available here; required None",
        ),
        (lambda: gc.layers.batch_normalization(gc.ones([2, 3]), axis=[0, 1]), r"required one axis of 2 dimensions, got \[0, 1\]"),
        (lambda: gc.layers.batch_normalization(gc.ones([2, 3]), fused=True), "fused requires images of rank 4"),
        (lambda: gc.layers.Dense(3).scope_name, "No name available for layer scope because the layer 'dense' has not been used yet"),
        (lambda: gc.layers.Dense(3).count_params(), "the layer isn't built"),
    ],
)
def test_layers_refuse_what_they_cannot_do(make: Any, text: str) -> None:
    with pytest.raises((ValueError, NotImplementedError), match=text):
        make()


def test_a_layer_keeps_the_size_of_its_first_input() -> None:
    layer = gc.layers.Dense(3)
    layer(gc.ones([2, 4]))
    with pytest.raises(ValueError, match=r"expected axis -1 of input shape to have value 4 but got shape \[2,5\]"):
        layer(gc.ones([2, 5]))


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (gc.layers.Dense(3), [None, 5, 4]),
        (gc.layers.Flatten(), [None, 5, 4]),
        (gc.layers.Conv1D(3, 4, 2, "causal"), [2, 9, 3]),
        (gc.layers.Conv2D(3, [2, 3], (1, 2), "same"), [None, 7, 6, 2]),
        (gc.layers.Conv2D(3, 3, dilation_rate=2), [2, 7, 6, 2]),
        (gc.layers.Conv3D(3, 2), [2, 3, 4, 5, 2]),
        (gc.layers.SeparableConv2D(3, 2, depth_multiplier=2), [2, 7, 6, 2]),
        (gc.layers.Conv2DTranspose(3, 3, 2), [None, 4, 5, 2]),
        (gc.layers.Conv3DTranspose(3, 2, 2, "same"), [2, 3, 4, 5, 2]),
        (gc.layers.MaxPooling1D(3, 2), [2, 9, 3]),
        (gc.layers.AveragePooling2D(2, 2, "same"), [2, 7, 6, 2]),
        (gc.layers.MaxPooling3D(2, 1), [2, 3, 4, 5, 2]),
    ],
    ids=lambda value: value.name if isinstance(value, gc.layers.Layer) else "",
)
def test_the_shape_that_a_layer_tells_is_that_of_its_output(layer: Any, shape: list[int | None]) -> None:
    made = gc.layers.Layer.__new__(type(layer))
    made.__dict__.update(layer.__dict__)
    assert made(gc.placeholder(gc.float32, shape)).shape.as_list() == made.compute_output_shape(shape).as_list()


def test_functions_have_the_parameters_of_tensorflow() -> None:
    parameters = list(inspect.signature(gc.layers.batch_normalization).parameters)
    assert parameters[:6] == ["inputs", "axis", "momentum", "epsilon", "center", "scale"]
    assert parameters[14:18] == ["training", "trainable", "name", "reuse"]
    assert list(inspect.signature(gc.layers.max_pooling2d).parameters) == [
        "inputs",
        "pool_size",
        "strides",
        "padding",
        "data_format",
        "name",
    ]


# ---- recurrent cells ---------------------------------------------------------------------------------------------------

NN: Any = gc.nn
CELL: Any = NN.rnn_cell


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda x: NN.dynamic_rnn(CELL.GRUCell(2), x), "If there is no initial_state, you must give a dtype"),
        (lambda x: NN.dynamic_rnn(x, x), "dynamic_rnn: required an RNNCell, got"),
        (lambda x: NN.dynamic_rnn(CELL.GRUCell(2), x, [[3]], dtype=gc.float32), r"must be a vector .* saw shape: \[1,1\]"),
        (lambda _: NN.dynamic_rnn(CELL.GRUCell(2), gc.ones([3]), dtype=gc.float32), "rank at least 2, but saw shape"),
        (lambda x: NN.static_rnn(CELL.GRUCell(2), x, dtype=gc.float32), "required a list of at least one input"),
        (lambda x: NN.static_rnn(CELL.GRUCell(2), [x[0]]), "If no initial_state is provided, dtype must be specified"),
        (lambda _: CELL.MultiRNNCell([]), "required a list of at least one cell"),
        (lambda _: CELL.MultiRNNCell([CELL.LSTMCell(2)], state_is_tuple=False), "requires state_is_tuple=True"),
        (lambda _: CELL.LSTMCell(2, num_unit_shards=2), "shards divide variables among servers"),
        (lambda _: CELL.DropoutWrapper(CELL.GRUCell(2), 1.5), "input_keep_prob must be between 0 and 1: 1.5"),
        (lambda _: CELL.DropoutWrapper(CELL.GRUCell(2), 0.5, variational_recurrent=True), "dtype must be provided"),
        (lambda x: NN.static_rnn(CELL.ResidualWrapper(CELL.GRUCell(2)), [x[0]], dtype=gc.float32), "must have the same shape"),
        (lambda _: CELL.RNNCell().zero_state(2, gc.float32), "RNNCell must define the property state_size"),
        (lambda _: gc.TensorArray(gc.float32), "required a size, or dynamic_size=True"),
        (
            lambda _: gc.TensorArray(gc.float32, 2).write(0, [1.0]).write(1, [1.0, 2.0]),
            r"saw \[2\] but expected \[1\] in a TensorArray",
        ),
        (lambda _: gc.map_fn(lambda row: row, gc.constant(1.0)), "elements must be 1[+] dimensional"),
        (lambda _: gc.nest.map_structure(max, (1, 2), [1, 2]), "don't have the same nested structure"),
        (lambda _: gc.nest.pack_sequence_as((1, (2, 3)), [1, 2]), "The structure has 3 leaves, got 2 values"),
    ],
)
def test_cells_and_loops_refuse_what_they_cannot_do(make: Any, text: str) -> None:
    with pytest.raises((ValueError, NotImplementedError), match=text):
        make(gc.ones([4, 3, 5]))


def test_dropout_of_a_state_spares_the_memory_of_an_lstm_cell() -> None:
    cell = CELL.DropoutWrapper(CELL.BasicLSTMCell(50), state_keep_prob=0.5, seed=3)
    _, state = cell(gc.ones([2, 4]), cell.zero_state(2, gc.float32))
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        c, h = session.run([state.c, state.h])
    assert (c != 0).all()
    assert 0.2 < (h == 0).mean() < 0.8


def test_variational_dropout_drops_the_same_elements_in_each_step() -> None:
    cell = CELL.DropoutWrapper(CELL.BasicRNNCell(30), 1.0, 0.5, variational_recurrent=True, dtype=gc.float32)
    outputs, _ = NN.dynamic_rnn(cell, gc.ones([2, 6, 4]), dtype=gc.float32)
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        dropped = np.asarray(session.run(outputs)) == 0
    assert 0.2 < dropped.mean() < 0.8
    assert (dropped == dropped[:1, :1]).all()


def test_nested_structures_keep_their_types() -> None:
    state = CELL.LSTMStateTuple(1, {"b": 2, "a": [3, (4,)]})
    assert gc.nest.flatten(state) == [1, 3, 4, 2]
    doubled = gc.nest.map_structure(lambda value: value * 2, state)
    assert doubled == CELL.LSTMStateTuple(2, {"b": 4, "a": [6, (8,)]})
    assert isinstance(doubled, CELL.LSTMStateTuple)
