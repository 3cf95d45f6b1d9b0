"""Runs with nodes that wait for others: nothing else is blocked, all can be ended, no value is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import CancelledError, DeadlineExceededError, InvalidArgumentError, OutOfRangeError, UnimplementedError
from tests.graphcore.opset.state.queue_play import wait_until_blocked
from tests.graphcore.runtime.loop_graphs import enter, op, while_loop
from tests.support.threads import LiveThreads

TYPES: dict[str, Any] = {"component_types": [gc.float32]}
SOON = gc.RunOptions(timeout_in_ms=300)
GENEROUS = gc.RunOptions(timeout_in_ms=60_000)


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def session(graph: gc.Graph) -> Iterator[gc.Session]:
    with gc.Session(graph=graph) as session:
        yield session


def node(name: str, inputs: Sequence[Any] = (), called: str | None = None, **attrs: Any) -> gc.Node:
    return gc.get_default_graph().apply_op(name, list(inputs), attrs, called)


def fifo(**attrs: Any) -> gc.Tensor:
    return node("FIFOQueueV2", (), "q", **{"shapes": [gc.Shape([])], **TYPES, **attrs}).outputs[0]


def dequeue(q: gc.Tensor, called: str = "dequeue") -> gc.Tensor:
    return node("QueueDequeueV2", [q], called, **TYPES).outputs[0]


def dequeue_many(q: gc.Tensor, n: int) -> gc.Tensor:
    return node("QueueDequeueManyV2", [q, gc.constant(n)], "many", **TYPES).outputs[0]


def enqueue(q: gc.Tensor, value: Any) -> gc.Node:
    return node("QueueEnqueueV2", [q, [value]], "enqueue")


def enqueue_many(q: gc.Tensor, values: Any) -> gc.Node:
    return node("QueueEnqueueManyV2", [q, [gc.constant(values, gc.float32)]], "enqueue_many")


def in_background(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """A thread, and the result or error of `work` in it."""
    found: list[Any] = []

    def call() -> None:
        try:
            found.append(work())
        except gc.errors.GraphError as error:
            found.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread, found


# ---- in one run ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["auto", "dataflow"])
def test_one_run_may_contain_a_waiting_node_and_the_awaited_one(engine: str) -> None:
    q = fifo(capacity=1)
    taken = gc.multiply(dequeue(q), 10.0)
    put = enqueue(q, gc.constant(2.0))
    with gc.Session(engine=engine) as session:
        for _ in range(3):
            assert session.run([taken, put]) == [20.0, None]
        many = session.run([dequeue_many(q, 3), enqueue_many(q, [1.0, 2.0, 3.0])])
        assert many[0].tolist() == [1.0, 2.0, 3.0]


def test_a_dequeue_that_waits_for_a_computation_which_waits_for_another_goes_on(session: gc.Session) -> None:
    first, second = fifo(capacity=1), node("FIFOQueueV2", (), "p", shapes=[gc.Shape([])], **TYPES).outputs[0]
    back = dequeue(second, "back")
    answer = enqueue(second, gc.multiply(dequeue(first), 2.0))
    assert session.run([back, answer, enqueue(first, gc.constant(21.0))]) == [42.0, None, None]


def test_the_plan_engine_refuses_nodes_that_wait_for_others() -> None:
    q = fifo()
    with gc.Session(engine="plan") as session:
        with pytest.raises(UnimplementedError, match=r"'dequeue' \(op QueueDequeueV2\) may wait for what other nodes do"):
            session.run([dequeue(q), enqueue(q, gc.constant(1.0))])
        assert session.run(node("QueueSizeV2", [q]).outputs[0]) == 0


def test_a_loop_dequeues_elements_that_the_same_run_enqueues(session: gc.Session) -> None:
    q = fifo(capacity=1)
    handle, one, limit = (enter(tensor, "f", constant=True) for tensor in (q, gc.constant(1), gc.constant(4)))

    def body(i: gc.Tensor, total: gc.Tensor) -> list[gc.Tensor]:
        with gc.control_dependencies([i.node]):
            return [op("AddV2", [i, one]), op("AddV2", [total, dequeue(handle)])]

    total = while_loop(lambda i, _: op("Less", [i, limit]), body, [gc.constant(0), gc.constant(0.0)], frame="f")[1]
    assert session.run([total, enqueue_many(q, [1.0, 2.0, 3.0, 4.0])], options=GENEROUS)[0] == 10.0


@pytest.mark.parametrize("recorded", [False, True])
def test_a_while_loop_dequeues_elements_that_the_same_run_enqueues(session: gc.Session, recorded: bool) -> None:
    q = fifo(capacity=1)
    total = gc.while_loop(lambda i, _: i < 4, lambda i, total: (i + 1, total + dequeue(q)), [gc.constant(0), gc.constant(0.0)])[1]
    options = gc.RunOptions(timeout_in_ms=60_000, trace=recorded)
    assert session.run([total, enqueue_many(q, [1.0, 2.0, 3.0, 4.0])], options=options)[0] == 10.0


def test_a_branch_that_is_not_taken_takes_nothing_out(session: gc.Session) -> None:
    q = fifo()
    session.run(enqueue_many(q, [1.0, 2.0]))
    pred = gc.placeholder(gc.bool_, [])
    value = gc.cond(pred, lambda: dequeue(q), lambda: gc.constant(-1.0))
    assert [session.run(value, {pred: choice}) for choice in (False, True, False)] == [-1.0, 1.0, -1.0]
    assert session.run(node("QueueSizeV2", [q]).outputs[0]) == 1


def test_a_function_may_wait_for_nodes_of_its_caller(session: gc.Session) -> None:
    q = fifo(capacity=1)

    @gc.function
    def taken_and(x: gc.float32) -> gc.float32:  # type: ignore[valid-type]  # the decorator reads dtypes
        return dequeue(q) + x

    total = taken_and(gc.constant(0.5))
    for value in (1.0, 2.0):
        assert session.run([total, enqueue(q, gc.constant(value))], options=GENEROUS)[0] == value + 0.5


def test_a_function_that_waits_ends_with_its_run(session: gc.Session) -> None:
    q = fifo()

    @gc.function
    def taken(x: gc.float32) -> gc.float32:  # type: ignore[valid-type]  # the decorator reads dtypes
        return dequeue(q) + x

    total, before = taken(gc.constant(0.5)), LiveThreads()
    with pytest.raises(DeadlineExceededError):
        session.run(total, options=SOON)
    before.check_none_is_left(within=30)
    session.run(enqueue(q, gc.constant(1.0)))
    assert session.run(total) == 1.5


def test_an_error_elsewhere_ends_waiting_nodes(session: gc.Session) -> None:
    q, x = fifo(), gc.placeholder(gc.float32, [])
    bad = op("CheckNumerics", [x], {"message": "no number"})
    with pytest.raises(InvalidArgumentError, match="no number"):
        session.run([dequeue(q), bad], {x: np.float32(np.nan)})
    session.run(enqueue(q, gc.constant(1.0)))
    assert session.run(dequeue(q)) == 1.0


def test_an_error_of_a_queue_names_its_node_and_inputs(session: gc.Session) -> None:
    q = fifo()
    session.run(node("QueueCloseV2", [q]))
    with pytest.raises(OutOfRangeError, match="is closed and has insufficient elements") as caught:
        session.run(dequeue(q))
    assert (caught.value.node, caught.value.op) == ("dequeue", "QueueDequeueV2")


# ---- ended from outside --------------------------------------------------------------------------------------------------


def press_when_blocked(session: gc.Session, q: gc.Tensor, enqueues: int, dequeues: int) -> threading.Thread:
    main = threading.main_thread().ident or 0

    def press() -> None:
        wait_until_blocked(session, q, enqueues, dequeues)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=press, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("options", [None, GENEROUS], ids=["unlimited", "limited"])
def test_ctrl_c_ends_a_dequeue_and_the_next_element_is_for_the_next(session: gc.Session, options: gc.RunOptions | None) -> None:
    q = fifo()
    taken, put = dequeue(q), enqueue(q, gc.constant(3.0))
    presser = press_when_blocked(session, q, 0, 1)
    with pytest.raises(KeyboardInterrupt) as caught:
        session.run(taken, options=options)
    presser.join()
    assert any("'dequeue'" in note for note in caught.value.__notes__)
    wait_until_blocked(session, q, 0, 0)
    session.run(put)
    assert session.run(taken) == 3.0


def test_ctrl_c_ends_an_enqueue_that_finds_no_room(session: gc.Session) -> None:
    q = fifo(capacity=1)
    one, other = enqueue(q, gc.constant(1.0)), enqueue(q, gc.constant(2.0))
    session.run(one)
    presser = press_when_blocked(session, q, 1, 0)
    with pytest.raises(KeyboardInterrupt):
        session.run(other)
    presser.join()
    assert session.run(dequeue(q)) == 1.0
    assert session.run(node("QueueSizeV2", [q]).outputs[0]) == 0


def test_ctrl_c_ends_a_close_that_waits_and_nothing_is_closed(session: gc.Session) -> None:
    q = fifo(capacity=1)
    session.run(enqueue(q, gc.constant(1.0)))
    late, close = enqueue(q, gc.constant(2.0)), node("QueueCloseV2", [q])
    waiting, found = in_background(lambda: session.run(late))
    wait_until_blocked(session, q, 1, 0)
    presser = press_when_blocked(session, q, 2, 0)
    with pytest.raises(KeyboardInterrupt):
        session.run(close)
    presser.join()
    assert [session.run(dequeue(q)) for _ in range(2)] == [1.0, 2.0]
    waiting.join()
    assert found == [None]
    assert not session.run(node("QueueIsClosedV2", [q]).outputs[0])


def test_a_run_that_takes_too_long_leaves_nothing_behind(session: gc.Session) -> None:
    q, before = fifo(), LiveThreads()
    with pytest.raises(DeadlineExceededError, match="stopped at node 'dequeue'"):
        session.run(dequeue(q), options=SOON)
    before.check_none_is_left(within=30)
    wait_until_blocked(session, q, 0, 0)


def test_a_cancelled_dequeue_returns_its_elements_to_the_queue(session: gc.Session) -> None:
    q = fifo()
    session.run(enqueue_many(q, [1.0, 2.0]))
    with pytest.raises(DeadlineExceededError):
        session.run(dequeue_many(q, 3), options=SOON)
    session.run(enqueue(q, gc.constant(3.0)))
    assert session.run(dequeue_many(q, 3)).tolist() == [1.0, 2.0, 3.0]


def test_closing_a_session_ends_waiting_nodes(session: gc.Session) -> None:
    q = fifo(capacity=1)
    one = dequeue(q)
    taker, taken = in_background(lambda: session.run(one))
    wait_until_blocked(session, q, 0, 1)
    session.close()
    taker.join()
    assert isinstance(taken[0], CancelledError)
    assert taken[0].message == "Dequeue operation was cancelled"


def test_resetting_a_container_ends_its_queues(session: gc.Session) -> None:
    here, there = fifo(), node("FIFOQueueV2", (), "p", container="c", shapes=[gc.Shape([])], **TYPES).outputs[0]
    for q in (here, there):
        session.run(enqueue(q, gc.constant(1.0)))
    session.reset(["c"])
    sizes = [node("QueueSizeV2", [q]).outputs[0] for q in (here, there)]
    assert session.run(sizes) == [1, 0]
    session.reset()
    assert session.run(sizes) == [0, 0]


# ---- several threads -----------------------------------------------------------------------------------------------------


def test_several_threads_hand_on_every_element_once(session: gc.Session) -> None:
    producers, consumers, each = 3, 4, 40
    q, x = fifo(capacity=5), gc.placeholder(gc.float32, [])
    put, taken, close = enqueue(q, x), dequeue(q), node("QueueCloseV2", [q])

    def produce(first: int) -> None:
        for i in range(each):
            session.run(put, {x: np.float32(first + i)})

    def consume() -> list[float]:
        found = []
        while True:
            try:
                found.append(float(session.run(taken)))
            except OutOfRangeError:
                return found

    takers = [in_background(consume) for _ in range(consumers)]
    makers = [threading.Thread(target=produce, args=(each * i,)) for i in range(producers)]
    for thread in makers:
        thread.start()
    for thread in makers:
        thread.join()
    session.run(close)
    for thread, _ in takers:
        thread.join()
    assert sorted(value for _, (found,) in takers for value in found) == list(range(producers * each))


def test_a_waiting_thread_blocks_no_other_run(session: gc.Session) -> None:
    q = fifo()
    taken = dequeue(q)
    waiting, found = in_background(lambda: session.run(taken))
    wait_until_blocked(session, q, 0, 1)
    assert [session.run(gc.constant(float(i))) for i in range(20)] == list(range(20))
    session.run(enqueue(q, gc.constant(7.0)))
    waiting.join()
    assert found == [7.0]


# ---- errors --------------------------------------------------------------------------------------------------------------


def test_a_recorded_run_has_the_beginning_and_end_of_a_wait(session: gc.Session) -> None:
    q = fifo(capacity=1)
    metadata = gc.RunMetadata()
    session.run([dequeue(q), enqueue(q, gc.constant(2.0))], options=gc.RunOptions(trace=True), run_metadata=metadata)
    assert metadata.trace is not None
    kinds = {name: [event.kind for event in metadata.trace.events if event.node == name] for name in ("dequeue", "enqueue")}
    assert kinds == {name: ["scheduled", "start", "end"] for name in kinds}


def test_the_peak_memory_of_a_queue_is_unknown(session: gc.Session) -> None:
    predicted = session.predicted_peak(dequeue(fifo()))
    assert predicted.bytes is None
    assert "dataflow engine" in predicted.reason
