"""Client-level runs, by names (DirectSession) and by tensors (Session)."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from graphcore.source import CellRun, SourceLocation

A = np.array([[3, 2], [-1, 0]], np.float32)
X = np.ones((2, 1), np.float32)
DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


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
    """The rules, one by one."""

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

    def test_a_callable_that_is_released_while_it_is_called_stays_released(self, graph: gc.Graph) -> None:
        x = graph.apply_op("Placeholder", [], {"dtype": gc.float32, "shape": []}, "x").outputs[0]
        session = gc.Session(graph=graph)
        y = x * 2.0
        call = session.make_callable(y, [x])
        graph.set_attr(y.node, "_changed", 1)  # it must be prepared again
        with ThreadPoolExecutor(1) as pool:
            caller = pool.submit(threading.get_ident).result()
            with graph.lock:
                called = pool.submit(call, 3.0)
                while sys._current_frames()[caller].f_code.co_name != "prepare":
                    time.sleep(0.001)
                call.release()
            assert called.result() == 6.0
        with pytest.raises(InvalidArgumentError, match="after handle was released"):
            call(3.0)
        assert call not in session.planner.plans

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
