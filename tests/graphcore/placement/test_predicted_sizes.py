"""Predictions count unknown sizes, functions, fed arrays, and variables once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc

DEVICES: Final = gc.simulated_devices("1 cpu, 2 gpu")
N: Final = 256
FED: Final = np.ones((2 * N, N), np.float32)


def layers(x: gc.Tensor) -> Any:
    w = gc.constant(np.ones((N, N), np.float32))
    return gc.reduce_sum(gc.tanh(gc.matmul(gc.tanh(gc.matmul(x, w)), w)))


def of_variables(x: gc.Tensor) -> Any:
    v = gc.Variable(gc.zeros([N, N]), name="v")
    return gc.reduce_sum(gc.matmul(x, v) + gc.matmul(x, v))


def reshaped(x: gc.Tensor) -> Any:
    parts = gc.reshape(x, gc.stack([gc.shape(x)[0] * 2, N // 2]))
    return gc.reduce_sum(gc.matmul(parts, gc.constant(np.ones((N // 2, N), np.float32))))


def of_a_function(x: gc.Tensor) -> Any:
    return gc.function(layers)(x)


def of_a_branch(x: gc.Tensor) -> Any:
    return gc.cond(gc.reduce_sum(x) > 0, lambda: layers(x), lambda: gc.reduce_sum(x))


def of_a_loop(x: gc.Tensor) -> Any:
    w = gc.constant(np.ones((N, N), np.float32))
    return gc.while_loop(lambda i, _: i < 20, lambda i, h: (i + 1, gc.matmul(h, w)), [gc.constant(0), x])[1]


def of_a_lowered_loop(x: gc.Tensor) -> Any:
    y = of_a_loop(x)
    gc.lower_functional_ops(None, y.graph)
    return y.graph.as_graph_element(y.name)


def of_a_gradient(x: gc.Tensor) -> Any:
    return gc.gradients(of_a_function(x), x)[0]


def of_embeddings(x: gc.Tensor) -> Any:
    rows = gc.gather(gc.constant(np.ones((50 * N, N), np.float32)), gc.cast(gc.reduce_sum(x, axis=1), gc.int32))
    return gc.reduce_sum(gc.matmul(rows, gc.constant(np.ones((N, N), np.float32))))


BUILD: Final = (layers, of_variables, reshaped, of_a_function, of_a_branch, of_a_loop, of_a_lowered_loop, of_a_gradient, of_embeddings)


def built(build: Callable[[gc.Tensor], Any], rows: int | None) -> tuple[gc.Graph, gc.Tensor, Any, Any]:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [rows, N], name="x")
        y = build(x)
        return graph, x, y, gc.global_variables_initializer()


def predicted(graph: gc.Graph, fetch: Any) -> gc.StepPrediction:
    return gc.predict_step({node: DEVICES.require(node.assigned_device) for node in graph.nodes}, fetches=[fetch])


@pytest.mark.slow
@pytest.mark.parametrize("rows", [None, 2 * N])
@pytest.mark.parametrize("build", BUILD)
def test_a_prediction_after_a_run_is_near_the_recorded_time(build: Callable[[gc.Tensor], Any], rows: int | None) -> None:
    graph, x, y, init = built(build, rows)
    session = gc.Session(graph, devices=DEVICES)
    session.run(init)
    metadata = gc.RunMetadata()
    session.run(y, {x: FED}, gc.RunOptions(trace=True), metadata)
    assert metadata.trace is not None
    recorded, found = metadata.trace.timeline().makespan, predicted(graph, y)
    assert found.makespan == pytest.approx(recorded, rel=0.25)  # starts of kernels included, which a plan may save
    assert not found.is_bound


@pytest.mark.parametrize("build", [layers, of_a_function, of_a_loop])
def test_what_is_unknown_is_said_and_makes_a_lower_bound(build: Callable[[gc.Tensor], Any]) -> None:
    graph, _, y, _ = built(build, None)
    gc.Placer(graph, DEVICES).run()
    found = predicted(graph, y)
    assert found.is_bound
    assert "at least" in repr(found)
    assert any("unknown" in note and "'x'" in note for note in found.notes)
    proposal = gc.propose_placement(graph, DEVICES, [y])
    assert "at least" in str(proposal)
    assert "unknown" in str(proposal)
    assert "at least" in str(gc.what_if(y, "/cpu:0", DEVICES, fetches=[y]))


def test_a_run_without_a_record_is_enough_to_know_the_sizes() -> None:
    graph, x, y, _ = built(layers, None)
    gc.Session(graph, devices=DEVICES).run(y, {x: FED})
    known, *_ = built(layers, 2 * N)
    gc.Placer(known, DEVICES).run()
    assert predicted(graph, y).makespan == pytest.approx(predicted(known, known.as_graph_element(y.name)).makespan)
    assert predicted(graph, y).notes == ()


def test_without_a_record_a_loop_counts_one_iteration_and_the_longer_branch_and_both_are_said() -> None:
    for build, said in ((of_a_loop, "one iteration"), (of_a_branch, "the branch with the most work")):
        graph, _, y, _ = built(build, 2 * N)
        gc.Placer(graph, DEVICES).run()
        found = predicted(graph, y)
        assert any(said in note for note in found.notes)
        assert found.makespan > 2.0 * 2 * N * N * N / (DEVICES.devices[1].throughput or 1.0), "a product"


def test_a_variable_and_its_read_are_counted_once() -> None:
    graph, _, y, _ = built(of_variables, 2 * N)
    gc.Placer(graph, DEVICES).run()
    found = predicted(graph, y)
    held = {held.name: held.bytes for held in found.memory}
    assert held["v"] == 4 * N * N
    assert "v/read" not in held
    spans = {span.name: span.end - span.start for span in found.spans}
    assert spans["v"] == pytest.approx(1e-6)
    assert spans["v/read"] == pytest.approx(1e-6)
    end = max(span.end for span in found.spans if span.name.startswith("MatMul"))
    assert next(held for held in found.memory if held.name == "v").end == end, "its last reader's end"
