"""Queues of `tf.contrib`: batches by bucket, and batches in front of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import graphcore
from tests.support.joined_threads import graph_without_threads_left

gc: Any = graphcore  # its namespaces are found on demand
train: Any = gc.train
training: Any = gc.contrib.training


@pytest.fixture(autouse=True)
def graph() -> Iterator[graphcore.Graph]:
    with graph_without_threads_left() as graph:
        yield graph


def taken(fetches: Any) -> list[Any]:
    """All that `fetches` give until their input ends."""
    found = []
    with gc.Session() as session:
        session.run([gc.global_variables_initializer(), gc.local_variables_initializer()])
        coordinator = train.Coordinator()
        threads = train.start_queue_runners(session, coordinator)
        with suppress(gc.errors.OutOfRangeError):
            while True:
                found.append(session.run(fetches, options=gc.RunOptions(timeout_in_ms=20000)))
        coordinator.request_stop()
        coordinator.join(threads)
    return found


def numbers(count: int) -> Any:
    """The numbers below `count`, once, in order."""
    return train.range_input_producer(count, num_epochs=1, shuffle=False).dequeue()


def test_elements_of_a_bucket_come_in_one_batch() -> None:
    number = numbers(10)
    which, (batch,) = training.bucket([number], number % 2, 2, 2, allow_smaller_final_batch=True)
    assert batch.shape.as_list() == [None]
    found = taken([which, batch])
    assert all((batch % 2 == which).all() and len(batch) <= 2 for which, batch in found)
    for parity in (0, 1):
        assert [n for which, batch in found if which == parity for n in batch] == list(range(parity, 10, 2))


def test_buckets_have_their_own_sizes_and_leave_incomplete_batches_out() -> None:
    number = numbers(11)
    which, outputs = training.bucket({"b": number, "a": number * 10}, number % 2, [2, 4], 2)
    found = taken([which, outputs])
    assert sorted(int(which) for which, _ in found) == [0, 0, 0, 1]
    assert sorted(n for which, out in found if which == 1 for n in out["b"]) == [1, 3, 5, 7]
    assert all((out["a"] == 10 * out["b"]).all() for _, out in found)


def test_elements_without_a_bucket_or_that_are_not_kept_are_left_out() -> None:
    number = numbers(12)
    _, (batch,) = training.bucket([number], number % 3, 1, 2, keep_input=number < 6)
    assert batch.shape.as_list() == [1]
    assert sorted(int(batch[0]) for batch in taken(batch)) == [0, 1, 3, 4]


def test_sequences_of_like_lengths_are_padded_together() -> None:
    length = numbers(9)
    lengths, outputs = training.bucket_by_sequence_length(
        length, [gc.range(length), gc.as_string(length)], 2, [3, 6], dynamic_pad=True, allow_smaller_final_batch=True
    )
    found = taken([lengths, *outputs])
    bounds = [0, 3, 6, 9]
    assert sorted(n for sizes, _, _ in found for n in sizes) == list(range(9))
    for sizes, rows, texts in found:
        assert len(set(np.digitize(sizes, bounds))) == 1
        assert rows.tolist() == [[*range(size), *[0] * (max(sizes) - size)] for size in sizes]
        assert texts.tolist() == [str(size).encode() for size in sizes]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"bucket_boundaries": []}, "must be a list or tuple, and not empty"),
        ({"bucket_boundaries": 3}, "must be a list or tuple, and not empty"),
        ({"bucket_boundaries": [1.5, 2.5]}, "bucket boundaries must be integers, but saw: 1.5 and 2.5"),
        ({"bucket_boundaries": [5, 3]}, "sequential increasing lengths, but saw: 5 before 3"),
        ({"batch_size": [1, 2]}, "must have num_buckets elements: required 3, got 2"),
        ({"bucket_capacities": [1, 2]}, r"The list bucket_capacities \(\[1, 2\]\) must have exactly num_buckets \(3\) elements"),
        ({"shapes": [[None]]}, "All shapes must be fully defined"),
    ],
)
def test_buckets_refuse_what_does_not_fit(arguments: dict[str, Any], text: str) -> None:
    given = {"input_length": 3, "tensors": [gc.constant([1, 2])], "batch_size": 2, "bucket_boundaries": [3, 6], **arguments}
    with pytest.raises(gc.errors.InvalidArgumentError, match=text):
        training.bucket_by_sequence_length(**given)


def test_a_prefetch_queue_holds_finished_batches() -> None:
    batch = train.batch([numbers(6)], 2)
    queue = gc.contrib.slim.prefetch_queue.prefetch_queue([batch, batch * 2], capacity=3, num_threads=2)
    one, two = queue.dequeue()
    assert one.shape.as_list() == [2]
    found = taken([one, two])
    assert sorted(n for one, _ in found for n in one) == list(range(6))
    assert all((two == 2 * one).all() for one, two in found)


def test_a_prefetch_queue_of_a_dict_gives_dicts_and_may_pad() -> None:
    number = numbers(3)
    queue = gc.contrib.slim.prefetch_queue.prefetch_queue({"n": number, "row": gc.range(number)}, dynamic_pad=True)
    found = taken(queue.dequeue())
    assert [out["row"].tolist() for out in found] == [[], [0], [0, 1]]
    assert [int(out["n"]) for out in found] == [0, 1, 2]
