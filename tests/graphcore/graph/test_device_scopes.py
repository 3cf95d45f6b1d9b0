"""`gc.device`: what a block requests beside the blocks around it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

import graphcore

gc: Any = graphcore  # its namespaces are found on demand


@pytest.fixture(autouse=True)
def graph() -> Any:
    with gc.Graph().as_default() as made:
        yield made


def requested(*scopes: Any) -> str:
    """The device of a constant made within nested blocks, outermost first."""
    with ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(gc.device(scope))
        return str(gc.constant(1.0).node.device)


@pytest.mark.parametrize(
    ("scopes", "device"),
    [
        (("/job:worker/task:3", "/job:ps"), "/job:ps/task:3"),
        (("/job:worker/task:3", "/task:1"), "/job:worker/task:1"),
        (("/job:a/replica:1/task:2/cpu:0", "/replica:0"), "/job:a/replica:0/task:2/device:CPU:0"),
        (("/job:worker/task:0/gpu:0", "/job:ps/task:0/cpu:0"), "/job:ps/task:0/device:CPU:0"),
        (("/cpu:3", "/device:GPU:*"), "/device:GPU:3"),
        (("/job:a", "", "/cpu:1"), "/job:a/device:CPU:1"),
        (("/job:a", None, "/cpu:1"), "/device:CPU:1"),
        (("/job:a/task:1", "/job:b", "/job:c/task:2"), "/job:c/task:2"),
        ((lambda _: "/job:a/task:1", "/job:b"), "/job:a/task:1"),
        (("/job:b/task:7", lambda _: "/job:a"), "/job:a/task:7"),
    ],
)
def test_each_part_of_an_inner_request_replaces_that_of_the_outer_one(scopes: tuple[Any, ...], device: str) -> None:
    assert requested(*scopes) == device


def test_an_inner_function_may_name_another_job_for_some_ops() -> None:
    with gc.device("/job:worker/task:0"), gc.device(lambda op: "/job:ps/task:1" if op.type.startswith("Var") else ""):
        v = gc.get_variable("v", [2], use_resource=False)
        assert [v.op.device, (v + 1.0).node.device] == ["/job:ps/task:1", "/job:worker/task:0"]


def test_requests_within_colocate_with_do_not_change_the_device_of_the_node() -> None:
    with gc.device("/cpu:1"):
        a = gc.constant(1.0)
    graph = gc.get_default_graph()
    with graph.colocate_with(a.op):
        with gc.device("/cpu:2"):
            assert gc.constant(3.0).node.device == "/device:CPU:1"
        with gc.device(None), gc.device(lambda _: "/cpu:3"):
            assert gc.constant(3.0).node.device == "/device:CPU:1"
    with gc.device("/cpu:2"):
        assert gc.constant(3.0).node.device == "/device:CPU:2"


def test_an_optimizer_and_a_saver_work_between_parameter_servers_and_workers() -> None:
    with gc.device("/job:worker/task:0"):
        with gc.device("/job:ps/task:0"):
            w = gc.Variable(1.0, name="w")
        loss = w * w
        with gc.device("/job:ps/task:1"):
            step = gc.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
            average = gc.train.ExponentialMovingAverage(0.5).apply([w])
        gc.train.Saver()
    assert step.device == "/job:ps/task:1"
    assert average.device == "/job:ps/task:1"
