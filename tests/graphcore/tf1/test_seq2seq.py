"""`tf.contrib.seq2seq`: decoders and attention against the same steps in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import graphcore as gc

seq2seq: Any = import_module("graphcore.contrib.seq2seq")
LAYERS: Any = import_module("graphcore.python.layers.core")
CELLS: Any = import_module("graphcore.nn.rnn_cell")

SYMBOLS, SIZE, UNITS, BATCH = 5, 3, 4, 2
RANDOM = np.random.default_rng(0)
MEMORY = RANDOM.normal(size=(BATCH, 3, UNITS)).astype(np.float32)
WORDS = RANDOM.normal(size=(SYMBOLS, SIZE)).astype(np.float32)
LENGTHS = np.array([3, 2])


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as made:
        made.seed = 3
        yield made


def softmax(x: Any) -> Any:
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


class Steps:
    """A recurrent cell with attention and a projection, in NumPy."""

    def __init__(self, values: dict[str, Any], mechanism: str) -> None:
        self.v = {name.removeprefix("decoder/attention_wrapper/"): value for name, value in values.items()}
        self.mechanism = mechanism
        mask = np.arange(3) < LENGTHS[:, None]
        self.mask, self.memory = mask, MEMORY * mask[..., None]
        self.keys = self.memory @ self.v["memory_layer/kernel"]

    def step(self, x: Any, h: Any, attention: Any) -> tuple[Any, Any, Any, Any]:
        inputs = np.concatenate([x, attention, h], 1)
        h = np.tanh(inputs @ self.v["basic_rnn_cell/kernel"] + self.v["basic_rnn_cell/bias"])
        if self.mechanism == "luong":
            score = np.einsum("bu,btu->bt", h, self.keys)
        else:
            query = h @ self.v["bahdanau_attention/query_layer/kernel"]
            score = np.tanh(self.keys + query[:, None]) @ self.v["bahdanau_attention/attention_v"]
        weights = softmax(np.where(self.mask, score, -np.inf))
        context = np.einsum("bt,btu->bu", weights, self.memory)
        attention = np.concatenate([h, context], 1) @ self.v["attention_layer/kernel"]
        return attention @ self.v["decoder/dense/kernel"], h, attention, weights


def decoder(mechanism: str, helper: Any = None, width: int = 0, **rest: Any) -> Any:
    memory, lengths, batch = gc.constant(MEMORY), gc.constant(LENGTHS), BATCH
    if width:
        memory, lengths, batch = seq2seq.tile_batch(memory, width), seq2seq.tile_batch(lengths, width), BATCH * width
    kind = {"luong": seq2seq.LuongAttention, "bahdanau": seq2seq.BahdanauAttention}[mechanism]
    attention = kind(UNITS, memory, memory_sequence_length=lengths)
    cell = seq2seq.AttentionWrapper(CELLS.BasicRNNCell(UNITS), attention, attention_layer_size=UNITS, alignment_history=not width)
    start, layer = cell.zero_state(batch, gc.float32), LAYERS.Dense(SYMBOLS, use_bias=False)
    if not width:
        return seq2seq.BasicDecoder(cell, helper, start, layer)
    return seq2seq.BeamSearchDecoder(cell, gc.constant(WORDS), [1] * BATCH, 2, start, width, layer, **rest)


def weights(session: gc.Session) -> dict[str, Any]:
    session.run(gc.global_variables_initializer())
    return {each.op.name: session.run(each) for each in gc.global_variables()}


@pytest.mark.parametrize("mechanism", ["luong", "bahdanau"])
def test_a_decoder_in_training_gives_the_numbers_of_the_same_steps_in_numpy(mechanism: str) -> None:
    ids, lengths = RANDOM.integers(0, SYMBOLS, (BATCH, 4)), [4, 2]
    helper = seq2seq.TrainingHelper(gc.constant(WORDS[ids]), lengths)
    outputs, state, found = seq2seq.dynamic_decode(decoder(mechanism, helper), impute_finished=True)
    assert outputs.rnn_output.shape == [BATCH, None, SYMBOLS]
    loss = gc.reduce_sum(gc.square(outputs.rnn_output))
    with gc.Session() as session:
        values = weights(session)
        logits, samples, alignments, sizes, final = session.run(
            [outputs.rnn_output, outputs.sample_id, state.alignment_history.stack(), found, state.attention]
        )
        gradients = session.run(gc.gradients(loss, gc.trainable_variables()))
        kernel = session.run(gc.gradients(loss, gc.trainable_variables()[0])[0])
    steps, h, attention = Steps(values, mechanism), np.zeros((BATCH, UNITS)), np.zeros((BATCH, UNITS))
    kept = attention
    for time in range(4):
        wanted, h, attention, weight = steps.step(WORDS[ids[:, time]], h, attention)
        alive = time < np.array(lengths)[:, None]
        kept = np.where(alive, attention, kept)
        np.testing.assert_allclose(logits[:, time], np.where(alive, wanted, 0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(alignments[time][0], weight[0], rtol=1e-4, atol=1e-5)
        assert samples[0, time] == wanted[0].argmax()
    np.testing.assert_allclose(final, kept, rtol=1e-4, atol=1e-5)
    assert sizes.tolist() == lengths
    assert all(np.isfinite(each).all() and np.abs(each).max() > 0 for each in [*gradients, kernel])
    names = ["memory_layer/kernel", *[f"decoder/attention_wrapper/{each}" for each in ("basic_rnn_cell/kernel", "basic_rnn_cell/bias")]]
    assert list(values)[:3] == names


def greedy(steps: Steps, first: int, length: int) -> Any:
    ids, h, attention = np.full(BATCH, first), np.zeros((BATCH, UNITS)), np.zeros((BATCH, UNITS))
    found = []
    for _ in range(length):
        logits, h, attention, _ = steps.step(WORDS[ids], h, attention)
        ids = logits.argmax(1)
        found.append(ids)
    return np.stack(found, 1)


def test_a_greedy_decoder_continues_with_what_it_chose() -> None:
    helper = seq2seq.GreedyEmbeddingHelper(gc.constant(WORDS), [1, 1], -1)
    outputs, _, lengths = seq2seq.dynamic_decode(decoder("luong", helper), maximum_iterations=5)
    with gc.Session() as session:
        wanted = greedy(Steps(weights(session), "luong"), 1, 5)
        np.testing.assert_array_equal(session.run(outputs.sample_id), wanted)
        assert session.run(lengths).tolist() == [5, 5]


def test_a_beam_of_one_is_greedy_up_to_the_end() -> None:
    outputs, _, _ = seq2seq.dynamic_decode(decoder("luong", width=1), maximum_iterations=5)
    with gc.Session() as session:
        wanted = greedy(Steps(weights(session), "luong"), 1, 5)
        found = session.run(outputs.predicted_ids)[..., 0]
    for row, expected in zip(found, wanted, strict=True):
        ends = np.flatnonzero(expected == 2)
        size = min(ends[0] + 1 if len(ends) else 5, len(row))
        np.testing.assert_array_equal(row[:size], expected[:size])
        assert (row[size:] == 2).all()


@pytest.mark.parametrize("penalty", [0.0, 0.8])
def test_a_wide_beam_finds_the_most_probable_of_all_sequences(penalty: float) -> None:
    width = SYMBOLS**2
    outputs, state, _ = seq2seq.dynamic_decode(decoder("bahdanau", width=width, length_penalty_weight=penalty), maximum_iterations=3)
    with gc.Session() as session:
        steps = Steps(weights(session), "bahdanau")
        ids, log_probs, scores = session.run([outputs.predicted_ids, state.log_probs, outputs.beam_search_decoder_output.scores])
    best: list[tuple[float, float, list[int]]] = [(-np.inf, 0.0, [])] * BATCH
    for sequence in np.ndindex(SYMBOLS, SYMBOLS, SYMBOLS):
        h, attention, before, total = np.zeros((BATCH, UNITS)), np.zeros((BATCH, UNITS)), 1, np.zeros(BATCH)
        taken = sequence[: sequence.index(2) + 1] if 2 in sequence else sequence
        for symbol in taken:
            logits, h, attention, _ = steps.step(WORDS[[before] * BATCH], h, attention)
            total = total + np.log(softmax(logits))[:, symbol]
            before = symbol
        for row in range(BATCH):
            score = total[row] / ((5 + len(taken)) / 6) ** penalty
            best[row] = max(best[row], (score, total[row], [*taken, *[2] * (3 - len(taken))]))
    for row in range(BATCH):
        assert ids[row, :, 0].tolist() == best[row][2]
        np.testing.assert_allclose([scores[row, -1, 0], log_probs[row, 0]], best[row][:2], rtol=1e-4)


def test_whole_sequences_follow_the_parents_and_end_with_end_tokens() -> None:
    ids = [[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]], [[-1, -1, -1]]]
    parents = [[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]], [[0, 0, 0]]]
    with gc.Session() as session:
        found = session.run(seq2seq.gather_tree(ids, parents, [3], 10))
        assert found[:, 0].tolist() == [[2, 2, 2], [6, 5, 6], [7, 8, 9], [10, 10, 10]]
        assert session.run(seq2seq.gather_tree(ids[:3], parents[:3], [3], 6))[:, 0].tolist() == [[2, 2, 2], [6, 5, 6], [6, 8, 6]]
        assert session.run(seq2seq.hardmax([[1.0, 3.0, 2.0]])).tolist() == [[0.0, 1.0, 0.0]]


def test_wrong_arguments_are_refused() -> None:
    cell, memory = CELLS.BasicRNNCell(UNITS), gc.constant(MEMORY)
    with pytest.raises(ValueError, match="required a Decoder, got"):
        seq2seq.dynamic_decode(cell)
    with pytest.raises(ValueError, match="required a vector as sequence_length"):
        seq2seq.TrainingHelper(memory, 3)
    with pytest.raises(ValueError, match="required an AttentionMechanism or a list of these"):
        seq2seq.AttentionWrapper(cell, memory)
    wrapper = seq2seq.AttentionWrapper(cell, seq2seq.LuongAttention(UNITS, memory), alignment_history=True)
    with pytest.raises(ValueError, match=r"required the batch size of the memory .*tile_batch.*, 2, got 6"):
        wrapper.zero_state(6, gc.float32)
    with pytest.raises(ValueError, match="required a state without tensor arrays"):
        seq2seq.BeamSearchDecoder(wrapper, WORDS, [1, 1], 2, wrapper.zero_state(BATCH, gc.float32), 1)
