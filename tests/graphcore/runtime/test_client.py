"""Client-level runs, by names (DirectSession) and by tensors (Session)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import DeadlineExceededError, FailedPreconditionError, InternalError, InvalidArgumentError, NotFoundError
from graphcore.source import CellRun, SourceLocation
from tests.graphcore.runtime.loop_graphs import cond, enter, op, switch, while_loop

A = np.array([[3, 2], [-1, 0]], np.float32)
X = np.ones((2, 1), np.float32)


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def example() -> gc.Graph:
    """y = a x, y_neg = -y."""
    graph = gc.Graph()
    with graph.as_default():
        a, x = gc.constant(A, name="a"), gc.constant(X, name="x")
        y = gc.matmul(a, x, name="y")
        gc.negative(y, name="y_neg")
        gc.identity(y, name="z")
    return graph


def direct(graph: gc.Graph | None = None, **options: Any) -> gc.DirectSession:
    session = gc.DirectSession(gc.SessionOptions(allow_soft_placement=False, **options))
    session.create(graph or example())
    return session


class TestDS:
    """The rules one by one."""

    def test_fetches_and_targets_by_name(self) -> None:
        (y,) = direct().run([], ["y:0"], ["y_neg"])
        assert y[0, 0] == 5

    def test_a_run_before_create_fails(self) -> None:
        with pytest.raises(InvalidArgumentError, match="not created with a graph before Run"):
            gc.DirectSession().run([], ["y:0"])

    def test_creating_twice_fails(self) -> None:
        session = direct()
        with pytest.raises(InvalidArgumentError, match="already been created"):
            session.create(example())

    def test_a_device_that_does_not_exist_fails_at_create(self) -> None:
        graph = gc.Graph()
        with graph.as_default(), gc.device("/job:localhost/replica:0/task:0/cpu:1"):
            gc.constant(1.0, name="a")
        with pytest.raises(InvalidArgumentError) as caught:
            direct(graph)
        assert "Cannot assign a device for operation a" in caught.value.message
        assert caught.value.node == "a"

    def test_a_device_that_exists_is_fine(self) -> None:
        graph = gc.Graph()
        with graph.as_default(), gc.device("/cpu:0"):
            gc.constant(1.0, name="a")
        assert direct(graph).run([], ["a"]) == [1.0]

    @pytest.mark.parametrize("feed", ["x", "x:0"])
    @pytest.mark.parametrize("fetch", ["y", "y:0"])
    def test_feeds_and_fetches_with_or_without_port(self, feed: str, fetch: str) -> None:
        (y,) = direct().run([(feed, 2 * X)], [fetch])
        assert y[0, 0] == 10

    def test_fetch_order_is_kept_and_a_fetch_twice_gives_the_value_twice(self) -> None:
        neg, y, again, x = direct().run([], ["y_neg", "y", "y:0", "x"])
        assert (neg[0, 0], y[0, 0], again[0, 0], x[0, 0]) == (-5, 5, 5, 1)
        y[0, 0] = 7
        assert again[0, 0] == 5

    @pytest.mark.parametrize("second", ["x", "x:0"])
    def test_the_same_feed_twice_fails(self, second: str) -> None:
        with pytest.raises(InvalidArgumentError, match="fed more than once"):
            direct().run([("x", X), (second, X)], ["y"])

    def test_unknown_names(self) -> None:
        session = direct()
        with pytest.raises(NotFoundError, match="FeedInputs: unable to find feed output foo"):
            session.run([("foo", X)], ["y"])
        with pytest.raises(InvalidArgumentError, match="FeedInputs: a:7 should have output index < 1"):
            session.run([("a:7", X)], ["y"])
        with pytest.raises(NotFoundError, match="FetchOutputs node foo: not found"):
            session.run([], ["foo"])
        with pytest.raises(InvalidArgumentError, match="FetchOutputs a:9: output index too large, must be < 1"):
            session.run([], ["a:9"])
        with pytest.raises(NotFoundError, match="Some target nodes not found: foo "):
            session.run([], [], ["foo"])
        with pytest.raises(InvalidArgumentError, match="Must specify at least one target to fetch or execute"):
            session.run([], [])

    def test_extending_adds_nodes(self) -> None:
        session = direct()
        more = gc.Graph()
        with more.as_default():
            gc.constant(4.0, name="late")
        session.extend(more)
        assert session.run([], ["late", "y"])[0] == 4

    def test_variables_keep_their_values_between_runs(self) -> None:
        graph = gc.Graph()
        with graph.as_default():
            w = gc.Variable(np.zeros(2, np.float32), name="w")
            w.assign_add([1.0, 2.0], name="step")
        session = direct(graph)
        session.run([], [], ["w/Assign"])
        session.run([], [], ["step"])
        session.run([], [], ["step"])
        assert session.run([], ["w"])[0].tolist() == [2, 4]
        session.reset()
        with pytest.raises(FailedPreconditionError, match="uninitialized value w"):
            session.run([], ["w"])

    def test_extending_a_static_graph_fails(self) -> None:
        session = direct(optimize_for_static_graph=True)
        with pytest.raises(FailedPreconditionError, match="optimize_for_static_graph"):
            session.extend(example())

    def test_after_finalizing_a_new_subgraph_fails(self) -> None:
        session = direct(optimize_for_static_graph=True)
        assert session.run([], ["y"])[0][0, 0] == 5
        session.finalize()
        assert session.run([], ["y"])[0][0, 0] == 5
        with pytest.raises(FailedPreconditionError, match="has been finalized"):
            session.run([], ["y_neg"])

    def test_place_pruned_graph_places_only_what_is_needed(self) -> None:
        graph = example()
        with graph.as_default(), gc.device("/device:GPU:7"):
            gc.constant(1.0, name="elsewhere")
        with pytest.raises(InvalidArgumentError, match="Cannot assign a device"):
            direct(graph)
        session = direct(graph, place_pruned_graph=True)
        assert session.run([], ["y"])[0][0, 0] == 5
        with pytest.raises(InvalidArgumentError, match="Cannot assign a device for operation elsewhere"):
            session.run([], ["elsewhere"])

    def test_software_tracing_gives_one_entry_a_device(self) -> None:
        metadata = gc.RunMetadata()
        direct().run([], ["y"], options=gc.RunOptions(trace_level=gc.RunOptions.SOFTWARE_TRACE), run_metadata=metadata)
        assert metadata.trace is not None
        assert [entry.device for entry in metadata.trace.step_stats().dev_stats] == [DEVICE]

    def test_a_closed_session_does_nothing(self) -> None:
        session = direct()
        session.close()
        with pytest.raises(FailedPreconditionError, match="closed"):
            session.run([], ["y"])

    def test_devices_are_listed(self) -> None:
        (device,) = direct().list_devices()
        assert device.name == "/job:localhost/replica:0/task:0/device:CPU:0"
        assert device.device_type == "CPU"
        assert device.memory_limit_bytes > 0
        assert gc.Session().list_devices() == [device]


class TestCallables:
    """make_callable, run_callable, release_callable."""

    def test_a_callable_feeds_fetches_and_runs_targets(self) -> None:
        session = direct()
        handle = session.make_callable(gc.CallableOptions(feed=("x:0",), fetch=("y:0", "y_neg:0"), target=("z",)))
        place: list[Any] = []
        y, neg = session.run_callable(handle, [3 * X], place)
        assert (y[0, 0], neg[0, 0]) == (15, -15)
        assert place[0] is y

    def test_a_run_after_release_fails(self) -> None:
        session = direct()
        handle = session.make_callable(gc.CallableOptions(fetch=("y:0",)))
        session.release_callable(handle)
        with pytest.raises(InvalidArgumentError, match="Attempted to run callable after handle was released"):
            session.run_callable(handle, [], [])

    def test_unknown_handles(self) -> None:
        session = direct()
        with pytest.raises(InvalidArgumentError, match="No such callable handle"):
            session.run_callable(43, [], [])
        with pytest.raises(InvalidArgumentError, match="No such callable handle"):
            session.release_callable(43)

    def test_outputs_without_a_place_for_them(self) -> None:
        session = direct()
        handle = session.make_callable(gc.CallableOptions(fetch=("y:0",)))
        with pytest.raises(InvalidArgumentError, match="`fetch_tensors` must be provided"):
            session.run_callable(handle)
        assert session.run_callable(session.make_callable(gc.CallableOptions(target=("y",)))) == []

    def test_a_wrong_number_of_feeds(self) -> None:
        session = direct()
        handle = session.make_callable(gc.CallableOptions(feed=("x:0",), fetch=("y:0",)))
        with pytest.raises(InvalidArgumentError, match="1"):
            session.run_callable(handle, [], [])

    def test_callables_of_a_session_follow_the_graph_and_end_when_released(self, graph: gc.Graph) -> None:
        x = gc.placeholder(gc.float32, [None], name="x")
        y = gc.exp(x, name="y")
        session = gc.Session()
        call = session.make_callable({"y": y}, [x])
        assert call([0.0])["y"].tolist() == [1]
        gc.constant(1.0)
        assert call([0.0])["y"].tolist() == [1]
        with pytest.raises(InvalidArgumentError, match="Required 1 values"):
            call()
        with pytest.raises(InvalidArgumentError, match="Cannot feed value of shape"):
            call([[0.0]])
        call.release()
        with pytest.raises(InvalidArgumentError, match="after handle was released"):
            call([0.0])

    def test_callables_of_a_closed_session_fail(self) -> None:
        session = gc.Session()
        call = session.make_callable(gc.constant(1.0))
        session.close()
        with pytest.raises(FailedPreconditionError, match="closed"):
            call()


class TestConnections:
    """tensor_connection: the target takes the source's value."""

    @staticmethod
    def chain() -> gc.Graph:
        graph = gc.Graph()
        with graph.as_default():
            a = gc.placeholder(gc.float32, [], name="a")
            b = gc.placeholder(gc.float32, [], name="b")
            c = gc.square(a, name="c")
            d = gc.negative(b, name="d")
            gc.add(c, d, name="e")
        return graph

    def call(self, *connections: tuple[str, str], feed: tuple[str, ...] = ("a:0",), fetch: tuple[str, ...] = ("e:0",)) -> float:
        session = direct(self.chain())
        handle = session.make_callable(gc.CallableOptions(feed=feed, fetch=fetch, tensor_connection=connections))
        return float(session.run_callable(handle, [3.0] * len(feed), [])[0])

    def test_the_target_takes_the_sources_value(self) -> None:
        assert self.call(("c:0", "b:0")) == 9 - 9
        assert self.call(("a:0", "b")) == 9 - 3
        assert self.call(("c:0", "d:0")) == 9 + 9
        assert self.call(("c:0", "b:0"), fetch=("b:0",)) == 9

    def test_the_graph_itself_stays_as_it_is(self) -> None:
        session = direct(self.chain())
        session.make_callable(gc.CallableOptions(feed=("a:0",), fetch=("e:0",), tensor_connection=(("c:0", "b:0"),)))
        assert session.run([("a", 3.0), ("b", 1.0)], ["e"]) == [8.0]

    @pytest.mark.parametrize(
        ("connections", "feed", "kind", "text"),
        [
            ((("d:0", "b:0"),), (), InvalidArgumentError, "would create a cycle"),
            ((("c:0", "b:0"), ("d:0", "a:0")), (), InvalidArgumentError, "would create a cycle"),
            ((("no:0", "b:0"),), (), InvalidArgumentError, "unknown node"),
            ((("c:3", "b:0"),), (), InvalidArgumentError, "unknown edge"),
            ((("c:0", "no:0"),), (), NotFoundError, "unable to find feed output"),
            ((("c:0", "b:0"), ("a:0", "b:0")), (), InvalidArgumentError, "fed more than once"),
            ((("c:0", "b:0"),), ("a:0", "b:0"), InvalidArgumentError, "fed more than once"),
        ],
    )
    def test_connections_that_cannot_be(
        self, connections: tuple[tuple[str, str], ...], feed: tuple[str, ...], kind: type[Exception], text: str
    ) -> None:
        with pytest.raises(kind, match=text):
            self.call(*connections, feed=feed)

    def test_variables_behind_connections_are_the_sessions(self) -> None:
        w = gc.Variable(np.zeros(2, np.float32), name="w")
        x = gc.placeholder(gc.float32, [2], name="x")
        step = w.assign_add(x, name="step")
        gc.constant([1.0, 2.0], name="delta")
        session = gc.Session()
        session.run(w.initializer)
        session.make_callable(step, connections=[("delta:0", "x:0")])()
        assert session.run(w).tolist() == [1, 2]


