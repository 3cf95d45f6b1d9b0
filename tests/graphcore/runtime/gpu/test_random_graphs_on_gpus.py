"""Random graphs give on GPUs what they give on the CPU."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.graphcore.runtime.partitions.test_random_placements import partial_outcome, scatter
from tests.graphcore.runtime.random_programs import NUMBERS, Program, outcome
from tests.support.strict_cupy import StrictCupy

DEVICES: Final = [f"/job:localhost/replica:0/task:0/device:{device}" for device in ("CPU:0", "GPU:0", "GPU:1")]
X: Final = np.array([0.75, -0.5], np.float32)


def agree(found: list[Any], wanted: list[Any]) -> None:
    """Check that two outcomes agree; functions are approximated otherwise on a GPU."""
    for (kind, mine), (other, theirs) in zip(found, wanted, strict=True):
        assert kind == other
        if kind == "dead":
            assert mine == theirs
        else:
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("engine", ["auto", "dataflow"])
def test_random_graphs_give_on_a_gpu_what_they_give_on_the_cpu(cupy: StrictCupy, engine: str) -> None:
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(NUMBERS, st.booleans())
    def check(numbers: list[int], flag: bool) -> None:
        program = Program(numbers)
        feeds: dict[Any, Any] = {program.x: X, program.p: flag}
        with gc.Session(program.graph) as one, gc.Session(program.graph, devices="gpu", engine=engine) as on_gpu:
            agree(outcome(program, on_gpu, feeds), outcome(program, one, feeds))
            assert program.state.node.assigned_device == DEVICES[1]

    check()


def test_random_graphs_with_random_placements_over_gpus_give_the_same(cupy: StrictCupy) -> None:
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(NUMBERS, st.booleans(), st.lists(st.integers(0, 2), min_size=1, max_size=60))
    def check(numbers: list[int], flag: bool, choices: list[int]) -> None:
        program = Program(numbers)
        scatter(program.graph, choices, DEVICES)
        feeds: dict[Any, Any] = {program.x: X, program.p: flag}
        with gc.Session(program.graph) as one, gc.Session(program.graph, devices="gpu") as several:
            agree(outcome(program, several, feeds), outcome(program, one, feeds))

    check()


def test_partial_runs_over_gpus_give_the_same(cupy: StrictCupy) -> None:
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(NUMBERS, st.booleans(), st.lists(st.integers(0, 2), min_size=1, max_size=60))
    def check(numbers: list[int], flag: bool, choices: list[int]) -> None:
        program = Program(numbers)
        scatter(program.graph, choices, DEVICES)
        order = [(program.x, X), (program.p, flag)]
        with gc.Session(program.graph) as one, gc.Session(program.graph, devices="gpu") as several:
            assert partial_outcome(program, several, order) == partial_outcome(program, one, order)

    check()
