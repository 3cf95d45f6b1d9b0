"""Layers and cells of TensorFlow 1: names, outputs, gradients and updates are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.oracle.conftest import Oracle

# The programs below run in this setting: `x(...)` makes inputs, `train` is fed, and each variable begins with values of its own.
SETTING = """
inputs_made = []
def x(*shape):
    made = tf.placeholder(tf.float32, [None, *shape[1:]])
    inputs_made.append((made, np.cos(np.arange(np.prod(shape)) * 0.7 + len(inputs_made)).reshape(shape).astype(np.float32)))
    return made
train = tf.placeholder(tf.bool, [])
def values(results):
    feeds = {**{tensor: value for tensor, value in inputs_made}, train: True}
    variables = tf.global_variables() + tf.local_variables()
    with tf.Session() as session:
        session.run([v.assign(np.sin(np.arange(int(np.prod(v.shape.as_list()))) + i + 1.0).reshape(v.shape.as_list()) * 0.5
                              + (1.5 if "variance" in v.name else 0.0)) for i, v in enumerate(variables)])
        trained = tf.trainable_variables()
        loss = sum(tf.reduce_sum(tf.square(each)) for each in results)
        sources = trained + [tensor for tensor, _ in inputs_made]
        found = [tf.convert_to_tensor(g) for g in tf.gradients(loss, sources) if g is not None]
        losses = tf.get_collection("regularization_losses")
        for number, value in enumerate(session.run(results + losses, feeds)):
            outputs["result %d" % number] = value
        for number, value in enumerate(session.run(found, feeds)):
            outputs["gradient %d" % number] = value
        if tf.get_collection("update_ops"):
            session.run(tf.get_collection("update_ops"), feeds)
            for v, value in zip(variables, session.run(variables)):
                outputs["after " + v.name] = value
            for number, value in enumerate(session.run(results, {**feeds, train: False})):
                outputs["inference %d" % number] = value
    outputs["names"] = np.array([v.name for v in variables] + [each.name for each in losses])
"""
LAYERS = {
    "dense": "results = [tf.layers.dense(x(3, 4), 5), tf.layers.dense(x(2, 3, 4), 2, activation=tf.tanh, use_bias=False)]",
    "a shared dense layer": """
a = tf.layers.dense(x(3, 4), 5, name="d")
results = [a, tf.layers.dense(x(2, 4), 5, name="d", reuse=True)]
layer = tf.layers.Dense(2)
results += [layer(a), layer(results[1])]
""",
    "regularizers": """
half = lambda w: tf.multiply(0.5, tf.reduce_sum(tf.square(w)), name="half")
results = [tf.layers.dense(x(3, 4), 5, kernel_regularizer=half, bias_regularizer=half, activity_regularizer=half)]
with tf.variable_scope("s", regularizer=half):
    results.append(tf.layers.dense(x(3, 4), 2))
""",
    "scopes": """
with tf.variable_scope("s", reuse=tf.AUTO_REUSE) as s:
    results = [tf.layers.dense(x(3, 4), 5), tf.layers.dense(x(3, 4), 5)]
with tf.variable_scope(s, reuse=True):
    results.append(tf.layers.dense(x(3, 4), 5))
with tf.name_scope("n"):
    results.append(tf.layers.dense(x(3, 4), 2))
results.append(tf.layers.dense(x(3, 4), 2))
""",
    "conv1d": "results = [tf.layers.conv1d(x(2, 9, 3), 4, 3, 2, 'same', activation=tf.nn.relu), tf.layers.conv1d(x(2, 9, 3), 2, 3, dilation_rate=2)]",
    "conv2d": """
