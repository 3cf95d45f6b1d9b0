"""Loops, branches, recurrent networks, attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tests.oracle.sides.trained.building import Trained, dense, graph, half_squared, numbers, trained, v1, variable, zeros

__all__ = ["trained"]


@graph
def a_loop_with_momentum() -> Trained:
    x, count = v1.placeholder(tf.float32, [None, 4]), v1.placeholder(tf.int32, [])
    w = variable("w", 4, 4)
    _, y = tf.while_loop(lambda i, _: i < count, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)) + x), [0, x])
    loss = half_squared(y - 0.25)
    return Trained(loss, v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss), {x: numbers(3, 4), count: 4})


@graph
def attention_with_adagrad() -> Trained:
    x, lengths = v1.placeholder(tf.float32, [None, None, 6]), v1.placeholder(tf.int32, [None])
    query, key, value = (tf.tensordot(x, variable(name, 6, 4), 1) for name in ("q", "k", "v"))
    scores = tf.matmul(query, key, transpose_b=True) / np.float32(2.0)
    scores += -1e9 * (1 - tf.sequence_mask(lengths, tf.shape(x)[1], dtype=tf.float32))[:, None]
    y = tf.einsum("btd,de->bte", tf.matmul(tf.nn.softmax(scores), value), variable("o", 4, 6)) + x
    mean, variance = tf.nn.moments(y, [-1], keepdims=True)
    y = (y - mean) * tf.math.rsqrt(variance + 1e-6) * v1.get_variable("gain", [6], initializer=v1.ones_initializer())
    loss = half_squared(y[:, 0] - 1.0)
    return Trained(loss, v1.train.AdagradOptimizer(0.1).minimize(loss), {x: numbers(3, 5, 6), lengths: np.array([5, 2, 3], np.int32)})


@graph
def a_clipped_branch_with_rmsprop() -> Trained:
    x = v1.placeholder(tf.float32, [None, 3])
    w = variable("w", 3, 3)
    y = tf.matmul(x, w)
    y = tf.cond(tf.reduce_sum(y) > 0, lambda: tf.exp(tf.clip_by_value(y, -1.0, 1.0)), lambda: tf.square(y) + w[0])
    y = v1.case([(tf.reduce_mean(y) > 2.0, lambda: y / 2), (tf.reduce_mean(y) > 1.0, lambda: y * 0.75)], default=lambda: tf.sqrt(y + 1))
    loss = half_squared(y - 0.5)
    optimizer = v1.train.RMSPropOptimizer(0.05)
    pairs = [(tf.clip_by_norm(gradient, 0.5), to) for gradient, to in optimizer.compute_gradients(loss)]
    return Trained(loss, optimizer.apply_gradients(pairs), {x: numbers(4, 3)})


class _Cell:
    """An LSTM cell in the manner of BasicLSTMCell, for dynamic_rnn."""

    def __init__(self, wide: int) -> None:
        self.label, self.output_size, self.state_size = f"lstm{wide}", wide, (wide, wide)

    def __call__(self, x: Any, state: Any, scope: Any = None) -> Any:
        wide = self.output_size
        with v1.variable_scope(self.label, reuse=v1.AUTO_REUSE):
            kernel, bias = variable("kernel", int(x.shape[-1]) + wide, 4 * wide), zeros("bias", 4 * wide)
        i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x, state[1]], 1), kernel), bias), 4, 1)
        c = state[0] * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, (c, h)

    def zero_state(self, batch: Any, dtype: Any) -> Any:
        return tuple(tf.zeros(tf.stack([batch, size]), dtype) for size in self.state_size)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        return self.zero_state(tf.shape(inputs)[0] if batch_size is None else batch_size, dtype)


@graph
def a_dynamic_rnn() -> Trained:
    x, lengths = v1.placeholder(tf.float32, [None, None, 3]), v1.placeholder(tf.int32, [None])
    outputs, state = v1.nn.dynamic_rnn(_Cell(4), x, sequence_length=lengths, dtype=tf.float32)
    reverse, _ = v1.nn.dynamic_rnn(_Cell(4), tf.reverse_sequence(x, lengths, 1), dtype=tf.float32, scope="back", time_major=False)
    loss = half_squared(dense(tf.concat([outputs[:, -1], reverse[:, 0], state[1]], 1), "out", 2) - 1.0)
    optimizer = v1.train.AdamOptimizer(0.05)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
    feeds = {x: numbers(3, 5, 3), lengths: np.array([5, 2, 4], np.int32)}
    return Trained(loss, optimizer.apply_gradients(zip(clipped, variables, strict=True)), feeds, also=[outputs, state[0]])


@graph
def a_decoder_with_attention_and_tensor_arrays() -> Trained:
    source, target = v1.placeholder(tf.int32, [None, None]), v1.placeholder(tf.int32, [None, 4])
    table = variable("table", 11, 5)
    memory = tf.tanh(tf.tensordot(tf.nn.embedding_lookup(table, source), variable("encoder", 5, 6), 1))
    words = tf.transpose(tf.nn.embedding_lookup(table, target), [1, 0, 2])
    given = v1.TensorArray(tf.float32, size=4).unstack(words)
    cell, project = _Cell(6), variable("project", 12, 11)

    def step(i: Any, state: Any, written: Any) -> Any:
        out, state = cell(given.read(i), state)
        weights = tf.nn.softmax(tf.reduce_sum(memory * out[:, None], -1))
        context = tf.reduce_sum(memory * weights[..., None], 1)
        return i + 1, state, written.write(i, tf.matmul(tf.concat([out, context], 1), project))

    start = cell.zero_state(tf.shape(source)[0], tf.float32)
    _, _, written = tf.while_loop(lambda i, *_: i < 4, step, [0, start, v1.TensorArray(tf.float32, size=4)])
    logits = tf.transpose(written.stack(), [1, 0, 2])
    loss = tf.reduce_mean(v1.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits))
    random = np.random.default_rng(5)
    feeds = {source: random.integers(0, 11, (3, 6)).astype(np.int32), target: random.integers(0, 11, (3, 4)).astype(np.int32)}
    return Trained(loss, v1.train.AdamOptimizer(0.01).minimize(loss), feeds, also=[logits])


@graph
def scans_and_maps() -> Trained:
    x = v1.placeholder(tf.float32, [None, 3])
    w = variable("w", 3, 3)
    states = tf.scan(lambda state, row: tf.tanh(tf.tensordot(state, w, 1) + row), x, initializer=tf.zeros([3]))
    mapped = tf.map_fn(lambda row: tf.reduce_max(row) * row, states)
    folded = tf.foldl(lambda total, row: 0.5 * total + row, mapped)
    loss = half_squared(folded - 1.0) + tf.reduce_mean(tf.cumsum(states, 0, exclusive=True)) * 0.1
    return Trained(loss, v1.train.GradientDescentOptimizer(0.2).minimize(loss), {x: numbers(5, 3)})


@graph
def a_speech_model_with_ctc() -> Trained:
    x, lengths = v1.placeholder(tf.float32, [None, None, 4]), v1.placeholder(tf.int32, [None])
    labels = v1.sparse_placeholder(tf.int32)
    outputs, _ = v1.nn.dynamic_rnn(_Cell(5), x, sequence_length=lengths, dtype=tf.float32)
    logits = tf.transpose(tf.tensordot(outputs, variable("w", 5, 6), 1), [1, 0, 2])
    loss = tf.reduce_mean(v1.nn.ctc_loss(labels, logits, lengths))
    (greedy,), scores = tf.nn.ctc_greedy_decoder(logits, lengths)
    (beam,), probabilities = v1.nn.ctc_beam_search_decoder(logits, lengths, beam_width=8)
    error = tf.reduce_mean(tf.edit_distance(tf.cast(greedy, tf.int32), labels, normalize=False))
    feeds = {
        x: numbers(2, 7, 4),
        lengths: np.array([7, 5], np.int32),
        labels.indices: np.array([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]], np.int64),
        labels.values: np.array([1, 2, 2, 0, 3], np.int32),
        labels.dense_shape: np.array([2, 3], np.int64),
    }
    also = [greedy.values, scores, v1.sparse_tensor_to_dense(beam), probabilities, error]
    return Trained(loss, v1.train.MomentumOptimizer(0.05, 0.9).minimize(loss), feeds, also=also)
