"""The tasks of a session as it reaches them: the worker of each, calls, and losses."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from graphcore.placement.device import Device
from graphcore.runtime.cluster.calls import UNREACHABLE, call_actor
from graphcore.runtime.cluster.messages import Shipment

if TYPE_CHECKING:
    from distributed import Client

_FINISHED: Final = "finished"


class Place:
    """A worker that is to hold a task.

    Args:
        device: the full name of the task's device.
        worker: the name of the worker.
        address: its address.
        memory: its memory in bytes, 0 if unknown.
        nanny: the address of the process that starts it and ends it, "" if there is none.
    """

    def __init__(self, device: str, worker: str, address: str, memory: int, nanny: str = "") -> None:
        self.device = device
        self.worker = worker
        self.address = address
        self.memory = memory
        self.nanny = nanny

    @property
    def task(self) -> str:
        """The name of the task, such as `/job:worker/task:1`."""
        spec = Device(self.device).spec
        return f"/job:{spec.job}/task:{spec.task}"


class Link:
    """The connection to one task.

    Attributes:
        device: the full name of its device.
        task: its name, such as `/job:worker/task:1`.
        worker, address, nanny: its worker.
        key: the key of the actor.
        incarnation: a number that differs from that of the task that it replaces.
        lost: why it is lost; "" while it is not.
        clock: the nanoseconds to add to its times to get times of the session.
        programs: the programs that it has, by digest, each with the number of plans that need it.
        renewals: the number of times that functions were replaced or variables declared again there.
        prepared_at: the value of `renewals` when each program was prepared.
    """

    def __init__(self, place: Place, future: Any, client: Client) -> None:
        self._client = client
        self.device = place.device
        self.task = place.task
        self.worker = place.worker
        self.address = place.address
        self.memory = place.memory
        self.nanny = place.nanny
        self.future = future
        self.key: str = future.key
        self.incarnation = int.from_bytes(os.urandom(8)) >> 2 | 1
        self.lost = ""
        self.clock = 0
        self.programs: dict[str, int] = {}
        self.renewals = 0
        self.prepared_at: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Link to {self.device} on worker {self.worker}{f', lost: {self.lost}' if self.lost else ''}>"

    def lose(self, reason: str) -> None:
        """Record why the task is lost, unless it is lost already; "" records nothing."""
        self.lost = self.lost or reason

    @property
    def rpc(self) -> Any:
        """Connects to processes of the cluster, by address."""
        return self._client.rpc

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the task.

        Raises:
            LostError: the task is lost.
        """
        if self.lost:
            raise LostError(self)
        try:
            return await call_actor(self.rpc, self.address, self.key, method, *arguments)
        except UNREACHABLE as error:
            self.lose(self.loss() or f"the connection to it broke ({type(error).__name__})")
            raise LostError(self) from error

    def loss(self) -> str:
        """The loss of the task as Dask sees it, "" if it sees none."""
        if self._client.status not in ("running", "connecting"):
            return "the client has lost the scheduler"
        if self.future.status != _FINISHED:
            return "its worker has ended"
        return ""

    def lacks(self, shipment: Shipment) -> bool:
        """True if the task must prepare a partition, at first and after functions or variables changed."""
        return self.prepared_at.get(shipment.digest) != self.renewals


class LostError(Exception):
    """A task does not answer any more.

    Args:
        link: the task.
    """

    def __init__(self, link: Link) -> None:
        super().__init__(link.device)
        self.link = link
