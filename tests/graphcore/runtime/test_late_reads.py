"""Expressions that wait for an assignment read the variable after it, on all engines and devices."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc

TRAIN: Any = import_module("graphcore.train")


def runs(fetches: Any, graph: gc.Graph, times: int = 2, **options: Any) -> list[Any]:
    with gc.Session(graph, **options) as session:
        session.run(gc.initialize_all_variables())
        return [np.asarray(session.run(fetches)).tolist() for _ in range(times)]


@pytest.fixture
def graph() -> Any:
    graph = gc.Graph()
    with graph.as_default():
        yield graph


def test_an_expression_that_waits_for_an_assignment_has_its_value(graph: gc.Graph) -> None:
    count = gc.Variable(0.0, name="count")
    more = count.assign_add(1.0)
    with gc.control_dependencies([more]):
        controlled = count * 10.0
    by_data = more * 100.0 + count
    assert runs([controlled, by_data], graph) == [[10.0, 101.0], [20.0, 202.0]]
    assert [node.op for node in graph.nodes if node.op == "Identity"] == ["Identity"]  # the graph stays as it was built


def test_reads_between_two_assignments_are_of_the_time_between(graph: gc.Graph) -> None:
    count = gc.Variable(0.0, name="count")
    before = count + 0.0
    with gc.control_dependencies([before]):
        first = count.assign_add(1.0)
    with gc.control_dependencies([first]):
        between = count + 0.0
    with gc.control_dependencies([between]):
        second = count.assign_add(10.0)
    with gc.control_dependencies([second]):
        after = count + 0.0
    assert runs([before, between, after], graph) == [[0.0, 1.0, 11.0], [11.0, 12.0, 22.0]]


def test_a_value_that_was_read_by_name_stays_that_of_its_moment(graph: gc.Graph) -> None:
    count = gc.Variable(0.0, name="count")
    reads = [count.read_value(), gc.identity(count)]
    with gc.control_dependencies(reads):
        more = count.assign_add(1.0)
    with gc.control_dependencies([more]):
        differences = [count - read for read in reads]
    assert runs(differences, graph) == [[1.0, 1.0]] * 2


def test_averages_and_losses_after_a_training_step_have_the_new_weights(graph: gc.Graph) -> None:
    w = gc.Variable(1.0, name="w")
    step = TRAIN.GradientDescentOptimizer(0.1).minimize(gc.square(w - 3.0))
    average = TRAIN.ExponentialMovingAverage(0.5)
    with gc.control_dependencies([step]):
        loss = gc.square(w - 3.0)
        averaged = average.apply([w])
    with gc.control_dependencies([averaged]):
        mean = average.average(w) + 0.0
    np.testing.assert_allclose(runs([loss, mean], graph), [[2.56, 1.2], [1.6384, 1.46]], rtol=1e-5)


def test_branches_loops_and_calls_take_the_value_after_the_assignment(graph: gc.Graph) -> None:
    count = gc.Variable(0.0, name="count")
    double = gc.function(lambda x: x * 2.0)
    with gc.control_dependencies([count.assign_add(1.0)]):
        found = [
            gc.cond(gc.constant(True), lambda: count * 2.0, lambda: count * 3.0),
            gc.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, x + count), [0, 0.0])[1],
            double(count),
        ]
    assert runs(found, graph) == [[2.0, 2.0, 2.0], [4.0, 4.0, 4.0]]


def test_a_fed_read_keeps_the_value_that_is_fed(graph: gc.Graph) -> None:
    count = gc.Variable(0.0, name="count")
    with gc.control_dependencies([count.assign_add(1.0)]):
        after = count + 0.0
    with gc.Session(graph) as session:
        session.run(count.initializer)
        assert session.run(after, {count.snapshot: 5.0}) == 5.0
        assert session.run(after) == 2.0


def test_the_value_is_recorded_under_the_name_of_the_read(graph: gc.Graph) -> None:
    count = gc.Variable(0.0, name="count")
    with gc.control_dependencies([count.assign_add(1.0)]):
        after = gc.add(count, 0.5, name="after")
    with gc.Session(graph) as session:
        session.run(count.initializer)
        metadata = gc.RunMetadata()
        session.run(after, None, gc.RunOptions(values=True), metadata)
        assert metadata.values is not None
        assert metadata.values["count/read"].mean == 1.0
        assert session.partial_run(session.partial_run_setup([after], []), after, {}) == 2.5
        assert session.step_through(after).finish() == 3.5


def test_an_error_names_the_line_of_the_variable(graph: gc.Graph) -> None:
    count = gc.Variable([0.0, 0.0], name="count", validate_shape=False)
    with gc.control_dependencies([count.assign([1.0, 2.0, 3.0], name="longer")]):
        wrong = gc.add(count, [1.0, 1.0], name="wrong")
    with gc.Session(graph) as session, pytest.raises(gc.errors.InvalidArgumentError, match="wrong"):
        session.run(wrong)


Program = list[tuple[str, int, float]]
PROGRAMS = st.lists(st.tuples(st.sampled_from(["add", "assign", "read"]), st.integers(0, 1), st.sampled_from([1.0, 2.0, 3.0])), max_size=8)


@settings(max_examples=25, deadline=None)
@given(PROGRAMS)
def test_statements_in_a_chain_of_control_edges_act_in_order(program: Program) -> None:
    held, expected = [0.0, 0.0], []
    graph = gc.Graph()
    with graph.as_default():
        with gc.device("/cpu:1"):
            variables = [gc.Variable(0.0, name="a")]
        with gc.device("/cpu:0"):
            variables.append(gc.Variable(0.0, name="b"))
        made: list[gc.Tensor] = []
        for kind, index, number in program:
            variable = variables[index]
            with gc.control_dependencies(made[-1:]):
                if kind == "read":
                    made.append(variable * number + variables[1 - index])
                    expected.append(held[index] * number + held[1 - index])
                elif kind == "add":
                    made.append(variable.assign_add(variables[1 - index] + number))
                    held[index] += held[1 - index] + number
                else:
                    made.append(variable.assign(variables[1 - index] * number))
                    held[index] = held[1 - index] * number
        fetches = [tensor for tensor, (kind, *_) in zip(made, program, strict=True) if kind == "read"]
        with gc.control_dependencies(made[-1:]):
            fetches += [variable + 0.0 for variable in variables]
        for options in ({}, {"engine": "dataflow"}, {"devices": ["/cpu:0", "/cpu:1"]}):
            assert runs(fetches, graph, 1, **options)[0] == [*expected, *held], options
