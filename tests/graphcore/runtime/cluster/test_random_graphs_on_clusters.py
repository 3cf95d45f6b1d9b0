"""Random graphs give the same on a cluster of two tasks as in one process, errors included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.graphcore.runtime.partitions.test_random_placements import scatter
from tests.graphcore.runtime.random_programs import NUMBERS, Program, outcome

# Dask's threads in this process use the module random while Hypothesis draws, which takes that for a strategy's doing.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Do not use the `random` module:hypothesis.errors.HypothesisDeprecationWarning"),
    pytest.mark.sweep,
]
RARELY = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
CHOICES = st.lists(st.integers(0, 1), min_size=1, max_size=60)


@RARELY
@given(NUMBERS, st.booleans(), CHOICES)
def test_random_graphs_give_the_same_on_two_tasks(cluster: gc.DaskCluster, numbers: list[int], flag: bool, choices: list[int]) -> None:
    program = Program(numbers)
    scatter(program.graph, choices, cluster.devices[:2])
    feeds = {program.x: np.array([0.75, -0.5], np.float32), program.p: flag}
    with gc.Session(program.graph) as one, gc.Session(program.graph, cluster=cluster) as spread:
        assert outcome(program, spread, feeds) == outcome(program, one, feeds)


def failing(graph: gc.Graph, numbers: Sequence[int]) -> tuple[gc.Tensor, list[gc.Tensor]]:
    """A feed, and random tensors made from it that may fail for some values."""
    with graph.as_default():
        x = gc.placeholder(gc.int32, [3], name="x")
        found = [x]
        for number in numbers:
            a, b = found[number % len(found)], found[number // 7 % len(found)]
            match number % 5:
                case 0:
                    made = a + b
                case 1:
                    made = gc.ops.floor_div(a, b)
                case 2:
                    made = gc.gather(a, gc.minimum(gc.abs(b), number % 9))
                case 3:
                    made = gc.reshape(a, [-1]) - number % 3
                case _:
                    made = gc.cast(gc.ops.check_numerics(gc.log(gc.cast(b, gc.float32)), "log"), gc.int32)
            found.append(made)
    return x, found[1:]


def first_lines(session: gc.Session, tensors: Sequence[gc.Tensor], feeds: dict[Any, Any]) -> list[Any]:
    """The value of each tensor, or the kind, node and first line of the error instead of it."""
    found: list[Any] = []
    for tensor in tensors:
        try:
            found.append(session.run(tensor, feeds).tolist())
        except gc.errors.GraphError as error:
            found.append((type(error), error.node, error.message.splitlines()[0], error.source))
    return found


@RARELY
@given(st.lists(st.integers(0, 2**12), min_size=2, max_size=12), st.lists(st.integers(-2, 3), min_size=3, max_size=3), CHOICES)
def test_random_graphs_fail_alike_on_two_tasks(cluster: gc.DaskCluster, numbers: list[int], values: list[int], choices: list[int]) -> None:
    graph = gc.Graph()
    x, tensors = failing(graph, numbers)
    scatter(graph, choices, cluster.devices[:2])
    with gc.Session(graph) as one, gc.Session(graph, cluster=cluster) as spread:
        expected, found = first_lines(one, tensors, {x: values}), first_lines(spread, tensors, {x: values})
    failing_alone = {each[1] for each in expected if isinstance(each, tuple)}
    for mine, theirs in zip(found, expected, strict=True):
        if mine != theirs:  # of two nodes that fail at once, either may be named
            assert isinstance(mine, tuple)
            assert isinstance(theirs, tuple)
            assert mine[1] != theirs[1]
            assert mine[1] in failing_alone
