"""A session chooses one backend by its arguments, and asks each for the same things."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import UnimplementedError
from graphcore.runtime.backends.backend import Backend
from tests.graphcore.runtime.cluster.conftest import cluster as cluster  # noqa: PLC0414 - a fixture
from tests.graphcore.runtime.gpu.conftest import cupy as cupy  # noqa: PLC0414 - a fixture
from tests.support.strict_cupy import StrictCupy

CPUS = ["/cpu:0", "/cpu:1"]


def backend_of(**arguments: Any) -> Backend:
    session = gc.Session(gc.Graph(), **arguments)
    session.close()
    return session.runner.backend


def test_the_arguments_of_a_session_choose_its_backend(cluster: gc.DaskCluster, cupy: StrictCupy) -> None:
    chosen = {
        "nothing": backend_of(),
        "CPUs": backend_of(devices=CPUS),
        "simulated devices": backend_of(devices=["/cpu:0", "/gpu:0"]),
        "GPUs": backend_of(devices="gpu"),
        "a cluster": backend_of(cluster=cluster),
    }
    assert {what: type(backend).__name__ for what, backend in chosen.items()} == {
        "nothing": "ThisCpu",
        "CPUs": "Devices",
        "simulated devices": "Devices",
        "GPUs": "Gpus",
        "a cluster": "ClusterBackend",
    }
    assert [backend.moves_nodes for backend in chosen.values()] == [False, True, True, True, True]
    assert [len(backend.list_devices()) for backend in chosen.values()] == [1, 2, 2, 3, 3]
    assert [backend.devices is None for backend in chosen.values()] == [True, False, False, False, False]
    assert repr(chosen["CPUs"]) == "<Devices /job:localhost/replica:0/task:0/device:CPU:0, /job:localhost/replica:0/task:0/device:CPU:1>"


def test_backends_give_the_same_results_and_end_with_their_session(cluster: gc.DaskCluster, cupy: StrictCupy) -> None:
    places: list[dict[str, Any]] = [{}, {"devices": CPUS}, {"devices": "gpu"}, {"cluster": cluster}]
    for place in places:
        with gc.Graph().as_default():
            x, total = gc.placeholder(gc.float32, [2], name="x"), gc.Variable(np.ones(2, np.float32), name="total")
            added = gc.assign_add(total, x * 2.0)
            with gc.Session(**place) as session:
                backend = session.runner.backend
                session.run(total.initializer)
                assert session.run(added, {x: [1, 2]}).tolist() == [3, 5]
                assert session.run(x, {x: [1, 2]}).tolist() == [1, 2]
                assert session.run([]) == []
                assert backend.kernels.resources.initialised() == ["total"]
                session.close()
                assert backend.kernels.resources.initialised() == []


@pytest.mark.parametrize("several", ["CPUs", "a cluster"])
def test_the_plan_engine_is_refused_where_devices_share_a_run(several: str, cluster: gc.DaskCluster) -> None:
    place: dict[str, Any] = {"devices": CPUS} if several == "CPUs" else {"cluster": cluster}
    with gc.Graph().as_default():
        names = [device.name for device in backend_of(**place).list_devices()]
        with gc.device(names[0]):
            x = gc.placeholder(gc.float32, [], name="x")
            first = gc.negative(x)
        with gc.device(names[1]):
            second = gc.negative(first)
        with gc.Session(engine="plan", **place) as session:
            assert session.run(first, {x: 1.0}) == -1
            with pytest.raises(UnimplementedError, match="one device for the plan engine; this one is on 2"):
                session.run(second, {x: 1.0})
