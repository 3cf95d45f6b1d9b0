"""Placement without constraints: kernels, priorities, metadata, generators, partial requests."""

from __future__ import annotations

import pytest

import graphcore as gc
from tests.graphcore.placement.setting import CPU, Example, fake_devices


def test_the_type_of_highest_priority_with_a_kernel_is_used() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("n1", "TestRelu", "in")
    example.add("n2", "TestRelu", "in:1")
    assert example.place() == {"in": "FakeCPU:0", "n1": "FakeGPU:0", "n2": "FakeGPU:0"}


def test_the_priority_of_a_kernel_beats_that_of_the_device_type() -> None:
    example = Example()
    example.add("in", "TestGPUOutput")
    example.add("n1", "TestDatasetOp", "in")
    assert example.place() == {"in": "FakeGPU:0", "n1": "FakeCPU:0"}


@pytest.mark.parametrize(
    ("maker", "user", "device"),
    [
        ("CreateDatasetSP", "DatasetNP", "FakeCPU:0"),
        ("CreateDatasetNP", "DatasetSP", "FakeCPU:0"),
        ("CreateDatasetNP", "DatasetRP", "FakeGPU:0"),
        ("CreateDatasetRP", "DatasetNP", "FakeGPU:0"),
        ("CreateDatasetSP", "DatasetSP", "FakeCPU:0"),
        ("CreateDatasetRP", "DatasetRP", "FakeGPU:0"),
        ("CreateDatasetSP", "DatasetRP", "FakeGPU:0"),
        ("CreateDatasetRP", "DatasetSP", "FakeGPU:0"),
        ("CreateDatasetSP", "DatasetGPU", "FakeGPU:0"),
        ("CreateDatasetRP", "DatasetCPU", "FakeCPU:0"),
        ("CreateDatasetNP", "DatasetNP", "FakeGPU:0"),
    ],
)
def test_the_ends_of_a_resource_edge_share_priorities(maker: str, user: str, device: str) -> None:
    example = Example()
    example.add("maker", maker)
    example.add("user", user, "maker")
    assert set(example.place().values()) == {device}


def test_xla_devices_are_used_only_when_requested_or_assigned() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("plain", "TestXlaOp", "in")
    example.add("requested", "TestXlaOp", "in", on="/device:XLA_CPU:0")
    example.add("assigned", "TestXlaOp", "in", at="/job:a/replica:0/task:0/device:XLA_CPU:0")
    assert example.place() == {"in": "FakeCPU:0", "plain": "FakeCPU:0", "requested": "XLA_CPU:0", "assigned": "XLA_CPU:0"}


def test_a_shape_goes_with_its_input() -> None:
    example = Example()
    example.add("var", "VariableCPU")
    example.add("shape", "Shape", "var", T=gc.float32)
    assert example.place() == {"var": "FakeCPU:0", "shape": "FakeCPU:0"}


def test_a_shape_goes_with_an_input_on_another_device_of_its_type() -> None:
    example = Example()
    example.add("source", "TestInput")
    example.add("in", "TestRelu", "source", on="/device:FakeGPU:3")
    example.add("shape", "Shape", "in", T=gc.float32)
    assert example.place()["shape"] == "FakeGPU:3"


def test_a_generator_follows_its_consumers() -> None:
    example = Example()
    example.add("var", "VariableCPU")
    example.add("in", "TestCPUGPUOutput")
    example.add("assign", "TestAssign", "var", "in")
    assert example.place() == {"var": "FakeCPU:0", "in": "FakeCPU:0", "assign": "FakeCPU:0"}


def test_a_generator_with_consumers_on_several_devices_goes_its_own_way() -> None:
    example = Example()
    example.add("in", "TestCPUGPUOutput")
    example.add("c", "ReluCPU", "in")
    example.add("g", "ReluGPU", "in")
    assert example.place() == {"in": "FakeGPU:0", "c": "FakeCPU:0", "g": "FakeGPU:0"}


def test_a_generator_does_not_follow_where_it_cannot_run() -> None:
    example = Example()
    example.add("in", "TestGPUOutput")
    example.add("c", "ReluCPU", "in")
    assert example.place()["in"] == "FakeGPU:0"


def test_a_generator_does_not_follow_where_its_request_forbids_it() -> None:
    example = Example()
    example.add("in", "TestCPUGPUOutput", on="/device:FakeGPU:2")
    example.add("c", "ReluCPU", "in")
    assert example.place()["in"] == "FakeGPU:2"


def test_an_assigned_device_is_kept_against_the_preference_of_the_kernel() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("n1", "TestRelu", "in", at="/job:a/replica:0/task:0/device:FakeCPU:7")
    assert example.place()["n1"] == "FakeCPU:7"


