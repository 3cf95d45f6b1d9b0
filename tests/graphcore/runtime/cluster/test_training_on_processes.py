"""Training over processes goes on from its checkpoints when a worker or the scheduler is lost."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

import graphcore as gc
from tests.graphcore.runtime.cluster.processes import Processes, process_of
from tests.graphcore.runtime.cluster.test_replicas_on_clusters import adam, batches, digits_mlp
from tests.graphcore.tf1.train.replicas.models import placeholders, train, trained_alone

pytestmark = pytest.mark.slow
HEARTBEAT = 2.0
STEPS, EVERY = 18, 4
DATA = batches(STEPS)


class Training:
    """A training of the digits in replicas that keeps checkpoints.

    Args:
        cluster: the replicas, one for each task.
        folder: the place for the checkpoints.
    """

    def __init__(self, cluster: gc.DaskCluster, folder: Path) -> None:
        self.graph = gc.Graph()
        with self.graph.as_default():
            self.inputs = placeholders(DATA[0])
            model = train.replicate(digits_mlp, cluster.devices, optimizer=adam(), inputs=self.inputs, variables="mirrored")
            self.fetches = [model.loss, model.train_op]
            self.session = gc.Session(cluster=cluster)
            self.session.run(gc.initialize_all_variables())
        self.saver = train.CheckpointSaver(self.session, folder, every_n_steps=EVERY)
        self.losses: dict[int, float] = {}

    def go_on(self, end: int = STEPS) -> None:
        """Train to a step."""
        while self.saver.steps < end:
            step = self.saver.steps
            self.losses[step] = self.run(step)
            self.saver.step()

    def run(self, step: int) -> float:
        """The loss of a step."""
        loss, _ = self.session.run(self.fetches, dict(zip(self.inputs, DATA[step], strict=True)))
        return float(loss)

    def run_on(self, step: int) -> NoReturn:
        """Run a step again and again, without checkpoints."""
        while True:
            self.run(step)

    def harmed(self, at: int, harm: Callable[[], None]) -> tuple[gc.errors.AbortedError, float]:
        """The error of a training that `harm` happens to after a step, and the seconds from then on."""
        moment: list[float] = []

        def happen() -> None:
            moment.append(time.monotonic())
            harm()

        self.go_on(at)
        timer = threading.Timer(0.05, happen)
        timer.start()
        with pytest.raises(gc.errors.AbortedError) as raised:
            self.run_on(at)
        timer.join()
        return raised.value, time.monotonic() - moment[0]

    def recover(self, cluster: gc.DaskCluster | None = None) -> None:
        """Begin again at the last checkpoint, which has all steps but the last few."""
        lost = self.saver.steps
        self.saver.recover(cluster)
        assert lost - EVERY < self.saver.steps <= lost

    def finish(self, expected: list[float]) -> None:
        """Train to the end, and compare all losses with those of one process."""
        self.go_on()
        np.testing.assert_allclose([self.losses[step] for step in range(STEPS)], expected, atol=1e-6)
        self.session.close()


@pytest.fixture(scope="module")
def expected() -> list[float]:
    return trained_alone(digits_mlp, DATA, adam)


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with Processes(tmp_path_factory.mktemp("dask"), 4) as begun:
        yield begun


def check_loss(error: gc.errors.AbortedError, task: int) -> None:
    """Check that an error names a task, its worker and its nodes."""
    assert f"Task /job:worker/task:{task} on worker 'w-{task}' was lost with replica_{task}/hidden/kernel, " in error.message
    assert error.device == f"/job:worker/replica:0/task:{task}/device:CPU:0"
    assert not error.node or error.node.startswith(f"replica_{task}/")


@pytest.mark.parametrize("count", [2, 4])
def test_a_training_names_the_processes_it_loses_and_goes_on_from_its_checkpoints(
    processes: Processes, tmp_path: Path, expected: list[float], count: int
) -> None:
    with processes.cluster(count, HEARTBEAT) as cluster:
        training, last = Training(cluster, tmp_path), count - 1
        process = process_of(cluster, last)
        processes.note_children()
        error, seconds = training.harmed(6, lambda: os.kill(process, signal.SIGKILL))
        assert seconds < 5
        check_loss(error, last)
        with pytest.raises(gc.errors.AbortedError, match=f"task:{last} .* was lost with replica_{last}/"):
            training.go_on()
        training.recover()
        process = process_of(cluster, last)
        processes.note_children()
        error, seconds = training.harmed(11, lambda: os.kill(process, signal.SIGSTOP))
        assert seconds < HEARTBEAT + 5
        check_loss(error, last)
        assert f"no sign of life for {HEARTBEAT:g} s" in error.message
        with pytest.raises(gc.errors.AbortedError, match=f"'w-{last}' of the cluster has not answered"):
            training.recover()
        os.kill(process, signal.SIGKILL)
        training.recover()
        training.finish(expected)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["step-12.npz", "step-16.npz", "step-4.npz", "step-8.npz"]


def test_a_training_goes_on_with_a_new_scheduler_and_leaves_no_process_and_no_file(
    processes: Processes, tmp_path: Path, expected: list[float]
) -> None:
    before = processes.cluster(2, HEARTBEAT)
    training = Training(before, tmp_path)
    processes.note_children()
    error, seconds = training.harmed(6, processes.scheduler.kill)
    assert seconds < 5
    assert re.match(r"Task /job:worker/task:[01] on worker 'w-[01]' was lost with \w+", error.message)
    with pytest.raises(gc.errors.AbortedError):
        training.recover()
    before.close()
    processes.begin_scheduler()
    processes.begin_workers(2)
    with processes.cluster(2, HEARTBEAT) as after:
        training.recover(after)
        training.finish(expected)
    processes.end()
    assert processes.alive() == []
    assert processes.files() == ["global.lock", "log.txt", "purge.lock"]  # Dask keeps its locks
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["step-12.npz", "step-16.npz", "step-4.npz", "step-8.npz"]