results = [tf.layers.conv2d(x(2, 7, 6, 3), 4, [3, 2], (2, 1), 'same', activation=tf.nn.relu), tf.layers.conv2d(x(2, 7, 6, 3), 2, 3, use_bias=False)]
results.append(tf.layers.conv2d(x(2, 9, 9, 3), 2, 3, dilation_rate=(2, 2)))
""",
    "conv3d": "results = [tf.layers.conv3d(x(1, 4, 5, 6, 2), 3, 2, padding='same'), tf.layers.conv3d(x(1, 4, 5, 6, 2), 3, [1, 2, 3], 2)]",
    "separable": """
results = [tf.layers.separable_conv2d(x(2, 6, 6, 3), 4, 3, padding='same', depth_multiplier=2), tf.layers.separable_conv1d(x(2, 8, 3), 2, 3)]
results.append(tf.layers.separable_conv2d(x(2, 6, 6, 3), 2, 3, 2, activation=tf.tanh))
""",
    "transposed": """
results = [tf.layers.conv2d_transpose(x(2, 4, 3, 3), 5, 3, 2, 'same'), tf.layers.conv2d_transpose(x(2, 4, 3, 3), 2, 4, 2, activation=tf.sigmoid)]
results.append(tf.layers.conv3d_transpose(x(1, 2, 3, 2, 2), 3, 3, 2))
""",
    "pooling": """
results = [tf.layers.max_pooling2d(x(2, 7, 6, 3), 2, 2), tf.layers.average_pooling2d(x(2, 7, 6, 3), [3, 2], 1, 'same')]
results += [tf.layers.max_pooling1d(x(2, 7, 3), 3, 2), tf.layers.average_pooling1d(x(2, 7, 3), 2, 2, 'same')]
results += [tf.layers.max_pooling3d(x(1, 4, 5, 6, 2), 2, 2), tf.layers.average_pooling3d(x(1, 4, 5, 6, 2), 2, 1)]
results += [tf.layers.flatten(x(2, 3, 4)), tf.layers.dropout(x(2, 3), 0.5)]
""",
    "batch normalization of rows": """
results = [tf.layers.batch_normalization(x(5, 4), training=True), tf.layers.batch_normalization(x(5, 4), training=train, momentum=0.9)]
results += [tf.layers.batch_normalization(x(5, 4), scale=False), tf.layers.batch_normalization(x(2, 3, 4), axis=1, center=False, training=True)]
""",
    "batch normalization of images": """
results = [tf.layers.batch_normalization(x(2, 3, 3, 4), training=True), tf.layers.batch_normalization(x(2, 3, 3, 4), training=train)]
results += [tf.layers.batch_normalization(x(2, 3, 3, 4)), tf.layers.batch_normalization(x(2, 3, 3, 4), fused=False, training=True, trainable=False)]
""",
    "a layer of one's own": """
