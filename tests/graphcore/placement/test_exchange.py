"""The predicted exchange of gradients sends what graphs send, and obeys the laws of networks."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.placement.exchange import EXCHANGES, Machines, exchanged
from graphcore.placement.replica import Parameter, Replica, replicas_of
from graphcore.tf1.train.replicas.replicate import replicate
from graphcore.tf1.variable_scopes import get_variable

BANDWIDTH: Final = 1e9


def words() -> gc.Tensor:
    """The loss of a model with an embedding, a small and a large variable."""
    rows = gc.cast(100.0 * gc.random_uniform([50], seed=1), gc.int32)
    h = gc.gather(get_variable("table", [1000, 64]), rows)
    for number, width in enumerate([24, 200]):
        h = gc.tanh(gc.matmul(h, get_variable(f"W{number}", [int(h.shape[-1]), width])) + get_variable(f"b{number}", [width]))
    return gc.reduce_mean(gc.square(h))


def small() -> gc.Tensor:
    """The loss of a model with many variables of the same size."""
    h = gc.random_uniform([64, 64], seed=1)
    for number in range(6):
        h = gc.tanh(gc.matmul(h, get_variable(f"W{number}", [64, 64])))
    return gc.reduce_mean(gc.square(h))


def replicated(build: Any, workers: int, servers: int, bandwidth: float, variables: str, reduce: str) -> tuple[Any, Any]:
    """The predicted step of the graph that `replicate` builds, and the devices of workers and servers."""
    hardware = {"gpu": gc.SimulatedHardware(memory=1 << 30, bandwidth=bandwidth, throughput=1e11)}
    machines = gc.simulated_devices(f"{workers} tasks x (1 gpu)", hardware=hardware)
    holders = gc.simulated_devices(f"{servers} tasks x (1 gpu)", job="ps", hardware=hardware)
    with gc.Graph().as_default() as graph:
        places = holders if variables == "ps" else None
        given: dict[str, Any] = {"variables": variables, "reduce": reduce, "ps_devices": places}
        model = replicate(build, machines, optimizer=gc.GradientDescentOptimizer(0.1), **given)
        devices = gc.Placer(graph, gc.DeviceSet([*machines, *holders])).choose().devices
        return gc.predict_step(devices, fetches=[model.train_op], one_port=True), (machines.devices, holders.devices)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("reduce", ["tree", "ring"])
@pytest.mark.parametrize(("variables", "servers"), [("ps", 1), ("ps", 2), ("mirrored", 1)])
def test_each_port_carries_the_bytes_that_the_replicated_graph_sends(variables: str, servers: int, reduce: str, workers: int) -> None:
    step, (machines, holders) = replicated(words, workers, servers, BANDWIDTH, variables, reduce)
    sent: Counter[str] = Counter()
    for span in step.spans:
        source, _, destination = span.lane.partition(" -> ")
        if destination:
            sent.update({f"out of {source}": span.bytes, f"into {destination}": span.bytes})
    with gc.Graph().as_default():
        train = gc.GradientDescentOptimizer(0.1).minimize(words())
        model = gc.CostModel(latency=0.0)
        (replica,) = replicas_of(train, model, machines[0], [machines[0] if variables == "mirrored" else holders[0]])
        found = exchanged(replica, Machines(machines[0], holders[0], workers, servers, model), variables, reduce)
    names = {"worker 0": machines[0].name, "the server": holders[0].name, **{f"server {i}": each.name for i, each in enumerate(holders)}}
    assert {name.partition(" ")[0] for name in found.links} == {"into", "out"}
    for link, seconds in found.links.items():
        way = "into " if link.startswith("into ") else "out of "
        expected = sent[way + names[link.removeprefix(way)]]
        assert seconds * BANDWIDTH == pytest.approx(expected, abs=8 * workers * len(replica.parameters)), link  # parts and scalars round up


@pytest.mark.parametrize("variables", ["ps", "mirrored"])
@pytest.mark.parametrize("bandwidth", [1e8, 1e9, 1e10])
def test_the_ways_chosen_for_a_whole_step_are_no_slower_than_trees_or_rings_only(bandwidth: float, variables: str) -> None:
    seconds = {way: replicated(small, 4, 1, bandwidth, variables, way)[0].makespan for way in ("tree", "ring", "auto")}
    assert seconds["auto"] == pytest.approx(min(seconds.values()), rel=0.02)


replicas = st.builds(
    lambda parameters, seconds: Replica(
        tuple(
            Parameter(f"v{i}", n, 4 * n, 4 * n, 4 * n, at * seconds, (1 - at) * seconds, 1e-6, 1e-6, by_rows)
            for i, (n, at, by_rows) in enumerate(parameters)
        ),
        seconds,
        0.0,
        (),
    ),
    st.lists(st.tuples(st.integers(1, 1_000_000), st.floats(0, 1), st.booleans()), min_size=1, max_size=6),
    st.floats(1e-5, 1e-1),
)


@settings(max_examples=100, deadline=None)
@given(replicas, st.sampled_from(EXCHANGES), st.integers(1, 40), st.integers(1, 4), st.floats(1e7, 1e11), st.floats(1e-6, 1e-3))
def test_better_networks_and_several_servers_instead_of_one_are_never_slower(
    replica: Replica, exchange: tuple[str, str], workers: int, servers: int, bandwidth: float, latency: float
) -> None:
    def seconds(bandwidth: float = bandwidth, latency: float = latency, servers: int = servers, reduce: str = exchange[1]) -> float:
        place = gc.Device("/job:worker/task:0/device:GPU:0", throughput=1e11, bandwidth=bandwidth)
        machines = Machines(place, place, workers, servers, gc.CostModel(latency=latency))
        return exchanged(replica, machines, exchange[0], reduce).seconds

    bound = seconds() * (1 + 1e-9)
    assert max(seconds(bandwidth=2 * bandwidth), seconds(latency=latency / 2)) <= bound
    assert seconds(reduce="auto") <= min(seconds(reduce="tree"), seconds(reduce="ring")) * (1 + 1e-9)
    if exchange[0] == "mirrored" and workers == 1:
        assert seconds(bandwidth=1.0) == seconds()
    assert seconds() <= seconds(servers=1) * (1 + 1e-9)
