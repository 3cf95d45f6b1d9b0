"""Tasks that end, stop or differ: the session says which and recovers from its checkpoint."""

from __future__ import annotations

import asyncio
import math
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import dask
import distributed
import numpy as np
import psutil
import pytest
from distributed.core import ConnectionPool

import graphcore as gc
from graphcore.runtime.cluster.calls import call_actor
from tests.graphcore.runtime.cluster.processes import process_of

train: Any = import_module("graphcore.train")
FIRST, SECOND = "/job:worker/task:0", "/job:worker/task:1"
HEARTBEAT, SHORT = 3.0, 1.0


class Training:
    """Steps of a variable on the first task that need the second."""

    def __init__(self) -> None:
        self.graph = gc.Graph()
        with self.graph.as_default():
            with gc.device(FIRST):
                self.weights = gc.Variable(gc.zeros([2]), name="weights")
            with gc.device(SECOND):
                change = gc.identity(self.weights * 0.0 + 1.0, name="change")
            self.step = self.weights.assign_add(change)
            self.start = gc.initialize_all_variables()


@pytest.fixture(scope="module")
def processes() -> Iterator[gc.LocalCluster]:
    with gc.LocalCluster(workers=2, heartbeat_timeout=HEARTBEAT) as made:
        yield made
        workers = [process_of(made, task) for task in range(2)]
        assert all(psutil.pid_exists(worker) for worker in workers)
    assert not any(psutil.pid_exists(worker) for worker in workers)


def lost_after(
    session: gc.Session, fetch: gc.Tensor, harm: Callable[[], None], feeds: dict[Any, Any] | None = None
) -> tuple[gc.errors.AbortedError, float]:
    """The error of a run during which `harm` happens, and the seconds from then on."""
    moment: list[float] = []

    def happen() -> None:
        moment.append(time.monotonic())
        harm()

    timer = threading.Timer(2 * 0.5 + 0.3, happen)  # after the node that runs has been told twice
    timer.start()
    with pytest.raises(gc.errors.AbortedError) as raised:
        session.run(fetch, feeds)
    timer.join()
    return raised.value, time.monotonic() - moment[0]


@pytest.mark.slow
def test_a_local_cluster_begins_a_worker_again_that_dask_has_given_up(tmp_path: Path) -> None:
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "10ms"}), gc.LocalCluster(workers=1) as cluster:
        with gc.Graph().as_default(), gc.device(FIRST):
            weights = gc.Variable([1.0, 2.0], name="weights")
            session = gc.Session(cluster=cluster)
            session.run(weights.initializer)
        gc.save_variables(session, tmp_path / "one.npz")
        os.kill(process_of(cluster, 0), signal.SIGKILL)
        time.sleep(2)  # longer than Dask waits for the worker, shorter than a start takes with its nanny gone
        session.recover(tmp_path / "one.npz")
        assert session.run(weights).tolist() == [1.0, 2.0]
        session.close()


