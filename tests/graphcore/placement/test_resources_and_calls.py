"""Placement of resources, also where they go through function calls."""

from __future__ import annotations

from typing import Final

import pytest

import graphcore as gc
from graphcore.errors import UnimplementedError
from tests.graphcore.placement.setting import CPU, Example

RESOURCE_OUTPUT: Final = """ResourceOutput(x:float, y:resource) -> (x_out:float, y_out:resource) {
  same = Identity[T=float](x)
  handle = Identity[T=resource](y)
  return x_out = same:output:0
  return y_out = handle:output:0
}"""
RESOURCE_IDENTITY: Final = """ResourceIdentity(x:resource) -> (y:resource) {
  y = Identity[T=resource](x)
  return y = y:output:0
}"""
NESTED: Final = """Nested(x:resource) -> (y:resource) {
  y = PartitionedCall[Tin={resource}, Tout={resource}, f=ResourceIdentity](x)
  return y = y:output:0
}"""
ON_GPU: Final = """OnGPU(x:resource) -> (y:resource) {
  y = DatasetGPU(x)
  return y = y:o:0
}"""
MAKES_GPU: Final = """MakesGPU(x:float) -> (y:resource) {
  y = IteratorGPU()
  return y = y:o:0
}"""
TWO: Final = """Two(x:resource, y:resource) -> (z:resource) {
  both = TestTwoHandlesIn(x, y)
  z = Identity[T=resource](x)
  return z = z:output:0
}"""
FOREVER: Final = """Forever(x:resource) -> (y:resource) {
  y = PartitionedCall[Tin={resource}, Tout={resource}, f=Forever](x)
  return y = y:output:0
}"""
hard_and_soft = pytest.mark.parametrize("soft", [False, True])


def same(example: Example, name: str, value: str, on: str = "", at: str = "", loc: tuple[str, ...] = ()) -> None:
    """Add an Identity of a resource."""
    example.add(name, "Identity", value, on=on, at=at, loc=loc, T=gc.resource)


@hard_and_soft
def test_a_request_on_the_generator_of_a_resource_counts_as_assigned(soft: bool) -> None:
    example = Example()
    example.add("a", "TestHandleVariable", on="/device:FakeCPU:0")
    same(example, "id", "a", on="/device:FakeGPU:0")
    assert example.place(soft=soft) == {"a": "FakeCPU:0", "id": "FakeCPU:0"}


@hard_and_soft
def test_a_call_with_resources_keeps_its_own_request_and_each_result_goes_with_its_resource(soft: bool) -> None:
    example = Example(RESOURCE_OUTPUT)
    example.add("a", "TestGPUOutput", on="/device:FakeGPU:0")
    example.add("b", "TestHandleVariable", on="/device:FakeCPU:0")
    example.call("y", "ResourceOutput", "a", "b", types="fr", out="fr")
    example.add("r1", "Identity", "y:0", T=gc.float32)
    same(example, "r2", "y:1")
    placed = example.place(soft=soft)
    assert placed == {"a": "FakeGPU:0", "b": "FakeCPU:0", "y": "FakeGPU:0", "r1": "FakeGPU:0", "r2": "FakeCPU:0"}


def test_the_request_of_a_result_counts_where_it_is_no_resource() -> None:
    example = Example(RESOURCE_OUTPUT)
    example.add("a", "TestGPUOutput", on="/device:FakeGPU:0")
    example.add("b", "TestHandleVariable", on="/device:FakeCPU:0")
    example.call("y", "ResourceOutput", "a", "b", types="fr", out="fr", on="/device:FakeCPU:4")
    example.add("r1", "Identity", "y:0", on="/device:FakeCPU:2", T=gc.float32)
    placed = example.place()
    assert (placed["y"], placed["r1"]) == ("FakeCPU:4", "FakeCPU:2")


@pytest.mark.parametrize("function", ["ResourceIdentity", "Nested"])
def test_the_request_of_a_return_gives_way_to_that_of_the_resource(function: str) -> None:
    example = Example(RESOURCE_IDENTITY, NESTED)
    example.add("a", "TestHandleVariable", on="/device:FakeCPU:0")
    example.call("y", function, "a", types="r", out="r")
    example.add("r1", "_Retval", "y", on="/device:FakeGPU:0", index=0, T=gc.resource)
    assert example.place()["r1"] == "FakeCPU:0"


