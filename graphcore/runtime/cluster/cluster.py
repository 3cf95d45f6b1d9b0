"""Dask clusters as the place of sessions."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from textwrap import shorten
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from graphcore.brief import brief
from graphcore.device_spec import canonicalize_device_name
from graphcore.errors import AbortedError, FailedPreconditionError, GraphError, InvalidArgumentError, NotFoundError
from graphcore.graph import Graph
from graphcore.graph.model.argument_errors import refuse
from graphcore.placement.device import LOCAL
from graphcore.runtime.core.options import SessionOptions
from graphcore.support.shown import html_text

try:
    import dask
    import distributed
except ImportError as error:
    raise NotFoundError("Sessions on a cluster need the package distributed, which is not installed: pip install distributed") from error

from graphcore.runtime.cluster.backend import ClusterBackend
from graphcore.runtime.cluster.comm import SCHEME
from graphcore.runtime.cluster.connection import FORKED, Connection, is_fork_of
from graphcore.runtime.cluster.links import Place
from graphcore.runtime.cluster.task import ignore_interrupts

if TYPE_CHECKING:
    from distributed import Client, Security

_RUNNING: Final = "running"
_WAIT_SECONDS: Final = 60.0
_PAUSE: Final = 0.1
_ATTEMPTS: Final = 2
_LOOPBACK: Final = "127.0.0.1"
_NO_PAGES: Final[dict[str, list[str]]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
"""Dask's HTTP servers answer without a password. They cannot be left out; without routes they answer nothing."""


