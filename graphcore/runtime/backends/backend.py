"""The choice of where a session runs: the protocol of backends, and what chooses one of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from graphcore.errors import FailedPreconditionError
from graphcore.graph import Graph
from graphcore.graph.model.argument_errors import refuse
from graphcore.placement.device import Device, DeviceSet
from graphcore.runtime.backends.devices import CPU_TYPE, Devices
from graphcore.runtime.backends.kernels import Kernels
from graphcore.runtime.backends.owned_models import OwningFramework, owned_model
from graphcore.runtime.backends.this_cpu import ThisCpu
from graphcore.runtime.backends.work import Built, RecordedRun, StepwiseProgram, Subgraph
from graphcore.runtime.core.options import SessionOptions
from graphcore.runtime.core.rewrite import DeviceAttributes
from graphcore.runtime.core.tracing import Trace
from graphcore.runtime.engines import Engine

_DEVICES = 'a gc.DeviceSet, a list of devices or their names, or "gpu"'


class Backend(Protocol):
    """The place of the runs of one session.

    A session has one of five, which `open_backend` chooses by the arguments of `Session`:

    | arguments | backend | a run is |
    |---|---|---|
    | a graph that shows a model of another framework | `OwningFramework` | the model, run by its own framework |
    | none | `ThisCpu` | a program of the chosen engine, on the CPU of this process |
    | `devices=` | `Devices` | placed; on one device such a program, on several one partition for each |
    | `devices=` with CUDA devices | `Gpus` | the same, with kernels and arrays on the GPUs |
    | `cluster=` | `ClusterBackend` | placed; one partition for each task, which the tasks prepare and run |

    A run goes through three hands. `Planner` finds the `Subgraph` that it needs, lets the backend `build` a program for it, and caches that.
    `Runner` executes the program, and turns to the backend for the `trace` of a recorded run. The engine of a program (`engines.py`: a plan
    or the dataflow engine) is another choice, made wherever one device does all of a run.

    Attributes:
        kernels: makes the kernels of nodes, and holds what they share: resources and functions.
    """

    kernels: Kernels

    @property
    def devices(self) -> DeviceSet | None:
        """The devices that nodes are placed on; None where nothing is placed."""

    @property
    def moves_nodes(self) -> bool:
        """True if a change of the graph may move other nodes, so that no program outlives it."""

    def list_devices(self) -> list[DeviceAttributes] | list[Device]:
        """The available devices."""

    def build(self, subgraph: Subgraph, engine: Engine) -> Built:
        """Place the nodes of a run, and prepare it.

        Args:
            subgraph: what is to run.
            engine: the engine of what one device does alone.

        Raises:
            UnimplementedError: the engine or the devices cannot do it.
            GraphError: a node cannot be placed, has an error or cannot run.
        """

    def build_stepwise(self, subgraph: Subgraph) -> StepwiseProgram:
        """Place the nodes of a run that is fed step by step, and prepare it.

        Raises:
            UnimplementedError: the devices do not run in steps.
            GraphError: a node cannot be placed, has an error or cannot run.
        """

    def trace(self, run: RecordedRun) -> Trace:
        """The trace of a run that has ended."""

    def close(self) -> None:
        """Release the variables and all else that it holds."""


class Cluster(Protocol):
    """A cluster, on which sessions may run."""

    def open(self, graph: Graph, options: SessionOptions) -> Backend:
        """Begin the work for one session.

        Args:
            graph, options: those of the session.
        """


def open_backend(graph: Graph, options: SessionOptions, devices: DeviceSet | None, cluster: Cluster | None) -> Backend:
    """Choose where a session runs, and make it ready; see `Backend`.

    Args:
        graph, options: those of the session.
        devices, cluster: at most one of them; see `checked_devices` and `checked_cluster`.

    Raises:
        FailedPreconditionError: a GPU cannot be used, or a worker of the cluster has another version of the package.
        AbortedError: the cluster is lost.
    """
    model = owned_model.of(graph)
    if model is not None:
        return OwningFramework(graph, options, model)
    if cluster is not None:
        return cluster.open(graph, options)
    if devices is None:
        return ThisCpu(graph, options)
    if any(device.cuda >= 0 for device in devices):
        from graphcore.runtime.backends.gpus import Gpus  # noqa: PLC0415 - most sessions need no GPU

        return Gpus(graph, options, devices)
    return Devices(graph, options, devices)


def checked_devices(devices: Any) -> DeviceSet | None:
    """Convert the devices of a session to a set; None stands for the CPU of this process.

    The text "gpu" stands for the CPU and the GPUs of this machine. A name that is not of a CPU is that of a simulated device.

    Raises:
        InvalidArgumentError: they are neither a DeviceSet nor a list of devices or names, or a name is not a device name.
        AlreadyExistsError: two have the same name.
        FailedPreconditionError: the set is empty, or there is no GPU.
    """
    if devices is None:
        return None
    if isinstance(devices, DeviceSet):
        chosen = devices
    elif devices == "gpu":
        from graphcore.runtime.gpu.cuda import gpu_devices  # noqa: PLC0415 - most sessions need no GPU

        chosen = gpu_devices()
    elif isinstance(devices, Iterable) and not isinstance(devices, str | bytes):
        listed = list(devices)
        if not all(isinstance(device, Device | str) for device in listed):
            refuse("devices", _DEVICES, devices)
        chosen = DeviceSet([_named(device) if isinstance(device, str) else device for device in listed])
    else:
        refuse("devices", _DEVICES, devices)
    if not len(chosen):
        raise FailedPreconditionError("devices: required at least one device, got none")
    return chosen


def _named(name: str) -> Device:
    device = Device(name)
    return Device(name, simulated=device.device_type != CPU_TYPE)


def checked_cluster(cluster: Any, devices: DeviceSet | None) -> Cluster | None:
    """Check that `cluster` is one, and is given without devices.

    Raises:
        InvalidArgumentError: it is not.
    """
    if cluster is not None and not callable(getattr(cluster, "open", None)):
        refuse("cluster", "a gc.DaskCluster, a gc.LocalCluster or None", cluster)
    if cluster is not None and devices is not None:
        refuse("devices", "None beside a cluster, whose tasks are the devices", devices)
    chosen: Cluster | None = cluster
    return chosen
