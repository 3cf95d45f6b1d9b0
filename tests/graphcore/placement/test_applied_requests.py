"""Requests that a proposal or a what-if has made outlive that nodes are derived again."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc

TRAIN: Final[Any] = gc.train  # type: ignore[attr-defined]  # made when it is asked for
DEVICES: Final = gc.simulated_devices("1 cpu, 2 gpu")
N: Final = 512


@pytest.fixture
def training() -> tuple[gc.Graph, gc.Node, gc.Tensor]:
    """Two chains of products with a shared loss, and a training step."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [N, N], name="x")
        ends = []
        for chain in range(2):
            h = x
            for layer in range(3):
                w = gc.Variable(gc.zeros([N, N]), name=f"w{chain}{layer}")
                h = gc.tanh(gc.matmul(h, w), name=f"h{chain}{layer}")
            ends.append(gc.reduce_mean(h))
        loss = gc.add_n(ends, name="loss")
        train = TRAIN.MomentumOptimizer(0.1, 0.9).minimize(loss)
        gc.global_variables_initializer()
    return graph, train, loss


def recorded(graph: gc.Graph, train: gc.Node, loss: gc.Tensor) -> float:
    session = gc.Session(graph, devices=DEVICES)
    session.run("init")
    metadata = gc.RunMetadata()
    session.run([train, loss], {"x:0": np.ones((N, N), np.float32)}, gc.RunOptions(trace=True), metadata)
    assert metadata.trace is not None
    return metadata.trace.timeline().makespan


def test_an_applied_proposal_keeps_its_requests_and_shortens_the_recorded_step(training: tuple[gc.Graph, gc.Node, gc.Tensor]) -> None:
    graph, train, loss = training
    before = recorded(graph, train, loss)
    proposal = gc.propose_placement(graph, DEVICES, [train, loss])
    proposal.apply(graph)
    after = recorded(graph, train, loss)
    moved = {name: move.destination for move in proposal.moves for name in move.nodes}
    assert {name: graph[name].device for name in moved} == moved
    assert after < 0.8 * before
    assert after == pytest.approx(proposal.after.makespan, rel=0.1)


def test_requests_for_gradients_outlive_an_edit_of_what_they_follow_from(training: tuple[gc.Graph, gc.Node, gc.Tensor]) -> None:
    graph, train, loss = training
    names = [node.name for node in graph.nodes if node.name.startswith("gradients/h00_grad")]
    assert names
    gc.what_if([graph[name] for name in names], "/gpu:1", DEVICES, fetches=[train]).apply(graph)
    product = graph.get_operation_by_name("MatMul_1")
    graph.set_attr(product, "transpose_b", True)
    recorded(graph, train, loss)
    assert {graph[name].device for name in names} == {"/device:GPU:1"}
    assert any(
        node.op == "MatMul" and node.attr["transpose_b"] is False for node in graph.nodes if node.name.startswith("gradients/MatMul_1")
    )
