"""The dataflow engine: dead values, sends and receives, iterations, and faulty kernels."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import AbortedError, CancelledError, DeadlineExceededError, InternalError, InvalidArgumentError
from graphcore.kernel_context import RefVariable
from graphcore.runtime.core.program import Step
from graphcore.runtime.dataflow.dataflow_program import build_dataflow
from tests.graphcore.runtime.loop_graphs import cond, enter, kernel_of, op, outputs, switch, while_loop
from tests.support.threads import LiveThreads

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def session() -> gc.Session:
    return gc.Session(engine="dataflow")


def send(value: Any, name: str) -> gc.Node:
    return gc.get_default_graph().apply_op("_Send", [value], edge(name))


def recv(name: str, dtype: gc.DType = gc.float32) -> Any:
    return outputs("_Recv", [], {"tensor_type": dtype, **edge(name)}, name)[0]


def edge(name: str) -> dict[str, Any]:
    return {"tensor_name": name, "send_device": DEVICE, "send_device_incarnation": 1, "recv_device": DEVICE}


def key(name: str, frame_iter: tuple[int, int] = (0, 0)) -> str:
    return gc.create_key(DEVICE, 1, DEVICE, name, frame_iter)


@pytest.mark.parametrize(("flag", "dead"), [(False, False), (True, True)])
def test_ex_a_send_on_a_branch_not_taken_sends_a_dead_value(flag: bool, dead: bool) -> None:
    a = recv("a")
    node = send(switch(a, gc.constant(flag))[0], "out")
    with session() as running:
        running.rendezvous.send(key("a"), None, np.float32(1.0))
        running.run(node)
        received = running.rendezvous.recv(key("out"), timeout=5)
    assert received.is_dead is dead
    assert dead or received.value == 1.0


def test_ex_consumers_of_a_received_dead_value_are_dead() -> None:
    a = recv("a")
    node = send(op("Neg", [a]), "out")
    with session() as running:
        running.rendezvous.send(key("a"), None, None, is_dead=True)
        running.run(node)
        assert running.rendezvous.recv(key("out"), timeout=5).is_dead


def test_ex_a_graph_without_any_send_is_fine() -> None:
    ran = gc.get_default_graph().apply_op("NoOp", [])
    with session() as running:
        assert running.run(ran) is None


def test_ex_a_receive_blocks_no_other_node() -> None:
    """The received value is sent in answer to a send of the same run."""
    late = op("Neg", [recv("answer")])
    with gc.control_dependencies([send(gc.constant(np.float32(2.0)), "question")]):
        done = gc.get_default_graph().apply_op("NoOp", [])
    with session() as running:
        rendezvous = running.rendezvous

        def answer() -> None:
            rendezvous.send(key("answer"), None, rendezvous.recv(key("question"), timeout=5).value * 2)

        thread = threading.Thread(target=answer)
        thread.start()
        assert running.run([late, done])[0] == -4.0
        thread.join()


def test_ex_aborting_while_a_run_waits_ends_it_and_every_later_receive_with_that_status() -> None:
    late = op("Neg", [recv("never")])
    with session() as running:
        rendezvous = running.rendezvous
        timer = threading.Timer(0.05, lambda: rendezvous.start_abort(AbortedError("enough")))
        timer.start()
        with pytest.raises(AbortedError, match="enough"):
            running.run(late)
        timer.join()
        with pytest.raises(AbortedError, match="enough"):
            rendezvous.recv(key("never"), timeout=1)


def test_ex_a_received_value_of_the_wrong_type_ends_the_run_and_aborts_the_rendezvous() -> None:
    late = op("Neg", [recv("a")])
    with session() as running:
        rendezvous = running.rendezvous
        rendezvous.send(key("a"), None, np.array(1.0))
        with pytest.raises(InternalError, match="expected to receive float, got float64") as caught:
            running.run(late)
        assert caught.value.node == "a"
        with pytest.raises(InternalError, match="expected to receive float, got float64"):
            rendezvous.recv(key("b"), timeout=1)


def test_sends_and_receives_in_a_loop_match_by_iteration() -> None:
    step, limit = enter(gc.constant(1), "f", constant=True), enter(gc.constant(3), "f", constant=True)

    def body(i: Any) -> list[Any]:
        with gc.control_dependencies([send(i, "edge")]):
            received = recv("edge", gc.int32)
        return [op("AddV2", [received, step])]

    result = while_loop(lambda i: op("Less", [i, limit]), body, [gc.constant(0)], "f")
    with session() as running:
        assert running.run(result[0]) == 3


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("given", "text"),
    [
        (np.float64(1.0), "Output 0 of type double does not match declared output type float for node {{node bad}}"),
        (1.0, r"Output 0 of type float \(no array\) does not match declared output type float"),
        (None, "Missing 0-th output from {{node bad}}"),
    ],
    ids=["another type", "no array", "unset"],
)
def test_ex_a_kernel_that_breaks_its_word_is_an_internal_error_that_names_node_and_line(given: Any, text: str, count: int) -> None:
    node = gc.get_default_graph().apply_op("IdentityN", [[gc.constant(1.0)] * count], name="bad")
    result = given if count == 1 else (given, np.float32(0.0))
    program = build_dataflow([node.outputs[0]], [], [], giving(node, result))
    with pytest.raises(InternalError, match=text) as caught:
        program.run()
    assert caught.value.node == "bad"
    assert caught.value.source is not None


def test_ex_a_kernel_that_leaves_its_last_output_unset_or_gives_one_too_many_is_an_internal_error() -> None:
    node = gc.get_default_graph().apply_op("IdentityN", [[gc.constant(1.0), gc.constant(2.0)]], name="bad")
    one = np.float32(1.0)
    for result, text in (((one,), "Missing 1-th output"), ((one, one, one), "gave 3 outputs; its op IdentityN declares 2")):
        program = build_dataflow([node.outputs[0]], [], [], giving(node, result))
        with pytest.raises(InternalError, match=text):
            program.run()


def test_ex_a_variable_output_of_another_type_is_an_internal_error() -> None:
    v = op("VariableV2", attrs={"dtype": gc.float32, "shape": gc.Shape([])})
    other = RefVariable("other", gc.float64, gc.Shape([]))
    program = build_dataflow([op("Identity", [v])], [], [], lambda *_: lambda *_: other)
    with pytest.raises(InternalError, match="Output 0 of type double_ref does not match declared output type float_ref"):
        program.run()


def test_ex_updates_of_a_variable_by_several_runs_at_once_are_never_more_than_one_by_one() -> None:
    v = gc.Variable(0.0)
    update = v.assign_add(1.0)
    with session() as running:
        running.run(gc.initialize_all_variables())
        threads = [threading.Thread(target=lambda: [running.run(update) for _ in range(50)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 0 < running.run(v) <= 200


@pytest.mark.parametrize("depth", [1, 2, 5, 60])
def test_a_value_may_pass_through_frames_within_frames_in_which_nothing_waits(depth: int) -> None:
    value = gc.constant(2.0)
    for i in range(depth):
        value = enter(value, f"f{i}")
    for _ in range(depth):
        value = op("Exit", [value])
    with session() as running:
        assert running.run(value) == 2.0


def test_no_more_iterations_are_under_way_than_may_be() -> None:
    """The counter runs ahead of a slow value by the allowed number of iterations."""
    most = []
    for parallel in (1, 2, 5):
        with gc.Graph().as_default() as graph:
            step, limit = enter(gc.constant(1), "f", constant=True), enter(gc.constant(20), "f", constant=True)

            def body(i: Any, x: Any, step: Any = step) -> list[Any]:
                y = x
                for _ in range(40):
                    y = op("Neg", [y])
                return [op("AddV2", [i, step]), y]

            result = while_loop(lambda i, _, limit=limit: op("Less", [i, limit]), body, [gc.constant(0), gc.constant(1.0)], "f", parallel)
            events = recorded(graph, result)
        counters = [event.iteration for event in events if event.kind == "start" and event.node == "AddV2"]
        assert counters == list(range(20))
        ahead, done = 0, -1
        for event in events:
            if event.kind == "end" and event.node == "Neg_39":
                done = event.iteration
            if event.kind == "start" and event.node == "AddV2":
                ahead = max(ahead, event.iteration - done)
        most.append(ahead)
    assert most == [1, 2, 5]


def recorded(graph: gc.Graph, fetches: Any, feeds: dict[Any, Any] | None = None) -> tuple[gc.Event, ...]:
    """The events of a run."""
    metadata = gc.RunMetadata()
    with gc.Session(graph, engine="dataflow") as running:
        running.run(fetches, feeds, gc.RunOptions(trace=True), metadata)
    assert metadata.trace is not None
    return tuple(metadata.trace.events)


def test_a_recorded_run_has_schedule_start_and_end_of_every_node_and_the_dead_ones() -> None:
    p = gc.placeholder(gc.bool_, [], name="p")
    x = gc.constant(np.ones(4, np.float32), name="x")
    y = cond(p, [x], lambda a: [outputs("Neg", [a], node_name="neg")[0]], lambda a: [outputs("Abs", [a], node_name="abs")[0]])[0]
    events = recorded(gc.get_default_graph(), y, {p: True})
    by_node = {name: [event.kind for event in events if event.node == name] for name in ("neg", "abs", "x")}
    assert by_node == {"neg": ["scheduled", "start", "end"], "abs": ["scheduled", "dead"], "x": ["scheduled", "start", "end"]}
    assert [event.bytes for event in events if event.node == "neg" and event.kind == "end"] == [16]
    assert [event.ns for event in events] == sorted(event.ns for event in events)


def test_a_recorded_loop_has_frames_iterations_sends_and_receives() -> None:
    step, limit = enter(gc.constant(1), "f", constant=True), enter(gc.constant(2), "f", constant=True)

    def body(i: Any) -> list[Any]:
        with gc.control_dependencies([send(i, "edge")]):
            return [op("AddV2", [recv("edge", gc.int32), step])]

    events = recorded(gc.get_default_graph(), while_loop(lambda i: op("Less", [i, limit]), body, [gc.constant(0)], "f"))
    moved = [(event.kind, event.frame, event.iteration, event.bytes) for event in events if event.kind in ("sent", "received")]
    assert moved == [
        ("sent", "f", 0, 4),
        ("received", "f", 0, 4),
        ("sent", "f", 1, 4),
        ("received", "f", 1, 4),
        ("sent", "f", 2, 0),  # the loop has ended: a dead value is sent
    ]
    assert [(event.kind, event.iteration) for event in events if event.node == "AddV2" and event.kind != "scheduled"] == [
        ("start", 0),
        ("end", 0),
        ("start", 1),
        ("end", 1),
        ("dead", 2),
    ]


def test_a_run_that_waits_for_ever_ends_when_its_time_is_over_and_another_runs_afterwards() -> None:
    late = op("Neg", [recv("never")])
    with session() as running:
        before = LiveThreads()
        with pytest.raises(DeadlineExceededError):
            running.run(late, options=gc.RunOptions(timeout_in_ms=50))
        before.check_none_is_left()
        running.rendezvous.send(key("never"), None, np.float32(3.0))
        assert running.run(late) == -3.0


def test_an_endless_loop_ends_when_it_is_cancelled() -> None:
    one = enter(gc.constant(1), "f", constant=True)
    result = while_loop(lambda i: op("GreaterEqual", [i, i]), lambda i: [op("AddV2", [i, one])], [gc.constant(0)], "f")
    program = build_dataflow(result, [], [], kernel_of)
    manager = gc.CancellationManager()
    threading.Timer(0.05, manager.start_cancel).start()
    with pytest.raises(CancelledError):
        program.run_step(Step(None, manager), [])
    with pytest.raises(CancelledError):
        program.run_step(Step(None, manager), [])


def test_a_cancellation_that_comes_while_a_run_looks_at_the_clock_is_not_lost() -> None:
    manager = gc.CancellationManager()

    class Interrupted(Step):
        """Another thread cancels at this point."""

        def is_late(self) -> bool:
            manager.start_cancel()
            return False

    program = build_dataflow([gc.exp(gc.negative(gc.constant(1.0)))], [], [], kernel_of)
    with pytest.raises(CancelledError):
        program.run_step(Interrupted(None, manager), [])


def giving(node: gc.Node, result: Any) -> Any:
    """Kernels: that of `node` returns `result`, the others 1."""
    return lambda made, _context: lambda *_inputs: result if made is node else np.float32(1.0)


def test_a_deep_graph_and_deep_branches_need_no_stack() -> None:
    y = gc.constant(np.float32(1.0))
    for _ in range(3_000):
        y = op("Neg", [y])
    for _ in range(60):
        y = cond(gc.constant(True), [y], lambda a: [op("Neg", [a])], lambda a: [a])[0]
    with session() as running:
        assert running.run(y) == 1.0


def test_abort_ends_the_run_that_comes_to_it() -> None:
    _, yes = switch(gc.constant(1.0), gc.constant(True))
    with gc.control_dependencies([yes.node]):
        node = gc.get_default_graph().apply_op("Abort", [], {"error_msg": "no way"}, name="stop")
    with session() as running, pytest.raises(AbortedError, match="no way") as caught:
        running.run(node)
    assert caught.value.node == "stop"


def test_the_plan_engine_refuses_unsupported_control_flow_and_the_session_takes_the_other() -> None:
    x = gc.placeholder(gc.float32, [])
    race = outputs("Merge", [[op("Neg", [x]), op("Neg", [x])]])[0]
    with (
        gc.Session(engine="plan") as running,
        pytest.raises(gc.errors.UnimplementedError, match="its inputs are not the sides of one branch"),
    ):
        running.run(race, {x: 2.0})
    with gc.Session() as running:
        assert running.run(race, {x: 2.0}) == -2.0
    with pytest.raises(InvalidArgumentError, match="Required one of the engines 'auto', 'plan', 'dataflow', got 'magic'"):
        gc.Session(engine="magic")
