"""Side effects in branches and loops: they belong to the body in which they are called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphcore

ENGINES = ["auto", "dataflow"]

gc: Any = graphcore  # its namespaces are found on demand


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def queue_of(*values: int) -> tuple[Any, Any]:
    queue = gc.FIFOQueue(10, gc.int32, shapes=[()])
    return queue, queue.enqueue_many([list(values)])


@pytest.mark.parametrize("engine", ENGINES)
def test_only_the_branch_that_is_taken_dequeues(engine: str) -> None:
    (a, fill), (b, fill_b) = queue_of(1, 2, 3), queue_of(10, 20, 30)
    p = gc.placeholder(gc.bool_, [])
    y = gc.cond(p, a.dequeue, b.dequeue)
    with gc.Session(engine=engine) as session:
        session.run([fill, fill_b])
        assert [session.run(y, {p: value}) for value in (True, True, False)] == [1, 2, 10]
        assert session.run([a.size(), b.size()]) == [1, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_body_dequeues_once_a_round(engine: str) -> None:
    queue, fill = queue_of(1, 2, 3, 4, 5)
    _, total = gc.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t + queue.dequeue()), [0, 0])
    with gc.Session(engine=engine) as session:
        session.run(fill)
        assert session.run([total]) == [6]
        assert session.run(queue.size()) == 2


def test_a_branch_of_a_branch_dequeues_only_if_both_are_taken() -> None:
    queue, fill = queue_of(1, 2, 3)
    p, q = gc.placeholder(gc.bool_, []), gc.placeholder(gc.bool_, [])
    y = gc.cond(p, lambda: gc.cond(q, queue.dequeue, lambda: gc.constant(0)), lambda: gc.constant(-1))
    with gc.Session() as session:
        session.run(fill)
        assert [session.run(y, {p: a, q: b}) for a, b in ((True, True), (False, True), (True, False), (True, True))] == [1, -1, 0, 2]


def test_an_enqueue_in_a_branch_runs_only_there() -> None:
    queue, _ = queue_of(0)
    p = gc.placeholder(gc.bool_, [])

    def put() -> Any:
        with gc.control_dependencies([queue.enqueue(7)]):
            return gc.constant(1)

    y = gc.cond(p, put, lambda: gc.constant(0))
    with gc.Session() as session:
        assert [session.run(y, {p: value}) for value in (True, False, True)] == [1, 0, 1]
        assert session.run(queue.size()) == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_an_iterator_moves_on_only_in_the_branch_that_is_taken(engine: str) -> None:
    train = gc.data.make_initializable_iterator(gc.data.Dataset.range(1, 4))
    test = gc.data.make_initializable_iterator(gc.data.Dataset.range(100, 102))
    p = gc.placeholder(gc.bool_, [])
    y = gc.cond(p, train.get_next, test.get_next)
    with gc.Session(engine=engine) as session:
        session.run([train.initializer, test.initializer])
        assert [session.run(y, {p: value}) for value in (True, True, False, True, False)] == [1, 2, 100, 3, 101]


def test_map_fn_takes_an_element_of_an_iterator_for_each_row() -> None:
    iterator = gc.data.make_one_shot_iterator(gc.data.Dataset.range(1, 10))
    y = gc.map_fn(lambda e: e * iterator.get_next(), gc.constant([1, 1, 1], gc.int64), parallel_iterations=1)
    with gc.Session() as session:
        assert session.run(y).tolist() == [1, 2, 3]


def test_scan_and_foldl_dequeue_once_a_row() -> None:
    queue, fill = queue_of(1, 2, 3, 4, 5, 6)
    rows = gc.constant([10, 20, 30])
    folded = gc.foldl(lambda a, e: a + e * queue.dequeue(), rows, 0)
    scanned = gc.scan(lambda a, e: a + e * queue.dequeue(), rows, 0)
    with gc.Session() as session:
        session.run(fill)
        assert session.run(folded) == 10 + 40 + 90
        assert session.run(scanned).tolist() == [40, 140, 320]


def test_a_reader_reads_only_in_the_branch_that_is_taken(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("a\nb\nc\n")
    names = gc.FIFOQueue(1, gc.string, shapes=[()])
    fill = names.enqueue(str(tmp_path / "lines"))
    reader = gc.TextLineReader()
    p = gc.placeholder(gc.bool_, [])
    y = gc.cond(p, lambda: reader.read(names)[1], lambda: gc.constant("none"))
    with gc.Session() as session:
        session.run(fill)
        assert [session.run(y, {p: value}) for value in (True, False, True)] == [b"a", b"none", b"b"]


@pytest.mark.parametrize("engine", ENGINES)
def test_effects_that_no_result_needs_do_not_run(engine: str) -> None:
    count, other = gc.Variable(0.0), gc.Variable(0.0, use_resource=True)
    queue, fill = queue_of(1, 2, 3)

    def branch() -> Any:
        count.assign_add(1.0)
        queue.dequeue()
        return gc.constant(1)

    def body(i: Any) -> Any:
        other.assign_add(1.0)
        return i + 1

    y = gc.cond(gc.placeholder_with_default(True, []), branch, lambda: gc.constant(2))
    z = gc.while_loop(lambda i: i < 3, body, [0])
    with gc.Session(engine=engine) as session:
        session.run([gc.initialize_all_variables(), fill])
        assert session.run([y, z]) == [1, 3]
        assert session.run([count, other, queue.size()]) == [0.0, 0.0, 3]


@pytest.mark.parametrize("engine", ENGINES)
def test_effects_that_a_result_waits_for_run(engine: str) -> None:
    count = gc.Variable(0.0)

    def body(i: Any) -> Any:
        with gc.control_dependencies([count.assign_add(1.0)]):
            return i + 1

    y = gc.while_loop(lambda i: i < 3, body, [0])
    with gc.Session(engine=engine) as session:
        session.run(count.initializer)
        session.run(y)
        assert session.run(count) == 3.0


def test_all_effects_of_a_function_run_also_in_its_branches() -> None:
    count = gc.Variable(0.0)

    def counted(x: Any) -> Any:
        def positive() -> Any:
            count.assign_add(1.0)
            return x

        return gc.cond(x > 0.0, positive, lambda: -x)

    y = gc.function(counted)(gc.constant(2.0))
    with gc.Session() as session:
        session.run(count.initializer)
        assert session.run(y) == 2.0
        assert session.run(count) == 1.0


def test_a_body_that_waits_for_a_queue_passes_the_handle_of_a_variable_on() -> None:
    queue, fill = queue_of(1, 2, 3)
    count = gc.Variable(0, use_resource=True)

    def row(a: Any, e: Any) -> Any:
        _, inner = gc.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, x + count.assign_add(e)), [0, 0], parallel_iterations=1)
        with gc.control_dependencies([inner]):
            return a + inner * 10 + queue.dequeue()

    y = gc.foldl(row, gc.constant([1, 2]), 0)
    with gc.Session() as session:
        session.run([count.initializer, fill])
        assert session.run(y) == 10 * (1 + 2 + 4 + 6) + 1 + 2
        assert session.run(count) == 6


def test_the_value_of_a_variable_after_a_change_in_a_loop_has_its_shape() -> None:
    count = gc.Variable([0.0, 0.0], use_resource=True)
    _, y = gc.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, x + count.assign_add([1.0, 2.0])), [0, gc.zeros([2])])
    assert y.shape.as_list() == [2]