@pytest.mark.slow
@pytest.mark.parametrize("is_local", [True, False])
def test_ctrl_c_which_reaches_all_processes_ends_the_step_and_no_worker(processes: gc.LocalCluster, is_local: bool) -> None:
    with gc.Graph().as_default(), ExitStack() as stack:
        cluster: gc.DaskCluster = processes
        if not is_local:
            plain = stack.enter_context(distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0"))
            cluster = stack.enter_context(gc.DaskCluster(plain.scheduler_address, {"worker": [0]}))
        with gc.device(FIRST):
            turns = gc.placeholder_with_default(10**9, [])
            total = gc.Variable(0, name="total")
            change = total.assign_add(gc.while_loop(lambda i: i < turns, lambda i: i + 1, [gc.constant(0)]))
        session = stack.enter_context(gc.Session(cluster=cluster))
        session.run(total.initializer)
        session.run(change, {turns: 3})
        workers = [process_of(cluster, task) for task in range(len(cluster.places()))]
        main = threading.main_thread().ident or 0

        def press() -> None:
            for worker in workers:
                os.kill(worker, signal.SIGINT)
            signal.pthread_kill(main, signal.SIGINT)

        timer = threading.Timer(0.5, press)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            session.run(change)
        timer.join()
        assert session.run(change, {turns: 4}) == 7
        assert workers == [process_of(cluster, task) for task in range(len(cluster.places()))]


def impatient(cluster: gc.LocalCluster) -> gc.DaskCluster:
    """The same workers with a short time between signs of life."""
    return gc.DaskCluster(cluster.client, cluster.tasks, heartbeat_timeout=SHORT)


@pytest.mark.slow
def test_a_step_that_takes_longer_than_the_heartbeats_is_no_loss(processes: gc.LocalCluster) -> None:
    with gc.Graph().as_default():
        with gc.device(FIRST):
            matrix = gc.placeholder(gc.float64, [None, None])
            values = gc.ops.svd(matrix, compute_uv=False)[0]
        session = gc.Session(cluster=impatient(processes))
        size, taken = 1000, 0.0
        while taken < 1.2 * SHORT:
            begun = time.monotonic()
            assert session.run(values, {matrix: np.eye(size) + np.tri(size)})[0] > 0
            size, taken = 5 * size // 4, time.monotonic() - begun
        session.close()


ALIKE = [1_000_000 * b"a" + end for end in (b"a", b"b")]
"""Texts that take long to compare."""


def repeats_that_take(seconds: float) -> int:
    """The repeats of ALIKE that one sort takes so long for, in a call that holds Python's lock."""
    known = 100
    begun = time.process_time()
    np.unique(np.array(known * ALIKE, object), return_index=True)
    return math.ceil(known * seconds / (time.process_time() - begun))


@pytest.mark.slow
def test_a_kernel_that_holds_the_lock_of_python_is_no_loss_unless_its_process_is_stopped(processes: gc.LocalCluster) -> None:
    with gc.Graph().as_default():
        texts, repeats = gc.placeholder(gc.string, [2]), gc.placeholder(gc.int32, [1])
        with gc.device(SECOND):
            places = gc.ops.unique(gc.ops.tile(texts, repeats), name="sorted")[1]
        with gc.device(FIRST):
            after = gc.reduce_max(places)
        session = gc.Session(cluster=impatient(processes))
        begun = time.monotonic()
        assert session.run(after, {texts: ALIKE, repeats: [repeats_that_take(3 * SHORT)]}) == 1
        assert time.monotonic() - begun > 2 * SHORT
        process = process_of(processes, 1)
        try:
            error, seconds = lost_after(
                session, after, lambda: os.kill(process, signal.SIGSTOP), {texts: ALIKE, repeats: [repeats_that_take(60)]}
            )
        finally:
            os.kill(process, signal.SIGKILL)
        assert seconds < SHORT + 5
        assert re.match("Task /job:worker/task:1 on worker '1' was lost with .*sorted: it has given no sign of life for 1 s", error.message)
        session.close()
        gc.Session(cluster=processes).close()  # once the worker has been started again


@pytest.mark.slow
def test_a_worker_with_another_version_is_refused_with_both_versions(processes: gc.LocalCluster) -> None:
    place = processes.places()[1]
    code = "__import__('graphcore').__dict__.__setitem__('package_version', {!r})"
    processes.client.run(eval, code.format("0.0.9"), workers=[place.address])
    try:
        with pytest.raises(gc.errors.FailedPreconditionError, match=rf"Worker '1'.* version 0\.0\.9 .* version {gc.package_version}"):
            gc.Session(gc.Graph(), cluster=processes)
    finally:
        processes.client.run(eval, code.format(gc.package_version), workers=[place.address])


def test_a_scheduler_that_is_gone_aborts_and_the_session_recovers_on_another_cluster(tmp_path: Path) -> None:
    model = Training()
    with distributed.LocalCluster(n_workers=2, processes=False, dashboard_address=":0", protocol="tcp") as before:
        cluster = gc.DaskCluster(before.scheduler_address, {"worker": [0, 1]}, heartbeat_timeout=HEARTBEAT)
        session = gc.Session(model.graph, cluster=cluster)
        session.run(model.start)
        session.run(model.step)
        gc.save_variables(session, tmp_path / "one.npz")
    with pytest.raises(gc.errors.AbortedError, match="starts the tasks again"):
        session.run(model.step)
    with pytest.raises(gc.errors.AbortedError, match="lost its scheduler"):
        session.recover(tmp_path / "one.npz")
    with gc.LocalCluster(workers=2, processes=False) as other:
        session.recover(tmp_path / "one.npz", other)
        session.run(model.step)
        assert session.run(model.weights).tolist() == [2.0, 2.0]
        session.close()
    cluster.close()


def test_clusters_with_certificates_take_clients_that_have_them_and_no_others() -> None:
    security = distributed.Security.temporary()
    with (
        distributed.LocalCluster(n_workers=2, processes=False, dashboard_address=":0", protocol="tls", security=security) as made,
        gc.Graph().as_default(),
    ):
        assert made.scheduler_address.startswith("tls://")
        with gc.device(FIRST):
            x = gc.constant([1.0, 2.0]) * 2.0
        with gc.device(SECOND):
            y = x + 1.0
        with gc.DaskCluster(made.scheduler_address, {"worker": [0, 1]}, security=security) as cluster:
            assert {place.address.partition(":")[0] for place in cluster.places()} == {"tls"}
            session = gc.Session(cluster=cluster)
            assert session.run(y).tolist() == [3.0, 5.0]
            session.close()
        with pytest.raises(gc.errors.FailedPreconditionError, match="Cannot reach a Dask scheduler"):
            gc.DaskCluster(made.scheduler_address, {"worker": [0, 1]})


def test_a_worker_that_closes_its_connections_counts_as_unreachable() -> None:
    async def called() -> None:
        pool = ConnectionPool()
        await pool.close()
        await call_actor(pool, "tcp://127.0.0.1:9", "key", "run")

    with pytest.raises(OSError, match="is closed"):
        asyncio.run(called())