class Scaled(tf.layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_variable("factor", [int(input_shape[-1])], initializer=tf.ones_initializer())
        super().build(input_shape)
    def call(self, inputs):
        return inputs * self.factor
scaled = Scaled()
results = [scaled(x(2, 3)), scaled(x(4, 3)), Scaled(name="other")(x(2, 2)), tf.layers.Dense(2, name="d").apply(x(2, 3))]
""",
}


CELLS = {
    "dynamic_rnn": """
cell = tf.nn.rnn_cell
out, state = tf.nn.dynamic_rnn(cell.BasicLSTMCell(4), x(3, 5, 2), dtype=tf.float32)
results = [out, state.c, state.h]
with tf.variable_scope("second"):
    out, state = tf.nn.dynamic_rnn(cell.BasicRNNCell(3), x(3, 5, 2), [5, 2, 3], dtype=tf.float32)
results += [out, state]
out, state = tf.nn.dynamic_rnn(cell.GRUCell(2), x(4, 3, 2), initial_state=tf.fill([3, 2], 0.3), time_major=True, scope="gru")
results += [out, state]
""",
    "LSTM cells": """
cell = tf.nn.rnn_cell
results = []
for number, made in enumerate([
    cell.LSTMCell(4, use_peepholes=True, cell_clip=0.4, num_proj=3, proj_clip=0.3),
    cell.LSTMCell(3, state_is_tuple=False, forget_bias=0.5, activation=tf.nn.relu),
    cell.BasicLSTMCell(2, state_is_tuple=False),
]):
    out, state = tf.nn.dynamic_rnn(made, x(3, 4, 2), sequence_length=[4, 1, 2], dtype=tf.float32, scope="rnn%d" % number)
    results += [out, *(state if isinstance(state, tuple) else [state])]
""",
    "static_rnn": """
cell = tf.nn.rnn_cell
outs, state = tf.nn.static_rnn(cell.BasicLSTMCell(4), tf.unstack(x(3, 4, 2), 4, 1), dtype=tf.float32)
results = [*outs, *state]
stacked = cell.MultiRNNCell([cell.ResidualWrapper(cell.BasicRNNCell(2)), cell.DropoutWrapper(cell.GRUCell(3), output_keep_prob=1.0)])
outs, state = tf.nn.static_rnn(stacked, tf.unstack(x(3, 4, 2), 4, 1), dtype=tf.float32, sequence_length=[1, 4, 3])
results += [*outs, *state]
""",
    "bidirectional": """
cell = tf.nn.rnn_cell
outs, fw, bw = tf.nn.static_bidirectional_rnn(cell.BasicLSTMCell(3), cell.BasicLSTMCell(2), tf.unstack(x(3, 4, 2), 4, 1), dtype=tf.float32)
results = [*outs, *fw, *bw]
(one, two), (fw, bw) = tf.nn.bidirectional_dynamic_rnn(cell.GRUCell(3), cell.GRUCell(2), x(3, 4, 2), [4, 2, 3], dtype=tf.float32, scope="b")
results += [one, two, fw, bw]
""",
    "layers of cells in one loop": """
cell = tf.nn.rnn_cell
multi = cell.MultiRNNCell([cell.LSTMCell(3), cell.LSTMCell(2)])
start = multi.zero_state(3, tf.float32)
out, state = tf.nn.dynamic_rnn(multi, x(3, 4, 2), initial_state=start)
results = [out, *[part for each in state for part in each]]
results += [tf.nn.dynamic_rnn(multi, x(3, 4, 2), dtype=tf.float32)[0]]
""",
    "a cell of one's own": """
class Leaky(tf.nn.rnn_cell.RNNCell):
    @property
    def state_size(self):
        return 3
    @property
    def output_size(self):
        return 3
    def call(self, inputs, state):
        w = tf.get_variable("w", [2, 3])
        new = 0.5 * state + tf.tanh(tf.matmul(inputs, w))
        return new, new
class Old(Leaky):
    def __call__(self, inputs, state, scope=None):
        with tf.variable_scope(scope or type(self).__name__):
            return self.call(inputs, state)
results = [tf.nn.dynamic_rnn(Leaky(), x(3, 4, 2), dtype=tf.float32)[0], *tf.nn.static_rnn(Leaky(), tf.unstack(x(3, 4, 2), 4, 1), dtype=tf.float32, scope="s")[0]]
results += tf.nn.static_rnn(Old(), tf.unstack(x(3, 4, 2), 4, 1), dtype=tf.float32, scope="o")[0]
""",
    "raw_rnn": """
data = tf.transpose(x(3, 4, 2), [1, 0, 2])
array = tf.TensorArray(tf.float32, 4).unstack(data)
made = tf.nn.rnn_cell.LSTMCell(3)
def loop_fn(time, output, state, loop_state):
    next_state = made.zero_state(3, tf.float32) if output is None else state
    finished = time >= tf.constant([4, 2, 3])
    following = tf.cond(tf.reduce_all(finished), lambda: tf.zeros([3, 2]), lambda: array.read(time))
    following.set_shape([3, 2])
    return finished, following, next_state, output, None
out, state, _ = tf.nn.raw_rnn(made, loop_fn)
results = [out.stack(), *state]
""",
    "a character model": """
def by_hand(inputs, state, cell, scope):
    outputs = []
    with tf.variable_scope(scope):
        for number, value in enumerate(inputs):
            if number:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(value, state)
            outputs.append(output)
    return outputs, state
def loss_by_hand(logits, targets, weights):
    losses = [tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=l) * w for l, t, w in zip(logits, targets, weights)]
    return tf.add_n(losses) / (tf.add_n(weights) + 1e-12)
