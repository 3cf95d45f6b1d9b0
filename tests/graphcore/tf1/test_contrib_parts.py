"""Smaller parts of `tf.contrib`, and checks, against NumPy and words counted by hand."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc

CRF: Any = import_module("graphcore.contrib.crf")
LEARN: Any = import_module("graphcore.contrib.learn")
TRAIN: Any = import_module("graphcore.train")
RNN: Any = import_module("graphcore.contrib.rnn")
CHECKS: Any = gc


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as made:
        yield made


def test_a_conditional_random_field_sums_over_all_sequences_and_finds_the_best() -> None:
    rng = np.random.default_rng(0)
    scores, table = rng.normal(size=(3, 4, 3)).astype(np.float32), rng.normal(size=(3, 3)).astype(np.float32)
    tags, lengths = rng.integers(0, 3, (3, 4)), np.array([4, 2, 1])
    likelihood, _ = CRF.crf_log_likelihood(scores, tags, lengths, gc.constant(table))
    decoded, best = CRF.crf_decode(scores, table, lengths)
    with gc.Session() as session:
        found, sequences, values = session.run([likelihood, decoded, best])
    for row, length in enumerate(lengths):

        def score_of(path: Any, row: int = row) -> float:
            steps = sum(scores[row, time, tag] for time, tag in enumerate(path))
            return float(steps + sum(table[one, two] for one, two in pairwise(path)))

        everything = {path: score_of(path) for path in product(range(3), repeat=int(length))}
        total = np.log(sum(np.exp(list(everything.values()))))
        assert found[row] == pytest.approx(score_of(tuple(tags[row, :length])) - total, rel=1e-4)
        path, value = max(everything.items(), key=lambda item: item[1])
        assert sequences[row].tolist() == [*path, *[0] * (4 - length)]
        assert values[row] == pytest.approx(value, rel=1e-4)
        assert CRF.viterbi_decode(scores[row, :length], table)[0] == list(path)
    CRF.crf_log_likelihood(gc.constant(scores), tags, lengths)
    assert [each.op.name for each in gc.trainable_variables()] == ["transitions"]


def test_words_have_numbers_in_their_order_and_rare_ones_none(tmp_path: Path) -> None:
    texts = ["the cat's hat", "the dog ABBa", "the cat sat on the well-known mat"]
    processor = LEARN.preprocessing.VocabularyProcessor(4)
    assert np.array(list(processor.fit_transform(texts))).tolist() == [[1, 2, 3, 0], [1, 4, 5, 6], [1, 7, 8, 9]]
    assert len(processor.vocabulary_) == 12
    processor.save(str(tmp_path / "vocab"))
    again = LEARN.preprocessing.VocabularyProcessor.restore(str(tmp_path / "vocab"))
    assert next(again.transform(["a dog sat well-known"])).tolist() == [0, 4, 8, 10]
    assert list(again.reverse([[1, 4]])) == ["the dog"]
    frequent = LEARN.preprocessing.VocabularyProcessor(3, min_frequency=1)
    assert np.array(list(frequent.fit_transform(["b a b", "a b c"]))).tolist() == [[1, 2, 1], [2, 1, 0]]
    (tmp_path / "pickle").write_bytes(b"\x80\x02c")
    with pytest.raises(ValueError, match=r"required a file written by VocabularyProcessor\.save"):
        LEARN.preprocessing.VocabularyProcessor.restore(str(tmp_path / "pickle"))


def test_a_reference_to_the_step_counts_as_the_variable() -> None:
    gc.Variable(0, name="global_step", trainable=False)
    v = gc.Variable(2.0)
    train = TRAIN.GradientDescentOptimizer(0.25).minimize(
        gc.square(v), global_step=gc.get_default_graph().get_tensor_by_name("global_step:0")
    )
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        session.run(train)
        assert session.run(["global_step:0", v]) == [1, 1.0]


def test_both_directions_of_a_layer_are_the_inputs_of_the_next() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    outputs, forward, backward = RNN.stack_bidirectional_dynamic_rnn(
        [RNN.GRUCell(3), RNN.GRUCell(2)], [RNN.GRUCell(3), RNN.GRUCell(2)], gc.constant(x), dtype=gc.float32, sequence_length=[3, 2]
    )
    assert outputs.shape == [2, 3, 4]
    assert {each.op.name.rsplit("/", 3)[0] for each in gc.trainable_variables()} == {
        f"stack_bidirectional_rnn/cell_{layer}/bidirectional_rnn/{side}" for layer in (0, 1) for side in ("fw", "bw")
    }
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        found, last, first = session.run([outputs, forward[1], backward[1]])
    np.testing.assert_array_equal(found[0, -1, :2], last[0])
    np.testing.assert_array_equal(found[0, 0, 2:], first[0])
    with pytest.raises(ValueError, match="as many forward as backward cells"):
        RNN.stack_bidirectional_dynamic_rnn([], [], gc.constant(x))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: CHECKS.assert_equal([1, 2], [1, 3], message="sizes differ"), r"sizes differ Condition x == y did not hold element-wise"),
        (lambda: CHECKS.assert_positive(gc.constant([1.0, 0.0])), r"Condition x > 0 did not hold"),
        (lambda: CHECKS.assert_rank(gc.ones([2, 2]), 3), r"must have rank 3\. Received shape \[2,2\]"),
        (lambda: CHECKS.assert_rank_in(gc.ones([2, 2]), [1, 3]), r"must have rank 1, 3"),
        (lambda: CHECKS.assert_type(gc.ones([2]), gc.int32), r"must be of type int32, got float"),
        (lambda: CHECKS.assert_integer(gc.ones([2])), r"Expected \"x\" to be integer type"),
        (lambda: CHECKS.assert_scalar(gc.ones([2])), r"Expected scalar shape, saw shape: \[2\]"),
    ],
)
def test_a_check_that_can_never_hold_fails_at_once(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()


def test_scalar_strings_are_joined_in_a_scan() -> None:
    letters = gc.constant(["T", "e", "n"])
    with gc.Session() as session:
        assert session.run(CHECKS.scan(lambda a, x: a + x, letters)).tolist() == [b"T", b"Te", b"Ten"]
        assert session.run(gc.constant("a") + "b") == b"ab"


def test_a_check_fails_when_it_runs_with_what_came() -> None:
    x = gc.placeholder(gc.int32, name="x")
    with gc.control_dependencies([CHECKS.assert_less(x, 3), CHECKS.assert_rank_at_least(x, 1)]):
        y = x + 1
    with gc.Session() as session:
        assert session.run(y, {x: [1, 2]}).tolist() == [2, 3]
        with pytest.raises(gc.errors.InvalidArgumentError, match="Condition x < y did not hold element-wise:"):
            session.run(y, {x: [5]})
        with pytest.raises(gc.errors.InvalidArgumentError, match="must have rank 1"):
            session.run(y, {x: 1})