class DaskCluster:
    """Workers of a Dask cluster as the tasks of sessions.

        session = gc.Session(cluster=gc.DaskCluster(client, {"worker": ["a", "b"], "ps": ["c"]}))

    Nodes with `gc.device("/job:ps/task:0")` run on the first worker listed for `ps`, others on the first task, or where the placer puts
    them; with `SessionOptions(allow_soft_placement=True)` a task that does not exist is replaced. Variables stay on their tasks from run to run.
    Tensors go from worker to worker; only feeds and fetches pass through this process. Each session has tasks, and thus variables, of its own.

    A task is lost if its worker ends, or gives no sign of life for `heartbeat_timeout`. Workers answer from their event loops; while a kernel that
    holds Python's lock keeps one from that, its nanny (the process that Dask starts beside each worker, unless told `--no-nanny`) answers that it
    runs. Dask has limits of its own for such a worker: `distributed.comm.timeouts.tcp` and `.connect` (30 s) for one that does not read, and
    `distributed.scheduler.worker-ttl` (5 minutes); `gc.LocalCluster` lifts them. When a task is lost, the run ends with AbortedError;
    `Session.recover` goes on. `SessionOptions(operation_timeout_in_ms=...)` limits the time of each step.

    Handles, lists of tensors and other objects stay on their task. Runs in several steps (`partial_run`), `_Send` and `_Recv` nodes of one's own, and
    `gc.py_func` with tasks in other processes are errors. Files that nodes read and write (`gc.train.Saver`) are those of the task's machine; those of
    `gc.save_variables` and `gc.train.CheckpointSaver` are written here. `%graph undo` does not take back the values of variables on tasks.

    A process that can connect to the scheduler or to a worker can run any code on the workers and here: a cluster without `Security` trusts all
    of its network, one with it trusts the holders of its keys. Authentication and encryption are Dask's:
    `gc.DaskCluster("tls://scheduler:8786", tasks, security=distributed.Security(...))`, or a client made with it.

    Args:
        client: a Dask client, or the address of a scheduler.
        tasks: the workers of each job, by name or address; the position in a list is the number of the task.
        security: Dask's `Security`, for an address.
        heartbeat_timeout: the seconds without a sign of life after which a task is lost.

    Raises:
        InvalidArgumentError: an argument of another kind, an unknown worker, no task, or a worker that is listed twice.
        FailedPreconditionError: the scheduler does not answer.
        NotFoundError: the package distributed is not installed.

    Attributes:
        client: the Dask client.
        tasks: as given, with names as texts.
    """

    def __init__(
        self,
        client: Client | str,
        tasks: Mapping[str, Sequence[Any]],
        *,
        security: Security | None = None,
        heartbeat_timeout: float = 10.0,
    ) -> None:
        self.tasks = _checked_tasks(tasks)
        self.heartbeat_timeout = _checked_seconds(heartbeat_timeout)
        self._process = os.getpid()
        self._owns_client = isinstance(client, str)
        self.client: Client = _connected(client, security) if isinstance(client, str) else _checked_client(client, security)
        try:
            self.places()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        jobs = ", ".join(f"{len(workers)} {job}" for job, workers in self.tasks.items())
        return f"<gc.{type(self).__name__} of {jobs}>"

    def _repr_html_(self) -> str:
        """The display in notebooks: the tasks with their workers, as they are now."""
        try:
            places = self.places()
        except GraphError as error:
            return f"<p>{html_text(repr(self))}</p><p>{html_text(error.message)}</p>"
        cells = [(place.task, place.worker, place.address, f"{place.memory / 2**30:.1f} GiB" if place.memory else "") for place in places]
        rows = "".join([f"<tr>{''.join([f'<td>{html_text(cell)}</td>' for cell in row])}</tr>" for row in cells])
        head = "<tr><th>task</th><th>worker</th><th>address</th><th>memory</th></tr>"
        return f"<p>{html_text(repr(self))}</p><table><thead>{head}</thead><tbody>{rows}</tbody></table>"

    @property
    def devices(self) -> list[str]:
        """The full names of the devices of all tasks, in the order of `tasks`."""
        return [place.device for place in self.places()]

    def places(self) -> list[Place]:
        """The workers of the tasks, as they are now.

        Raises:
            AbortedError: the scheduler is lost.
            FailedPreconditionError: this process is a fork of the one that made the cluster.
            InvalidArgumentError: a worker is unknown.
        """
        if is_fork_of(self._process):
            raise FailedPreconditionError(FORKED)
        scheduler = self.client.scheduler
        if self.client.status != _RUNNING or scheduler is None:
            raise AbortedError(f"The Dask client has lost its scheduler (it is {self.client.status}): required a new gc.DaskCluster")
        try:
            # Not `scheduler_info`, which Dask's own regular call may fill without workers meanwhile.
            workers = self.client.sync(scheduler.identity)["workers"]
        except OSError as error:
            raise AbortedError(f"The Dask scheduler does not answer ({error}): required a new gc.DaskCluster") from error
        by_name = {str(worker["name"]): address for address, worker in workers.items()} | {address: address for address in workers}
        places, taken = [], dict[str, str]()
        for job, listed in self.tasks.items():
            for number, name in enumerate(listed):
                address = by_name.get(name)
                if address is None:
                    names = ", ".join(sorted([f"'{worker['name']}' ({address})" for address, worker in workers.items()])) or "none"
                    raise InvalidArgumentError(f"tasks: job '{job}' lists worker '{name}', which the cluster does not have; it has {names}")
                device = canonicalize_device_name(f"/job:{job}/replica:0/task:{number}/device:CPU:0", LOCAL)
                if address in taken:
                    raise InvalidArgumentError(f"tasks: worker '{name}' is listed for {taken[address]} and for {device}; required once")
                taken[address] = device
                worker = workers[address]
                places.append(Place(device, name, address, int(worker.get("memory_limit") or 0), worker.get("nanny") or ""))
        return places

    def open(self, graph: Graph, options: SessionOptions) -> ClusterBackend:
        """Begin the tasks of a session.

        Raises:
            FailedPreconditionError: a worker has another version of the package.
            DeadlineExceededError: a worker is too busy to begin.
            AbortedError: the scheduler or a worker is lost.
        """
        while True:
            places = self._awaited_places()
            try:
                return ClusterBackend(graph, options, Connection(self.client, places, self.heartbeat_timeout))
            except AbortedError:
                # A worker that has ended stays listed until Dask notices; then it may be started again elsewhere.
                if [place.address for place in places] == [place.address for place in self._awaited_places()]:
                    raise

    def _awaited_places(self) -> list[Place]:
        """The workers of the tasks, once those that Dask starts again are there."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                return self.places()
            except InvalidArgumentError:
                if time.monotonic() >= deadline:
                    raise
            self._begin_missing()
            time.sleep(_PAUSE)

    def _begin_missing(self) -> None:
        """Start missing workers, where this object has started the cluster."""

    def close(self) -> None:
        """Close the client, if it was made here. Workers go on."""
        if self._owns_client:
            self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class LocalCluster(DaskCluster):
    """A cluster of processes on this machine: `gc.Session(cluster=gc.LocalCluster(workers=2))`.

    Args:
        workers: the number of tasks of job `worker`.
        ps: the number of tasks of job `ps`.
        processes: False for tasks in threads of this process, which begin faster.
        dashboard: True for Dask's dashboard, at `cluster.client.dashboard_link`. Every user of this machine can read it.
        heartbeat_timeout: see `DaskCluster`.

    Raises:
        InvalidArgumentError: not a number of tasks.
        FailedPreconditionError: a process does not start.
        NotFoundError: the package distributed or cryptography is not installed.

    All connections stay on this machine, and only holders of the cluster's key can connect: it is made for each cluster, kept in the memory of
    its processes, and is `cluster.client.security`.

    In a script, as for all processes that Python spawns, the code that makes it belongs below `if __name__ == "__main__":`.
    """

    def __init__(
        self, workers: int = 2, ps: int = 0, *, processes: bool = True, dashboard: bool = False, heartbeat_timeout: float = 10.0
    ) -> None:
        _check_count("workers", workers, 1)
        _check_count("ps", ps, 0)
        self._cluster = _started(workers + ps, processes, dashboard)
        try:
            client = distributed.Client(self._cluster, set_as_default=False)
            client.run(ignore_interrupts)
            names = sorted(self._cluster.workers)
            tasks = {"worker": names[:workers]} | ({"ps": names[workers:]} if ps else {})
            super().__init__(client, tasks, heartbeat_timeout=heartbeat_timeout)
        except BaseException:
            self._cluster.close()
            raise
        self._owns_client = True

    def _begin_missing(self) -> None:
        """Start the workers that Dask has given up because they took too long to start again."""
        self._cluster.scale(sum([len(workers) for workers in self.tasks.values()]))

    def close(self) -> None:
        """End the client and the processes."""
        super().close()
        self._cluster.close()


def _started(count: int, processes: bool, dashboard: bool) -> distributed.LocalCluster:
    """A scheduler with workers.

    On a machine that is short of time, a new process may fail to connect; then all of them begin again once.

    Raises:
        FailedPreconditionError: a worker does not start.
        NotFoundError: the package cryptography is not installed.
    """
    security = _new_security()
    config = {
        "distributed.comm.timeouts.connect": f"{_WAIT_SECONDS:g}s",
        # On one machine, a connection that is not read for long belongs to a worker that is busy.
        "distributed.comm.timeouts.tcp": "1h",
        "distributed.scheduler.worker-ttl": None,
    } | ({} if dashboard else _NO_PAGES)
    main = sys.modules["__main__"]
    main.__spec__ = getattr(main, "__spec__", None)  # IPython's `%reset` removes it, and new processes read it
    failure: BaseException | None = None
    for _ in range(_ATTEMPTS):
        try:
            with dask.config.set(config):
                return distributed.LocalCluster(
                    n_workers=count,
                    threads_per_worker=1,
                    processes=processes,
                    host=_LOOPBACK,
                    protocol=SCHEME,
                    dashboard_address=f"{_LOOPBACK}:0",
                    scheduler_kwargs={"dashboard": dashboard},
                    silence_logs=logging.CRITICAL,  # faults are errors of runs; others are those of workers that close
                    security=security,
                )
        except Exception as error:  # noqa: BLE001 - whatever it is, the cluster did not start, as reported below
            failure = error
    assert failure is not None
    while (first := failure.__cause__ or failure.__context__) is not None:
        failure = first
    reason = shorten(f"{type(failure).__name__}: {failure}", 200)
    raise FailedPreconditionError(f"The {count} workers of gc.LocalCluster did not start: {reason}").advise(
        'In a script, put the code that makes the cluster below `if __name__ == "__main__":`; else try fewer workers, or `processes=False`.',
        required=f"{count} processes",
        came=reason,
    ) from failure


def _new_security() -> Security:
    """A new key, which every connection of a cluster requires.

    Raises:
        NotFoundError: the package cryptography is not installed.
    """
    try:
        made: Security = distributed.Security.temporary()
    except ImportError as error:
        raise NotFoundError("gc.LocalCluster needs the package cryptography, which is not installed: pip install cryptography") from error
    return made


def _checked_seconds(value: Any) -> float:
    if not isinstance(value, int | float) or not value > 0:
        refuse("heartbeat_timeout", "a positive number of seconds", value)
    return float(value)


def _check_count(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or value < least:
        refuse(name, f"a number of tasks, at least {least}", value)


def _checked_tasks(tasks: Any) -> dict[str, list[str]]:
    if not isinstance(tasks, Mapping) or not all(isinstance(job, str) for job in tasks):
        refuse("tasks", "a mapping from jobs to lists of workers", tasks)
    for job, listed in tasks.items():
        if isinstance(listed, str | bytes) or not isinstance(listed, Sequence):
            refuse("tasks", f"a list of workers for job '{job}'", listed)
        for worker in listed:
            if not isinstance(worker, str | int):
                refuse("tasks", f"names or addresses of workers for job '{job}'", worker)
    names = {job: [str(worker) for worker in listed] for job, listed in tasks.items()}
    if not any(names.values()):
        raise InvalidArgumentError(f"tasks: required at least one worker, got {brief(tasks)}")
    return names


def _checked_client(client: Any, security: Any) -> Client:
    if not isinstance(client, distributed.Client):
        refuse("client", "a distributed.Client, or the address of a scheduler", client)
    if security is not None:
        refuse("security", "None beside a client, which has its own", security)
    if client.asynchronous:
        refuse("client", "a client that is not asynchronous", client)
    return client


class _Client(distributed.Client):
    """A client that closes when it cannot start. Dask's goes on after a TypeError or ValueError, and holds up the end of Python for a minute."""

    def start(self, **kwargs: Any) -> None:
        try:
            super().start(**kwargs)  # type: ignore[no-untyped-call]  # Dask's
        except BaseException:
            self.close()  # type: ignore[no-untyped-call]  # Dask's
            raise


def _connected(address: str, security: Any) -> Client:
    try:
        return _Client(address, security=security, set_as_default=False)  # type: ignore[no-untyped-call]  # Dask's
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise FailedPreconditionError(f"Cannot reach a Dask scheduler at '{address}': {error}") from error
