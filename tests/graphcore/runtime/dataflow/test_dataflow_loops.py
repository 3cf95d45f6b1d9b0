"""Loops in the dataflow engine: values, errors, cancellation, order of iterations, dead values."""

from __future__ import annotations

import gc as collector
import weakref
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import CancelledError, GraphError, InternalError
from graphcore.runtime.core.program import Step
from graphcore.runtime.dataflow.dataflow_program import build_dataflow
from graphcore.runtime.dataflow.frames import Iteration
from tests.graphcore.runtime.loop_graphs import cond, enter, kernel_of, merge, op, outputs, switch, while_loop

Tensor = gc.Tensor
TURNS = 4


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def noting(call: Callable[..., Any], note: Callable[[Any], None]) -> Callable[..., Any]:
    """`call`, of whose first input a note is taken before."""

    def noted(*inputs: Any) -> Any:
        note(inputs[0])
        return call(*inputs)

    return noted


def counted(body: Callable[[Tensor, Tensor], Any], start: Any, turns: Any = TURNS, frame: str = "f", parallel: int = 10) -> Tensor:
    """The value of a loop that makes `body(i, value)` of its value, so often."""
    one, limit = enter(gc.constant(1), frame, constant=True), enter(gc.constant(turns), frame, constant=True)
    return while_loop(
        lambda i, _: op("Less", [i, limit]),
        lambda i, a: [op("AddV2", [i, one]), body(i, a)],
        [gc.constant(0), start],
        frame,
        parallel,
    )[1]


def within(value: Any, frame: str = "f") -> Tensor:
    """Values that are the same in all iterations."""
    return enter(gc.constant(value), frame, constant=True)


def run(fetches: Any, feeds: dict[Any, Any] | None = None, **options: Any) -> Any:
    with gc.Session(engine="dataflow") as session:
        return session.run(fetches, feeds, gc.RunOptions(**options) if options else None)


def test_an_error_in_a_loop_names_its_node_its_inputs_and_its_line() -> None:
    x = gc.placeholder(gc.float32, None, name="x")

    def body(_i: Tensor, a: Tensor) -> Any:
        wide = op("Abs", [op("Neg", [a])])
        return outputs("AddV2", [op("Tanh", [wide]), enter(x, "f", constant=True)], node_name="sum")[0]

    result = counted(body, gc.constant(np.ones(3, np.float32)))
    with pytest.raises(GraphError) as caught:
        run(result, {x: [1.0, 2.0]})
    assert (caught.value.node, caught.value.op) == ("sum", "AddV2")
    assert "on float32 [3], float32 [2]" in caught.value.message
    assert caught.value.source is not None
    assert "outputs(" in str(caught.value.source) or "loop_graphs" in str(caught.value.source)
    assert run(result, {x: [0.0]}).shape == (3,)


def test_of_loops_that_are_alike_the_one_that_failed_is_named() -> None:
    names = [f"loop{i}" for i in range(4)]
    values = [gc.placeholder(gc.float32, None, name=f"{name}_value") for name in names]

    def sums(name: str, value: Tensor) -> Tensor:
        start = gc.constant(np.ones(3, np.float32))
        return counted(
            lambda _i, a: outputs("AddV2", [a, enter(value, name, constant=True)], node_name=f"{name}_sum")[0], start, frame=name
        )

    results = [sums(name, value) for name, value in zip(names, values, strict=True)]
    for name, bad in zip(names, values, strict=True):
        with pytest.raises(GraphError) as caught:
            run(results, {value: [1.0, 2.0] if value is bad else [1.0] for value in values})
        assert caught.value.node == f"{name}_sum"


@pytest.mark.parametrize(
    ("given_value", "text"),
    [
        (np.float64(1.0), "Output 0 of type double does not match declared output type float for node {{node broken}}"),
        (None, "Missing 0-th output from {{node broken}}"),
        ("text", "Output 0 of type str (no array)"),
        ((np.float32(1.0), np.float32(1.0)), "gave 2 outputs"),
    ],
)
def test_a_kernel_in_a_loop_that_breaks_its_word_is_an_internal_error(given_value: Any, text: str) -> None:
    result = counted(lambda _i, a: outputs("Neg", [a], node_name="broken")[0], gc.constant(1.0))

    def kernel(node: gc.Node, context: Any) -> Any:
        return (lambda _: given_value) if node.name == "broken" else kernel_of(node, context)

    with pytest.raises(InternalError) as caught:
        build_dataflow([result], [], [], kernel).run()
    assert text in caught.value.message
    assert caught.value.node == "broken"


