"""Queues as objects, coordinators, and pipelines filled by threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore
from tests.support.joined_threads import graph_without_threads_left

gc: Any = graphcore  # its namespaces are found on demand
train: Any = gc.train


@pytest.fixture(autouse=True)
def graph() -> Iterator[graphcore.Graph]:
    with graph_without_threads_left() as graph:
        yield graph


@pytest.fixture
def session() -> Iterator[Any]:
    with gc.Session() as session:
        yield session


def test_a_queue_passes_elements_from_run_to_run(session: Any) -> None:
    queue = gc.FIFOQueue(5, [gc.int32, gc.string], shapes=[[2], []])
    session.run(queue.enqueue([[1, 2], "a"]))
    session.run(queue.enqueue_many([[[3, 4], [5, 6]], ["b", "c"]]))
    numbers, texts = queue.dequeue_many(2)
    assert (numbers.shape.as_list(), texts.dtype) == ([2, 2], gc.string)
    assert [value.tolist() for value in session.run([numbers, texts])] == [[[1, 2], [3, 4]], [b"a", b"b"]]
    assert session.run([queue.size(), queue.is_closed()]) == [1, False]
    session.run(queue.close())
    assert session.run(queue.dequeue_up_to(4)[0]).tolist() == [[5, 6]]
    with pytest.raises(gc.errors.OutOfRangeError, match="is closed and has insufficient elements"):
        session.run(queue.dequeue()[0])


def test_a_queue_with_names_takes_and_gives_dicts(session: Any) -> None:
    queue = gc.FIFOQueue(5, [gc.float32, gc.int32], shapes=[[], []], names=["x", "n"])
    session.run(queue.enqueue({"n": 3, "x": 1.5}))
    assert session.run(queue.dequeue()) == {"x": 1.5, "n": 3}
    with pytest.raises(gc.errors.InvalidArgumentError, match="Keys in dictionary to enqueue do not match"):
        queue.enqueue({"x": 1.0})
    with pytest.raises(gc.errors.InvalidArgumentError, match="You must enqueue a dictionary"):
        queue.enqueue([1.0, 2])


def test_a_priority_queue_gives_the_smallest_first_and_a_padding_queue_pads(session: Any) -> None:
    queue = gc.PriorityQueue(9, [gc.string], shapes=[[]])
    session.run(queue.enqueue_many([np.array([5, 1, 3, 1]), ["e", "a", "c", "b"]]))
    assert [value.tolist() for value in session.run(queue.dequeue_many(4))] == [[1, 1, 3, 5], [b"a", b"b", b"c", b"e"]]
    padding = gc.PaddingFIFOQueue(9, gc.int32, [[None]])
    for row in ([1], [2, 3], []):
        session.run(padding.enqueue(np.array(row, np.int32)))
    assert session.run(padding.dequeue_many(3)).tolist() == [[1, 0], [2, 3], [0, 0]]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: gc.FIFOQueue(3, [gc.int32], shapes=[[], []]), "Queue shapes must have the same length as dtypes, got 2 and 1"),
        (lambda: gc.FIFOQueue(3, [gc.int32]).enqueue([1, 2]), "required 1 components, got 2"),
        (lambda: gc.FIFOQueue(3, [gc.int32], [[2]]).enqueue([[1, 2, 3]]), "incompatible"),
        (lambda: gc.FIFOQueue(3, [gc.int32], names=["a", "b"]), "Queue names must have the same length"),
        (lambda: train.QueueRunner(None), "queue: required a queue, got None"),
        (lambda: train.QueueRunner(gc.FIFOQueue(3, [gc.int32])), "Must provide queue and enqueue_ops"),
        (train.start_queue_runners, "No default session is registered"),
        (lambda: train.start_queue_runners(3), "sess: required a gc.Session, got int 3"),
        (lambda: train.string_input_producer([]), "requires a non-null input tensor"),
        (lambda: train.limit_epochs(1.0, 0), "num_epochs must be > 0 not 0"),
        (lambda: train.slice_input_producer([]), "at least one tensor in slice_input_producer"),
        (lambda: train.batch([gc.placeholder(gc.float32, [None])], 2), r"All shapes must be fully defined: \[\?\]"),
        (lambda: train.input_producer(gc.placeholder(gc.float32)), "must have a fully defined shape or `element_shape`"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, text: str) -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match=text):
        make()


@pytest.mark.parametrize("pads", [False, True])
def test_a_pipeline_gives_all_rows_of_all_epochs_in_batches_and_then_ends(session: Any, pads: bool) -> None:
    x = np.arange(5, dtype=np.float32)
    rows = train.slice_input_producer([x, x * x], num_epochs=2, shuffle=False)
    first, second = train.batch(rows, 3, dynamic_pad=pads, allow_smaller_final_batch=True)
    session.run([gc.global_variables_initializer(), gc.local_variables_initializer()])
    coord = train.Coordinator()
    threads = train.start_queue_runners(session, coord)
    found: list[Any] = []
    try:
        while not coord.should_stop():
            found.append(session.run([first, second]))
    except gc.errors.OutOfRangeError:
        coord.request_stop()
    coord.join(threads)
    assert np.concatenate([batch[0] for batch in found]).tolist() == [*range(5), *range(5)]
    assert all(np.array_equal(batch[1], batch[0] ** 2) for batch in found)
    assert [len(batch[0]) for batch in found] == [3, 3, 3, 1]


def test_a_shuffled_pipeline_gives_each_row_once_an_epoch(session: Any) -> None:
    rows = train.slice_input_producer([np.arange(20)], num_epochs=1, seed=2)
    batch = train.shuffle_batch({"x": rows[0]}, 4, capacity=30, min_after_dequeue=5, num_threads=3, seed=1)
    session.run(gc.local_variables_initializer())
    coord = train.Coordinator()
    with session.as_default():
        threads = train.start_queue_runners(coord=coord)
    found = [value for _ in range(5) for value in session.run(batch["x"]).tolist()]
    coord.request_stop()
    coord.join(threads)
    assert sorted(found) == list(range(20))
    assert found != sorted(found)
    assert [each.name for each in gc.get_collection("summaries")] == [
        "input_producer/input_producer/fraction_of_32_full:0",
        "shuffle_batch/fraction_over_5_of_25_full:0",
    ]


def test_the_error_of_a_thread_is_raised_by_join(session: Any) -> None:
    queue = gc.FIFOQueue(3, [gc.float32], shapes=[[]])
    x = gc.Variable(1.0)
    train.add_queue_runner(train.QueueRunner(queue, [queue.enqueue(x)]))
    coord = train.Coordinator()
    threads = train.start_queue_runners(session, coord)
    with pytest.raises(gc.errors.FailedPreconditionError, match="Attempting to use uninitialized value Variable"):
        coord.join(threads)


def test_threads_that_wait_for_space_end_with_the_coordinator_and_with_the_session() -> None:
    batch = train.batch([gc.constant(1.0)], 2, capacity=4)
    for ends in ("coordinator", "session"):
        coord = train.Coordinator()
        session = gc.Session()
        threads = train.start_queue_runners(session, coord)
        session.run(batch)
        if ends == "coordinator":
            coord.request_stop()
            coord.join(threads)
        session.close()
        for thread in threads:
            thread.join(5)
            assert not thread.is_alive()


def test_an_interrupted_join_stops_the_threads(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    train.batch([gc.constant(1.0)], 2, capacity=4)
    coord = train.Coordinator()
    threads = train.start_queue_runners(session, coord)

    def interrupt(_timeout: float) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(coord, "wait_for_stop", interrupt)
    with pytest.raises(KeyboardInterrupt):
        coord.join(threads)
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def test_a_coordinator_ends_its_threads_together() -> None:
    coord = train.Coordinator()
    counts = [0, 0]

    def work(number: int) -> None:
        with coord.stop_on_exception():
            while not coord.should_stop():
                counts[number] += 1
                if counts[number] == 100:
                    raise ValueError("enough")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    with pytest.raises(ValueError, match="enough"):
        coord.join(threads)
    assert coord.joined
    coord.clear_stop()
    calls: list[int] = []

    def call(number: int) -> None:
        calls.append(number)
        if len(calls) == 3:
            coord.request_stop()

    looper = train.LooperThread.loop(coord, None, call, args=(7,))
    coord.join([looper])
    assert calls == [7, 7, 7]


def test_a_cell_that_runs_again_leaves_one_runner_for_each_queue(graph: graphcore.Graph) -> None:
    from tests.graphcore.api.cell_runs import Cells  # noqa: PLC0415 - used here alone

    cells = Cells(graph)
    for _ in range(3):
        cells.run("pipeline", lambda: train.batch([gc.constant(1.0)], 2))
    assert len(graph.get_collection("queue_runners")) == 1
    cells.run("pipeline", lambda: None)
    with gc.Session(graph=graph) as session:
        assert train.start_queue_runners(session) == []
