"""Sums of gradients over replicas: trees and rings on the devices of the replicas, chosen by cost."""

from __future__ import annotations

from typing import Any, Final

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.placement.step_prediction import predict_step
from tests.graphcore.tf1.train.replicas.models import Together, examples, get_variable, mlp, train

CPUS: Final = [f"/cpu:{number}" for number in range(4)]


def copies(graph: gc.Graph, scope: str) -> list[tuple[int, int]]:
    """The numbers of the devices of each copy of a tensor between nodes of a scope, sorted."""
    found = set()
    for node in graph.nodes:
        for tensor in node.inputs if node.name.startswith(scope) else ():
            if tensor.node.device != node.device:
                found.add((tensor.name, int(tensor.node.device[-1]), int(node.device[-1])))
    return sorted((there, here) for _, there, here in found)


def summed(reduce: str, variables: str) -> gc.Graph:
    return Together(mlp, [examples(8)], lambda: train.GradientDescentOptimizer(0.1), CPUS, reduce=reduce, variables=variables).graph


def test_a_tree_adds_pairs_and_copies_go_back_the_same_way() -> None:
    up = [(1, 0), (2, 0), (3, 2)]
    assert copies(summed("tree", "ps"), "sums/hidden/kernel/") == up
    assert copies(summed("tree", "mirrored"), "sums/hidden/kernel/") == sorted([*up, *[(here, there) for there, here in up]])


def test_a_ring_sends_parts_to_the_next_device_only_and_all_links_carry_the_same() -> None:
    following = [(0, 1), (1, 2), (2, 3), (3, 0)]
    graph = summed("ring", "mirrored")
    assert copies(graph, "sums/hidden/kernel/") == sorted(2 * 3 * following)
    parts = {output.shape.num_elements for node in graph.nodes if node.name == "sums/hidden/kernel/parts" for output in node.outputs}
    assert parts == {8 * 16 // 4}
    assert copies(graph, "sums/logits/bias/") == copies(summed("tree", "mirrored"), "sums/logits/bias/")  # 3 elements have no 4 parts
    to_ps = [(1, 0), (2, 0), (3, 0)]
    assert copies(summed("ring", "ps"), "sums/hidden/kernel/") == sorted([*3 * following, *to_ps])


def scheduled_seconds(reduce: str, count: int, shape: list[int], **given: Any) -> tuple[float, Any]:
    """The seconds that sum and update of a variable take in the predicted step, and the replicas."""
    with gc.Graph().as_default() as graph:
        devices = gc.simulated_devices(f"{count + 1} tasks x (1 cpu)")
        workers = list(devices)[:count]

        def step(x: Any) -> Any:
            return gc.reduce_mean(x) * gc.reduce_sum(get_variable("weights", shape))

        place = {"variables": "mirrored"} if given.get("mirrored") else {"ps_devices": list(devices)[count:]}
        optimizer = train.GradientDescentOptimizer(0.1)
        model = train.replicate(step, workers, optimizer=optimizer, inputs=[gc.ones([count])], reduce=reduce, **place)
        gc.Placer(graph, devices).run()
        placed = {node: devices.require(node.assigned_device) for node in graph.nodes}
        until = [
            predict_step(placed, fetches=fetches, one_port=bool(given.get("one_port"))).makespan
            for fetches in ([model.train_op], [own[0] for own in model.replica_gradients])
        ]
        return until[0] - until[1], model


@pytest.mark.parametrize("mirrored", [False, True], ids=["ps", "mirrored"])
@pytest.mark.parametrize(("count", "shape"), [(2, [100]), (2, [300_000]), (4, [30_000]), (4, [100_000]), (4, [100_000, 10]), (8, [1_000])])
def test_the_way_chosen_by_cost_is_the_faster_one_in_the_predicted_step(count: int, shape: list[int], mirrored: bool) -> None:
    given = {"mirrored": mirrored, "one_port": True}
    scheduled = {way: scheduled_seconds(way, count, shape, **given)[0] for way in ("tree", "ring")}
    _, model = scheduled_seconds("auto", count, shape, **given)
    (way,) = model.ways.values()
    assert scheduled[way] == pytest.approx(min(scheduled.values()), rel=0.02)


def test_the_predicted_seconds_of_a_sum_are_those_of_the_predicted_step() -> None:
    for reduce in ("tree", "ring"):
        scheduled, model = scheduled_seconds(reduce, 4, [300_000])
        update = gc.CostModel().elementwise_seconds(4 * 300_000, gc.simulated_devices("1 cpu").devices[0])
        (seconds,) = model.seconds.values()
        assert seconds[reduce] == pytest.approx(scheduled - update, rel=0.01)


def test_a_ring_of_a_variable_of_unknown_shape_is_refused() -> None:
    def step(x: Any) -> Any:
        return gc.reduce_mean(x * gc.reduce_sum(free))

    with gc.Graph().as_default():
        free = gc.Variable(gc.placeholder_with_default(gc.ones([6]), [None]), validate_shape=False, name="free")
        given = {"optimizer": train.GradientDescentOptimizer(0.1), "inputs": [gc.ones([4])]}
        with pytest.raises(InvalidArgumentError, match="reduce='ring': required a gradient of known shape, which a ring divides, got"):
            train.replicate(step, CPUS[:2], reduce="ring", **given)
        model = train.replicate(step, CPUS[:2], **given)
        with gc.Session(devices=CPUS[:2]) as session:
            session.run(gc.initialize_all_variables())
            session.run(model.train_op)
            assert session.run(free).tolist() == pytest.approx([0.9] * 6)
