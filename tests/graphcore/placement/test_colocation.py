"""Placement of nodes that `_class` colocates."""

from __future__ import annotations

import graphcore as gc
from tests.graphcore.placement.setting import Example


def test_a_node_goes_with_the_node_it_names() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("foo", "TestRelu", "in", loc=("in",))
    assert example.place() == {"in": "FakeCPU:0", "foo": "FakeCPU:0"}


def test_groups_are_transitive() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("first", "TestRelu", "in", loc=("in",))
    example.add("second", "TestRelu", "in", loc=("first",))
    example.add("third", "TestRelu", "in", loc=("second",), on="/device:FakeCPU:6")
    assert set(example.place().values()) == {"FakeCPU:6"}


def test_nodes_that_name_a_group_without_a_node_are_colocated() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("first", "TestRelu", "in", loc=("elsewhere",))
    example.add("second", "ReluCPU", "in", loc=("elsewhere",))
    assert example.place()["first"] == "FakeCPU:0"


def test_a_node_joins_all_the_groups_it_names() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("first", "TestRelu", "in")
    example.add("second", "ReluCPU", "in")
    example.add("third", "TestRelu", "in", loc=("first", "second"))
    assert example.place()["first"] == "FakeCPU:0"


def test_a_group_includes_the_ends_of_reference_and_resource_edges() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("var", "TestVariable")
    example.add("assign", "AssignCPU", "var", "in")
    example.add("handle", "TestHandleVariable", loc=("var",))
    example.add("other", "TestHandleAssign", "handle", "in")
    assert set(example.place().values()) == {"FakeCPU:0"}


def test_hard_placement_refuses_nodes_without_a_common_type() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("foo", "ReluGPU", "in", loc=("in",))
    text = (
        "Cannot colocate nodes {{colocation_node foo}} and {{colocation_node in}} because no device type supports both of those nodes and "
        "the other nodes colocated with them."
    )
    assert example.error(soft=False).startswith(text)


def test_soft_placement_drops_an_impossible_constraint() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("foo", "ReluGPU", "in", loc=("in",))
    assert example.place() == {"in": "FakeCPU:0", "foo": "FakeGPU:0"}


def test_a_dropped_constraint_leaves_no_trace_in_either_group() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("foo", "ReluGPU", "in", loc=("in",), on="/device:FakeGPU:4")
    example.add("bar", "TestRelu", "in", loc=("foo",))
    assert example.place() == {"in": "FakeCPU:0", "foo": "FakeGPU:4", "bar": "FakeGPU:4"}


def test_conflicting_requests_in_a_group_are_an_error_unless_soft() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("first", "TestRelu", "in", on="/device:FakeGPU:0")
    example.add("second", "TestRelu", "in", on="/device:FakeCPU:0", loc=("first",))
    assert "Cannot merge devices with incompatible types" in example.error(soft=False)
    placed = example.place()
    assert placed["first"] == placed["second"]


def test_a_shape_that_follows_its_input_takes_its_group_along() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("far", "TestRelu", "in", on="/device:FakeGPU:3")
    example.add("shape", "Shape", "far", T=gc.float32)
    example.add("near", "TestRelu", "in", loc=("shape",))
    assert example.place() == {"in": "FakeCPU:0", "far": "FakeGPU:3", "shape": "FakeGPU:3", "near": "FakeGPU:3"}


def test_a_shape_goes_with_its_group_rather_than_its_input() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("far", "TestRelu", "in", on="/device:FakeGPU:3")
    example.add("near", "TestRelu", "in")
    example.add("shape", "Shape", "far", T=gc.float32, loc=("near",))
    assert example.place() == {"in": "FakeCPU:0", "far": "FakeGPU:3", "near": "FakeGPU:0", "shape": "FakeGPU:0"}


def test_a_generator_takes_its_group_along() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("constant", "TestCPUGPUOutput")
    example.add("use", "ReluCPU", "constant")
    example.add("other", "TestCPUGPUOutput", loc=("constant",))
    assert example.place()["other"] == "FakeCPU:0"
