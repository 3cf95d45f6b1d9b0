"""The rules of client-level runs and of pruning by feeds and fetches, by both engines."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError

pytestmark = pytest.mark.parametrize("engine", ["plan", "dataflow"])
A = np.array([[3, 2], [-1, 0]], np.float32)
X = np.ones((2, 1), np.float32)
DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def example() -> None:
    """y = a x, y_neg = -y."""
    a, x = gc.constant(A, name="a"), gc.constant(X, name="x")
    y = gc.matmul(a, x, name="y")
    gc.negative(y, name="y_neg")
    gc.identity(y, name="z")


def ran(session: gc.Session, fetches: Any, feeds: dict[Any, Any]) -> set[str]:
    """The nodes that a run executes."""
    metadata = gc.RunMetadata()
    session.run(fetches, feeds, gc.RunOptions(trace=True), metadata)
    assert metadata.trace is not None
    return {event.node for event in metadata.trace.events}


# ---- DS --------------------------------------------------------------------------------------------------------------


def test_ds_the_example_gives_five(engine: str) -> None:
    example()
    y, target = gc.Session(engine=engine).run(["y:0", "y_neg"])
    assert (y[0, 0], target) == (5, None)


def test_ds_fetches_keep_their_order_and_each_is_an_array_of_its_own(engine: str) -> None:
    example()
    neg, y, again, x = gc.Session(engine=engine).run(["y_neg:0", "y:0", "y:0", "x:0"])
    assert (neg[0, 0], y[0, 0], again[0, 0], x[0, 0]) == (-5, 5, 5, 1)
    y[0, 0] = 7
    assert again[0, 0] == 5


@pytest.mark.parametrize("feed", ["x", "x:0"])
def test_ds_a_tensor_is_fed_by_its_name_with_or_without_port(feed: str, engine: str) -> None:
    example()
    assert gc.Session(engine=engine).run("y:0", {feed: 2 * X})[0, 0] == 10


def test_ds_a_tensor_is_not_fed_twice_and_feeds_must_exist(engine: str, graph: gc.Graph) -> None:
    example()
    session = gc.Session(engine=engine)
    x = graph.get_tensor_by_name("x:0")
    for feeds in ({"x": X, "x:0": X}, {x: X, "x": X}, {x.node: X, x: X}):
        with pytest.raises(InvalidArgumentError, match='Endpoint "x:0" fed more than once'):
            session.run("y:0", feeds)
    with pytest.raises(NotFoundError, match="FeedInputs: unable to find feed output foo:0"):
        session.run("y:0", {"foo:0": X})
    with pytest.raises((InvalidArgumentError, NotFoundError)):
        session.run("y:0", {"a:7": X})
    assert session.run("y:0", {"x": X})[0, 0] == 5


def test_ds_connections_give_the_target_the_value_of_the_source(engine: str) -> None:
    a, b = gc.placeholder(gc.float32, [], name="a"), gc.placeholder(gc.float32, [], name="b")
    e = gc.square(a, name="c") + gc.negative(b, name="d")
    session = gc.Session(engine=engine)
    assert session.make_callable(e, [a], [("c:0", "b:0")])(3.0) == 0.0
    assert session.make_callable(e, [a], [("a:0", "b")])(3.0) == 6.0
    for pairs, text in (
        ([("d:0", "b:0")], "would create a cycle"),
        ([("no:0", "b:0")], "unknown node"),
        ([("c:3", "b:0")], "unknown edge"),
        ([("c:0", "b:0"), ("a:0", "b:0")], "fed more than once"),
        ([("c:0", "a:0")], "fed more than once"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            session.make_callable(e, [a], pairs)
    with pytest.raises(NotFoundError, match="unable to find feed output"):
        session.make_callable(e, [a], [("c:0", "no:0")])
    assert session.run(e, {a: 3.0, b: 1.0}) == 8.0


def test_ds_a_callable_ends_when_it_is_released(engine: str) -> None:
    example()
    session = gc.Session(engine=engine)
    call = session.make_callable(["y:0", "y_neg:0", "z"], ["x"])
    y, neg, target = call(3 * X)
    assert (y[0, 0], neg[0, 0], target) == (15, -15, None)
    call.release()
    with pytest.raises(InvalidArgumentError, match=r"^Attempted to run callable after handle was released$"):
        call(X)


@pytest.mark.parametrize("use_resource", [False, True])
def test_ds_variables_keep_their_values_between_runs(use_resource: bool, engine: str) -> None:
    w = gc.Variable(np.zeros(2, np.float32), name="w", use_resource=use_resource)
    step = w.assign_add([1.0, 2.0])
    session = gc.Session(engine=engine)
    session.run(w.initializer)
    session.run(step)
    session.run(step)
    assert session.run(w).tolist() == [2, 4]


def test_ds_a_session_of_a_static_graph_is_not_extended_nor_a_final_one_asked_for_more(engine: str) -> None:
    example()
    options = gc.SessionOptions(optimize_for_static_graph=True)
    session, final = gc.Session(engine=engine, options=options), gc.Session(engine=engine)
    final.run("y:0")
    final.finalize()
    assert final.run("y:0")[0, 0] == 5
    with pytest.raises(FailedPreconditionError, match="has been finalized"):
        final.run("y_neg:0")
    gc.constant(1.0, name="late")
    with pytest.raises(FailedPreconditionError, match="optimize_for_static_graph"):
        session.run("late:0")


def test_ds_software_tracing_gives_one_entry_for_the_device(engine: str) -> None:
    example()
    metadata = gc.RunMetadata()
    gc.Session(engine=engine).run("y:0", {"x": X}, gc.RunOptions(trace_level=gc.RunOptions.SOFTWARE_TRACE), metadata)
    assert metadata.trace is not None
    (entry,) = metadata.trace.step_stats().dev_stats
    assert entry.device == DEVICE
    assert "y" in {stats.node_name for stats in entry.node_stats}


def test_ds_only_needed_nodes_are_placed(engine: str) -> None:
    example()
    with gc.device("/device:GPU:7"):
        gc.constant(1.0, name="elsewhere")
    session = gc.Session(engine=engine, options=gc.SessionOptions(allow_soft_placement=False, place_pruned_graph=True))
    assert session.run("y:0")[0, 0] == 5
    with pytest.raises(InvalidArgumentError, match="Cannot assign a device for operation elsewhere"):
        session.run("elsewhere:0")


# ---- B ---------------------------------------------------------------------------------------------------------------


def drawn(name: str) -> Any:
    """A value unknown before the run."""
    return gc.ops.random_uniform([2], dtype=gc.float32, name=name)


def two_by_two() -> None:
    w1, w2 = drawn("W1"), drawn("W2")
    value = gc.ops.random_uniform([4], dtype=gc.float32, name="source")
    halves: Any = gc.get_default_graph().apply_op("Split", [0, value], {"num_split": 2}, "input")
    t1 = gc.multiply(w1, halves.outputs[1], name="t1")
    t2 = gc.multiply(w2, t1, name="t2")
    gc.exp(t2, name="t3_a")
    gc.tanh(t2, name="t3_b")


@pytest.mark.parametrize(
    ("feeds", "fetches", "left"),
    [
        ([], ["t1"], {"W1", "source", "input", "t1"}),
        (["input:1"], ["t2"], {"W1", "W2", "t1", "t2"}),
        ([], ["t3_a:0", "t2"], {"W1", "W2", "source", "input", "t1", "t2", "t3_a"}),
        (["t1:0"], ["t3_a:0", "t3_b"], {"W2", "t2", "t3_a", "t3_b"}),
        (["t2:0", "W1:0"], ["t3_b:0"], {"t3_b"}),
    ],
)
def test_b_nodes_without_need_for_a_target_or_fetch_do_not_run(feeds: list[str], fetches: list[str], left: set[str], engine: str) -> None:
    two_by_two()
    found = ran(gc.Session(engine=engine), fetches, dict.fromkeys(feeds, np.ones(2, np.float32)))
    assert found & {node.name for node in gc.get_default_graph().op_nodes() if node.op != "Const"} == left


def test_b_a_chain_that_is_fed_in_the_middle_runs_on_both_sides_of_it(engine: str) -> None:
    value = drawn("a")
    for name in "bcdef":
        value = gc.exp(value, name=name)
    found = ran(gc.Session(engine=engine), ["b:0", "e:0"], {"c:0": np.zeros(2, np.float32)})
    assert found - {"Const"} == {"a", "b", "d", "e"}


def test_b_feeding_one_output_keeps_the_others_and_control_dependencies(engine: str) -> None:
    w = gc.Variable(0.0, name="w")
    value = gc.ops.random_uniform([4], dtype=gc.float32)
    with gc.control_dependencies([w.assign_add(1.0).op]):
        pair: Any = gc.get_default_graph().apply_op("Split", [0, value], {"num_split": 2}, "pair")
    with gc.control_dependencies([pair]):
        after = gc.constant(7.0, name="after")
    session = gc.Session(engine=engine)
    session.run(w.initializer)
    fed, other = session.run([pair.outputs[0], pair.outputs[1]], {pair.outputs[0]: [5.0, 6.0]})
    assert fed.tolist() == [5, 6]
    assert other.shape == (2,)
    assert session.run(w) == 1.0
    assert session.run(gc.identity(after), {pair.outputs[0]: [5.0, 6.0]}) == 7.0
    assert session.run(w) == 2.0


def test_b_control_dependencies_on_a_placeholder_require_its_feed(engine: str) -> None:
    x = gc.placeholder(gc.float32, [], name="x")
    with gc.control_dependencies([x.op]):
        y = gc.identity(drawn("v"), name="y")
    session = gc.Session(engine=engine)
    assert session.run(y, {x: 1.0}).shape == (2,)
    with pytest.raises(InvalidArgumentError, match="You must feed a value for placeholder tensor 'x'"):
        session.run(y)


def test_b_a_reference_is_fed_and_fetched_as_a_value(engine: str) -> None:
    w = gc.Variable([1.0, 2.0], name="w")
    session = gc.Session(engine=engine)
    session.run(w.initializer)
    value = session.run("w:0")
    assert value.tolist() == [1, 2]
    value[0] = 9
    assert session.run("w:0").tolist() == [1, 2]
    assert session.run("w/read:0", {"w:0": [3.0, 4.0]}).tolist() == [3, 4]
    assert session.run("w:0").tolist() == [1, 2]


# ---- EX --------------------------------------------------------------------------------------------------------------


def test_ex_feeds_and_fetches_of_a_client_are_sends_and_receives_of_the_first_frame(engine: str) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    y = gc.square(x, name="y")
    result = gc.rewrite_graph_for_execution(x.graph, ["x:0"], [y.name], [], DEVICE)
    key_in, key_out = (gc.create_key(DEVICE, 0, DEVICE, name) for name in ("x:0", "y:0"))
    assert key_in.endswith(";x:0;0:0")
    with gc.Session(result.graph, engine=engine) as session:
        session.rendezvous.send(key_in, None, np.array([2.0, 3.0], np.float32))
        session.run("_send_y_0")
        assert session.rendezvous.recv(key_out, timeout=10).value.tolist() == [4, 9]


@pytest.mark.parametrize(("flag", "dead"), [(False, False), (True, True)])
def test_ex_a_send_on_a_branch_not_taken_sends_a_dead_value(flag: bool, dead: bool, engine: str, graph: gc.Graph) -> None:
    a, p = gc.placeholder(gc.float32, [], name="a"), gc.placeholder(gc.bool_, [], name="p")
    side = graph.apply_op("Switch", [a, p]).outputs[0]
    attrs = {"tensor_name": "out", "send_device": DEVICE, "send_device_incarnation": 1, "recv_device": DEVICE}
    sending = graph.apply_op("_Send", [side], attrs)
    session = gc.Session(engine="auto" if engine == "plan" else engine)  # a plan sends no dead values, and says so
    session.run(sending, {a: 1.0, p: flag})
    received = session.rendezvous.recv(gc.create_key(DEVICE, 1, DEVICE, "out"), timeout=5)
    assert received.is_dead is dead
    assert dead or received.value == 1.0


def test_ex_a_graph_without_sends_or_fetches_is_fine(engine: str, graph: gc.Graph) -> None:
    assert gc.Session(engine=engine).run(graph.apply_op("NoOp", [])) is None


def test_ex_updates_of_a_reference_at_once_are_never_more_than_one_by_one(engine: str) -> None:
    w = gc.Variable(0.0, name="w")
    step = w.assign_add(1.0)
    session = gc.Session(engine=engine)
    session.run(w.initializer)

    def often() -> None:
        for _ in range(100):
            session.run(step.op)

    threads = [threading.Thread(target=often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < session.run(w) <= 400
