"""The placer beside a search through all assignments: kernel types, priorities, colocation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

import graphcore as gc
from tests.graphcore.placement.setting import KERNELS, Example

DEVICES = [f"/job:a/replica:0/task:0/device:{kind}:{number}" for kind in ("FakeCPU", "FakeGPU") for number in (0, 1)]
TYPE_ORDER = {"FakeGPU": 1, "FakeCPU": 0}
STARTS = ("CreateDatasetSP", "CreateDatasetRP", "CreateDatasetNP", "TestHandleVariable", "HandleVariableCPU", "HandleVariableGPU")
STEPS = ("DatasetSP", "DatasetRP", "DatasetNP", "DatasetCPU", "DatasetGPU", "TestResource")

Plan = list[tuple[str, str, int, tuple[int, ...]]]
"""For each node its op, its requested device, the node it takes its resource from (-1 for none), and the nodes it is colocated with."""


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Graphs of up to 8 nodes; one node at most of those joined has a request, so that none gives way."""
    plan: Plan = []
    for index in range(draw(st.integers(1, 8))):
        source = draw(st.integers(-1, index - 1))
        op = draw(st.sampled_from(STARTS if source < 0 else STEPS))
        loc = tuple(draw(st.lists(st.integers(0, index - 1), max_size=2, unique=True))) if index else ()
        plan.append((op, "", source, loc))
    requested = draw(st.integers(-3, len(plan) - 1))
    if requested >= 0:
        op, _, source, loc = plan[requested]
        plan[requested] = (op, draw(st.sampled_from(["/device:FakeCPU:1", "/device:FakeGPU:*", "/job:a"])), source, loc)
    return plan


def built(plan: Plan) -> gc.Graph:
    example = Example()
    for index, (op, device, source, loc) in enumerate(plan):
        inputs = (f"n{source}",) if source >= 0 else ()
        example.add(f"n{index}", op, *inputs, on=device, loc=tuple([f"n{other}" for other in loc]))
    return example.graph


def pairs(plan: Plan) -> Iterator[tuple[int, int]]:
    """The nodes that must be together."""
    for index, (_, _, source, loc) in enumerate(plan):
        for other in (*loc, *((source,) if source >= 0 else ())):
            yield index, other


def allowed(op: str, request: str) -> list[int]:
    """The devices that a node can be on by itself."""
    spec = gc.DeviceSpec.parse(request)
    return [
        index
        for index, name in enumerate(DEVICES)
        if gc.DeviceSpec.parse(name).type in KERNELS[op] and spec.is_specification_of(gc.DeviceSpec.parse(name))
    ]


def valid_assignments(plan: Plan) -> list[tuple[int, ...]]:
    """All assignments of devices to the nodes that break no constraint."""
    together = list(pairs(plan))
    choices = [allowed(op, request) for op, request, _, _ in plan]
    return [choice for choice in itertools.product(*choices) if all(choice[one] == choice[other] for one, other in together)]


@given(plans())
def test_the_placer_refuses_a_graph_exactly_if_no_assignment_is_valid(plan: Plan) -> None:
    graph = built(plan)
    possible = valid_assignments(plan)
    try:
        gc.Placer(graph, gc.DeviceSet(DEVICES)).run()
    except gc.errors.InvalidArgumentError:
        assert not possible
    else:
        assert tuple([DEVICES.index(node.assigned_device) for node in graph.nodes]) in possible


def preference(ops: list[str], device_type: str) -> tuple[int, int]:
    """The rank of a type for a group in which the ops with priorities agree on the order of the types."""
    priorities = [KERNELS[op][device_type] for op in ops if any(KERNELS[op].values())]
    return (max(priorities, default=0), TYPE_ORDER[device_type])


@given(plans())
def test_a_group_is_on_the_type_it_prefers_where_its_ops_agree(plan: Plan) -> None:
    graph = built(plan)
    possible = valid_assignments(plan)
    if not possible:
        return
    gc.Placer(graph, gc.DeviceSet(DEVICES)).run()
    group = {index: {index} for index in range(len(plan))}
    for one, other in pairs(plan):
        merged = group[one] | group[other]
        for index in merged:
            group[index] = merged
    for index, node in enumerate(graph.nodes):
        ops = [plan[other][0] for other in group[index]]
        stated = {max(KERNELS[op], key=lambda kind, op=op: KERNELS[op][kind]) for op in ops if len(set(KERNELS[op].values())) > 1}  # type: ignore[misc]  # op is bound at once
        if len(stated) > 1:
            continue  # a conflict: the order in which the groups join decides
        types = sorted({gc.DeviceSpec.parse(DEVICES[choice[index]]).type or "" for choice in possible})
        best = max(types, key=lambda kind, ops=ops: preference(ops, kind))  # type: ignore[misc]  # as above
        first = min(choice[index] for choice in possible if gc.DeviceSpec.parse(DEVICES[choice[index]]).type == best)
        assert node.assigned_device == DEVICES[first]


@given(plans(), plans())
def test_groups_that_nothing_joins_are_placed_independently(first: Plan, second: Plan) -> None:
    shifted = [
        (op, device, source + len(first) if source >= 0 else -1, tuple([other + len(first) for other in loc]))
        for op, device, source, loc in second
    ]
    separate = []
    for plan in (first, second):
        graph = built(plan)
        try:
            gc.Placer(graph, gc.DeviceSet(DEVICES)).run()
        except gc.errors.InvalidArgumentError:
            return
        separate += [node.assigned_device for node in graph.nodes]
    graph = built([*first, *shifted])
    gc.Placer(graph, gc.DeviceSet(DEVICES)).run()
    assert [node.assigned_device for node in graph.nodes] == separate
