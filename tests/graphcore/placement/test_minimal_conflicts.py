"""Minimal conflicting sets: the nodes named cannot be placed, and without any one of them they can."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from tests.graphcore.placement.setting import CPU, GPU, Example, fake_devices

STARTS = ("TestHandleVariable", "HandleVariableCPU", "HandleVariableGPU", "CreateDatasetSP")
STEPS = ("TestResource", "TestResource", "DatasetCPU", "DatasetGPU", "DatasetNP")
REQUESTS = ("", "", "", "", "/device:FakeCPU:0", "/device:FakeGPU:0", "/device:FakeGPU:1")
ASSIGNED = ("", "", "", "", "", "", CPU, GPU)

Plan = list[tuple[str, str, str, int, tuple[int, ...]]]
"""For each node its op, requested and assigned device, the node it takes a resource from (-1 for none), and those it is colocated with."""


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    plan: Plan = []
    for index in range(draw(st.integers(2, 12))):
        source = draw(st.integers(-1, index - 1))
        op = draw(st.sampled_from(STARTS if source < 0 else STEPS))
        loc = tuple(draw(st.lists(st.integers(0, index - 1), max_size=2))) if index else ()
        plan.append((op, draw(st.sampled_from(REQUESTS)), draw(st.sampled_from(ASSIGNED)), source, loc))
    return plan


def built(plan: Plan, kept: Collection[int]) -> gc.Graph:
    """The graph of some nodes of a plan; an unconstrained resource stands for a source that is left out."""
    example = Example()
    for index in kept:
        op, request, assigned, source, loc = plan[index]
        inputs: tuple[str, ...] = ()
        if source >= 0:
            inputs = (f"n{source}",) if source in kept else (f"free{index}",)
            if source not in kept:
                example.add(f"free{index}", "TestHandleVariable")
        colocated = tuple([f"n{other}" for other in loc])
        example.add(f"n{index}", op, *inputs, on=request, at=assigned, loc=colocated)
    return example.graph


def is_refused(plan: Plan, kept: Collection[int], *, soft: bool) -> bool:
    try:
        gc.Placer(built(plan, kept), fake_devices(), allow_soft_placement=soft).run()
    except (InvalidArgumentError, gc.errors.InternalError):
        return True
    return False


@pytest.mark.parametrize("soft", [False, True])
@given(plan=plans())
def test_removing_any_node_of_a_minimal_conflict_resolves_it(plan: Plan, soft: bool) -> None:
    everything = range(len(plan))
    graph = built(plan, everything)
    explanation = gc.explain_placement(graph.nodes[0], fake_devices(), allow_soft_placement=soft)
    if not is_refused(plan, everything, soft=soft):
        assert explanation.assigned
        assert not explanation.conflict
        return
    conflict = [int(node.name[1:]) for node in explanation.conflict]
    assert is_refused(plan, conflict, soft=soft)
    for left_out in conflict:
        rest = [index for index in conflict if index != left_out]
        assert not is_refused(plan, rest, soft=soft), f"without n{left_out} the nodes {rest} are refused as well"
