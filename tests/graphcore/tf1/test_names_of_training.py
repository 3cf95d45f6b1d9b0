"""Accumulators, chosen batches, counting variables, devices of replicas, and pairwise losses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore

gc: Any = graphcore  # its namespaces are found on demand
train: Any = gc.train


@pytest.fixture(autouse=True)
def _new_graph() -> Iterator[None]:
    with gc.Graph().as_default():
        yield


def test_an_accumulator_gives_the_mean_of_its_gradients_and_drops_stale_ones() -> None:
    held = gc.ConditionalAccumulator(gc.float32, shape=[2])
    assert (held.name, held.dtype) == ("conditional_accumulator", gc.float32)
    first, second, stale = held.apply_grad([1.0, 2.0]), held.apply_grad([3.0, 6.0]), held.apply_grad([9.0, 9.0], local_step=0)
    mean, count = held.take_grad(2), held.num_accumulated()
    assert mean.shape.as_list() == [2]
    with gc.Session() as session:
        session.run([first, second])
        assert session.run(count) == 2
        assert session.run(mean).tolist() == [2.0, 4.0]
        session.run(stale)  # the step is now 1
        assert session.run(count) == 0
        session.run(held.set_global_step(5))
        session.run(held.apply_grad([7.0, 7.0], local_step=5))
        assert session.run(held.take_grad(1)).tolist() == [7.0, 7.0]
    with pytest.raises(gc.errors.InvalidArgumentError):
        held.apply_grad([1.0, 2.0, 3.0])


def test_an_accumulator_of_rows_gives_the_mean_of_each_row() -> None:
    held = gc.SparseConditionalAccumulator(gc.float32, shape=[4, 2])
    slices = gc.IndexedSlices(gc.constant([[3.0, 3.0]]), gc.constant([0]), gc.constant([4, 2]))
    with gc.Session() as session:
        session.run(held.apply_grad([0, 2], [[1.0, 1.0], [5.0, 5.0]], [4, 2]))
        session.run(held.apply_indexed_slices_grad(slices))
        assert session.run(held.num_accumulated()) == 2
        taken = session.run(held.take_grad(2))
    assert [part.tolist() for part in taken] == [[0, 2], [[2.0, 2.0], [5.0, 5.0]], [4, 2]]


@pytest.mark.parametrize("make", ["maybe_batch", "maybe_batch_join"])
def test_a_batch_has_the_elements_that_are_kept(make: str) -> None:
    number = train.range_input_producer(10, num_epochs=1, shuffle=False).dequeue()
    given = [number] if make == "maybe_batch" else [[number]]
    even = getattr(train, make)(given, gc.equal(number % 2, 0), 2, allow_smaller_final_batch=True)
    assert rows_of(even) == [[0, 2], [4, 6], [8]]


def test_with_many_elements_each_is_kept_on_its_own() -> None:
    rows = train.range_input_producer(8, num_epochs=1, shuffle=False).dequeue_many(4)
    large = train.maybe_batch([rows], rows > 1, 3, enqueue_many=True)
    assert rows_of(large) == [[2, 3, 4], [5, 6, 7]]


@pytest.mark.parametrize("make", ["maybe_shuffle_batch", "maybe_shuffle_batch_join"])
def test_a_shuffled_batch_has_the_elements_that_are_kept(make: str) -> None:
    number = train.range_input_producer(10, num_epochs=1, shuffle=False).dequeue()
    given = [number] if make == "maybe_shuffle_batch" else [[number]]
    odd = getattr(train, make)(given, 5, 20, 0, gc.equal(number % 2, 1), seed=1)
    assert [sorted(row) for row in rows_of(odd)] == [[1, 3, 5, 7, 9]]


def test_what_is_kept_is_a_scalar_for_single_elements() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="keep_input: required a scalar"):
        train.maybe_batch([gc.constant(1)], [True], 2)


def rows_of(batch: Any) -> list[list[int]]:
    """The batches until there are no more."""
    found = []
    with gc.Session() as session:
        session.run(gc.local_variables_initializer())
        coordinator = train.Coordinator()
        threads = train.start_queue_runners(session, coordinator)
        try:
            while True:
                found.append(session.run(batch).tolist())
        except gc.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return found


def test_a_variable_counts_up_to_a_limit() -> None:
    counter = gc.Variable(0, use_resource=False)
    before = counter.count_up_to(2)
    with gc.Session() as session:
        session.run(counter.initializer)
        assert [session.run(before), session.run(before), session.run(counter)] == [0, 1, 2]
        with pytest.raises(gc.errors.OutOfRangeError, match="Reached limit of 2"):
            session.run(before)
    with pytest.raises(gc.errors.UnimplementedError, match="use_resource=False"):
        gc.Variable(0, use_resource=True).count_up_to(2)


def test_variables_go_to_parameter_servers_in_turn_and_other_nodes_to_the_worker() -> None:
    cluster = {"ps": ["a:1", "b:1"], "worker": ["c:1"]}
    with gc.device(train.replica_device_setter(cluster=cluster)):
        made = [gc.Variable(0.0, use_resource=False) for _ in range(3)]
        with gc.device("/cpu:0"):
            total = made[0] + 1.0
    assert [each.device for each in made] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert total.device == "/job:worker/device:CPU:0"
    assert train.replica_device_setter() is None
    assert train.replica_device_setter(cluster={"worker": ["c:1"]}) is None
    with pytest.raises(gc.errors.InvalidArgumentError, match="ps_strategy must be callable"):
        train.replica_device_setter(1, ps_strategy=3)


def test_tables_that_can_change_go_to_parameter_servers_and_others_to_the_worker() -> None:
    keys, values = gc.constant(["a"]), gc.constant([1.0])
    with gc.device(train.replica_device_setter(1)):
        fixed = gc.apply_op("HashTableV2", [], {"key_dtype": gc.string, "value_dtype": gc.float32})
        for op in ("MutableHashTableV2", "MutableHashTableOfTensorsV2"):
            assert gc.apply_op(op, [], {"key_dtype": gc.string, "value_dtype": gc.float32}).device == "/job:ps/task:0"
        assert gc.apply_op("ResourceConditionalAccumulator", [], {"dtype": gc.float32, "shape": [2]}).device == "/job:ps/task:0"
        filled = gc.apply_op("LookupTableImportV2", [fixed, keys, values])
    with gc.device(train.replica_device_setter(1, ps_ops=["HashTableV2"])):
        chosen = gc.apply_op("HashTableV2", [], {"key_dtype": gc.string, "value_dtype": gc.float32})
        variable = gc.Variable(0.0, use_resource=False)
    assert [fixed.device, filled.device] == ["/job:worker", "/job:worker"]
    assert [chosen.device, variable.device] == ["/job:ps/task:0", "/job:worker"]


def test_a_strategy_chooses_the_task_and_requests_within_go_first() -> None:
    with gc.device(train.replica_device_setter(3, worker_device="/job:w/task:4", ps_strategy=lambda _: 2)):
        variable = gc.Variable(0.0, use_resource=False)
        with gc.device("/job:other"):
            elsewhere = gc.Variable(0.0, use_resource=False)
        value = gc.constant(1.0)
    assert [variable.device, elsewhere.device, value.device] == ["/job:ps/task:2", "/job:other", "/job:w/task:4"]


# The numbers are TensorFlow's.
@pytest.mark.parametrize(
    ("weights", "expected"),
    [(1.0, 17.333334), (0.5, 8.666667), ([[1.0], [0.0]], 8.666667), ([[1.0, 0.0, 2.0], [1.0, 1.0, 1.0]], 77.0), (0.0, 0.0)],
)
def test_pairwise_errors_are_squared_and_added_up_over_the_batch(weights: Any, expected: float) -> None:
    labels, predictions = [[1.0, 2.0, 3.0], [4.0, 0.0, 1.0]], [[2.0, 0.0, 5.0], [1.0, 1.0, 1.0]]
    loss = gc.losses.mean_pairwise_squared_error(labels, predictions, weights)
    assert gc.losses.get_losses() == [loss]
    with gc.Session() as session:
        np.testing.assert_allclose(session.run(loss), expected, rtol=1e-6)