def zero(value: Any) -> gc.Tensor:
    """The axis 0, in the loop of `value`."""
    with gc.control_dependencies([value.node]):
        return gc.constant([0])


def double(value: gc.Tensor) -> list[gc.Tensor]:
    """Twice `value`."""
    return [gc.add(value, value)]


class TestPartialRuns:
    """Feeds come in steps, each fetch is given when its feeds are there."""

    def test_feeds_may_come_in_steps(self) -> None:
        session = direct(TestConnections.chain())
        handle = session.partial_run_setup(["a:0", "b:0"], ["c:0", "e:0"])
        assert session.partial_run(handle, [("a:0", 3.0)], ["c:0"]) == [9.0]
        assert session.partial_run(handle, [("b:0", 1.0)], ["e:0"]) == [8.0]
        with pytest.raises(InvalidArgumentError, match="setup"):
            session.partial_run(handle, [], ["e:0"])

    def test_a_fetch_whose_feeds_are_missing_fails_and_can_be_asked_for_again(self) -> None:
        session = direct(TestConnections.chain())
        handle = session.partial_run_setup(["a:0", "b:0"], ["c:0", "e:0"])
        with pytest.raises(InvalidArgumentError, match="can't be computed from the feeds"):
            session.partial_run(handle, [("a:0", 3.0)], ["e:0"])
        assert session.partial_run(handle, [("a:0", 3.0), ("b:0", 1.0)], ["e:0", "c:0"]) == [8.0, 9.0]

    def test_single_outputs_of_a_node_can_be_fed(self, graph: gc.Graph) -> None:
        x = gc.placeholder(gc.float32, [4], name="x")
        first, second = graph.apply_op("Split", [0, x], {"num_split": 2}, "halves").outputs
        y = gc.subtract(first, second, name="y")
        session = gc.Session()
        handle = session.partial_run_setup([y, first], [x, second])
        assert session.partial_run(handle, first, {x: [1, 2, 3, 4]}).tolist() == [1, 2]
        assert session.partial_run(handle, y, {second: [10, 10]}).tolist() == [-9, -8]

    def test_a_stateful_node_runs_once_in_all_steps(self) -> None:
        w = gc.Variable(0.0, name="w")
        a, b = gc.placeholder(gc.float32, [], name="a"), gc.placeholder(gc.float32, [], name="b")
        added = gc.identity(w.assign_add(a))
        drawn = gc.random_uniform([])
        first, second = added + drawn, added + drawn + b
        session = gc.Session()
        session.run(w.initializer)
        handle = session.partial_run_setup([first, second], [a, b])
        one = session.partial_run(handle, first, {a: 1.0})
        two = session.partial_run(handle, second, {b: 10.0})
        assert two == pytest.approx(one + 10, rel=1e-6)
        assert session.run(w) == 1.0

    def test_what_was_not_set_up_or_has_been_there_is_refused(self) -> None:
        session = direct(TestConnections.chain())
        handle = session.partial_run_setup(["a:0", "b:0"], ["c:0", "e:0"], ["d"])
        with pytest.raises(InvalidArgumentError, match="The feed d:0 was not specified"):
            session.partial_run(handle, [("d:0", 3.0)], [])
        with pytest.raises(InvalidArgumentError, match="The fetch d:0 was not specified"):
            session.partial_run(handle, [], ["d:0"])
        session.partial_run(handle, [("a:0", 3.0)], ["c:0"])
        with pytest.raises(InvalidArgumentError, match="has already been fed"):
            session.partial_run(handle, [("a:0", 3.0)], [])
        with pytest.raises(InvalidArgumentError, match="was already fetched"):
            session.partial_run(handle, [], ["c:0"])

    def test_a_feed_that_does_not_fit_is_refused(self) -> None:
        x = gc.placeholder(gc.float32, [2], name="x")
        session = gc.Session()
        handle = session.partial_run_setup(gc.exp(x), [x])
        with pytest.raises(InvalidArgumentError, match="Cannot feed value of shape"):
            session.partial_run(handle, [], {x: [1.0]})
        assert session.partial_run(handle, [], {x: [0.0, 0.0]}) == []

    def test_branches_and_loops_go_on_when_what_they_wait_for_is_fed(self) -> None:
        x, p, n = gc.placeholder(gc.float32, [2]), gc.placeholder(gc.bool_, []), gc.placeholder(gc.float32, [])
        chosen = cond(p, [x], lambda a: [op("Exp", [a])], lambda a: [op("Neg", [a])])[0]
        limit = enter(n, "f", constant=True)
        looped = while_loop(lambda v: op("Less", [op("Sum", [v, zero(v)]), limit]), lambda v: [op("AddV2", [v, v])], [chosen], "f")[0]
        session = gc.Session()
        handle = session.partial_run_setup([chosen, looped, x], [x, p, n])
        assert session.partial_run(handle, x, {x: [1.0, 2.0]}).tolist() == [1, 2]
        with pytest.raises(InvalidArgumentError, match="can't be computed from the feeds"):
            session.partial_run(handle, chosen)
        assert session.partial_run(handle, chosen, {p: False}).tolist() == [-1, -2]
        assert session.partial_run(handle, looped, {n: -20.0}).tolist() == [-1, -2]

    def test_a_loop_turns_when_its_last_value_is_fed(self) -> None:
        x, n = gc.placeholder(gc.float32, []), gc.placeholder(gc.float32, [])
        limit = enter(n, "f", constant=True)
        inner = lambda v: while_loop(lambda w: op("Less", [w, enter(limit, "g", constant=True)]), double, [v], "g")  # noqa: E731 - short
        looped = while_loop(lambda v: op("Less", [v, limit]), inner, [x], "f")[0]
        session = gc.Session()
        handle = session.partial_run_setup(looped, [x, n])
        session.partial_run(handle, [], {n: 100.0})
        assert session.partial_run(handle, looped, {x: 3.0}) == 192.0

    def test_what_leaves_a_loop_waits_for_all_that_enters_it(self) -> None:
        x, n, other = gc.placeholder(gc.float32, []), gc.placeholder(gc.float32, []), gc.placeholder(gc.float32, [])
        limit, added = enter(n, "f", constant=True), enter(other, "f", constant=True)
        one, two = while_loop(
            lambda a, _: op("Less", [a, limit]), lambda a, b: [op("AddV2", [a, a]), op("AddV2", [b, added])], [x, x], "f", parallel=1
        )
        session = gc.Session()
        handle = session.partial_run_setup([one, two], [x, n, other])
        with pytest.raises(InvalidArgumentError, match="can't be computed from the feeds"):
            session.partial_run(handle, one, {x: 1.0, n: 5.0})
        assert session.partial_run(handle, [one, two], {x: 1.0, n: 5.0, other: 1.0}) == [8.0, 4.0]

    def test_a_fetch_on_a_branch_that_was_not_taken_ends_the_run(self) -> None:
        x, p = gc.placeholder(gc.float32, []), gc.placeholder(gc.bool_, [])
        no, yes = switch(x, p)
        session = gc.Session()
        handle = session.partial_run_setup([no, yes], [x, p])
        assert session.partial_run(handle, yes, {x: 1.0, p: True}) == 1.0
        with pytest.raises(InvalidArgumentError, match="lies on a branch that was not taken"):
            session.partial_run(handle, no)
        with pytest.raises(InvalidArgumentError, match="setup"):
            session.partial_run(handle, no)

    def test_functional_branches_and_calls_run_once(self) -> None:
        x, p = gc.placeholder(gc.float32, []), gc.placeholder(gc.bool_, [])
        w = gc.Variable(0.0)
        with gc.control_dependencies([w.assign_add(x)]):
            counted = gc.identity(x)
        y = gc.cond(p, lambda: counted * 2.0, lambda: counted * 3.0)
        z = gc.function(lambda v: gc.exp(v) * v, name="f")(y)
        session = gc.Session()
        session.run(w.initializer)
        handle = session.partial_run_setup([y, z, counted], [x, p])
        assert session.partial_run(handle, counted, {x: 1.0}) == 1.0
        assert session.partial_run(handle, y, {p: False}) == 3.0
        assert session.partial_run(handle, z) == pytest.approx(np.exp(3.0) * 3.0)
        assert session.run(w) == 1.0

    def test_what_was_fed_may_be_changed_before_a_later_step(self) -> None:
        x, y = gc.placeholder(gc.float32, [2]), gc.placeholder(gc.float32, [2])
        total = x + y
        session = gc.Session()
        handle = session.partial_run_setup(total, [x, y])
        value = np.array([1.0, 2.0], np.float32)
        session.partial_run(handle, [], {x: value})
        value[:] = 0.0
        assert session.partial_run(handle, total, {y: [1.0, 1.0]}).tolist() == [2, 3]

    def test_an_error_names_its_node_and_ends_the_run(self) -> None:
        x, y = gc.placeholder(gc.float32, None, name="x"), gc.placeholder(gc.float32, None, name="y")
        z = gc.add(x, y, name="z")
        session = gc.Session()
        handle = session.partial_run_setup(z, [x, y])
        session.partial_run(handle, [], {x: [1, 2, 3]})
        with pytest.raises(InvalidArgumentError) as caught:
            session.partial_run(handle, z, {y: [1, 2]})
        assert caught.value.node == "z"
        assert "float32 [3], float32 [2]" in caught.value.message
        with pytest.raises(InvalidArgumentError, match="setup"):
            session.partial_run(handle, z)

    def test_a_limit_on_all_runs_of_a_session_holds_for_each_step(self) -> None:
        x, received = gc.placeholder(gc.float32, [], name="x"), receive()
        forever = while_loop(lambda v: op("LessEqual", [v, v]), lambda v: [op("AddV2", [v, v])], [x])[0]
        for late in (op("Neg", [received]), forever):
            session = gc.Session(options=gc.SessionOptions(operation_timeout_in_ms=200))
            handle = session.partial_run_setup([x, late], [x])
            threads = threading.active_count()
            with pytest.raises(DeadlineExceededError, match="200 ms"):
                session.partial_run(handle, late, {x: 1.0})
            with pytest.raises(InvalidArgumentError, match="setup"):
                session.partial_run(handle, x)
            assert threading.active_count() <= threads

    def test_a_step_that_fails_aborts_the_rendezvous_with_its_error(self) -> None:
        session = gc.Session()
        met, handle = session.rendezvous, session.partial_run_setup(op("Neg", [receive()]))
        met.send(KEY, None, np.float64(1.0))
        with pytest.raises(InternalError, match="expected to receive float, got float64"):
            session.partial_run(handle, "Neg:0")
        with pytest.raises(InternalError, match="expected to receive float, got float64"):
            met.recv(KEY, timeout=5)

    @pytest.mark.usefixtures("interruptible")
    def test_ctrl_c_while_a_step_waits_leaves_nobody_waiting_in_its_place(self) -> None:
        session = gc.Session()
        late = op("Neg", [receive()])
        met, handle = session.rendezvous, session.partial_run_setup(late)
        presser = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident or 0, signal.SIGINT))
        presser.start()
        with pytest.raises(KeyboardInterrupt):
            session.partial_run(handle, late)
        presser.join()
        assert not met._queues
        session.rendezvous.send(KEY, None, np.float32(2.0))
        assert session.run(late) == -2.0


DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
KEY = gc.create_key(DEVICE, 1, DEVICE, "v")


def receive() -> Any:
    """What comes under `KEY`."""
    ends = {"tensor_name": "v", "send_device": DEVICE, "send_device_incarnation": 1, "recv_device": DEVICE}
    return op("_Recv", [], {"tensor_type": gc.float32, **ends})


def test_a_static_graph_may_not_change() -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    session = gc.Session(options=gc.SessionOptions(optimize_for_static_graph=True))
    assert session.run(x, {x: 1.0}) == 1.0
    y = x + 1.0
    with pytest.raises(FailedPreconditionError, match="optimize_for_static_graph"):
        session.run(y, {x: 1.0})


def test_a_feed_error_names_the_placeholders_cell() -> None:
    x = gc.placeholder(gc.float32, [None, 64], name="x")
    x.node.source = SourceLocation("<cell>", 1, CellRun(cell="7", execution=3, label="In [3]"))
    with pytest.raises(InvalidArgumentError) as caught:
        gc.Session().run(x, {x: np.zeros((2, 63))})
    assert "In [3]" in str(caught.value)