def test_ctrl_c_in_a_kernel_of_a_loop_is_raised_with_a_note_of_the_node() -> None:
    result = counted(lambda _i, a: outputs("Neg", [op("Tanh", [a])], node_name="pressed")[0], gc.constant(1.0))

    def press(_: Any) -> Any:
        raise KeyboardInterrupt

    program = build_dataflow([result], [], [], lambda node, context: press if node.name == "pressed" else kernel_of(node, context))
    with pytest.raises(KeyboardInterrupt) as caught:
        program.run()
    assert any("stopped while running 'pressed'" in note for note in caught.value.__notes__)


def test_a_cancelled_run_stops_before_the_next_node_of_an_iteration() -> None:
    manager = gc.CancellationManager()
    made: list[str] = []

    def kernel(node: gc.Node, context: Any) -> Any:
        call = kernel_of(node, context)

        def noted(*inputs: Any) -> Any:
            made.append(node.name)
            if made.count("first") == 2:
                manager.start_cancel()
            return call(*inputs)

        return noted if node.name in ("first", "second") else call

    def body(_i: Tensor, a: Tensor) -> Any:
        return outputs("Neg", outputs("Abs", [a], node_name="first"), node_name="second")[0]

    program = build_dataflow([counted(body, gc.constant(1.0))], [], [], kernel)
    step = Step(None, manager)
    with pytest.raises(CancelledError) as caught:
        program.run_step(step, [])
    assert made == ["first", "second", "first"]
    assert step.node is not None
    assert caught.value.node == step.node.name


@pytest.mark.parametrize("axes", [(), (1,)])
def test_branches_in_a_loop_run_only_where_they_are_taken(axes: tuple[int, ...]) -> None:
    """By a predicate that is a scalar, or an array of no axes from a reduction."""
    made: list[str] = []

    def kernel(node: gc.Node, context: Any) -> Any:
        call = kernel_of(node, context)
        return noting(call, lambda _: made.append(node.name)) if node.name in ("yes", "no") else call

    def body(i: Tensor, a: Tensor) -> Any:
        odd = op("Less", [within(0), op("FloorMod", [i, within(2)])])
        if axes:
            odd = op("Any", [op("Reshape", [odd, within(list(axes))]), within(0)])
        found = cond(
            odd,
            [a],
            lambda b: [outputs("Mul", [b, within(3.0)], node_name="yes")[0]],
            lambda b: [outputs("AddV2", [b, within(1.0)], node_name="no")[0]],
        )[0]
        return op("Identity", [found])

    result = counted(body, gc.constant(1.0))
    assert build_dataflow([result], [], [], kernel).run() == [((1.0 + 1) * 3 + 1) * 3]
    assert sorted(made) == ["no", "no", "yes", "yes"]


def test_loops_within_loops_open_a_frame_in_every_iteration() -> None:
    def outer(_i: Tensor, a: Tensor) -> Any:
        limit = enter(enter(gc.constant(3), "f", constant=True), "inner", constant=True)
        one = enter(enter(gc.constant(1), "f", constant=True), "inner", constant=True)
        zero = op("Sub", [within(1), within(1)])
        return while_loop(
            lambda j, _: op("Less", [j, limit]), lambda j, b: [op("AddV2", [j, one]), op("AddV2", [b, b])], [zero, a], "inner"
        )[1]

    assert run(counted(outer, gc.constant(1.0))) == 2.0 ** (3 * TURNS)


@pytest.mark.parametrize("parallel", [1, 2, 10])
def test_a_counter_that_runs_ahead_waits_for_the_others(parallel: int) -> None:
    """Postponed values go on when the oldest iteration is done."""
    inputs: list[int] = []

    def kernel(node: gc.Node, context: Any) -> Any:
        call = kernel_of(node, context)
        return noting(call, lambda i: inputs.append(int(i))) if node.op == "FloorMod" else call

    def body(i: Tensor, a: Tensor) -> Any:
        return op("AddV2", [op("Mul", [a, within(2)]), op("FloorMod", [i, within(3)])])

    result = counted(body, gc.constant(1), 30, parallel=parallel)
    expected = reduce(lambda value, i: np.int32(value * np.int32(2) + np.int32(i % 3)), range(10), np.int32(1))
    assert run(counted(body, gc.constant(1), 10, parallel=parallel)) == expected
    assert build_dataflow([result], [], [], kernel).run()[0].dtype == np.int32
    assert inputs == list(range(30))


