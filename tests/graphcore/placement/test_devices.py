"""Devices, sets of devices, and simulated ones."""

from __future__ import annotations

import pytest

import graphcore as gc
from graphcore.errors import AlreadyExistsError, InvalidArgumentError


def test_a_device_completes_its_name() -> None:
    assert gc.Device("/cpu:1").name == "/job:localhost/replica:0/task:0/device:CPU:1"
    assert gc.Device("/job:worker/task:2/gpu:0").name == "/job:worker/replica:0/task:2/device:GPU:0"


def test_a_device_has_a_type() -> None:
    assert [gc.Device(name).device_type for name in ("/cpu:0", "/gpu:0", "/device:FPGA:0")] == ["CPU", "GPU", "FPGA"]


def test_a_malformed_name_makes_no_device() -> None:
    with pytest.raises(InvalidArgumentError, match="Malformed device name"):
        gc.Device("/foo:bar")


def test_a_set_finds_devices_by_full_and_short_name_and_by_partial_ones() -> None:
    devices = gc.DeviceSet(["/cpu:0", "/cpu:1", "/gpu:0"])
    assert devices.find_device_by_name("/job:localhost/replica:0/task:0/gpu:0") is devices.devices[2]
    assert devices.find_device_by_name("/gpu:0") is None
    assert [device.name[-5:] for device in devices.find_matching_devices("/device:CPU:*")] == ["CPU:0", "CPU:1"]
    assert devices.find_matching_devices("/job:worker") == ()


def test_a_set_refuses_a_second_device_of_a_name() -> None:
    with pytest.raises(AlreadyExistsError, match="in the device set already"):
        gc.DeviceSet(["/cpu:0", "/device:CPU:0"])


def test_a_device_that_does_not_exist_is_an_error_that_lists_those_that_do() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'/gpu:7' does not exist: available devices are \[ .*CPU:0, .*GPU:0 \]"):
        gc.DeviceSet(["/cpu:0", "/gpu:0"]).require("/gpu:7")


def test_types_come_by_their_priority() -> None:
    gc.register_device_type("Abacus", 1)
    devices = gc.DeviceSet(["/device:Abacus:0", "/cpu:0", "/device:Unregistered:0", "/gpu:0"])
    assert devices.device_types() == ["GPU", "CPU", "Abacus", "Unregistered"]


def test_simulated_devices_have_names_and_properties_of_their_own() -> None:
    devices = gc.simulated_devices("2 tasks x (1 cpu, 2 gpu)")
    assert [device.name for device in devices] == [
        f"/job:worker/replica:0/task:{task}/device:{kind}" for task in (0, 1) for kind in ("CPU:0", "GPU:0", "GPU:1")
    ]
    assert all(device.memory_limit_bytes and device.bandwidth and device.throughput for device in devices)
    cpu, gpu = devices.devices[:2]
    assert gpu.throughput > cpu.throughput


@pytest.mark.parametrize("description", ["1 cpu, 1 gpu", "(1 cpu, 1 gpu)", "1 task x (1 CPU, 1 GPU)", " 1 task*(1 cpu,1 gpu) "])
def test_a_description_may_be_short(description: str) -> None:
    assert [device.device_type for device in gc.simulated_devices(description)] == ["CPU", "GPU"]


def test_simulated_devices_say_so() -> None:
    devices = gc.simulated_devices("1 cpu")
    assert "simulated" in repr(devices)
    assert "simulated" in repr(devices.devices[0])
    assert "simulated" in str(devices.devices[0])
    assert "simulated" not in repr(gc.Device("/cpu:0"))


def test_simulated_hardware_can_be_chosen() -> None:
    hardware = {"gpu": gc.SimulatedHardware(memory=1 << 20, bandwidth=1e9, throughput=1e12)}
    gpu = gc.simulated_devices("1 cpu, 1 gpu", job="ps", hardware=hardware).devices[1]
    assert (gpu.name, gpu.memory_limit_bytes, gpu.bandwidth, gpu.throughput) == (
        "/job:ps/replica:0/task:0/device:GPU:0",
        1 << 20,
        1e9,
        1e12,
    )


@pytest.mark.parametrize(
    ("description", "problem"),
    [
        ("", "a number and a type"),
        ("two cpus", "a number and a type"),
        ("2 tasks x (1 cpu", "a description of devices"),
        ("2 tasks x ()", "a number and a type"),
        ("0 tasks x (1 cpu)", "at least one task"),
        ("1 task x (0 cpu)", "at least one task"),
        ("1 cpu, 2 cpu", "each type of device once"),
        ("1 cpu; 2 gpu", "a number and a type"),
        ("1000 tasks x (1000 gpu)", "at most"),
    ],
)
def test_a_bad_description_is_refused(description: str, problem: str) -> None:
    with pytest.raises(InvalidArgumentError, match=problem):
        gc.simulated_devices(description)