@hard_and_soft
def test_an_unassigned_resource_takes_the_device_of_its_consumers_through_a_call(soft: bool) -> None:
    example = Example(RESOURCE_IDENTITY)
    example.add("a", "TestHandleVariable")
    example.call("y", "ResourceIdentity", "a", types="r", out="r")
    same(example, "r1", "y", on="/device:FakeCPU:3")
    placed = example.place(soft=soft)
    assert placed == {"a": "FakeCPU:3", "y": "FakeGPU:0", "r1": "FakeCPU:3"}


def test_an_unassigned_consumer_takes_the_device_of_the_resource_through_a_call() -> None:
    example = Example(RESOURCE_IDENTITY)
    example.add("a", "TestHandleVariable", on="/device:FakeCPU:8")
    example.call("y", "ResourceIdentity", "a", types="r", out="r")
    same(example, "r1", "y")
    assert example.place()["r1"] == "FakeCPU:8"


def test_only_the_type_is_fixed_where_requests_of_consumers_conflict_in_number() -> None:
    example = Example(TWO)
    example.add("a", "TestHandleVariable")
    example.add("b", "TestHandleVariable")
    same(example, "i1", "a", on="/device:FakeCPU:4")
    same(example, "i2", "b", on="/device:FakeCPU:5")
    example.call("y", "Two", "i1", "i2", types="rr", out="r")
    placed = example.place()
    assert placed["a"] == placed["b"] == placed["i1"] == placed["i2"] == "FakeCPU:0"


def conflicting() -> Example:
    example = Example()
    example.add("a", "TestHandleVariable", on="/device:FakeGPU:0")
    same(example, "id1", "a")
    example.add("b", "TestHandleVariable", on="/device:FakeCPU:0")
    same(example, "id2", "b", loc=("id1",))
    return example


def test_each_side_of_a_conflict_between_resources_keeps_its_device_with_soft_placement() -> None:
    assert conflicting().place() == {"a": "FakeGPU:0", "id1": "FakeGPU:0", "b": "FakeCPU:0", "id2": "FakeCPU:0"}


def test_a_conflict_between_resources_is_an_error_of_hard_placement() -> None:
    assert (
        conflicting()
        .error(soft=False)
        .startswith(
            "Cannot colocate nodes {{colocation_node id2}} and {{colocation_node id1}}: Cannot merge devices with incompatible types: "
            "'/device:FakeCPU:0' and '/device:FakeGPU:0'"
        )
    )


@hard_and_soft
def test_an_assigned_device_without_support_in_the_group_is_an_error(soft: bool) -> None:
    example = Example()
    example.add("iter", "IteratorGPU")
    same(example, "id", "iter", at=CPU)
    text = (
        "{{colocation_node iter}} was colocated with a group of nodes that required incompatible device "
        "'/job:a/replica:0/task:0/device:FakeCPU:0'"
    )
    assert text in example.error(soft=soft)


@hard_and_soft
@pytest.mark.parametrize("function", ["", "ResourceIdentity", "Nested"])
def test_an_op_cannot_use_resources_of_two_devices(function: str, soft: bool) -> None:
    example = Example(RESOURCE_IDENTITY, NESTED)
    example.add("a", "TestHandleVariable", on="/device:FakeGPU:0")
    example.add("b", "TestHandleVariable", on="/device:FakeCPU:0")
    if function:
        example.call("x", function, "a", types="r", out="r")
        example.call("y", function, "b", types="r", out="r")
    example.add("both", "TestTwoHandlesIn", *(("x", "y") if function else ("a", "b")))
    assert "with incompatible resource devices: /device:FakeCPU:0 vs /device:FakeGPU:0" in example.error(soft=soft)


@hard_and_soft
def test_a_call_cannot_use_resources_of_two_devices_in_one_op(soft: bool) -> None:
    example = Example(TWO)
    example.add("a", "TestHandleVariable", on="/device:FakeCPU:0")
    example.add("b", "TestHandleVariable", on="/device:FakeGPU:0")
    example.call("y", "Two", "a", "b", types="rr", out="r")
    assert "with incompatible resource devices: /device:FakeCPU:0 vs /device:FakeGPU:0" in example.error(soft=soft)


@pytest.mark.parametrize(("name", "source", "letter"), [("MakesGPU", "TestGPUOutput", "f"), ("OnGPU", "TestHandleVariable", "r")])
def test_a_consumer_cannot_need_another_type_than_the_body_of_a_call_fixes(name: str, source: str, letter: str) -> None:
    example = Example(MAKES_GPU, ON_GPU)
    example.add("a", source)
    example.call("y", name, "a", types=letter, out="r")
    same(example, "r1", "y", on="/device:FakeCPU:0")
    assert "Could not satisfy explicit device specification '/device:FakeCPU:0'" in example.error(soft=False)
    assert example.place()["r1"] == "FakeGPU:0"


