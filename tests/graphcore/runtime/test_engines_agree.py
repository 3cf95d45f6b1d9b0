"""Both engines give the same for any graph."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.graphcore.runtime.random_programs import NUMBERS, Program, outcome


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(NUMBERS, st.booleans())
def test_random_graphs_with_branches_loops_and_variables_give_the_same_in_both_engines(numbers: list[int], flag: bool) -> None:
    program = Program(numbers)
    feeds = {program.x: np.array([0.75, -0.5], np.float32), program.p: flag}
    with gc.Session(program.graph, engine="plan") as plan, gc.Session(program.graph, engine="dataflow") as dataflow:
        assert outcome(program, plan, feeds) == outcome(program, dataflow, feeds)


def recorded(
    program: Program, engine: str, feeds: dict[Any, Any]
) -> tuple[Counter[tuple[str, str, str, tuple[int, ...]]], gc.Trace, gc.PeakMemory]:
    """The events of a traced run with counts, its trace, and its predicted peak."""
    with gc.Session(program.graph, engine=engine) as session:
        session.run(program.start)
        fetches = [*program.values, program.end]
        predicted = session.predicted_peak(fetches, feeds)
        session.run(fetches, feeds, gc.RunOptions(trace=True))
        assert session.trace is not None
        told = Counter[tuple[str, str, str, tuple[int, ...]]](
            [(event.kind, event.node, "/".join([*dict(event.around), event.frame]), event.iterations) for event in session.trace.events]
        )
        return told, session.trace, predicted


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(NUMBERS, st.booleans())
def test_recorded_runs_of_random_graphs_tell_the_same_story_in_both_engines(numbers: list[int], flag: bool) -> None:
    """Every node in every iteration: scheduled and run, or scheduled and dead."""
    program = Program(numbers)
    feeds = {program.x: np.array([0.75, -0.5], np.float32), program.p: flag}
    assert recorded(program, "plan", feeds)[0] == recorded(program, "dataflow", feeds)[0]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(NUMBERS, st.booleans())
def test_the_memory_of_random_graphs_is_as_predicted_or_within_the_bound(numbers: list[int], flag: bool) -> None:
    program = Program(numbers)
    feeds = {program.x: np.array([0.75, -0.5], np.float32), program.p: flag}
    _, trace, predicted = recorded(program, "plan", feeds)
    if predicted.bytes is None or predicted.is_bound:
        assert predicted.reason
        assert predicted.bytes is None or trace.peak_bytes <= predicted.bytes
    else:
        assert trace.peak_bytes == predicted.bytes


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(NUMBERS, st.booleans())
def test_gradients_of_random_graphs_are_the_same_in_both_engines(numbers: list[int], flag: bool) -> None:
    program = Program(numbers)
    with program.graph.as_default():
        gradient = gc.gradients(program.values[-1], [program.x])[0]
    if gradient is None:
        return
    feeds = {program.x: np.array([0.75, -0.5], np.float32), program.p: flag}
    found = []
    for engine in ("auto", "dataflow"):
        with gc.Session(program.graph, engine=engine) as session:
            session.run(program.start)
            found.append(session.run(gradient, feeds))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("flag", [True, False])
def test_a_random_graph_gives_the_same_when_it_runs_again(flag: bool) -> None:
    program = Program(list(range(7, 400, 3)))
    feeds = {program.x: np.array([0.75, -0.5], np.float32), program.p: flag}
    with gc.Session(program.graph) as first, gc.Session(program.graph) as second:
        assert outcome(program, first, feeds) == outcome(program, second, feeds)


@pytest.mark.parametrize("engine", ["auto", "dataflow"])
@pytest.mark.parametrize("op", ["Reshape", "BroadcastTo"])
def test_a_shape_that_does_not_fit_is_refused_also_where_no_other_would_fit(op: str, engine: str) -> None:
    """Inference concludes that the size is 2; the feed has another one."""
    with gc.Graph().as_default() as graph, gc.Session(engine=engine) as session:
        size = gc.placeholder(gc.int32, [])
        wanted = graph.apply_op("Pack", [[gc.constant(2), size]]).outputs[0]
        y = graph.apply_op(op, [gc.placeholder(gc.float32, [2, 2], name="x"), wanted]).outputs[0]
        feeds = {graph.get_tensor_by_name("x:0"): np.ones((2, 2), np.float32)}
        assert np.shape(session.run(y, {**feeds, size: 2})) == (2, 2)
        with pytest.raises(gc.errors.InvalidArgumentError):
            session.run(y, {**feeds, size: 3})
