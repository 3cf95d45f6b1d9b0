"""The predicted timeline of a step, and proposals of better placements."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Final

import numpy as np
import pytest

import graphcore as gc
from graphcore.placement.node_costs import FLOPS_PER_MICROSECOND
from tests.graphcore.runtime.loop_graphs import cond, enter, while_loop

HARDWARE: Final = {"CPU": gc.SimulatedHardware(memory=1 << 30, bandwidth=1e9, throughput=1e9)}
WIDTH: Final = 500


def two_products() -> tuple[gc.Graph, list[gc.Node]]:
    """Two independent matrix products, and their sum."""
    graph = gc.Graph()
    with graph.as_default():
        a = gc.placeholder(gc.float32, [WIDTH, WIDTH], name="a")
        first, second = gc.matmul(a, a, name="first"), gc.matmul(a, a, name="second")
        total = gc.add(first, second, name="total")
    return graph, [a.node, first.node, second.node, total.node]


def on(devices: gc.DeviceSet, nodes: list[gc.Node], *numbers: int) -> dict[gc.Node, gc.Device]:
    return {node: devices.devices[number] for node, number in zip(nodes, numbers, strict=True)}


def test_the_flops_of_a_product_follow_from_its_shape() -> None:
    _, nodes = two_products()
    assert gc.CostModel().flops(nodes[1]) == pytest.approx(2 * WIDTH**3)


def test_a_node_takes_its_flops_by_the_throughput_of_the_device() -> None:
    _, nodes = two_products()
    (device,) = gc.simulated_devices("1 cpu", hardware=HARDWARE)
    assert gc.CostModel().seconds(nodes[1], device) == pytest.approx(2 * WIDTH**3 / 1e9)
    assert gc.CostModel().seconds(nodes[1], gc.Device("/cpu:0")) == pytest.approx(2 * WIDTH**3 / FLOPS_PER_MICROSECOND / 1e6)


def test_measured_times_replace_predictions_except_on_simulated_devices() -> None:
    _, nodes = two_products()
    model = gc.CostModel({"first": 0.125})
    assert model.seconds(nodes[1], gc.Device("/cpu:0")) == 0.125
    (device,) = gc.simulated_devices("1 cpu", hardware=HARDWARE)
    assert model.seconds(nodes[1], device) != 0.125


def test_a_device_runs_one_node_at_a_time() -> None:
    _, nodes = two_products()
    devices = gc.simulated_devices("1 cpu", hardware=HARDWARE)
    found = gc.predict_step(on(devices, nodes, 0, 0, 0, 0))
    spans = sorted(found.spans, key=lambda span: span.start)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    assert found.makespan == pytest.approx(sum(span.end - span.start for span in spans))


def test_two_devices_run_at_once_and_a_tensor_is_copied_once() -> None:
    _, nodes = two_products()
    devices = gc.simulated_devices("2 cpu", hardware=HARDWARE)
    one, two = gc.predict_step(on(devices, nodes, 0, 0, 0, 0)), gc.predict_step(on(devices, nodes, 0, 0, 1, 0))
    copies = [span for span in two.spans if "->" in span.lane]
    assert two.makespan < 0.6 * one.makespan
    assert [(span.name, span.bytes) for span in copies] == [("a:0", 4 * WIDTH**2), ("second:0", 4 * WIDTH**2)]
    assert all(span.end - span.start >= 4 * WIDTH**2 / 1e9 for span in copies)
    assert two.simulated
    assert "virtual clock" in repr(two)


def test_the_peak_of_a_device_counts_what_is_alive_at_once() -> None:
    _, nodes = two_products()
    devices = gc.simulated_devices("2 cpu", hardware=HARDWARE)
    peaks = gc.predict_step(on(devices, nodes, 0, 0, 1, 0)).peak_bytes
    assert peaks == {devices.devices[0].name: 3 * 4 * WIDTH**2, devices.devices[1].name: 2 * 4 * WIDTH**2}


def test_a_proposal_shortens_the_step_and_says_what_it_moves() -> None:
    graph, _ = two_products()
    devices = gc.simulated_devices("2 cpu", hardware=HARDWARE)
    before = graph.as_graph_def(), [node.assigned_device for node in graph.nodes]
    found = gc.propose_placement(graph, devices)
    assert found.after.makespan < 0.6 * found.before.makespan
    assert found.devices["first"] != found.devices["second"]
    assert found.moves
    assert all(move.nodes[0] in str(found) and move.destination in str(found) for move in found.moves)
    assert (graph.as_graph_def(), [node.assigned_device for node in graph.nodes]) == before


def test_a_graph_that_was_placed_can_be_placed_better() -> None:
    graph, _ = two_products()
    devices = gc.simulated_devices("2 cpu", hardware=HARDWARE)
    gc.Placer(graph, devices).run()
    placed = [node.assigned_device for node in graph.nodes]
    assert gc.propose_placement(graph, devices).moves
    assert [node.assigned_device for node in graph.nodes] == placed


def test_a_proposal_keeps_requests_and_colocation() -> None:
    graph = gc.Graph()
    devices = gc.simulated_devices("2 cpu", hardware=HARDWARE)
    with graph.as_default():
        a = gc.placeholder(gc.float32, [WIDTH, WIDTH], name="a")
        with gc.device("/cpu:0"):
            requested = [gc.matmul(a, a, name=f"requested{number}") for number in range(2)]
        v = gc.Variable(np.zeros((WIDTH, WIDTH), np.float32), name="v")
        v.assign_add(gc.matmul(a, a, name="free"))
    found = gc.propose_placement(graph, devices)
    assert {found.devices[tensor.node.name] for tensor in requested} == {devices.devices[0].name}
    for node, name in found.devices.items():
        graph.get_operation_by_name(node).assigned_device = name
    gc.Placer(graph, devices).run()


def test_a_proposal_stays_within_the_memory_of_the_devices() -> None:
    graph, _ = two_products()
    small = {"CPU": gc.SimulatedHardware(memory=int(3.5 * 4 * WIDTH**2), bandwidth=1e9, throughput=1e9)}
    devices = gc.simulated_devices("2 cpu", hardware=small)
    found = gc.propose_placement(graph, devices)
    assert all(found.after.peak_bytes.get(device.name, 0) <= device.memory_limit_bytes for device in devices)
    assert any(found.before.peak_bytes.get(device.name, 0) > device.memory_limit_bytes for device in devices)


def test_a_step_needs_only_its_fetches() -> None:
    _, nodes = two_products()
    devices = on(gc.simulated_devices("1 cpu", hardware=HARDWARE), nodes, 0, 0, 0, 0)
    found = gc.predict_step(devices, fetches=[nodes[1].outputs[0]])
    assert {span.name for span in found.spans} == {"a", "first"}
    assert gc.predict_step(devices, fetches=[nodes[3]]).makespan > found.makespan


def test_a_proposal_for_fetches_moves_nothing_else() -> None:
    graph, nodes = two_products()
    machine = gc.simulated_devices("2 cpu", hardware=HARDWARE)
    assert gc.propose_placement(graph, machine, [nodes[1]]).moves == ()
    assert gc.propose_placement(graph, machine, [nodes[3]]).moves


def test_a_move_that_saves_next_to_nothing_is_not_proposed() -> None:
    graph, nodes = two_products()
    with graph.as_default():
        small = gc.tanh(gc.constant([1.0, 2.0]), name="small")
    machine = gc.simulated_devices("2 cpu", hardware=HARDWARE)
    proposal = gc.propose_placement(graph, machine, [nodes[3], small])
    assert "small" not in {name for move in proposal.moves for name in move.nodes}


@pytest.mark.parametrize("trains", [False, True])
def test_two_towers_are_proposed_side_by_side(trains: bool) -> None:
    """The proposal moves a whole tower, though moving a single layer does not pay."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [512, 1024], name="x")
        towers = [x, x]
        for number, layer in product(range(2), range(3)):
            with gc.name_scope(f"tower{number}/layer{layer}"):
                weights = gc.Variable(gc.zeros([1024, 1024]), name="W")
                towers[number] = gc.tanh(gc.matmul(towers[number], weights), name="out")
        loss = gc.reduce_mean(gc.square(towers[0] - towers[1]), name="loss")
        step = gc.GradientDescentOptimizer(0.1).minimize(loss) if trains else loss
    found = gc.propose_placement(graph, gc.simulated_devices("2 gpu"), [step])
    assert found.after.makespan < 0.7 * found.before.makespan
    for number in range(2):
        scope = f"tower{number}/"
        assert len({device for name, device in found.devices.items() if scope in name and name.endswith(("W", "MatMul", "out"))}) == 1


