"""Requests and assignments that cannot be met, with the texts of their errors."""

from __future__ import annotations

import pytest

import graphcore as gc
from graphcore.errors import FailedPreconditionError, InternalError
from tests.graphcore.placement.setting import CPU, Example, fake_devices

AVAILABLE = ", ".join(sorted(device.name for device in fake_devices()))
hard_and_soft = pytest.mark.parametrize("soft", [False, True])


def single(op: str = "TestInput", name: str = "in", **devices: str) -> Example:
    example = Example()
    example.add(name, op, **devices)  # type: ignore[arg-type]  # requested and assigned devices only
    return example


def test_without_devices_nothing_is_placed() -> None:
    with pytest.raises(FailedPreconditionError, match=r"^No devices are registered$"):
        gc.Placer(single().graph, gc.DeviceSet([])).run()


def test_a_request_that_its_group_cannot_meet_lists_the_kernels_of_the_group() -> None:
    example = Example()
    example.add("in", "TestInput")
    example.add("var", "VariableGPU")
    example.add("assign", "TestAssign", "var", "in", on="/device:FakeCPU:0")
    error = example.error(soft=False)
    assert "colocated with a group of nodes that required incompatible device '/device:FakeCPU:0'" in error
    assert "VariableGPU: FakeGPU" in error
    assert "TestAssign: FakeGPU FakeCPU" in error


@hard_and_soft
def test_a_request_of_an_unknown_job_is_named(soft: bool) -> None:
    assert "/job:foo" in single(on="/job:foo").error(soft=soft)


@hard_and_soft
@pytest.mark.parametrize("device", ["/job:foo", "/job:a", "/job:a/replica:0/task:0/device:FakeCPU:77"])
def test_an_assigned_device_that_is_unknown_or_not_unique_is_an_internal_error(device: str, soft: bool) -> None:
    assert single(at=device).error(InternalError, soft=soft).startswith(f"Assigned device '{device}' does not match any device")


@hard_and_soft
def test_an_op_without_kernels_is_refused(soft: bool) -> None:
    error = single("VariableNoKernels", "var").error(soft=soft)
    assert "No OpKernel was registered to support Op 'VariableNoKernels' used by {{node var}}" in error
    assert "<no registered kernels>" in error


@hard_and_soft
def test_an_op_with_kernels_for_absent_devices_only_is_refused(soft: bool) -> None:
    error = single("VariableGPU", "var").error(soft=soft, devices=gc.DeviceSet([CPU]))
    assert "No OpKernel was registered to support Op 'VariableGPU' used by {{node var}}" in error
    assert "device='FakeGPU'" in error


def test_an_op_without_kernels_is_placed_in_the_task_it_is_requested_in() -> None:
    example = single("VariableNoKernels", "var", on="/job:b/replica:0/task:0/device:FakeCPU:0")
    devices = gc.DeviceSet([CPU, CPU.replace("job:a", "job:b")])
    gc.Placer(example.graph, devices, default_local_device=CPU).run()
    assert example.graph.nodes[0].assigned_device == CPU.replace("job:a", "job:b")


def test_an_op_without_kernels_requested_here_is_refused() -> None:
    example = single("VariableNoKernels", "var", on="/job:a/replica:0/task:0/device:FakeCPU:0")
    assert "No OpKernel was registered" in example.error(default_local_device=CPU)


@hard_and_soft
def test_a_malformed_request_is_refused(soft: bool) -> None:
    assert "Malformed device specification '/foo:bar'" in single(on="/foo:bar").error(soft=soft)


@hard_and_soft
def test_a_malformed_assigned_device_is_an_internal_error(soft: bool) -> None:
    assert "Malformed assigned device '/foo:bar'" in single(at="/foo:bar").error(InternalError, soft=soft)


def test_a_number_that_does_not_exist_is_refused_by_hard_placement() -> None:
    error = single("TestGPUOutput", on="/device:FakeGPU:11").error(soft=False)
    assert error == (
        "Cannot assign a device for operation in: {{node in}}was explicitly assigned to /device:FakeGPU:11 but available devices are "
        f"[ {AVAILABLE} ]. Make sure the device specification refers to a valid device."
    )


@pytest.mark.parametrize(("requested", "placed"), [("/device:FakeGPU:11", "FakeGPU:0"), ("/device:FakeCPU:11", "FakeCPU:0")])
def test_soft_placement_takes_another_number_of_the_same_type(requested: str, placed: str) -> None:
    assert single("TestDevice", on=requested).place() == {"in": placed}


def test_a_type_without_a_kernel_is_refused_by_hard_placement() -> None:
    error = single("VariableGPU", "var", on="/device:FakeCPU:0").error(soft=False)
    assert error.startswith(
        "Cannot assign a device for operation var: Could not satisfy explicit device specification '/device:FakeCPU:0' because "
        "no supported kernel for FakeCPU devices is available"
    )


def test_a_requested_device_that_does_not_exist_is_named_with_those_that_do() -> None:
    error = single(on="/job:foo/replica:17").error(soft=False)
    assert "was explicitly assigned to /job:foo/replica:17" in error
    assert "but available devices" in error


def test_soft_placement_does_not_replace_a_job() -> None:
    assert "was explicitly assigned to /job:foo" in single(on="/job:foo").error()


def test_a_gpu_where_there_is_none_is_named_as_such() -> None:
    with gc.Graph().as_default() as graph:
        with gc.device("/device:gpu:0"):
            gc.constant(1.0)
        with pytest.raises(gc.errors.InvalidArgumentError, match="The requested device appears to be a GPU"):
            gc.Placer(graph, gc.DeviceSet(["/cpu:0"])).run()


def test_an_error_names_the_line_that_made_the_node() -> None:
    with gc.Graph().as_default() as graph, gc.device("/job:foo"):
        gc.constant(1.0)
    with pytest.raises(gc.GraphError) as raised:
        gc.Placer(graph, gc.DeviceSet(["/cpu:0"])).run()
    assert "test_failures.py" in str(raised.value)
