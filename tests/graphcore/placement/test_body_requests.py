"""Device requests in bodies of functions, branches and loops: what explanations and remarks say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.remarks import collect_remarks, collected_remarks

DEVICES = gc.simulated_devices("1 cpu, 2 gpu")
X = np.ones((2, 2), np.float32)


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    with gc.Graph().as_default():
        collect_remarks()
        yield
        collected_remarks()


def inner(x: gc.Tensor, device: str) -> Any:
    with gc.device(device):
        return gc.nn.relu(x, name="inner")


def in_loop(x: gc.Tensor, device: str) -> Any:
    return gc.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, inner(a, device)), [gc.constant(0), x])[1]


def in_branch(x: gc.Tensor, device: str) -> Any:
    return gc.cond(gc.reduce_sum(x) > 0.0, lambda: inner(x, device), lambda: x)


def in_function(x: gc.Tensor, device: str) -> Any:
    @gc.function
    def called(a: gc.Tensor) -> Any:
        return inner(a, device)

    return called(x)


def in_function_in_loop(x: gc.Tensor, device: str) -> Any:
    return gc.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, in_function(a, device)), [gc.constant(0), x])[1]


BODIES = [in_loop, in_branch, in_function, in_function_in_loop]
Body = Callable[[gc.Tensor, str], Any]


@pytest.mark.parametrize("body", BODIES)
def test_a_request_in_a_body_is_a_note_of_the_calls_explanation(body: Body) -> None:
    y = body(gc.placeholder(gc.float32, [2, 2]), "/gpu:1")
    (note,) = gc.explain_placement(y, DEVICES).notes
    assert "'inner' (Relu) in the body '" in note
    assert "requests /device:GPU:1" in note
    assert "a body runs as one on the device of its call, which is " in note
    assert "GPU:0" in note.rpartition("which is")[2]


@pytest.mark.parametrize("body", BODIES)
def test_a_session_remarks_requests_in_bodies_that_have_no_effect(body: Body) -> None:
    x = gc.placeholder(gc.float32, [2, 2])
    y = body(x, "/gpu:1")
    gc.Session(devices=DEVICES).run(y, {x: X})
    (text,) = collected_remarks()
    assert "'inner' (Relu)" in text
    assert "requests /device:GPU:1" in text
    assert "`with gc.device(...)` around the call itself" in text


@pytest.mark.parametrize("body", BODIES)
def test_nothing_is_said_of_a_request_that_the_device_of_the_call_meets(body: Body) -> None:
    x = gc.placeholder(gc.float32, [2, 2])
    with gc.device("/gpu:1"):
        y = body(x, "/gpu:1")
    assert not gc.explain_placement(y, DEVICES).notes
    gc.Session(devices=DEVICES).run(y, {x: X})
    assert not collected_remarks()


@pytest.mark.parametrize("body", BODIES)
def test_a_session_on_the_cpu_alone_remarks_requests_in_bodies(body: Body) -> None:
    x = gc.placeholder(gc.float32, [2, 2])
    y = body(x, "/gpu:1")
    gc.Session().run(y, {x: X})
    (text,) = collected_remarks()
    assert "'inner' (Relu)" in text
    assert "the device of its call, which is /job:localhost/replica:0/task:0/device:CPU:0" in text