@pytest.mark.parametrize("soft", [False, True])
def test_a_partial_request_leaves_the_type_free(soft: bool) -> None:
    example = Example()
    example.add("in", "TestInput", on="/job:a")
    example.add("var", "TestVariable", on="/job:a")
    assert example.place(soft=soft) == {"in": "FakeCPU:0", "var": "FakeGPU:0"}


def test_soft_placement_replaces_a_requested_device_without_a_kernel() -> None:
    example = Example()
    example.add("in", "TestInput", on="/device:FakeGPU:0")
    assert example.place() == {"in": "FakeCPU:0"}


def test_an_assigned_device_without_a_kernel_is_an_internal_error() -> None:
    example = Example()
    example.add("in", "TestInput", at="/job:a/replica:0/task:0/device:FakeGPU:0")
    text = "Assigned device '/job:a/replica:0/task:0/device:FakeGPU:0' does not have registered OpKernel support for TestInput"
    assert example.error(gc.errors.InternalError) == text


def test_the_default_local_device_goes_first() -> None:
    example = Example()
    example.add("in", "TestInput")
    assert example.place(default_local_device="/job:a/replica:0/task:0/device:FakeCPU:4") == {"in": "FakeCPU:4"}


def test_a_constraint_of_a_kernel_limits_it_to_some_dtypes() -> None:
    devices = gc.DeviceSet(["/cpu:0", "/device:Limited:0"])
    gc.register_device_type("Limited", 900)
    gc.register_kernel("Neg", "Limited", constraints={"T": [gc.float32]})
    with gc.Graph().as_default() as graph:
        single, double = -gc.constant(1.0), -gc.constant(1.0, gc.float64)
        gc.Placer(graph, devices).run()
    assert (single.op.assigned_device[-9:], double.op.assigned_device[-5:]) == ("Limited:0", "CPU:0")


def test_ops_on_strings_stay_on_the_cpu() -> None:
    with gc.Graph().as_default() as graph:
        text, number = gc.constant("a"), gc.constant(1.0)
        gc.Placer(graph, gc.simulated_devices("1 cpu, 1 gpu")).run()
    assert ["GPU" in value.op.assigned_device for value in (text, number)] == [False, True]
    with gc.Graph().as_default() as graph, gc.device("/gpu:0"):
        gc.constant("a")
        with pytest.raises(gc.errors.InvalidArgumentError, match=r"no supported kernel for GPU devices") as caught:
            gc.Placer(graph, gc.simulated_devices("1 cpu, 1 gpu")).run()
    assert "Registered kernels:\n  device='CPU'\n" in caught.value.message
    assert "device='GPU'" not in caught.value.message
    assert "with gc.device('/cpu:0'):" in caught.value.suggestion


def test_devices_of_several_tasks_are_told_apart_in_the_advice_for_one_that_does_not_exist() -> None:
    with gc.Graph().as_default() as graph, gc.device("/job:worker/task:2/cpu:0"):
        gc.constant(1.0)
        with pytest.raises(gc.errors.InvalidArgumentError, match="available devices are") as caught:
            gc.Placer(graph, gc.simulated_devices("2 tasks x (1 cpu)")).run()
    assert caught.value.came == "only /job:worker/task:0/cpu:0 and /job:worker/task:1/cpu:0"


def test_the_result_gives_the_device_of_a_node() -> None:
    example = Example()
    node = example.add("in", "TestInput")
    placement = gc.Placer(example.graph, fake_devices()).run()
    assert placement["in"].name == placement[node].name == node.assigned_device == CPU


def test_queues_stay_on_the_cpu_with_the_nodes_that_use_them() -> None:
    with gc.Graph().as_default() as graph:
        queue = gc.apply_op("FIFOQueueV2", inputs=[], component_types=[gc.float32], name="queue")
        gc.apply_op("QueueSizeV2", inputs=[queue], name="size")
        gc.constant(1.0, name="number")
        placement = gc.Placer(graph, gc.simulated_devices("1 cpu, 1 gpu")).run()
    assert [placement[name].device_type for name in ("queue", "size", "number")] == ["CPU", "CPU", "GPU"]


def test_devices_are_logged_on_request(caplog: pytest.LogCaptureFixture) -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("var", "TestVariable", on="/device:FakeGPU:1")
    example.add("assign", "TestAssign", "var", "in", on="/device:FakeCPU:1")
    with caplog.at_level("INFO", logger="graphcore.placement"):
        example.place()
        assert not caplog.messages
    for node in example.graph.nodes:
        node.assigned_device = ""
    with caplog.at_level("INFO", logger="graphcore.placement"):
        example.place(log_device_placement=True)
    assert f"in: (TestInput): {CPU}" in caplog.messages
    assert any(message.startswith("Ignoring device specification /device:FakeCPU:1 for node 'assign'") for message in caplog.messages)
