"""Placement of the two ends of reference and resource edges."""

from __future__ import annotations

import pytest

import graphcore as gc
from tests.graphcore.placement.setting import CPU, GPU, Example

KINDS = [("", "reference"), ("Handle", "resource")]
VARIABLES = {"": {"Test": "TestVariable", "CPU": "VariableCPU", "GPU": "VariableGPU"}}
VARIABLES["Handle"] = {"Test": "TestHandleVariable", "CPU": "HandleVariableCPU", "GPU": "HandleVariableGPU"}
ASSIGNS = {kind: {"Test": f"Test{kind}Assign", "CPU": f"{kind}AssignCPU", "GPU": f"{kind}AssignGPU"} for kind in ("", "Handle")}
both_kinds = pytest.mark.parametrize("kind", ["", "Handle"], ids=["reference", "resource"])


def pair(kind: str, variable: str = "Test", assign: str = "Test", **devices: str) -> Example:
    """A variable with its assignment; `var_on`, `var_at`, `assign_on` and `assign_at` are devices."""
    example = Example()
    example.add("in", "TestInput")
    example.add("var", VARIABLES[kind][variable], on=devices.get("var_on", ""), at=devices.get("var_at", ""))
    example.add("assign", ASSIGNS[kind][assign], "var", "in", on=devices.get("assign_on", ""), at=devices.get("assign_at", ""))
    return example


@both_kinds
@pytest.mark.parametrize(
    ("variable", "assign", "device"),
    [
        ("Test", "Test", "FakeGPU:0"),
        ("Test", "CPU", "FakeCPU:0"),
        ("Test", "GPU", "FakeGPU:0"),
        ("CPU", "Test", "FakeCPU:0"),
        ("CPU", "CPU", "FakeCPU:0"),
        ("GPU", "Test", "FakeGPU:0"),
        ("GPU", "GPU", "FakeGPU:0"),
    ],
)
def test_both_ends_are_on_a_type_that_both_support(kind: str, variable: str, assign: str, device: str) -> None:
    assert pair(kind, variable, assign).place() == {"in": "FakeCPU:0", "var": device, "assign": device}


@both_kinds
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize(("variable", "assign"), [("CPU", "GPU"), ("GPU", "CPU")])
def test_ends_without_a_common_type_are_an_error(kind: str, variable: str, assign: str, soft: bool) -> None:
    error = pair(kind, variable, assign).error(soft=soft)
    assert "no device type supports both of those nodes" in error
    assert "Cannot colocate nodes {{colocation_node var}} and {{colocation_node assign}}" in error


@both_kinds
@pytest.mark.parametrize("soft", [False, True])
def test_the_request_on_the_generator_wins_over_that_on_its_user(kind: str, soft: bool) -> None:
    placed = pair(kind, var_on="/device:FakeGPU:0", assign_on="/device:FakeCPU:0").place(soft=soft)
    assert placed["var"] == placed["assign"] == "FakeGPU:0"


@both_kinds
@pytest.mark.parametrize("soft", [False, True])
def test_a_more_specific_request_on_the_user_completes_that_on_the_generator(kind: str, soft: bool) -> None:
    placed = pair(kind, var_on="/device:FakeCPU:*", assign_on="/device:FakeCPU:5").place(soft=soft)
    assert placed["var"] == placed["assign"] == "FakeCPU:5"


@both_kinds
@pytest.mark.parametrize("soft", [False, True])
def test_a_request_on_the_user_counts_where_the_generator_has_none(kind: str, soft: bool) -> None:
    placed = pair(kind, assign_on="/device:FakeCPU:3").place(soft=soft)
    assert placed["var"] == placed["assign"] == "FakeCPU:3"


@both_kinds
@pytest.mark.parametrize("soft", [False, True])
def test_groups_assigned_to_different_devices_cannot_be_joined(kind: str, soft: bool) -> None:
    text = (
        "Cannot place the graph because a reference or resource edge connects colocation groups with incompatible assigned devices: "
        "/job:a/replica:0/task:0/device:FakeGPU:0 vs /job:a/replica:0/task:0/device:FakeCPU:0"
    )
    assert pair(kind, var_at=GPU, assign_at=CPU).error(soft=soft).startswith(text)


@pytest.mark.parametrize("soft", [False, True])
def test_resources_requested_on_different_devices_cannot_be_joined(soft: bool) -> None:
    example = Example()
    example.add("a", "TestHandleVariable", on="/device:FakeCPU:0")
    example.add("b", "TestHandleVariable", on="/device:FakeGPU:0")
    example.add("both", "TestTwoHandlesIn", "a", "b")
    assert (
        "Cannot place the graph because a reference or resource edge connects colocation groups with incompatible resource devices: "
    ) in example.error(soft=soft)


@both_kinds
def test_the_user_of_an_assigned_generator_follows_it(kind: str) -> None:
    placed = pair(kind, var_at=CPU, assign_on="/device:FakeGPU:0").place()
    assert placed["assign"] == "FakeCPU:0"


@both_kinds
def test_an_impossible_placement_leaves_the_graph_as_it_was(kind: str) -> None:
    example = pair(kind, "GPU", "CPU")
    example.error()
    assert [node.assigned_device for node in example.graph.nodes] == ["", "", ""]


def test_a_chain_of_references_is_on_one_device() -> None:
    with gc.Graph().as_default() as graph:
        variable = gc.apply_op("VariableV2", inputs=[], shape=[], dtype=gc.float32, name="v")
        assign = gc.apply_op("Assign", inputs=[variable, gc.constant(1.0)], name="assign")
        with gc.device("/gpu:1"):
            gc.apply_op("AssignAdd", inputs=[assign, gc.constant(1.0)], name="more")
        gc.Placer(graph, gc.simulated_devices("1 cpu, 2 gpu")).run()
    assert {graph.find(name).assigned_device[-5:] for name in ("v", "assign", "more")} == {"GPU:1"}  # type: ignore[union-attr]  # they exist
