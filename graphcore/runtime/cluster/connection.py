"""The connection of a session to its tasks on a cluster."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

from distributed.protocol.pickle import dumps

from graphcore.errors import AbortedError, DeadlineExceededError, FailedPreconditionError
from graphcore.release import package_version
from graphcore.runtime.cluster.calls import event_loop
from graphcore.runtime.cluster.heartbeats import Watch
from graphcore.runtime.cluster.links import Link, LostError, Place
from graphcore.runtime.cluster.messages import Parcel, Prepared, Shipment
from graphcore.runtime.cluster.task import Task

if TYPE_CHECKING:
    from distributed import Client

_Result = TypeVar("_Result")
_START_SECONDS: Final = 60.0
_VERSION: Final = "(lambda package: getattr(package, 'package_version', package.__version__))(__import__('graphcore'))"
_SAMPLES: Final = 5
_KEPT: Final = 32
"""The number of programs that tasks keep although no plan needs them."""

FORKED: Final = "The cluster belongs to the process that this one was forked from: required a cluster made in this process"


def is_fork_of(process: int) -> bool:
    """True iff this process is not `process`, but a fork of it.

    Dask's client has no event loop in a fork, which would wait for it forever.
    """
    return os.getpid() != process


class Connection:
    """The tasks of one session, each an actor on a Dask worker.

    Args:
        client: the Dask client.
        places: the worker of each task.
        heartbeat_timeout: the seconds without a sign of life after which a task is lost.

    Raises:
        FailedPreconditionError: a worker has no package of this version, or cannot make an actor.
        DeadlineExceededError: a worker is too busy to make an actor.

    Attributes:
        links: the tasks, by device.
        steps: the numbers of the steps under way.
        redeclared: True if earlier programs may hold variables that were declared again.
    """

    def __init__(self, client: Client, places: Sequence[Place], heartbeat_timeout: float) -> None:
        self.client = client
        self.heartbeat_timeout = heartbeat_timeout
        self.loop = event_loop(client.loop)
        self._process = os.getpid()
        self._numbers = count(1)
        self.steps: set[int] = set()
        self.is_closed = False
        self.redeclared = False
        self.wait(self._check_versions(places))
        made = uuid.uuid4().hex[:12]
        futures = [
            client.submit(
                Task, place.device, key=f"graphloupe-{made}-{place.device}", workers=[place.address], allow_other_workers=False, actor=True
            )
            for place in places
        ]
        self.links = {place.device: Link(place, future, client) for place, future in zip(places, futures, strict=True)}
        for link in self.links.values():
            _await_actor(link)
        peers = {link.device: (link.address, link.key) for link in self.links.values()}
        self.ask_all("join", peers)
        self.wait(self._set_clocks())

    # ---- calls -----------------------------------------------------------------------------------------------------

    def wait(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Wait in this thread for the result of `work` in the event loop of the client.

        Raises:
            FailedPreconditionError: this process is a fork, which has no event loop.
        """
        if os.getpid() != self._process:
            work.close()
            raise FailedPreconditionError(
                "The session's cluster belongs to the process that was forked: required a cluster made in this process"
            )
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:  # Ctrl-C
            future.cancel()
            raise

    def ask(self, link: Link, method: str, *arguments: Any) -> Any:
        """Call a method of a task, and wait for its result.

        Raises:
            AbortedError: the task is lost.
        """
        try:
            return self.wait(self._watched(link, method, *arguments))
        except LostError as error:
            raise self.aborted(error.link) from None

    def ask_all(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all tasks, and wait for the results.

        Raises:
            AbortedError: a task is lost.
        """

        async def ask() -> list[Any]:
            return await asyncio.gather(*[self._watched(link, method, *arguments) for link in self.links.values()])

        try:
            return self.wait(ask())
        except LostError as error:
            raise self.aborted(error.link) from None

    async def _watched(self, link: Link, method: str, *arguments: Any) -> Any:
        """Call a method of a task, and stop waiting when it is lost."""
        call = asyncio.ensure_future(link.call(method, *arguments))
        watch = asyncio.ensure_future(self.watch([link]))
        try:
            await asyncio.wait({call, watch}, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                return call.result()
            raise LostError(link)
        finally:
            call.cancel()
            watch.cancel()

    # ---- losses ----------------------------------------------------------------------------------------------------

    async def watch(self, links: Sequence[Link]) -> Link:
        """Wait until one of `links` is lost."""
        return await Watch(links, self.heartbeat_timeout).first_lost()

    def aborted(self, link: Link, nodes: Sequence[str] = (), reached: str = "") -> AbortedError:
        """The error for the loss of a task.

        Args:
            nodes: its nodes.
            reached: the node that it reached last, as far as known.
        """
        shown = ", ".join(nodes[:8]) + (f" and {len(nodes) - 8} more" if len(nodes) > 8 else "")
        what = f" with {shown}" if nodes else ""
        error = AbortedError(
            f"Task {link.task} on worker '{link.worker}' was lost{what}: {link.lost}. Its variables are lost too; "
            "session.recover(checkpoint) starts the tasks again with the values of a checkpoint",
            node=reached,
        )
        error.device = link.device
        return error.advise(
            "Run `session.recover(checkpoint)`, with the file of `gc.save_variables` or `gc.train.CheckpointSaver`.",
            required=f"an answer of worker '{link.worker}'",
            came=link.lost,
        )

    def check(self, links: Sequence[Link], nodes: Mapping[str, Sequence[str]] | None = None) -> None:
        """Check that no task is known to be lost.

        Args:
            nodes: the nodes of each, by device.

        Raises:
            AbortedError: one is.
        """
        for link in links:
            link.lose(link.loss())
            if link.lost:
                raise self.aborted(link, (nodes or {}).get(link.device, ()))

    # ---- programs --------------------------------------------------------------------------------------------------

    def prepare(self, shipments: Sequence[Shipment]) -> None:
        """Let each partition be prepared by its task, unless that has it already.

        Raises:
            GraphError: a partition cannot be prepared, or a task is lost.
        """
        missing = [sent for sent in shipments if self.links[sent.device].lacks(sent)]
        links = [self.links[sent.device] for sent in missing]
        self.check(links)

        async def prepare() -> list[Prepared]:
            calls = [self._watched(link, "prepare", Parcel(sent)) for link, sent in zip(links, missing, strict=True)]
            outcomes: list[Prepared] = await asyncio.gather(*calls)
            return outcomes

        try:
            ended = self.wait(prepare())
        except LostError as error:
            raise self.aborted(error.link) from None
        for link, shipment, prepared in zip(links, missing, ended, strict=True):
            self.redeclared = self.redeclared or prepared.redeclared
            link.renewals += prepared.replaced or prepared.redeclared
            if prepared.failure is None:
                link.prepared_at[shipment.digest] = link.renewals
        failure = next((outcome.failure for outcome in ended if outcome.failure is not None), None)
        if failure is not None:
            raise failure.error()
        for sent in shipments:
            programs = self.links[sent.device].programs
            programs[sent.digest] = programs.get(sent.digest, 0) + 1

    def release(self, digests: Mapping[str, str]) -> None:
        """Release a program of some tasks.

        The tasks keep it for a plan that needs the same, as long as there are few of these.

        Args:
            digests: the program of each task, by device.
        """
        for device, digest in digests.items():
            programs = self.links[device].programs
            if digest in programs:
                programs[digest] = max(0, programs[digest] - 1)
        for link in self.links.values():
            unneeded = [digest for digest, users in link.programs.items() if not users]
            dropped = unneeded[:-_KEPT]
            if dropped and not link.lost and not self.is_closed:
                for digest in dropped:
                    del link.programs[digest], link.prepared_at[digest]
                asyncio.run_coroutine_threadsafe(self._tell(link, "forget", dropped), self.loop)

    async def _tell(self, link: Link, method: str, *arguments: Any) -> None:
        """Call a method of a task without a result; a lost task is left out."""
        try:
            await link.call(method, *arguments)
        except LostError:
            return

    # ---- begin and end ---------------------------------------------------------------------------------------------

    def next_step(self) -> int:
        """The number of a new step."""
        number = next(self._numbers)
        self.steps.add(number)
        return number

    async def _check_versions(self, places: Sequence[Place]) -> None:
        await asyncio.gather(*[_check_version(self.client.rpc, place, self.heartbeat_timeout) for place in places])

    async def _set_clocks(self) -> None:
        """Find the difference between the clock of each task and that of this process.

        A difference below half of the shortest round trip counts as none: processes of one machine share a clock.
        """
        for link in self.links.values():
            samples = []
            for _ in range(_SAMPLES):
                begun = time.perf_counter_ns()
                there = await link.call("now")
                ended = time.perf_counter_ns()
                samples.append((ended - begun, (begun + ended) // 2 - there))
            way, difference = min(samples)
            link.clock = 0 if abs(difference) <= way / 2 else difference

    def close(self) -> None:
        """End the tasks."""
        if self.is_closed:
            return
        self.is_closed = True

        async def close() -> None:
            tasks = [self._tell(link, "close") for link in self.links.values() if not link.lost and not link.loss()]
            await asyncio.wait_for(asyncio.gather(*tasks), self.heartbeat_timeout)

        if not self.loop.is_closed() and self.client.status == "running":
            with suppress(TimeoutError):  # what does not answer ends with its worker
                self.wait(close())
            for link in self.links.values():
                link.future.release()


async def _check_version(rpc: Any, place: Place, seconds: float) -> None:
    """Check that a worker has this version of the package.

    Raises:
        FailedPreconditionError: it has not.
        AbortedError: it does not answer.
    """
    # An expression, since another version of the package may lack any function that could be named here.
    request = {"function": dumps(eval), "args": dumps((_VERSION,)), "kwargs": dumps({}), "wait": True}
    worker = rpc(place.address)
    try:
        await asyncio.wait_for(worker.identity(), seconds)
        seconds = _START_SECONDS  # it may have to import the package
        reply = await asyncio.wait_for(worker.run(**request), seconds)
    except (OSError, TimeoutError) as error:
        raise AbortedError(f"Worker '{place.worker}' of the cluster has not answered within {seconds:g} s") from error
    if reply["status"] != "OK":
        raise FailedPreconditionError(
            f"Worker '{place.worker}' of the cluster cannot import graphloupe ({reply['exception']!r}); required version "
            f"{package_version}, which is that of this process"
        )
    if reply["result"] != package_version:
        raise FailedPreconditionError(
            f"Worker '{place.worker}' of the cluster has version {reply['result']} of graphloupe, and this process has version "
            f"{package_version}: required the same version on both"
        )


def _await_actor(link: Link) -> None:
    """Wait until a task is there.

    Raises:
        DeadlineExceededError: its worker is too busy.
        FailedPreconditionError: it cannot be made.
    """
    try:
        error = link.future.exception(timeout=_START_SECONDS)
    except TimeoutError:
        raise DeadlineExceededError(
            f"Worker '{link.worker}' has not made task {link.task} within {_START_SECONDS:g} s; it may be busy with other work"
        ) from None
    if error is not None:
        raise FailedPreconditionError(f"Worker '{link.worker}' cannot make task {link.task}: {error}") from error
