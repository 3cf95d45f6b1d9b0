"""`tf.contrib.legacy_seq2seq`: models of sequences without loops, against the same steps in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import graphcore as gc

legacy: Any = import_module("graphcore.contrib.legacy_seq2seq")
CELLS: Any = import_module("graphcore.nn.rnn_cell")
BATCH, UNITS, SIZE, SYMBOLS = 2, 3, 4, 5
RANDOM = np.random.default_rng(0)
FIRST, SECOND = RANDOM.integers(0, SYMBOLS, (3, BATCH)), RANDOM.integers(0, SYMBOLS, (2, BATCH))


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as made:
        made.seed = 5
        yield made


def inputs(values: Any) -> list[Any]:
    return [gc.constant(each) for each in values]


def values_of(session: gc.Session) -> dict[str, Any]:
    session.run(gc.global_variables_initializer())
    return {each.op.name: session.run(each) for each in gc.global_variables()}


def cell(v: dict[str, Any], scope: str, x: Any, h: Any) -> Any:
    return np.tanh(np.concatenate([x, h], 1) @ v[f"{scope}/kernel"] + v[f"{scope}/bias"])


def linear(v: dict[str, Any], scope: str, *parts: Any) -> Any:
    return np.concatenate(parts, 1) @ v[f"{scope}/kernel"] + v[f"{scope}/bias"]


def encoded(v: dict[str, Any], scope: str) -> list[Any]:
    states = [np.zeros((BATCH, UNITS))]
    for ids in FIRST:
        x = v[f"{scope}/rnn/embedding_wrapper/embedding"][ids]
        states.append(cell(v, f"{scope}/rnn/embedding_wrapper/basic_rnn_cell", x, states[-1]))
    return states[1:]


@pytest.mark.parametrize("feeds", [False, True])
def test_a_model_of_embeddings_runs_one_cell_after_the_other(feeds: bool) -> None:
    outputs, state = legacy.embedding_rnn_seq2seq(
        inputs(FIRST), inputs(SECOND), CELLS.BasicRNNCell(UNITS), SYMBOLS, SYMBOLS, SIZE, feed_previous=feeds
    )
    scope = "embedding_rnn_seq2seq"
    with gc.Session() as session:
        v = values_of(session)
        found, last = session.run([outputs, state])
    h, ids = encoded(v, scope)[-1], SECOND[0]
    inner = f"{scope}/embedding_rnn_decoder"
    for step in range(2):
        h = cell(v, f"{inner}/rnn_decoder/output_projection_wrapper/basic_rnn_cell", v[f"{inner}/embedding"][ids], h)
        logits = linear(v, f"{inner}/rnn_decoder/output_projection_wrapper", h)
        np.testing.assert_allclose(found[step], logits, rtol=1e-4, atol=1e-5)
        ids = logits.argmax(1) if feeds else SECOND[1]
    np.testing.assert_allclose(last, h, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("feeds", [False, True])
def test_a_model_with_attention_weights_the_outputs_of_the_first_steps(feeds: bool) -> None:
    outputs, _ = legacy.embedding_attention_seq2seq(
        inputs(FIRST), inputs(SECOND), CELLS.BasicRNNCell(UNITS), SYMBOLS, SYMBOLS, SIZE, feed_previous=feeds
    )
    scope = "embedding_attention_seq2seq"
    with gc.Session() as session:
        v = values_of(session)
        found = session.run(outputs)
    states = encoded(v, scope)
    memory, h = np.stack(states, 1), states[-1]
    inner = f"{scope}/embedding_attention_decoder"
    decoder = f"{inner}/attention_decoder"
    features = memory @ v[f"{decoder}/AttnW_0"][0, 0]
    attention, ids = np.zeros((BATCH, UNITS)), SECOND[0]
    for step in range(2):
        x = linear(v, decoder, v[f"{inner}/embedding"][ids], attention)
        h = cell(v, f"{decoder}/output_projection_wrapper/basic_rnn_cell", x, h)
        output = linear(v, f"{decoder}/output_projection_wrapper", h)
        scores = (v[f"{decoder}/AttnV_0"] * np.tanh(features + linear(v, f"{decoder}/Attention_0", h)[:, None])).sum(2)
        weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        attention = np.einsum("bt,btu->bu", weights, memory)
        logits = linear(v, f"{decoder}/AttnOutputProjection", output, attention)
        np.testing.assert_allclose(found[step], logits, rtol=1e-4, atol=1e-5)
        ids = logits.argmax(1) if feeds else SECOND[1]


def test_a_tensor_may_decide_whether_outputs_are_fed_back() -> None:
    feeds = gc.placeholder(gc.bool, [])

    def model(feed_previous: Any) -> Any:
        cell = CELLS.BasicRNNCell(UNITS)
        return legacy.embedding_rnn_seq2seq(inputs(FIRST), inputs(SECOND), cell, SYMBOLS, SYMBOLS, SIZE, feed_previous=feed_previous)

    with gc.variable_scope("m"):
        either, state = model(feeds)
    with gc.variable_scope("m", reuse=True):
        fed, _ = model(True)
        given, _ = model(False)
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        for value, wanted in ((True, fed), (False, given)):
            np.testing.assert_allclose(session.run(either, {feeds: value}), session.run(wanted), rtol=1e-5)
    assert state.shape == [BATCH, UNITS]


def test_buckets_share_their_variables() -> None:
    weights = [gc.ones([BATCH])] * 2

    def model(first: Any, second: Any) -> Any:
        return legacy.embedding_attention_seq2seq(first, second, CELLS.GRUCell(UNITS), SYMBOLS, SYMBOLS, SIZE)

    outputs, losses = legacy.model_with_buckets(inputs(FIRST), inputs(SECOND), inputs(SECOND), weights, [(2, 1), (3, 2)], model)
    assert [len(each) for each in outputs] == [1, 2]
    alone = legacy.sequence_loss(outputs[1], inputs(SECOND), weights)
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        np.testing.assert_allclose(session.run(losses[1]), session.run(alone), rtol=1e-5)
        assert all(gradient is not None for gradient in session.run(gc.gradients(losses[1], gc.trainable_variables())))
    with pytest.raises(ValueError, match=r"Length of targets \(1\) must be at least that of last bucket \(2\)"):
        legacy.model_with_buckets(inputs(FIRST), inputs(SECOND), inputs(SECOND[:1]), weights, [(3, 2)], model)
