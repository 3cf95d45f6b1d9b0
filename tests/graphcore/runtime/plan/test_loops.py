"""Branches and loops in plans: `if` and `while` in the generated code."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import CancelledError, FailedPreconditionError, InvalidArgumentError, UnimplementedError
from graphcore.runtime.core.program import Step
from tests.graphcore.runtime.loop_graphs import cond, enter, op, outputs, switch, while_loop


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def count_to(limit: int, start: Any, frame: str = "loop") -> list[gc.Tensor]:
    """A loop that doubles a value `limit` times: the counter and the value."""
    bound, one = enter(gc.constant(limit), frame, constant=True), enter(gc.constant(1), frame, constant=True)
    body = lambda i, x: [op("AddV2", [i, one]), op("AddV2", [x, x])]  # noqa: E731 - shorter than a function
    return while_loop(lambda i, _: op("Less", [i, bound]), body, [gc.constant(0), start], frame)


def source(fetches: Any, feeds: Any = ()) -> str:
    with gc.Session(engine="plan") as session:
        return session.plan(fetches, dict.fromkeys(feeds)).source


def test_a_loop_is_one_while_in_the_generated_code() -> None:
    x = gc.placeholder(gc.float32, [2])
    result = count_to(3, x)
    text = source(result, [x])
    assert text.count("while True:") == 1
    assert "call" not in text
    with gc.Session(engine="plan") as session:
        count, value = session.run(result, {x: [1.0, 2.0]})
    assert (count, value.tolist()) == (3, [8.0, 16.0])


def test_a_branch_is_one_if_in_the_generated_code_and_the_other_side_is_not_computed() -> None:
    p, x = gc.placeholder(gc.bool_, []), gc.placeholder(gc.float32, [])
    y = cond(p, [x], lambda a: [op("Neg", [op("Exp", [a])])], lambda a: [op("CheckNumerics", [a], {"message": "no"})])[0]
    text = source(y, [p, x])
    assert text.count("if ") - text.count(" if not") >= 1
    with gc.Session(engine="plan") as session:
        assert session.run(y, {p: True, x: 0.0}) == -1.0
        assert session.run(y, {p: True, x: np.nan}) != session.run(y, {p: True, x: np.nan})
        with pytest.raises(InvalidArgumentError, match="no"):
            session.run(y, {p: False, x: np.nan})


def test_a_traceback_line_in_a_loop_leads_to_its_node() -> None:
    bad = gc.placeholder(gc.float32, [None], name="bad")
    inside = enter(bad, "f", constant=True)
    one, limit = enter(gc.constant(1), "f", constant=True), enter(gc.constant(2), "f", constant=True)

    def body(i: Any, x: Any) -> list[Any]:
        return [op("AddV2", [i, one]), outputs("AddV2", [x, inside], node_name="sum")[0]]

    start = gc.placeholder(gc.float32, [None])
    result = while_loop(lambda i, _: op("Less", [i, limit]), body, [gc.constant(0), start], "f")
    with gc.Session(engine="plan") as session, pytest.raises(InvalidArgumentError, match="Incompatible shapes") as caught:
        session.run(result, {bad: np.ones(3), start: np.ones(2)})
    assert (caught.value.node, caught.value.op) == ("sum", "AddV2")
    assert caught.value.source is not None


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_predicate_that_is_no_scalar_is_refused(engine: str) -> None:
    p = gc.placeholder(gc.bool_)
    y = cond(p, [gc.constant(1.0)], lambda a: [op("Neg", [a])], lambda a: [a])[0]
    with gc.Session(engine=engine) as session, pytest.raises(InvalidArgumentError, match="must be a scalar, but it has shape"):
        session.run(y, {p: [True]})


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_loops_within_branches_within_loops(engine: str) -> None:
    """The sum over i of 2^i where i is even, else of i."""
    one, limit = enter(gc.constant(1), "outer", constant=True), enter(gc.constant(6), "outer", constant=True)
    two, zero = enter(gc.constant(2), "outer", constant=True), enter(gc.constant(0), "outer", constant=True)

    def power(i: Any, one: Any) -> list[Any]:
        inside, step = enter(i, "inner", constant=True), enter(one, "inner", constant=True)
        body = lambda j, y: [op("AddV2", [j, step]), op("AddV2", [y, y])]  # noqa: E731 - shorter than a function
        start = op("Sub", [one, one])
        return while_loop(lambda j, _: op("Less", [j, inside]), body, [start, one], "inner")[1:]

    def body(i: Any, total: Any) -> list[Any]:
        even = op("Equal", [op("FloorMod", [i, two]), zero])
        found = cond(even, [i, one], power, lambda i, _: [op("Identity", [i])])[0]
        return [op("AddV2", [i, one]), op("AddV2", [total, found])]

    result = while_loop(lambda i, _: op("Less", [i, limit]), body, [gc.constant(0), gc.constant(0)], "outer")
    with gc.Session(engine=engine) as session:
        assert session.run(result[1]) == 1 + 1 + 4 + 3 + 16 + 5


def test_values_read_in_a_loop_live_through_all_iterations_and_are_released_after_it() -> None:
    x = gc.placeholder(gc.float32, [2])
    y = op("Tanh", [x])
    inside, one = enter(y, "f", constant=True), enter(gc.constant(1), "f", constant=True)
    limit = enter(gc.constant(3), "f", constant=True)
    total = while_loop(
        lambda i, _: op("Less", [i, limit]), lambda i, s: [op("AddV2", [i, one]), op("AddV2", [s, inside])], [gc.constant(0), y], "f"
    )[1]
    with gc.Session(engine="plan") as session:
        np.testing.assert_allclose(session.run(total, {x: [1.0, -1.0]}), 4 * np.tanh(np.array([1.0, -1.0], np.float32)), rtol=1e-6)


def test_values_that_change_places_in_a_loop_do_so_at_once() -> None:
    one, limit = enter(gc.constant(1), "f", constant=True), enter(gc.constant(3), "f", constant=True)
    start = [gc.constant(0), gc.constant(10.0), gc.constant(20.0)]
    result = while_loop(lambda i, *_: op("Less", [i, limit]), lambda i, a, b: [op("AddV2", [i, one]), b, a], start, "f")
    with gc.Session(engine="plan") as session:
        assert session.run(result[1:]) == [20.0, 10.0]


def test_a_variable_is_changed_in_every_iteration_and_stays_whole_when_the_loop_fails() -> None:
    v = op("VarHandleOp", attrs={"dtype": gc.float32, "shape": gc.Shape([])})
    start = gc.get_default_graph().apply_op("AssignVariableOp", [v, gc.constant(1.0)])
    handle, one = enter(v, "f", constant=True), enter(gc.constant(1.0), "f", constant=True)
    limit = enter(gc.placeholder(gc.float32, [], name="limit"), "f", constant=True)

    def body(i: Any) -> list[Any]:
        with gc.control_dependencies([i.node]):
            changed = gc.get_default_graph().apply_op("AssignAddVariableOp", [handle, one])
        with gc.control_dependencies([changed]):
            return [op("CheckNumerics", [op("AddV2", [i, one])], {"message": "bad"})]

    result = while_loop(lambda i: op("Less", [i, limit]), body, [gc.placeholder(gc.float32, [], name="start")], "f")
    read = op("ReadVariableOp", [v], {"dtype": gc.float32})
    for engine in ("plan", "dataflow"):
        with gc.Session(engine=engine) as session:
            session.run(start)
            session.run(result, {"start:0": 0.0, "limit:0": 4.0})
            assert session.run(read) == 5.0
            with pytest.raises(InvalidArgumentError, match="bad"):
                session.run(result, {"start:0": -np.inf, "limit:0": 4.0})
            assert session.run(read) == 6.0


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_variable_without_a_value_is_an_error_only_on_the_branch_that_is_taken(engine: str) -> None:
    v = op("VariableV2", attrs={"dtype": gc.float32, "shape": gc.Shape([])})
    p = gc.placeholder(gc.bool_, [])
    no, yes = outputs("RefSwitch", [v, p])
    y = outputs("Merge", [[op("Identity", [no]), op("Fill", [gc.constant(np.zeros(0, np.int32)), after(yes.node)])]])[0]
    with gc.Session(engine=engine) as session:
        assert session.run(y, {p: True}) == 3.0
        with pytest.raises(FailedPreconditionError, match="uninitialized value"):
            session.run(y, {p: False})


def after(node: gc.Node) -> Any:
    """3.0 after a branch was taken, by a control dependency on its result."""
    initialized = op("IsVariableInitialized", [node.outputs[1]])
    with gc.control_dependencies([initialized.node]):
        return gc.constant(3.0)


def test_a_recorded_run_has_loop_and_iteration_of_every_node() -> None:
    result = count_to(2, count_to(1, gc.constant(1.0), "first")[1], "second")
    metadata = gc.RunMetadata()
    with gc.Session(engine="plan") as session:
        session.run(result, options=gc.RunOptions(trace=True), run_metadata=metadata)
    assert metadata.trace is not None
    told = [(event.frame, event.iteration) for event in metadata.trace.events if event.kind == "end" and not event.how]
    assert told == [("first", 0)] * 3 + [("first", 1)] + [("second", 0)] * 3 + [("second", 1)] * 3 + [("second", 2)]


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_recorded_run_has_the_iterations_of_all_loops_around_a_node(engine: str) -> None:
    def turn(i: Any, limit: Any, x: Any) -> list[Any]:
        def inner(j: Any, least: Any, y: Any) -> list[Any]:
            return [j + gc.ops.ones_like(j), least, gc.tanh(y, name="deep")]

        turned = while_loop(lambda j, least, _: j < least, inner, [i - i, i, x], "inner")
        return [i + gc.ops.ones_like(i), limit, turned[2]]

    with gc.Session(engine=engine) as session:
        result = while_loop(lambda i, limit, _: i < limit, turn, [gc.constant(0), gc.constant(3), gc.constant(0.5)], "outer")[2]
        session.run(result, options=gc.RunOptions(trace=True))
        assert session.trace is not None
    deep = [event for event in session.trace.events if event.node.endswith("deep") and event.kind == "end"]
    assert sorted(event.iterations for event in deep) == [(1, 0), (2, 0), (2, 1)]
    assert {(len(event.around), event.around[0][0]) for event in deep} == {(1, "outer")}
    stats = [entry for device in session.trace.step_stats().dev_stats for entry in device.node_stats]
    assert sorted(entry.iterations for entry in stats if entry.node_name.endswith("deep")) == [(1, 0), (2, 0), (2, 1)]
    shown = [entry["args"] for entry in session.trace.chrome_trace()["traceEvents"] if entry["ph"] == "X" and "deep" in entry["name"]]
    assert sorted(args["iteration"] for args in shown) == [[1, 0], [2, 0], [2, 1]]
    assert all(args["frame"] == "outer/inner" for args in shown)


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_recorded_loop_counts_the_bytes_of_each_iteration_once(engine: str) -> None:
    x = gc.placeholder(gc.float32, [1000])
    result = count_to(50, x)
    metadata = gc.RunMetadata()
    with gc.Session(engine=engine) as session:
        session.run(result, {x: np.ones(1000)}, gc.RunOptions(trace=True), metadata)
    assert metadata.trace is not None
    assert 4000 <= metadata.trace.peak_bytes <= 16_000


def test_an_endless_loop_ends_when_it_is_cancelled() -> None:
    one = enter(gc.constant(1), "f", constant=True)
    result = while_loop(lambda i: op("GreaterEqual", [i, i]), lambda i: [op("BitwiseAnd", [i, one])], [gc.constant(0)], "f")
    with gc.Session(engine="plan") as session:
        program = session.plan(result)
        manager = gc.CancellationManager()
        threading.Timer(0.05, manager.start_cancel).start()
        with pytest.raises(CancelledError):
            program.run_step(Step(None, manager), [])


def test_a_result_of_a_branch_is_fetched_if_the_branch_is_taken() -> None:
    p = gc.placeholder(gc.bool_, [])
    no, yes = switch(gc.constant(1.0), p)
    y = op("Neg", [yes])
    with gc.Session(engine="plan") as session:
        assert session.run([y, yes], {p: True}) == [-1.0, 1.0]
        assert session.run(no, {p: False}) == 1.0
        with pytest.raises(InvalidArgumentError) as caught:
            session.run([p, y], {p: False})
    assert caught.value.message == f"Retval[1] does not have value: '{y.name}' (op Neg) lies on a branch that was not taken in this run"


def test_a_target_on_a_branch_runs_only_where_it_is_taken() -> None:
    v = gc.Variable(1.0)
    p = gc.placeholder(gc.bool_, [])
    with gc.control_dependencies([op("Identity", [switch(p, p)[1]]).node]):
        change = gc.get_default_graph().apply_op("NoOp", [])
    with gc.control_dependencies([change]):
        target = v.assign_add(1.0)
    for engine in ("plan", "dataflow"):
        with gc.Session(engine=engine) as session:
            session.run(gc.initialize_all_variables())
            for flag in (True, False, True):
                session.run(target.node, {p: flag})
            assert session.run(v) == 3.0


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda x: [op("Exit", [enter(x, "f")])], "has 0 LoopConds"),
        (lambda x: outputs("Merge", [[switch(x, gc.constant(True))[0], op("Neg", [x])]])[:1], "its inputs are not the sides of one branch"),
        (
            lambda x: outputs("Merge", [outputs("_SwitchN", [x, gc.constant(0)], {"num_outs": 3}, "s")[:2]])[:1],
            "its inputs are not all sides of a branch",
        ),
        (lambda x: [op("Neg", [switch(switch(x, flag())[0], flag())[1]])], "it lies on two sides of one branch"),
    ],
    ids=["no test", "race", "missing side", "both sides"],
)
def test_other_control_flow_than_branches_and_loops_is_refused_with_the_reason(make: Any, reason: str) -> None:
    x = gc.placeholder(gc.float32, [])
    fetches = make(x)
    with gc.Session(engine="plan") as session, pytest.raises(UnimplementedError, match=reason) as caught:
        session.run(fetches, {x: 1.0})
    assert "the dataflow engine runs it" in caught.value.message


def flag() -> gc.Tensor:
    """The one flag of the default graph."""
    graph = gc.get_default_graph()
    found = graph.find("flag")
    return found.outputs[0] if found is not None else gc.constant(True, name="flag")


def test_many_branches_one_after_the_other_and_within_each_other_hit_no_limit_of_python() -> None:
    p = gc.placeholder(gc.bool_, [])
    y: Any = gc.constant(1.0)
    for _ in range(300):
        y = cond(p, [y], lambda a: [op("Neg", [a])], lambda a: [op("Identity", [a])])[0]
    for _ in range(30):  # deeper than the plan engine's limit
        y = switch(y, op("LogicalNot", [op("LogicalNot", [p])]))[1]
    with gc.Session() as session:
        assert session.run(y, {p: True}) == 1.0


def test_f8_example_4_a_function_with_inconsistent_control_flow_is_refused_when_it_runs() -> None:
    library = gc.FunctionLibraryDefinition(gc.op_registry)
    library.add_function_def(
        gc.parse_function(
            """InvalidControlFlow(i:int32) -> (o:int32) {
              enter = Enter[T=int32, frame_name="while"](i)
              add = Add[T=int32](enter:output, i)
              return o = add:z
            }"""
        )
    )
    runtime = gc.FunctionLibraryRuntime(library)
    handle = runtime.instantiate("InvalidControlFlow")
    with pytest.raises(InvalidArgumentError) as caught:
        runtime.run(handle, [np.int32(3)])
    assert caught.value.message == (
        "{{node add}} has inputs from different frames. The input {{node enter}} is in frame 'while'. The input {{node i}} is in frame ''."
    )


@pytest.mark.parametrize("engine", ["auto", "dataflow"])
def test_a_function_may_be_a_loop_and_be_called_by_a_loop_around_it(engine: str) -> None:
    x = gc.placeholder(gc.float32, [])
    doubled = gc.function(lambda value: count_to(3, value, "inner")[1])
    assert gc.debug_string(doubled(x).graph.library.to_proto().function[0]).count("= NextIteration[") == 2
    result = count_to(2, doubled(x), "outer")
    with gc.Session(engine=engine) as session:
        assert session.run(result, {x: 1.0}) == [2, 32.0]


@pytest.mark.parametrize("engine", ["plan", "dataflow"])
def test_a_deep_graph_around_a_loop_and_a_branch_hits_no_limit_of_python(engine: str) -> None:
    """Longer than the generated function of any plan without control flow."""
    x, p = gc.placeholder(gc.float32, [2], name="x"), gc.placeholder(gc.bool_, [], name="p")
    limit, one = enter(gc.constant(3), "f", constant=True), enter(gc.constant(1), "f", constant=True)

    def deep(y: gc.Tensor) -> gc.Tensor:
        for _ in range(4_000):
            y = gc.negative(gc.negative(y))
        return y

    start = [gc.constant(0), deep(x)]
    y = while_loop(lambda i, _: op("Less", [i, limit]), lambda i, a: [op("AddV2", [i, one]), op("Tanh", [a])], start, "f")[1]
    y = deep(cond(p, [y], lambda a: [op("Neg", [a])], lambda a: [a])[0])
    value = np.array([1.0, 2.0], np.float32)
    with gc.Session(engine=engine) as session:
        for taken, sign in ((True, -1), (False, 1)):
            np.testing.assert_allclose(session.run(y, {x: value, p: taken}), sign * np.tanh(np.tanh(np.tanh(value))), rtol=1e-6)
