"""Guarantees of sessions: structures, feeds, targets, callables, time limits, threads, variables."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.source import CellRun, SourceLocation
from tests.graphcore.runtime.loop_graphs import cond, op, while_loop
from tests.support.threads import LiveThreads

ENGINES = pytest.mark.parametrize("engine", ["plan", "dataflow"])
KINDS = pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


class Pair(NamedTuple):
    """Two fetches."""

    left: Any
    right: Any


class Labelled(dict[str, Any]):
    """A user-defined mapping."""


class Named(dict[str, Any]):
    """One that has no empty form."""

    def __init__(self, name: str, **items: Any) -> None:
        super().__init__(**items)
        self.name = name


# ---- targets ---------------------------------------------------------------------------------------------------------


def test_a_session_refuses_targets_other_than_this_process() -> None:
    assert gc.Session().target == ""
    assert gc.Session(target="local").run(gc.constant(2.0)) == 2.0
    with pytest.raises(NotFoundError, match=r"No session for target 'grpc://there:2222': there is '' and 'local'"):
        gc.Session(target="grpc://there:2222")


def test_nodes_are_run_as_targets_and_give_none() -> None:
    w = gc.Variable(1.0, name="w")
    with gc.Session() as session:
        assert session.run([w.initializer, "w/Assign", w.op]) == [None, None, None]
        assert session.run(w) == 1.0


# ---- structures ------------------------------------------------------------------------------------------------------


@ENGINES
def test_any_nesting_comes_back_as_it_was_asked_for(engine: str) -> None:
    a, b = gc.constant(1.0, name="a"), gc.constant([1, 2], name="b")
    asked = {"pair": Pair(a, [b, (a,)]), "ordered": OrderedDict(z="a:0", y=b), "empty": [[], (), {}], 3: ("a", b.node)}
    for _ in range(2):  # the second time with the cached plan
        got = gc.Session(engine=engine).run(asked)
        assert list(got) == ["pair", "ordered", "empty", 3]
        assert isinstance(got["pair"], Pair)
        assert (got["pair"].left, got["pair"].right[1]) == (1.0, (1.0,))
        assert got["pair"].right[0].tolist() == [1, 2]
        assert list(got["ordered"]) == ["z", "y"]
        assert (got["ordered"]["z"], got["ordered"]["y"].tolist()) == (1.0, [1, 2])
        assert got["empty"] == [[], (), {}]
        assert got[3] == (None, None)


def test_fetches_of_other_structure_are_planned_separately() -> None:
    a = gc.constant(1.0)
    session = gc.Session()
    assert [session.run(asked) for asked in ([a], (a,), {"x": a}, {"y": a}, [[a]], Pair(a, a))] == [
        [1.0],
        (1.0,),
        {"x": 1.0},
        {"y": 1.0},
        [[1.0]],
        Pair(1.0, 1.0),
    ]
    assert isinstance(session.run(Pair(a, a)), Pair)


def test_a_mapping_comes_back_as_one_of_its_kind_with_its_own_keys() -> None:
    a = gc.constant(1.0)
    session = gc.Session()
    absent: defaultdict[str, Any] = defaultdict(list, x=a)
    for asked in (OrderedDict(x=a), Labelled(x=a), absent):
        for _ in range(2):
            got = session.run(asked)
            assert type(got) is type(asked)
            assert got == {"x": 1.0}
    assert session.run(absent)["y"] == []
    assert type(session.run(MappingProxyType({"x": a}))) is dict
    assert session.run(Named("n", x=a)) == {"x": 1.0}
    assert [[type(key) for key in session.run({key: a})] for key in (1, True, 1.0)] == [[int], [bool], [float]]


# ---- feeds -----------------------------------------------------------------------------------------------------------


@ENGINES
def test_feeds_go_by_tensor_node_variable_or_name(engine: str) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    w = gc.Variable([5.0, 5.0], name="w")
    y = x + w
    session = gc.Session(engine=engine)
    for key in (x, x.node, "x", "x:0"):
        assert session.run(y, {key: [1.0, 2.0], w: [10.0, 10.0]}).tolist() == [11, 12]


@ENGINES
def test_any_tensor_can_be_fed_and_then_nothing_before_it_runs(engine: str) -> None:
    ran = gc.Variable(0.0, name="ran")
    before = ran.assign_add(1.0)
    middle = gc.identity(before, name="middle")
    split = gc.ops.split(0, gc.constant([1.0, 2.0]), num_split=2)
    looped = while_loop(lambda v: op("Less", [v, v]), lambda v: [op("Neg", [v])], [middle])[0]
    with gc.Session(engine=engine) as session:
        session.run(ran.initializer)
        assert session.run([middle * 2.0, looped], {middle: 4.0}) == [8.0, 4.0]
        assert session.run(ran) == 0.0
        assert session.run(split[0] + split[1], {split[1]: [7.0]}).tolist() == [8]
        assert session.run(gc.constant(3.0, name="c") + 1.0, {"c:0": 1.0}) == 2.0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.zeros((2, 63)), r"Cannot feed value of shape \[2,63\] for Tensor 'x:0', which has shape \[\?,64\]"),
        (np.zeros((2, 64), np.complex64), "Cannot feed a value of type complex64 for Tensor 'x:0', which has dtype float"),
        ("words", "Cannot feed a value of type"),
        (gc, "Cannot feed a value of type"),
    ],
    ids=["shape", "type", "text", "object"],
)
def test_a_feed_that_does_not_fit_names_the_cell_and_line_of_its_placeholder(value: object, text: str) -> None:
    x = gc.placeholder(gc.float32, [None, 64], name="x")
    x.node.source = SourceLocation("<cell>", 4, CellRun(cell="7", execution=3, label="In [3]"))
    y = gc.exp(x)
    session = gc.Session()
    call = session.make_callable(y, [x])
    handle = session.partial_run_setup(y, [x])
    ways: list[Callable[[], object]] = [
        lambda: session.run(y, {x: value}),
        lambda: session.run(y, {"x:0": value}, gc.RunOptions(trace=True)),
        lambda: call(value),
        lambda: session.partial_run(handle, y, {x: value}),
    ]
    for run in ways:
        with pytest.raises(InvalidArgumentError, match=text) as caught:
            run()
        assert (caught.value.node, caught.value.op) == ("x", "Placeholder")
        assert "In [3], line 4" in str(caught.value)


# ---- finalisation, growth, time limits ---------------------------------------------------------------------------------


def test_a_finalized_session_runs_planned_fetches_and_refuses_others() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    y = x + 1.0
    session = gc.Session()
    call = session.make_callable(y, [x])
    assert session.run(y, {x: 1.0}) == 2.0
    session.finalize()
    assert (session.run(y, {x: 2.0}), call(3.0)) == (3.0, 4.0)
    for refused in (lambda: session.run(x, {x: 1.0}), lambda: session.partial_run_setup(y, [x]), lambda: session.make_callable(y, [x])):
        with pytest.raises(FailedPreconditionError, match="has been finalized"):
            refused()


@ENGINES
def test_only_runs_with_changed_nodes_are_planned_again(graph: gc.Graph, engine: str) -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    y, z = x + 1.0, gc.exp(x)
    session = gc.Session(engine=engine)
    assert session.run(y, {x: 1.0}) == 2.0
    kept = next(iter(session.planner.plans.values())).program
    w = z * y
    assert session.run([y], {x: 1.0}) == [2.0]
    assert session.run(y, {x: 1.0}) == 2.0
    assert next(iter(session.planner.plans.values())).program is kept
    assert session.run(w, {x: 0.0}) == 1.0
    graph.update_edge(gc.constant(10.0).node, 0, y.node, 1)
    assert session.run(y, {x: 1.0}) == 11.0
    assert next(iter(session.planner.plans.values())).program is not kept


@ENGINES
def test_a_time_limit_ends_a_loop_and_the_session_goes_on(engine: str) -> None:
    w = gc.Variable(1.0, name="w")
    endless = while_loop(lambda v: op("GreaterEqual", [v, v]), lambda v: [op("Identity", [v])], [gc.constant(1.0)])[0]
    with gc.Session(engine=engine) as session:
        session.run(w.initializer)
        threads = LiveThreads()
        with pytest.raises(DeadlineExceededError, match="within 30 ms"):
            session.run([endless, w.assign(5.0)], options=gc.RunOptions(timeout_in_ms=30))
        threads.check_none_is_left()
        assert session.run(w) in (1.0, 5.0)
        assert session.run(w.assign(2.0)) == 2.0


# ---- threads ---------------------------------------------------------------------------------------------------------


@ENGINES
def test_every_way_to_run_a_session_may_be_used_by_several_threads_at_once(engine: str) -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    total = gc.Variable(0.0, name="total", use_resource=True)
    y = cond(x > 2.0, [x], lambda v: [op("Square", [v])], lambda v: [op("Neg", [v])])[0]
    counted = total.assign_add(1.0)
    session = gc.Session(engine=engine)
    session.run(total.initializer)
    call = session.make_callable(y, [x])
    rounds = 40

    def work(number: int) -> list[float]:
        value, found = float(number), []
        for turn in range(rounds):
            session.run(counted.node)
            if turn % 4 == 0:
                found.append(session.run(y, {x: value}))
            elif turn % 4 == 1:
                found.append(call(value))
            elif turn % 4 == 2:
                found.append(session.run(y, {x: value}, gc.RunOptions(trace=True)))
            else:
                handle = session.partial_run_setup(y, [x])
                session.partial_run(handle, [], {x: value})
                found.append(session.partial_run(handle, y))
        return found

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    assert results == [[number * number if number > 2 else -number] * rounds for number in range(8)]
    assert session.run(total) == 8 * rounds


# ---- variables stay whole ----------------------------------------------------------------------------------------------


@ENGINES
@KINDS
@pytest.mark.parametrize("how", ["assign_add", "scatter_add", "assign"])
def test_a_step_that_fails_leaves_every_variable_with_its_last_complete_value(engine: str, use_resource: bool, how: str) -> None:
    """The failing node is before, between and after the changes: variables have old or new values."""
    start = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    a, b = (gc.Variable(start, name=name, use_resource=use_resource) for name in "ab")
    x = gc.placeholder(gc.float32, None, name="x")
    rows = (np.array([0, 2]),) if how == "scatter_add" else ()
    new = np.full((2, 2), 10.0, np.float32) if rows else np.full((3, 2), 10.0, np.float32)
    with gc.control_dependencies([a.change(how, *rows, new)]):
        checked = op("CheckNumerics", [x], {"message": "bad"})
    with gc.control_dependencies([checked.node]):
        after = b.change(how, *rows, gc.constant(new))
    expected = start.copy()
    if how == "assign":
        expected[:] = 10.0
    else:
        expected[rows[0] if rows else slice(None)] += 10.0
    with gc.Session(engine=engine) as session:
        session.run(gc.initialize_all_variables())
        with pytest.raises(InvalidArgumentError, match="bad"):
            session.run(after, {x: [np.nan]})
        assert session.run(a).tolist() == expected.tolist()
        assert session.run(b).tolist() == start.tolist()
        session.run(after, {x: [1.0]})
        assert session.run(b).tolist() == expected.tolist()


@ENGINES
@KINDS
def test_rows_that_do_not_exist_change_nothing_at_all(engine: str, use_resource: bool) -> None:
    w = gc.Variable(np.zeros((3, 2), np.float32), name="w", use_resource=use_resource)
    rows = gc.placeholder(gc.int32, [2], name="rows")
    changed = w.scatter_add(rows, np.ones((2, 2), np.float32))
    with gc.Session(engine=engine) as session:
        session.run(w.initializer)
        with pytest.raises(InvalidArgumentError) as caught:
            session.run(changed, {rows: [0, 3]})
        assert caught.value.node == ("ResourceScatterAdd" if use_resource else "ScatterAdd")
        assert session.run(w).tolist() == [[0, 0]] * 3


# ---- files -----------------------------------------------------------------------------------------------------------


@KINDS
def test_a_disk_that_is_full_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use_resource: bool
) -> None:
    w = gc.Variable([1.0, 2.0], name="w", use_resource=use_resource)
    path = tmp_path / "v.npz"
    with gc.Session() as session:
        session.run(w.initializer)
        gc.save_variables(session, path)
        session.run(w.assign([3.0, 4.0]))

        def full(*_arguments: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full)
            with pytest.raises(FailedPreconditionError, match=r"Cannot write '.*v\.npz': No space left"):
                gc.save_variables(session, path)
        assert [item.name for item in tmp_path.iterdir()] == ["v.npz"]
        gc.restore_variables(session, path)
        assert session.run(w).tolist() == [1, 2]


def test_threads_that_save_to_one_file_leave_one_whole_file(tmp_path: Path) -> None:
    w = gc.Variable(np.zeros(1000, np.float32), name="w")
    path = tmp_path / "v.npz"
    with gc.Session() as session:
        session.run(w.initializer)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: gc.save_variables(session, path), range(20)))
        gc.restore_variables(session, path)
    assert [item.name for item in tmp_path.iterdir()] == ["v.npz"]
