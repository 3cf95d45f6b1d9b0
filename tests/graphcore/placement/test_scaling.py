"""Data-parallel training on many workers, on paper."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pytest

import graphcore as gc
from graphcore.placement.cost_model import LATENCY
from graphcore.tf1.train.replicas.replicate import replicate
from graphcore.tf1.variable_scopes import get_variable

HARDWARE: Final = gc.SimulatedHardware(memory=1 << 30, bandwidth=1e9, throughput=1e11)
BATCH: Final = 512
WIDTHS: Final = (256, 512, 128)


def device(job: str = "worker") -> gc.Device:
    return gc.simulated_devices("1 gpu", job=job, hardware={"gpu": HARDWARE}).devices[0]


def step_of(optimizer: Any = None, batch: int | None = BATCH) -> gc.Node:
    """The training step of a network of dense layers, in the default graph."""
    h = gc.placeholder(gc.float32, [batch, WIDTHS[0]], name="x")
    for inputs, outputs in pairwise(WIDTHS):
        h = gc.tanh(gc.matmul(h, gc.Variable(gc.zeros([inputs, outputs]))))
    step: gc.Node = (optimizer or gc.GradientDescentOptimizer(0.1)).minimize(gc.reduce_mean(gc.square(h)))
    return step


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with gc.Graph().as_default():
        yield


def scaling(workers: list[int], **given: Any) -> gc.Scaling:
    return gc.predict_scaling(step_of(), workers, worker=device(), server=device("ps"), **given)


def sent(bytes_of_copy: Callable[[int], float] = float) -> float:
    """The seconds of one copy of all variables."""
    return sum(LATENCY + bytes_of_copy(4 * a * b) / HARDWARE.bandwidth for a, b in pairwise(WIDTHS))


def dense() -> gc.Tensor:
    """The loss of a network of dense layers with data of its own."""
    h: gc.Tensor = gc.random_uniform([256, 256], seed=1)
    for number, width in enumerate([512, 512, 512, 128]):
        weights = get_variable(f"W{number}", [int(h.shape[-1]), width])
        h = gc.tanh(gc.matmul(h, weights) + get_variable(f"b{number}", [width]))
    return gc.reduce_mean(gc.square(h))


def embedded() -> gc.Tensor:
    """The loss of a network that looks rows up in a table."""
    rows = gc.cast(100.0 * gc.random_uniform([5_000], seed=1), gc.int32)
    h = gc.tanh(gc.matmul(gc.gather(get_variable("table", [100_000, 64]), rows), get_variable("W", [64, 64])))
    return gc.reduce_mean(gc.square(h))


@pytest.mark.slow
@pytest.mark.parametrize("bandwidth", [1e9, 1e10])
@pytest.mark.parametrize("reduce", ["tree", "ring", "auto"])
@pytest.mark.parametrize(("variables", "count"), [("ps", 1), ("ps", 2), ("mirrored", 1)])
@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("build", [dense, embedded])
def test_the_prediction_is_within_a_fifth_of_that_of_the_replicated_graph(
    build: Callable[[], gc.Tensor], workers: int, variables: str, count: int, reduce: str, bandwidth: float
) -> None:
    hardware = {"gpu": gc.SimulatedHardware(memory=1 << 30, bandwidth=bandwidth, throughput=1e11)}
    machines = gc.simulated_devices(f"{workers} tasks x (1 gpu)", hardware=hardware)
    servers = gc.simulated_devices(f"{count} tasks x (1 gpu)", job="ps", hardware=hardware)
    optimizer = gc.GradientDescentOptimizer(0.1)
    given: dict[str, Any] = {"variables": variables, "reduce": reduce}
    with gc.Graph().as_default() as graph:
        model = replicate(build, machines, optimizer=optimizer, ps_devices=servers if variables == "ps" else None, **given)
        devices = gc.Placer(graph, gc.DeviceSet([*machines, *servers])).choose().devices
        simulated = gc.predict_step(devices, fetches=[model.train_op], one_port=True)
    step = optimizer.minimize(build())
    found = gc.predict_scaling(step, [workers], worker=machines.devices[0], server=servers.devices[0], servers=count, **given)
    row = found[workers]
    assert 0.8 * simulated.makespan < row.seconds < 1.2 * simulated.makespan


def test_one_worker_that_holds_its_variables_takes_the_step_of_one_process() -> None:
    step = step_of()
    nodes = gc.predict_step(dict.fromkeys(step.graph.op_nodes(), device()), fetches=[step])
    (row,) = gc.predict_scaling(step, [1], variables="mirrored", worker=device()).rows
    assert row.seconds == pytest.approx(nodes.makespan, rel=0.01)
    assert (row.speed_up, row.busiest, row.saturated) == (1.0, "", False)


def test_a_server_sends_all_variables_to_each_worker() -> None:
    row = scaling([100])[100]
    assert row.busiest == "out of the server"
    assert row.busy == pytest.approx(100 * sent())
    assert row.seconds > row.busy


def test_many_workers_make_no_more_batches_than_a_saturated_link_lets_through() -> None:
    found = scaling([1, 1000, 10_000])
    assert found[10_000].speed_up == pytest.approx(found[1000].speed_up, rel=0.02)
    first = scaling(list(range(1, 40))).saturated
    assert first is not None
    assert (first.workers - 1) * sent() <= first.computing < first.workers * sent()


def test_twice_the_servers_let_through_twice_as_much() -> None:
    one, two = scaling([1000])[1000], scaling([1000], servers=2)[1000]
    assert two.busy == pytest.approx(1000 * (LATENCY + 4 * WIDTHS[0] * WIDTHS[1] / HARDWARE.bandwidth))
    assert two.speed_up > 1.4 * one.speed_up


def test_a_ring_sends_each_gradient_nearly_twice_from_each_worker() -> None:
    row = scaling([8], variables="mirrored", reduce="ring")[8]
    copies = 2 * 7 * sent(lambda size: size / 8)
    assert row.busy == pytest.approx(copies)


def test_a_tree_takes_as_many_copies_as_rounds() -> None:
    found = scaling([5, 8, 9], variables="mirrored", reduce="tree")
    assert [row.busy / sent() for row in found.rows] == pytest.approx([3, 3, 4])


@pytest.mark.parametrize("variables", ["ps", "mirrored"])
def test_the_gain_of_the_fastest_exchange_is_that_of_its_own_prediction(variables: str) -> None:
    row = scaling([32], variables=variables)[32]
    other = scaling([32], variables=row.best_variables, reduce=row.best_reduce)[32]
    assert row.gain == pytest.approx(row.seconds / other.seconds)
    assert other.gain == 1.0


def test_only_the_rows_that_are_looked_up_travel() -> None:
    table = gc.Variable(gc.zeros([100_000, 16]))
    rows = gc.gather(table, gc.constant([1, 2, 3]))
    step = gc.GradientDescentOptimizer(0.1).minimize(gc.reduce_sum(rows))
    row = gc.predict_scaling(step, [2], worker=device(), server=device("ps"))[2]
    assert row.busy < 1e-3 < 4 * 100_000 * 16 / HARDWARE.bandwidth


def test_a_note_says_that_a_variable_changed_by_assignments_counts_as_a_whole() -> None:
    table = gc.Variable(gc.zeros([1000, 16]), name="table")
    step = gc.AdamOptimizer().minimize(gc.reduce_sum(gc.gather(table, gc.constant([1, 2, 3]))))
    found = gc.predict_scaling(step, [2])
    assert found.bytes == 4 * 1000 * 16
    assert "assignments change 'table': its gradient counts as large as the variable" in str(found)


def test_measured_times_and_latency_replace_predictions() -> None:
    step = step_of(batch=None)
    seconds = dict.fromkeys([node.name for node in step.graph.nodes], 0.001)
    cpu = gc.Device("/cpu:0", bandwidth=1e9)
    found = gc.predict_scaling(step, [1, 4], worker=cpu, server=cpu, model=gc.CostModel(seconds, latency=0.5))
    assert found[1].computing > 0.01
    assert found[4].busy == pytest.approx(4 * (sent() + 2 * (0.5 - LATENCY)))
    assert "virtual clock" not in str(found)
    assert not found.is_bound


def test_workers_that_share_cores_compute_and_copy_longer() -> None:
    shared, apart = scaling([1, 2, 4], cores=2), scaling([1, 2, 4])
    assert [row.computing / apart[row.workers].computing for row in shared.rows] == pytest.approx([1, 1, 2])
    assert [row.busy / apart[row.workers].busy for row in shared.rows] == pytest.approx([1, 1, 2])


def test_variables_of_the_optimizer_stay_where_they_are() -> None:
    adam = gc.predict_scaling(step_of(gc.AdamOptimizer()), [4])
    assert adam.bytes == gc.predict_scaling(step_of(), [4]).bytes


def test_the_table_reads_the_same_as_text_and_as_html() -> None:
    found = scaling([1, 1000])
    lines = str(found).splitlines()
    assert "virtual clock of simulated devices" in lines[0]
    assert [line.split()[0] for line in lines[1:4]] == ["workers", "1", "1,000"]
    assert lines[-1] == "saturated from 1,000 workers on: the link out of the server"
    html = found._repr_html_()
    assert html.count("<tr>") == 3
    assert "<td>out of the server</td>" in html
    assert repr(found).startswith("<gc.Scaling")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"workers": []}, "at least one number"),
        ({"workers": [0]}, "workers: required"),
        ({"workers": [2.0]}, "workers: required"),
        ({"variables": "tree"}, "variables and reduce: required"),
        ({"reduce": "star"}, "variables and reduce: required"),
        ({"servers": 0}, "servers: required"),
    ],
)
def test_arguments_of_another_kind_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match=words):
        gc.predict_scaling(step_of(), **given)


def test_a_node_that_trains_nothing_is_refused() -> None:
    loss = gc.reduce_mean(gc.Variable(gc.zeros([3])))
    with pytest.raises(gc.errors.InvalidArgumentError, match="changes no variable by a gradient: required a training step"):
        gc.predict_scaling(loss)


def test_a_batch_of_unknown_size_makes_a_lower_bound_and_is_said() -> None:
    found = gc.predict_scaling(step_of(batch=None), [2])
    assert found.is_bound
    assert any("'x'" in note and "unknown" in note for note in found.notes)
    assert "a worker computes for at least" in str(found)


def test_a_batch_of_unknown_size_is_that_of_the_last_run() -> None:
    step = step_of(batch=None)
    session = gc.Session()
    session.run(gc.global_variables_initializer())
    session.run(step, {"x:0": np.ones((BATCH, WIDTHS[0]), np.float32)})
    found = gc.predict_scaling(step, [2], worker=device(), server=device("ps"))
    assert not found.is_bound
    assert found.notes == ()
    with gc.Graph().as_default():
        known = scaling([2])
    assert found[2].computing == pytest.approx(known[2].computing, rel=0.01)  # which computes no shape of the batch
    assert found[2].seconds == pytest.approx(known[2].seconds, rel=0.01)


def test_rows_of_unknown_number_count_as_the_variable_until_a_run_tells_them() -> None:
    ids = gc.placeholder(gc.int32, [None], name="ids")
    table = gc.Variable(gc.zeros([1000, 64]), name="table")
    step = gc.GradientDescentOptimizer(0.1).minimize(gc.reduce_mean(gc.square(gc.gather(table, ids))))
    assert any("'table'" in note and "as large as the variable" in note for note in gc.predict_scaling(step, [2]).notes)
    session = gc.Session()
    session.run(gc.global_variables_initializer())
    session.run(step, {ids: np.arange(10, dtype=np.int32)})
    known = gc.predict_scaling(step, [2])
    assert known.notes == ()
    assert known.bytes == 10 * (64 + 1) * 4


def test_a_number_of_workers_that_was_not_predicted_is_an_error() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="Required one of 1, 2 workers, got 3"):
        scaling([1, 2])[3]