def looping() -> tuple[gc.Graph, gc.Tensor, gc.Tensor]:
    """A loop of nodes with a product in its body, and a branch that is never taken."""
    graph = gc.Graph()
    with graph.as_default():
        limit = enter(gc.constant(5), "loop", constant=True)
        one = enter(gc.constant(1), "loop", constant=True)
        start = gc.constant(np.ones((WIDTH, WIDTH), np.float32))
        body = while_loop(
            lambda number, _: gc.ops.less(number, limit), lambda number, value: [number + one, gc.matmul(value, value, name="product")],
            [gc.constant(0), start],
        )  # fmt: skip
        never = cond(gc.constant(False), [start], lambda x: [gc.matmul(x, x, name="never")], lambda x: [gc.identity(x)])
        return graph, body[1], never[0]


def test_loops_and_branches_take_the_numbers_of_runs_of_a_trace() -> None:
    graph, loop, branch = looping()
    (device,) = gc.simulated_devices("1 cpu", hardware=HARDWARE)
    devices = dict.fromkeys(graph.op_nodes(), device)
    blind = gc.predict_step(devices)
    assert any("assumed to run once" in note for note in blind.notes)
    with gc.Session(graph, [device], engine="dataflow") as session:
        session.run([loop, branch], options=gc.RunOptions(trace=True))
        assert session.trace is not None
        model, recorded = gc.CostModel(runs=session.trace.node_runs()), session.trace.timeline()
    informed = gc.predict_step(devices, model)
    product = 2 * WIDTH**3 / 1e9
    assert any("as often as in the trace" in note for note in informed.notes)
    (found,) = [span for span in informed.spans if span.name == "product"]
    assert found.times == 5
    assert found.end - found.start == pytest.approx(5 * product)
    assert "never" not in {span.name for span in informed.spans}
    assert blind.makespan < 3 * product
    assert informed.makespan == pytest.approx(recorded.makespan, rel=0.01)


def test_a_step_without_loops_assumes_nothing() -> None:
    _, nodes = two_products()
    (device,) = gc.simulated_devices("1 cpu", hardware=HARDWARE)
    assert gc.predict_step(dict.fromkeys(nodes, device)).notes == ()


def test_a_machine_with_one_port_sends_one_tensor_at_a_time() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [WIDTH, WIDTH])
        users = [gc.negative(x).node, gc.square(x).node]
    first, *others = gc.simulated_devices("3 cpu", hardware=HARDWARE)
    devices = {x.node: first} | dict(zip(users, others, strict=True))
    apart, shared = gc.predict_step(devices), gc.predict_step(devices, one_port=True)
    assert shared.makespan - apart.makespan == pytest.approx(gc.CostModel().copy_seconds(4 * WIDTH**2, first, others[0]))
