"""`tf.train.replica_device_setter`: parameter servers for variables, and a worker for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from graphcore.device_spec import DeviceSpec
from graphcore.errors import InvalidArgumentError
from graphcore.graph import get_default_graph
from graphcore.graph.model.argument_errors import refuse

__all__ = ["replica_device_setter"]

ChooseTask = Callable[[Any], int]


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: ChooseTask | None = None,
) -> Callable[[Any], str] | None:
    """A function for `gc.device`: parameter servers for variables, in turn, and a worker for other nodes.

    Args:
        ps_tasks: the number of parameter servers; 0 for none, and the result is None.
        ps_device: the request for variables; its task is chosen.
        worker_device: the request for other nodes.
        merge_devices: add to the requests of blocks within; False to leave nodes alone that have any.
        cluster: a dict from job names to lists or dicts of tasks, which gives the number instead of `ps_tasks`.
        ps_ops: the ops on parameter servers; by default variables, tables that can change, and accumulators with a handle.
        ps_strategy: chooses the task for a node.

    Raises:
        InvalidArgumentError: the cluster is no dict, or the strategy no function.
    """
    tasks = ps_tasks if cluster is None else _tasks_of(cluster, DeviceSpec.parse(ps_device).job)
    if not tasks:
        return None
    if ps_strategy is not None and not callable(ps_strategy):
        raise InvalidArgumentError("ps_strategy must be callable")
    choose = ps_strategy or _in_turn(tasks)

    def device_of(op: Any) -> str:
        requested: str = op.device
        if requested and not merge_devices:
            return requested
        current = DeviceSpec.parse(requested)
        if not ps_device or not _is_stored(op.type, ps_ops):
            return current.merge_unset(DeviceSpec.parse(worker_device)).to_string()
        server = DeviceSpec.parse(ps_device)
        if server.job and current.job in {None, server.job}:
            server = msgspec.structs.replace(server, task=choose(op))
        return current.merge_unset(server).to_string()

    return device_of


def _is_stored(op: str, ps_ops: Sequence[str] | None) -> bool:
    return get_default_graph().look_up(op).traits.holds_parameters if ps_ops is None else op in ps_ops


def _tasks_of(cluster: Any, job: str | None) -> int:
    jobs = cluster.as_dict() if hasattr(cluster, "as_dict") else cluster
    if not isinstance(jobs, Mapping):
        refuse("cluster", "a dict from job names to lists of tasks", cluster)
    return len(jobs.get(job) or ())


def _in_turn(tasks: int) -> ChooseTask:
    assigned = 0

    def choose(_op: Any) -> int:
        nonlocal assigned
        assigned += 1
        return (assigned - 1) % tasks

    return choose
