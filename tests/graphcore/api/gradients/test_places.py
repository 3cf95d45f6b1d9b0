"""`colocate_gradients_with_ops`: gradient nodes on the devices of what they differentiate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.support.cells import run_as_cell


@pytest.fixture(autouse=True)
def graph() -> Any:
    with gc.Graph().as_default() as made:
        yield made


def groups(tensor: gc.Tensor) -> list[str]:
    return [group.decode() for group in tensor.op.colocation_groups()]


def model() -> tuple[gc.Tensor, gc.Variable]:
    with gc.device("/cpu:1"):
        a = gc.placeholder(gc.float32, [None, 4], name="a")
        w = gc.get_variable("w", [4, 3], use_resource=False, initializer=gc.ones_initializer())
        h = gc.matmul(a, w, name="h")
    with gc.device("/cpu:2"):
        return gc.reduce_sum(gc.square(h, name="sq"), name="loss"), w


def test_gradient_nodes_request_the_devices_and_join_the_groups_of_forward_nodes(graph: gc.Graph) -> None:
    loss, w = model()
    with gc.device("/cpu:3"):
        (gradient,) = gc.gradients(loss, w, colocate_gradients_with_ops=True)
    assert gradient.op.device == "/device:CPU:1"
    assert "loc:@h" in groups(gradient)
    made = [node for node in graph.nodes if node.name.startswith("gradients")]
    assert {node.device for node in made} == {"/device:CPU:1", "/device:CPU:2"}
    with gc.Session(devices=["/cpu:0", "/cpu:1", "/cpu:2"]) as session:
        session.run(w.initializer)
        assert session.run(gradient, {"a:0": np.ones((2, 4))}).tolist() == [[16.0] * 3] * 4


def test_without_it_they_request_what_the_call_does(graph: gc.Graph) -> None:
    loss, w = model()
    with gc.device("/cpu:0"):
        gc.gradients(loss, w)
    assert {node.device for node in graph.nodes if node.name.startswith("gradients")} == {"/device:CPU:0"}


def test_an_optimizer_passes_it_on(graph: gc.Graph) -> None:
    loss, _ = model()
    gc.GradientDescentOptimizer(0.1).minimize(loss, colocate_gradients_with_ops=True)
    assert {node.device for node in graph.nodes if node.name.startswith("gradients")} == {"/device:CPU:1", "/device:CPU:2"}


def test_gradients_that_are_built_again_keep_their_places(graph: gc.Graph) -> None:
    with gc.device("/cpu:1"):
        x = gc.placeholder(gc.float32, [], name="x")
    y = run_as_cell(lambda: gc.square(x, name="y"), 1)
    (slope,) = gc.gradients(y, x, colocate_gradients_with_ops=True)
    with gc.device("/cpu:2"):
        run_as_cell(lambda: gc.exp(x, name="y"), 2)
    graph.settle()
    again = graph.get_tensor_by_name(slope.name)
    assert again.op.device == "/device:CPU:2"
    assert groups(again) == ["loc:@y"]
