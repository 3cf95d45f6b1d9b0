"""The reasons for which soft placement excludes devices."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

import graphcore as gc
from tests.graphcore.placement.setting import KERNELS, Example

TASKS: Final = gc.DeviceSet(
    [
        f"/job:a/replica:0/task:{task}/device:{kind}:{number}"
        for task in (0, 1)
        for kind, number in (("FakeCPU", 0), ("FakeGPU", 0), ("FakeGPU", 1))
    ]
)
REQUESTS: Final = (
    "",
    "",
    "/task:0",
    "/task:1",
    "/device:FakeCPU:0",
    "/device:FakeGPU:1",
    "/device:FakeGPU:7",
    "/job:a/task:1/device:FakeGPU:0",
)
SOURCES: Final = ("TestHandleVariable", "HandleVariableCPU", "TestCPUGPUOutput")
TAKING: Final = {
    "TestHandleVariable": ("TestResource",),
    "HandleVariableCPU": ("TestResource",),
    "TestCPUGPUOutput": ("TestRelu", "ReluCPU", "ReluGPU"),
}


@st.composite
def graphs_with_requests(draw: st.DrawFn) -> Example:
    """Up to 7 nodes with requests, resource edges and colocations, which may exclude one another."""
    example, ops = Example(), list[str]()
    for index in range(draw(st.integers(1, 7))):
        source = draw(st.integers(-1, index - 1))
        op = draw(st.sampled_from(SOURCES if source < 0 else TAKING.get(ops[source], (ops[source],))))
        loc = tuple([f"n{other}" for other in draw(st.lists(st.integers(0, index - 1), max_size=2, unique=True))]) if index else ()
        example.add(f"n{index}", op, *([f"n{source}"] if source >= 0 else []), on=draw(st.sampled_from(REQUESTS)), loc=loc)
        ops.append(op)
    return example


@given(graphs_with_requests())
def test_each_reason_of_soft_placement_is_true(example: Example) -> None:
    try:
        placement = gc.Placer(example.graph, TASKS, allow_soft_placement=True).run()
    except gc.GraphError:
        return
    for node in example.graph.nodes:
        explanation = placement.explain(node)
        for entry in explanation.candidates:
            device = gc.DeviceSpec.parse(entry.device)
            assert bool(entry.why) == (entry.device != explanation.assigned)
            assert "functions that handle" not in entry.why  # there are no functions
            if "requests" in entry.why:
                assert entry.removed_by in explanation.group
                assert not gc.DeviceSpec.parse(example.graph[entry.removed_by].device).is_specification_of(device)
            if "no kernel" in entry.why:
                assert device.type not in KERNELS[str(example.graph[entry.removed_by].op)]


def test_a_node_whose_colocation_was_dropped_is_held_by_its_own_request() -> None:
    example = Example()
    example.add("in", "TestCPUGPUOutput", on="/task:0/device:FakeGPU:0")
    example.add("node", "TestCPUGPUOutput", on="/task:1/device:FakeGPU:1", loc=("in",))
    explanation = gc.explain_placement(example.graph["node"], TASKS, allow_soft_placement=True)
    assert explanation.assigned == "/job:a/replica:0/task:1/device:FakeGPU:1"
    assert {entry.why for entry in explanation.candidates} == {"", "'node' requests /task:1/device:FakeGPU:1"}
    assert "is impossible and dropped" in explanation.notes[0]
