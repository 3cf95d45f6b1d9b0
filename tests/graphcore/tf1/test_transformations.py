"""`tf.contrib.data` and `tf.data.experimental`: functions for `Dataset.apply`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore
from graphcore.errors import InvalidArgumentError, OutOfRangeError
from graphcore.tf1.names.lookup import namespace

gc: Any = graphcore  # its namespaces are found on demand

d, contrib = namespace("data.experimental"), namespace("contrib.data")


@pytest.fixture(autouse=True)
def graph() -> Any:
    with gc.Graph().as_default() as made:
        yield made


def elements(dataset: Any) -> list[Any]:
    """All elements of a dataset as lists."""
    following = dataset.make_one_shot_iterator().get_next()
    found = []
    with gc.Session() as session:
        while True:
            try:
                found.append(session.run(following))
            except OutOfRangeError:
                return found


def lists(dataset: Any) -> list[Any]:
    return [each.tolist() for each in elements(dataset)]


def test_the_methods_of_datasets_are_functions_for_apply() -> None:
    numbers = gc.data.Dataset.range(10)
    made = numbers.apply(d.map_and_batch(lambda v: v + 1, 4)).apply(d.prefetch_to_device("/cpu:0", None))
    assert lists(made) == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert lists(numbers.apply(contrib.batch_and_drop_remainder(4))) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert sorted(lists(numbers.apply(d.shuffle_and_repeat(10, 2, seed=1)))) == sorted([*range(10), *range(10)])
    turns = gc.data.Dataset.range(2).apply(d.parallel_interleave(lambda x: gc.data.Dataset.range(x, x + 2), cycle_length=2))
    assert lists(turns) == [0, 1, 1, 2]
    assert lists(numbers.batch(5).apply(d.unbatch())) == list(range(10))
    assert contrib.Dataset is gc.data.Dataset


def test_windows_hold_elements_of_one_key_and_what_is_left_comes_by_ascending_keys() -> None:
    made = gc.data.Dataset.range(11).apply(
        contrib.group_by_window(key_func=lambda x: x % 3, reduce_func=lambda _, window: window.batch(3), window_size=3)
    )
    assert lists(made) == [[0, 3, 6], [1, 4, 7], [2, 5, 8], [9], [10]]


def test_the_size_of_windows_may_depend_on_the_key_and_functions_may_use_tensors_outside() -> None:
    scale = gc.constant(10, gc.int64)
    made = gc.data.Dataset.range(8).apply(
        d.group_by_window(
            lambda x: gc.cast(x % 2, gc.int32),
            lambda key, window: window.map(lambda x: x * scale + key).batch(8),
            window_size_func=lambda key: key + 1,
        )
    )
    assert lists(made) == [[0], [20], [11, 31], [40], [60], [51, 71]]


def test_elements_may_be_structures() -> None:
    made = gc.data.Dataset.from_tensor_slices({"x": [1, 2, 3], "s": ["a", "b", "c"]}).apply(
        d.group_by_window(lambda e: gc.cast(e["x"] % 2, gc.int64), lambda _, window: window.batch(2), 2)
    )
    assert [(each["x"].tolist(), each["s"].tolist()) for each in elements(made)] == [([1, 3], [b"a", b"c"]), ([2], [b"b"])]


def test_wrong_functions_and_sizes_are_refused() -> None:
    numbers = gc.data.Dataset.range(3)
    with pytest.raises(InvalidArgumentError, match="either window_size or window_size_func"):
        d.group_by_window(lambda x: x, lambda _, window: window)
    with pytest.raises(InvalidArgumentError, match="`key_func` must return a single int64 scalar"):
        numbers.apply(d.group_by_window(lambda x: gc.cast(x, gc.float32), lambda _, window: window, 2))
    with pytest.raises(InvalidArgumentError, match="must return a Dataset"):
        numbers.apply(d.group_by_window(lambda x: x, lambda key, _: key, 2))
    with pytest.raises(InvalidArgumentError, match="window size must be greater than zero"):
        elements(numbers.apply(d.group_by_window(lambda x: x, lambda _, window: window, 0)))


LENGTHS = [1, 5, 2, 3, 6, 2]


def sequences() -> Any:
    def rows() -> Any:
        for length in LENGTHS:
            yield np.full([length], length)

    return gc.data.Dataset.from_generator(rows, gc.int64, [None])


def test_sequences_of_like_lengths_make_padded_batches() -> None:
    made = sequences().apply(d.bucket_by_sequence_length(gc.size, [3, 5], [2, 2, 2]))
    assert lists(made) == [[[1, 0], [2, 2]], [[5] * 5 + [0], [6] * 6], [[2, 2]], [[3, 3, 3]]]


def test_they_may_be_padded_to_the_largest_length_of_their_bucket() -> None:
    made = sequences().apply(d.bucket_by_sequence_length(gc.size, [4, 8], [2, 2, 2], pad_to_bucket_boundary=True))
    assert lists(made) == [[[1, 0, 0], [2, 2, 0]], [[5] * 5 + [0, 0], [6] * 6 + [0]], [[3, 3, 3], [2, 2, 0]]]


def test_the_number_of_batch_sizes_must_fit() -> None:
    with pytest.raises(InvalidArgumentError, match="required 3 sizes for 2 boundaries, got 2"):
        d.bucket_by_sequence_length(lambda x: x, [3, 5], [2, 2])
