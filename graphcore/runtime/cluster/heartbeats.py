"""Signs of life of the tasks of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import psutil
from distributed.protocol.pickle import dumps

from graphcore.runtime.cluster.links import Link, LostError

_INTERVAL: Final = 0.5
_NOT_RUNNING: Final = frozenset([psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD])


class Watch:
    """A wait for the loss of one of several tasks.

    Each task is asked at short intervals, and answers from the event loop of its worker. A kernel that holds Python's lock keeps it from that. Then
    the worker's nanny, another process on the same machine, is asked for the state of the worker's process, and its answer counts as a sign
    of life while that process is not stopped.

    Args:
        links: the tasks to watch.
        timeout: the seconds without a sign of life after which a task is lost.
        reached: gets the node that each task has reached, by device.
        step: the step that `reached` is about.
    """

    def __init__(self, links: Sequence[Link], timeout: float, reached: dict[str, str] | None = None, step: int = 0) -> None:
        self._links = links
        self._timeout = timeout
        self._reached = reached
        self._step = step
        self._silent = dict.fromkeys([link.device for link in links], 0.0)
        self._pings: dict[str, asyncio.Task[dict[int, str]]] = {}
        self._inquiries: dict[str, asyncio.Task[bool]] = {}

    async def first_lost(self) -> Link:
        """Wait until one of the tasks is lost."""
        try:
            return await self._wait()
        finally:
            for request in [*self._pings.values(), *self._inquiries.values()]:
                request.cancel()

    async def _wait(self) -> Link:
        timeout = self._timeout
        interval = min(_INTERVAL, timeout / 4)
        while True:
            await asyncio.sleep(interval)  # counted, not measured: a pause of this process is no silence of the others
            for link in self._links:
                link.lose(link.loss())
                if self._has_answered(link):
                    self._silent[link.device] = 0.0
                else:
                    self._silent[link.device] += interval
                    self._inquire(link, timeout)
                if self._silent[link.device] >= timeout:
                    link.lose(f"it has given no sign of life for {timeout:g} s")
                if link.lost:
                    return link

    def _has_answered(self, link: Link) -> bool:
        """Take the answer of a task if it is there, and ask again."""
        ping = self._pings.get(link.device)
        if ping is not None and not ping.done():
            return False
        if ping is not None and self._reached is not None and not link.lost:
            self._reached[link.device] = ping.result().get(self._step, "")
        self._pings[link.device] = asyncio.ensure_future(self._ping(link))
        return True

    async def _ping(self, link: Link) -> dict[int, str]:
        try:
            nodes: dict[int, str] = await link.call("alive")
        except LostError:
            return {}
        return nodes

    def _inquire(self, link: Link, timeout: float) -> None:
        """Ask the nanny once a task has been silent for half of the time limit, and take the answer."""
        inquiry = self._inquiries.get(link.device)
        if inquiry is not None and inquiry.done():
            del self._inquiries[link.device]
            if inquiry.result():
                self._silent[link.device] = 0.0
        if link.nanny and self._silent[link.device] >= timeout / 2 and link.device not in self._inquiries:
            self._inquiries[link.device] = asyncio.ensure_future(_is_running(link))


async def _is_running(link: Link) -> bool:
    """Ask the nanny of a worker for the state of its process."""
    request = {"function": dumps(worker_is_running), "args": dumps((link.address,)), "kwargs": dumps({}), "wait": True}
    try:
        reply = await link.rpc(link.nanny).run(**request)
    except Exception:  # noqa: BLE001 - a nanny that fails in any way gives no sign of life
        return False
    return reply["status"] == "OK" and bool(reply["result"])


def worker_is_running(address: str, dask_worker: Any) -> bool:
    """True if the process of a worker is neither gone nor stopped. Runs in its nanny.

    Args:
        address: the address of the worker.
        dask_worker: the nanny; Dask passes it under this name.
    """
    number = dask_worker.pid
    if number is None or dask_worker.worker_address != address:
        return False
    try:
        return psutil.Process(number).status() not in _NOT_RUNNING
    except psutil.NoSuchProcess:
        return False