decoder, loss_of = by_hand, loss_by_hand
if hasattr(tf, "contrib"):
    legacy = tf.contrib.legacy_seq2seq
    decoder, loss_of = (lambda *args: legacy.rnn_decoder(*args[:3], loop_function=None, scope=args[3])), legacy.sequence_loss_by_example
cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(6) for _ in range(2)], state_is_tuple=True)
letters = tf.cast(tf.abs(x(3, 4)) * 4.9, tf.int32)
start = cell.zero_state(3, tf.float32)
with tf.variable_scope("rnnlm"):
    softmax_w, softmax_b = tf.get_variable("softmax_w", [6, 5]), tf.get_variable("softmax_b", [5])
embedding = tf.get_variable("embedding", [5, 6])
steps = [tf.squeeze(step, [1]) for step in tf.split(tf.nn.embedding_lookup(embedding, letters), 4, 1)]
outputs_, last = decoder(steps, start, cell, "rnnlm")
logits = tf.matmul(tf.reshape(tf.concat(outputs_, 1), [-1, 6]), softmax_w) + softmax_b
loss = loss_of([logits], [tf.reshape(letters, [-1])], [tf.ones([12])])
results = [tf.nn.softmax(logits), loss, last[0].c, last[1].h]
""",
    "functions along rows": """
data = x(4, 3)
results = [tf.map_fn(lambda row: row * row + 1.0, data), tf.foldl(lambda a, row: a * 0.5 + row, data), tf.foldr(lambda a, row: a * 0.5 + row, data)]
results += [tf.scan(lambda a, row: a * row, data), tf.scan(lambda a, row: a + tf.reduce_sum(row), data, tf.constant(1.0), reverse=True)]
results += list(tf.map_fn(lambda pair: (pair[0] * pair[1], tf.reduce_sum(pair[0])), (data, data), dtype=(tf.float32, tf.float32)))
results += [tf.foldl(lambda a, row: a + tf.reduce_sum(row), data, 0.0)]
array = tf.TensorArray(tf.float32, 3, clear_after_read=False)
array = array.write(0, data[0]).write(2, data[1]).write(1, data[2])
results += [array.stack(), array.gather([2, 0]), array.read(1), array.concat(), tf.cast(array.size(), tf.float32)]
""",
}


def there(program: str) -> str:
    body = "".join(f"        {line}\n" for line in f"{SETTING}\n{program}\nvalues(results)".splitlines())
    return f"""
import os, warnings
os.environ["TF_USE_LEGACY_KERAS"] = "1"  # only the former Keras has the layers
warnings.simplefilter("ignore")
tf = tf.compat.v1
tf.disable_resource_variables()
tf.disable_control_flow_v2()
try:
    with tf.Graph().as_default():
{body}
finally:
    tf.enable_resource_variables()
    tf.enable_control_flow_v2()
"""


def check(oracle: Oracle, program: str) -> None:
    expected = oracle.run(there(program)).outputs
    found: dict[str, Any] = {}
    with gc.Graph().as_default():
        exec(f"{SETTING}\n{program}\nvalues(results)", {"tf": gc, "np": np, "outputs": found})
    assert np.asarray(found.pop("names")).tolist() == expected.pop("names").tolist()
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_give_tensorflows_numbers_and_names(oracle: Oracle, name: str) -> None:
    check(oracle, LAYERS[name])


@pytest.mark.parametrize("name", CELLS)
def test_recurrent_cells_give_tensorflows_numbers_and_names(oracle: Oracle, name: str) -> None:
    check(oracle, CELLS[name])
