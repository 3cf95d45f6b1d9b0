"""The search for a better placement: what it skips, and Ctrl-C during it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from itertools import count
from types import FrameType
from typing import Any

import pytest

import graphcore as gc
from graphcore.placement.step_prediction import ListScheduler
from graphcore.support.watched import long_work
from tests.graphcore.placement.test_cost_model import HARDWARE, two_products

MACHINE = gc.simulated_devices("2 cpu", hardware=HARDWARE)


def trained(layers: int, memory: int) -> tuple[gc.Graph, gc.DeviceSet, list[Any]]:
    """A training step whose best placement is not obvious, on two devices."""
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [64, 64], name="x")
        outputs = []
        for branch in range(3):
            h = x
            for layer in range(layers + branch):
                h = gc.tanh(gc.matmul(h, gc.Variable(gc.zeros([64, 64]), name=f"w{branch}_{layer}")))
            outputs.append(h)
        loss = gc.reduce_mean(gc.square(gc.add_n(outputs)), name="loss")
        step = gc.GradientDescentOptimizer(0.1).minimize(loss)
    hardware = {"CPU": gc.SimulatedHardware(memory=memory, bandwidth=1e9, throughput=1e10)}
    return graph, gc.simulated_devices("2 cpu", hardware=hardware), [step, loss]


@pytest.mark.slow
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("memory", [1 << 30, 220_000])
def test_moves_that_are_dropped_early_would_not_be_proposed(layers: int, memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, devices, fetches = trained(layers, memory)
    found = gc.propose_placement(graph, devices, fetches)
    whole: list[bool] = []
    run_within = ListScheduler.run_within

    def complete(scheduler: ListScheduler, seconds: float) -> object:
        whole.append(run_within(ListScheduler(scheduler.devices, scheduler.costs, client=scheduler.client), seconds) is not None)
        return scheduler.run()

    monkeypatch.setattr(ListScheduler, "run_within", complete)
    assert gc.propose_placement(graph, devices, fetches) == found
    assert whole.count(False) > len(whole) / 2 or memory < 1 << 30


def test_the_search_tells_its_progress_up_to_its_end() -> None:
    graph, devices, fetches = trained(3, 1 << 30)
    told: list[tuple[int, int]] = []

    def watcher(_title: str, done: int, steps: int, _place: str) -> None:
        told.append((done, steps))

    long_work.watch(watcher)
    try:
        gc.propose_placement(graph, devices, fetches)
    finally:
        long_work.unwatch(watcher)
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert [done == steps for done, steps in told] == [False] * (len(told) - 1) + [True]
    assert len(told) > 10


@pytest.mark.parametrize(
    "look", [lambda graph: gc.propose_placement(graph, MACHINE), lambda _: gc.what_if("first", "/device:CPU:1", MACHINE)]
)
def test_ctrl_c_leaves_the_placement_as_it_was(look: Callable[[gc.Graph], object]) -> None:
    graph, nodes = two_products()
    gc.Placer(graph, MACHINE).run()
    before = [(node.assigned_device, node.node_def) for node in nodes]
    with graph.as_default():
        for press_at in count(1):
            ended = interrupted_at(press_at, lambda: look(graph))
            assert [(node.assigned_device, node.node_def) for node in nodes] == before
            if ended:
                break
    assert press_at > 20


def interrupted_at(line: int, action: Callable[[], object]) -> bool:
    """Press Ctrl-C at a line of those that change devices, by its number; True if fewer run."""
    lines = count(1)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.endswith(("placement/placement.py", "placement/requests.py")):
            return None
        if event == "line" and next(lines) == line:
            signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        return False
    finally:
        sys.settrace(before)
    return next(lines) <= line
