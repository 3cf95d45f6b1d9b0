"""One step of a session over several tasks, as seen from the session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from graphcore.errors import CancelledError, GraphError
from graphcore.runtime.cluster.connection import Connection
from graphcore.runtime.cluster.heartbeats import Watch
from graphcore.runtime.cluster.links import Link, LostError
from graphcore.runtime.cluster.messages import Ended, Failure, Outcome, Parcel, Request

_STOPPED = "The operation was cancelled"


class ClusterStep:
    """One step.

    All of it happens in the event loop of the client.

    Args:
        connection: the tasks.
        number: the number of the step.
        requests: the order for each task that takes part, by device.
        nodes: the names of the nodes of each task, by device.

    Attributes:
        outcomes: the ends of the parts, by device.
    """

    def __init__(self, connection: Connection, number: int, requests: Mapping[str, Request], nodes: Mapping[str, Sequence[str]]) -> None:
        self._connection = connection
        self._number = number
        self._requests = requests
        self._nodes = nodes
        self._error: GraphError | None = None
        self._is_stopped = False
        self._reached: dict[str, str] = {}
        self._parts: dict[asyncio.Task[Any], Link] = {}
        self._stops: dict[asyncio.Task[Ended | None], Link] = {}
        self._given_up: Ended | None = None
        self.outcomes: dict[str, Outcome] = {}

    async def run(self) -> None:
        """Run all parts to their ends.

        Raises:
            GraphError: a node failed, a task was lost, or the step was stopped.
        """
        connection = self._connection
        links = [connection.links[device] for device in self._requests]
        self._parts = {asyncio.ensure_future(link.call("run", Parcel(self._requests[link.device]))): link for link in links}
        self._watching = self._watch()
        try:
            if self._is_stopped:
                self._stop_all(None)
            await self._take_all()
        finally:
            self._watching.cancel()
            for part in [*self._parts, *self._stops]:
                part.cancel()
        if self._is_stopped and (self._error is None or (self._is_transfer(self._error) and self._given_up is not None)):
            given_up = self._given_up or Ended()
            self._error = CancelledError(_STOPPED, op=given_up.op, node=given_up.node)
        if self._error is not None:
            raise self._error

    async def _take_all(self) -> None:
        """Take what parts give, until all have ended."""
        while self._parts:
            done, _ = await asyncio.wait({*self._parts, *self._stops, self._watching}, return_when=asyncio.FIRST_COMPLETED)
            for part in done & self._parts.keys():
                self._take(part)
            for stop in done & self._stops.keys():
                self._take_stop(stop)
            if self._watching in done:
                self._lose(self._watching.result())
                self._watching = self._watch()

    def stop(self) -> None:
        """Stop all parts before their next nodes."""
        if not self._is_stopped and self._error is None:
            self._is_stopped = True
            self._stop_all(None)

    def _watch(self) -> asyncio.Task[Link]:
        watch = Watch(list(self._parts.values()), self._connection.heartbeat_timeout, self._reached, self._number)
        return asyncio.ensure_future(watch.first_lost())

    def _take(self, part: asyncio.Task[Any]) -> None:
        """Take the end of a part."""
        link = self._parts.pop(part)
        try:
            outcome: Outcome = part.result().content
        except LostError:
            self._fail(self._aborted(link))
            return
        self.outcomes[link.device] = outcome
        if outcome.unreachable and self._error is None:
            other = self._connection.links[outcome.unreachable]
            other.lose(other.loss() or f"task {link.task} could not reach it")
            self._fail(self._aborted(other))
        elif outcome.failure is not None:
            self._fail(outcome.failure.error())

    def _lose(self, link: Link) -> None:
        """Give up the part of a lost task."""
        for part in [running for running, other in self._parts.items() if other is link]:
            part.cancel()
            del self._parts[part]
        self._fail(self._aborted(link))

    def _aborted(self, link: Link) -> GraphError:
        nodes, reached = self._nodes.get(link.device, ()), self._reached.get(link.device, "")
        return self._connection.aborted(link, nodes, reached if reached in nodes else "")  # others are in functions

    def _fail(self, error: GraphError) -> None:
        """Keep the first error, and stop the other parts.

        When the step is stopped, a node that is not just waiting for another task says more about where that was.
        """
        if self._is_stopped:
            if self._error is None or (self._is_transfer(self._error) and not self._is_transfer(error)):
                self._error = error
        elif self._error is None:
            self._error = error
            self._stop_all(Failure.of(error, error.device))

    def _is_transfer(self, error: GraphError) -> bool:
        """True for an error about a node that exchanges values, or about none."""
        return not any(error.node in nodes for nodes in self._nodes.values())

    def _stop_all(self, failure: Failure | None) -> None:
        for link in list(self._parts.values()):
            self._stops[asyncio.ensure_future(self._stop(link, failure))] = link

    async def _stop(self, link: Link, failure: Failure | None) -> Ended | None:
        try:
            ended: Ended = await link.call("stop", self._number, failure)
        except LostError:
            return None
        return ended

    def _take_stop(self, stop: asyncio.Task[Ended | None]) -> None:
        """Take the answer of a part that was stopped; one whose node runs on is given up."""
        link = self._stops.pop(stop)
        ended = stop.result()
        if ended is not None and ended.node:
            self._given_up = ended
            for part in [running for running, other in self._parts.items() if other is link]:
                part.cancel()
                del self._parts[part]
