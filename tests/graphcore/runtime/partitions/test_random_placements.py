"""A graph gives the same on one device and on several, wherever its nodes are."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.runtime.partitions.partitioned_program import PartitionedProgram
from tests.graphcore.runtime.random_programs import NUMBERS, Program, outcome, plain

DEVICES: Final = [f"/job:localhost/replica:0/task:0/device:CPU:{number}" for number in range(3)]


def scatter(graph: gc.Graph, choices: Sequence[int], devices: Sequence[str] = DEVICES) -> None:
    """Assign devices to nodes, except for users of references and handles, which follow their variables."""
    for number, node in enumerate(graph.nodes):
        types = (*node.input_types, *node.output_types)
        is_free = not any(dtype.is_ref or dtype is gc.resource for dtype in types)
        if is_free or not node.input_types:
            node.assigned_device = devices[choices[number % len(choices)] % len(devices)]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(NUMBERS, st.booleans(), st.lists(st.integers(0, 2), min_size=1, max_size=60))
def test_random_graphs_with_random_placements_give_the_same_as_on_one_device(numbers: list[int], flag: bool, choices: list[int]) -> None:
    program = Program(numbers)
    scatter(program.graph, choices)
    feeds = {program.x: np.array([0.75, -0.5], np.float32), program.p: flag}
    with gc.Session(program.graph) as one, gc.Session(program.graph, devices=DEVICES) as several:
        assert outcome(program, several, feeds) == outcome(program, one, feeds)


def partial_outcome(program: Program, session: gc.Session, order: Sequence[tuple[gc.Tensor, Any]]) -> list[Any]:
    """The values that become available with each feed of a partial run, and the texts of refusals."""
    session.run(program.start)
    pending = list(dict.fromkeys([*program.values, program.end]))
    handle = session.partial_run_setup(pending, [tensor for tensor, _ in order])
    found: list[Any] = []
    for tensor, value in order:
        session.partial_run(handle, [], {tensor: value})
        for fetch in list(pending):
            try:
                found.append((fetch.name, plain(session.partial_run(handle, fetch))))
                pending.remove(fetch)
            except gc.errors.InvalidArgumentError as error:
                found.append((fetch.name, error.message))
    return [*found, plain(session.run(program.state))]


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(NUMBERS, st.booleans(), st.booleans(), st.lists(st.integers(0, 2), min_size=1, max_size=60))
def test_partial_runs_give_the_same_on_several_devices(numbers: list[int], flag: bool, flag_first: bool, choices: list[int]) -> None:
    program = Program(numbers)
    scatter(program.graph, choices)
    order = [(program.x, np.array([0.75, -0.5], np.float32)), (program.p, flag)]
    order = order[::-1] if flag_first else order
    with gc.Session(program.graph) as one, gc.Session(program.graph, devices=DEVICES) as several:
        assert partial_outcome(program, several, order) == partial_outcome(program, one, order)


def test_callables_and_concurrent_runs_give_the_same_on_several_devices() -> None:
    random = np.random.default_rng(3)
    program = Program(random.integers(0, 2**16, 120).tolist())
    scatter(program.graph, random.integers(0, 3, 40).tolist())
    feeds = {program.x: np.array([0.75, -0.5], np.float32), program.p: True}
    with gc.Session(program.graph) as one, gc.Session(program.graph, devices=DEVICES) as several:
        one.run(program.start)
        several.run(program.start)
        expected = plain(one.run(program.values, feeds))
        step = several.make_callable(program.values, list(feeds))
        assert plain(step(*feeds.values())) == expected
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: plain(step(*feeds.values())), range(20)))
        assert found == [expected] * 20


@pytest.mark.parametrize("flag", [True, False])
def test_partitions_in_threads_of_their_own_give_the_same(flag: bool) -> None:
    for seed in range(6):
        random = np.random.default_rng(seed)
        program = Program(random.integers(0, 2**16, 120).tolist())
        scatter(program.graph, random.integers(0, 3, 40).tolist())
        feeds = {program.x: np.array([0.75, -0.5], np.float32), program.p: flag}
        with gc.Session(program.graph) as one, gc.Session(program.graph, devices=DEVICES) as several:
            fetches = [*program.values, program.end]
            several.run(program.start)
            several.run(fetches, feeds)
            (divided,) = [
                prepared.program
                for prepared in several.planner.plans.values()
                if isinstance(prepared.program, PartitionedProgram) and len(prepared.feeds) == 2
            ]
            divided.concurrent = True
            assert outcome(program, several, feeds) == outcome(program, one, feeds)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.integers(0, 4))
def test_graphs_that_call_functions_give_the_same_on_several_devices(choices: list[int], turns: int) -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [3], name="x")

        @gc.function
        def twice(a: Any) -> Any:
            return a * 2.0 + 1.0

        y = twice(twice(x) + x)
        z = gc.cond(gc.reduce_sum(y) > 0.0, lambda: twice(y), lambda: y - 1.0)
        count = gc.constant(turns)
        _, w = gc.while_loop(lambda i, _: i < count, lambda i, v: [i + 1, twice(v)], [gc.constant(0), z])
        scatter(graph, choices)
        feeds = {x: np.array([0.5, -1.0, 2.0], np.float32)}
        with gc.Session(graph) as one, gc.Session(graph, devices=DEVICES) as several:
            for expected, found in zip(one.run([y, z, w], feeds), several.run([y, z, w], feeds), strict=True):
                np.testing.assert_array_equal(found, expected)
