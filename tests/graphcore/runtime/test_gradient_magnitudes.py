"""The magnitudes of gradients along the depth, compared with gradients by the outputs of each node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.runtime.core.tracing import last_trace
from tests.graphcore.runtime.loop_graphs import enter, op, while_loop

Differentiated = tuple[gc.Tensor, list[Any]]
BATCH = np.random.default_rng(1).random((5, 4), np.float32) + 0.5


def network() -> Differentiated:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    h = x
    weights: list[Any] = []
    for number in range(3):
        weights.append(gc.Variable(np.full((4, 4), 0.2 + number / 10, np.float32), name=f"W{number}"))
        h = gc.relu(gc.matmul(h, weights[-1]) + h, name=f"h{number}")
    return gc.reduce_mean(-gc.reduce_sum(gc.log(h, name="log"), axis=1), name="loss"), [x, *weights]


def functional_loop() -> Differentiated:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    y = gc.while_loop(lambda i, _: i < 3, lambda i, a: [i + 1, gc.tanh(a) * x], [gc.constant(0), x], name="loop")[1]
    return gc.reduce_mean(y * y, name="loss"), [x]


def branch() -> Differentiated:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    y = gc.cond(gc.reduce_sum(x) > 0.0, lambda: gc.tanh(x) * 3.0, lambda: gc.exp(x), name="choice")
    return gc.reduce_mean(y * y, name="loss"), [x]


def call() -> Differentiated:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    twice = gc.function(lambda a: gc.log(a * 2.0))
    return gc.reduce_mean(gc.tanh(twice(x)), name="loss"), [x]


def merged_loop() -> Differentiated:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    start = gc.tanh(x, name="start")
    limit = gc.constant(3)
    _, y = while_loop(
        lambda i, _: op("Less", [i, enter(limit, "turns", constant=True)]),
        lambda i, a: [op("Add", [i, enter(gc.constant(1), "turns", constant=True)]), op("Sin", [a])],
        [gc.constant(0), start],
        "turns",
    )
    return gc.reduce_mean(y * y, name="loss"), [x]


@pytest.mark.parametrize(
    ("build", "engine"), [(network, "plan"), (functional_loop, "plan"), (branch, "plan"), (call, "plan"), (merged_loop, "dataflow")]
)
def test_magnitudes_are_those_of_the_gradients_by_the_outputs(build: Callable[[], Differentiated], engine: str) -> None:
    with gc.Graph().as_default() as graph:
        loss, parameters = build()
        fetches = gc.gradients(loss, parameters)
        init = gc.initialize_all_variables()
        with gc.Session(engine=engine) as session:
            session.run(init)
            metadata = gc.RunMetadata()
            session.run(fetches, {"x:0": BATCH}, gc.RunOptions(values=True), metadata)
            assert metadata.values is not None
            found = {one.node: one for one in metadata.values.gradient_magnitudes(graph)}
            assert {"loss", "x"} <= found.keys()
            frames = in_loops(graph)
            compared = [graph.find(name) for name in found]
            outside: list[Any] = [node for node in compared if node is not None and node.name not in frames]
            floats = [[tensor for tensor in node.outputs if tensor.dtype.base.is_floating] for node in outside]
            wanted = [[one for one in gc.gradients(loss, tensors) if one is not None] for tensors in floats]
            values = session.run(wanted, {"x:0": BATCH})
    assert len(outside) >= 4
    for node, arrays in zip(outside, values, strict=True):
        greatest = max(float(np.abs(array).max()) for array in arrays)
        assert found[node.name].value == pytest.approx(greatest, rel=1e-5), node.name


def in_loops(graph: gc.Graph) -> set[str]:
    """The nodes of Switch/Merge loops, whose gradients cannot be requested one by one."""
    inside: set[str] = set()
    for node in graph.op_nodes():
        if node.op == "Enter" or (node.op != "Exit" and any(tensor.node.name in inside for tensor in node.inputs)):
            inside.add(node.name)
    return inside


def test_weights_stand_beside_the_layer_that_they_serve() -> None:
    with gc.Graph().as_default() as graph:
        loss, parameters = network()
        fetches = gc.gradients(loss, parameters)
        init = gc.initialize_all_variables()
        with gc.Session() as session:
            session.run(init)
            session.run(fetches, {"x:0": BATCH}, gc.RunOptions(values=True))
        trace = last_trace(graph)
        assert trace is not None
        assert trace.values is not None
        found = trace.values.gradient_magnitudes(graph)
    names = [one.node for one in found]
    depths = {one.node: one.depth for one in found}
    for number, layer in enumerate(("MatMul", "MatMul_1", "MatMul_2")):
        assert depths[f"W{number}"] == depths[layer]
    assert names[-1] == "loss"
    assert [one.depth for one in found] == sorted(depths.values())


def test_nodes_computed_from_weights_alone_stand_beside_the_layer_that_they_serve() -> None:
    with gc.Graph().as_default() as graph:
        h = gc.placeholder(gc.float32, [None, 4], name="x")
        for number in range(3):
            variance = gc.Variable(np.full(4, 2.0, np.float32), name=f"variance{number}")
            h = gc.multiply(gc.tanh(h), gc.ops.rsqrt(variance + 1e-3, name=f"scale{number}"), name=f"h{number}")
        loss = gc.reduce_mean(h * h, name="loss")
        fetches = gc.gradients(loss, list(graph.get_collection("variables")))
        init = gc.initialize_all_variables()
        with gc.Session() as session:
            session.run(init)
            session.run(fetches, {"x:0": BATCH}, gc.RunOptions(values=True))
        trace = last_trace(graph)
        assert trace is not None
        assert trace.values is not None
        found = {one.node: one for one in trace.values.gradient_magnitudes(graph)}
    for number in range(3):
        scale, layer = found[f"scale{number}"], found[f"h{number}"]
        assert scale.weight
        assert not layer.weight
        assert scale.depth == layer.depth