def test_a_loop_invariant_that_arrives_late_reaches_every_iteration() -> None:
    """It also goes into iterations that are under way, and into what waits for nothing else."""
    x = gc.placeholder(gc.float32, [], name="x")
    slow = reduce(lambda value, _: op("Tanh", [value]), range(30), x)

    def body(_i: Tensor, a: Tensor) -> Any:
        late = enter(slow, "f", constant=True)
        return op("AddV2", [op("AddV2", [a, late]), op("Neg", [op("Neg", [late])])])

    step = reduce(lambda value, _: np.tanh(value), range(30), np.float32(0.5))
    result = run(counted(body, gc.constant(0.0), 15), {x: 0.5})
    assert result == reduce(lambda value, _: (value + step) + step, range(15), np.float32(0))


def test_iterations_and_frames_are_given_free_without_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Any]] = []

    class Noted(Iteration):
        __slots__ = ("__weakref__",)

        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(weakref.ref(self))

    monkeypatch.setattr("graphcore.runtime.dataflow.frames.Iteration", Noted)
    monkeypatch.setattr("graphcore.runtime.dataflow.propagation.Iteration", Noted)
    program = build_dataflow([counted(lambda _i, a: op("Neg", [a]), gc.constant(1.0), 50)], [], [], kernel_of)
    collector.collect()
    collector.disable()
    try:
        assert program.run() == [1.0]
        assert len(made) == 52
        assert [found for found in made if found() is not None] == []
    finally:
        collector.enable()


def edge(name: str) -> dict[str, Any]:
    device = "/job:localhost/replica:0/task:0/device:CPU:0"
    return {"tensor_name": name, "send_device": device, "send_device_incarnation": 1, "recv_device": device}


def test_a_receive_in_a_loop_from_a_side_not_taken_gets_a_dead_value() -> None:
    """In every iteration one side sends a value and the other a dead one, or the run would never end."""

    graph, sends = gc.get_default_graph(), []

    def body(i: Tensor, a: Tensor) -> Any:
        no, yes = switch(a, op("Less", [i, within(2)]))
        received = []
        for name, side in (("no", op("Neg", [no])), ("yes", op("AddV2", [yes, within(5.0)]))):
            sends.append(graph.apply_op("_Send", [side], edge(name)))
            with gc.control_dependencies([i.node]):
                received.append(outputs("_Recv", [], {"tensor_type": gc.float32, **edge(name)})[0])
        return merge(*received)

    result = counted(body, gc.constant(1.0))
    assert run([result, sends], timeout_in_ms=60_000)[0] == 11.0


def test_consumers_of_both_sides_of_a_branch_in_a_loop_are_dead() -> None:
    def body(i: Tensor, a: Tensor) -> Any:
        no, yes = switch(a, op("Less", [i, within(2)]))
        never = op("Tanh", [op("AddV2", [no, yes])])
        with gc.control_dependencies([never.node]):
            waiting = op("Identity", [a])
        return merge(op("Neg", [never]), op("Abs", [waiting]), op("Mul", [a, within(2.0)]))

    assert run(counted(body, gc.constant(1.0))) == 2.0**TURNS


def test_a_loop_that_is_not_entered_for_it_is_on_a_branch_not_taken_gives_nothing() -> None:
    p = gc.placeholder(gc.bool_, [], name="p")
    x = gc.constant(3.0)
    result = cond(p, [x], lambda a: [counted(lambda _i, b: op("Neg", [b]), a, 3)], lambda a: [op("Abs", [a])])[0]
    with gc.Session(engine="dataflow") as session:
        assert session.run(result, {p: True}) == -3.0
        assert session.run(result, {p: False}) == 3.0


def test_a_merge_in_a_loop_of_sides_that_wait_for_something_gives_the_one_that_lives() -> None:
    def body(i: Tensor, a: Tensor) -> Any:
        no, yes = outputs("Switch", [a, op("Less", [i, within(2)])])
        with gc.control_dependencies([op("Neg", [i]).node]):
            yes = op("Identity", [yes])
        return merge(op("AddV2", [no, within(1.0)]), op("Mul", [yes, within(10.0)]))

    assert run(counted(body, gc.constant(1.0))) == 102.0