@hard_and_soft
@pytest.mark.parametrize(("name", "source", "letter"), [("MakesGPU", "TestGPUOutput", "f"), ("OnGPU", "TestHandleVariable", "r")])
def test_a_consumer_is_not_assigned_to_another_type_than_the_body_of_a_call_fixes(name: str, source: str, letter: str, soft: bool) -> None:
    example = Example(MAKES_GPU, ON_GPU)
    example.add("a", source)
    example.call("y", name, "a", types=letter, out="r")
    same(example, "r1", "y", at=CPU)
    assert f"was colocated with a group of nodes that required incompatible device '{CPU}'" in example.error(soft=soft)


@hard_and_soft
def test_where_two_consumers_of_a_resource_request_two_types_the_first_one_counts(soft: bool) -> None:
    example = Example()
    example.add("a", "TestHandleVariable")
    same(example, "i1", "a", on="/device:FakeGPU:0")
    same(example, "i2", "a", on="/device:FakeCPU:0")
    assert example.place(soft=soft) == {"a": "FakeGPU:0", "i1": "FakeGPU:0", "i2": "FakeGPU:0"}


@hard_and_soft
@pytest.mark.parametrize("by", ["ops", "calls", "calls in a row"])
def test_two_consumers_of_a_resource_cannot_need_two_types(by: str, soft: bool) -> None:
    example = Example(ON_GPU, ON_GPU.replace("GPU", "CPU"))
    example.add("a", "TestHandleVariable")
    if by == "ops":
        example.add("x", "DatasetGPU", "a")
        example.add("y", "DatasetCPU", "a")
    else:
        example.call("x", "OnGPU", "a", types="r", out="r")
        example.call("y", "OnCPU", "a" if by == "calls" else "x", types="r", out="r")
    assert "because no device type supports both of those nodes" in example.error(soft=soft)


def test_the_body_of_a_call_fixes_the_type_of_the_resources_it_takes() -> None:
    example = Example(ON_GPU)
    example.add("a", "TestHandleVariable")
    example.call("y", "OnGPU", "a", types="r", out="r")
    same(example, "r1", "y")
    placed = example.place(default_local_device=CPU)
    assert (placed["a"], placed["r1"], placed["y"]) == ("FakeGPU:0", "FakeGPU:0", "FakeCPU:0")


def test_a_call_that_returns_no_resource_is_not_colocated_with_those_it_takes() -> None:
    example = Example("Uses(x:resource, v:float) -> (y:float) {\n  y = Identity[T=float](v)\n  return y = y:output:0\n}")
    example.add("a", "TestHandleVariable", on="/device:FakeCPU:0")
    example.add("v", "TestGPUOutput")
    example.call("y", "Uses", "a", "v", types="rf", out="f")
    assert example.place()["y"] == "FakeGPU:0"


def test_a_function_with_resources_that_calls_itself_is_not_placed() -> None:
    example = Example(FOREVER)
    example.add("a", "TestHandleVariable")
    example.call("y", "Forever", "a", types="r", out="r")
    assert "Recursive function calls are not supported" in example.error(UnimplementedError)


def test_the_user_of_a_resource_is_not_assigned_elsewhere() -> None:
    example = Example()
    example.add("a", "TestHandleVariable", on="/device:FakeGPU:0")
    same(example, "id", "a", at=CPU)
    assert "with incompatible assigned and resource devices: /device:FakeGPU:0 vs " in example.error(soft=False)
    assert example.place() == {"a": "FakeCPU:0", "id": "FakeCPU:0"}


@pytest.mark.parametrize("use_resource", [False, True])
def test_the_initializer_of_a_variable_is_on_its_device_and_so_are_the_reads_of_a_reference(use_resource: bool) -> None:
    graph = gc.Graph()
    with graph.as_default():
        variable = gc.Variable([1.0, 2.0], name="W", use_resource=use_resource)
        read = variable.value().node
    machine = gc.simulated_devices("1 cpu, 1 gpu")
    variable.op.assigned_device = machine.devices[0].name
    placement = gc.Placer(graph, machine).run()
    assert placement[variable.initializer] is machine.devices[0]
    assert placement[read] is machine.devices[0]
