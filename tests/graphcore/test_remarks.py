"""Remarks: what is allowed, and perhaps not what was meant."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

import graphcore as gc
from graphcore.remarks import collect_remarks, collected_remarks, remark


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    with gc.Graph().as_default():
        collect_remarks()
        yield
        collected_remarks()


@pytest.mark.parametrize("device", ["/gpu:0", "/job:ps/task:7"])
def test_a_session_says_which_nodes_request_a_device_that_it_lacks(device: str) -> None:
    with gc.device(device):
        x = gc.constant(1.0, name="far")
        y = x + 1.0
    assert gc.Session().run(y) == 2.0
    (text,) = collected_remarks()
    assert "'far' and 2 more nodes request" in text or "'far' and 1 more nodes request" in text
    assert gc.DeviceSpec.parse(device).to_string() in text
    assert "run on the CPU" in text


def test_nothing_is_said_of_devices_that_are_there_or_simulated() -> None:
    with gc.device("/gpu:0"):
        x = gc.constant(1.0)
    assert gc.Session(devices=["/cpu:0", "/gpu:0"]).run(x) == 1.0
    with gc.device("/cpu:0"):
        y = gc.constant(1.0)
    assert gc.Session().run(y) == 1.0
    assert collected_remarks() == []


def test_gradients_that_are_all_none_are_remarked_on() -> None:
    x, y = gc.placeholder(gc.float32, [], name="x"), gc.square(gc.placeholder(gc.float32, [], name="z"), name="y")
    assert gc.gradients(y, x) == [None]
    (text,) = collected_remarks()
    assert "'y:0' does not depend on the x 'x:0'" in text
    assert "explain_gradient" in text


def test_gradients_of_which_one_exists_are_not() -> None:
    x, z = gc.placeholder(gc.float32, []), gc.placeholder(gc.float32, [])
    gc.gradients(z * z, [x, z])
    gc.gradients(z * z, x, unconnected_gradients="zero")
    assert collected_remarks() == []


def test_outside_of_notebooks_a_remark_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    collected_remarks()
    with caplog.at_level(logging.WARNING, "graphcore"):
        for _ in range(3):
            remark("a remark of this test")
    assert [record.message for record in caplog.records] == ["a remark of this test"]
