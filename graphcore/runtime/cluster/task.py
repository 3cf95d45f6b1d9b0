"""A task of a session: the actor on a Dask worker that holds its variables and runs its partitions."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
from distributed import get_worker

from graphcore.dtypes import as_dtype
from graphcore.errors import AbortedError, CancelledError, GraphError
from graphcore.graph import Graph
from graphcore.kernel_context import ResourceManager
from graphcore.runtime.backends.kernels import Kernels
from graphcore.runtime.cluster.calls import UNREACHABLE, call_actor, event_loop
from graphcore.runtime.cluster.channel import StepChannel
from graphcore.runtime.cluster.messages import (
    Declaration,
    Ended,
    Failure,
    Held,
    News,
    Outcome,
    Parcel,
    Prepared,
    Records,
    Request,
    Shipment,
    arrived,
)
from graphcore.runtime.cluster.task_programs import TaskProgram, build_task_program
from graphcore.runtime.core.cancellation import CancellationManager
from graphcore.runtime.core.interruptible_call import AbandonedCallError, InterruptibleCall
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.recorder import Recorder
from graphcore.runtime.core.rendezvous import Rendezvous
from graphcore.runtime.core.timed_run import stop_call, under_way
from graphcore.runtime.core.value_records import ValueRecorder
from graphcore.runtime.stepping.gate import Gate
from graphcore.shapes import Shape

_PAUSE: Final = 0.2
"""The most seconds to wait for the progress of a step."""
_STOPPED: Final = "The step was stopped"


class _Part:
    """This task's part of a step.

    Attributes:
        step: the run, once it has begun.
        posts: the values on their way to other tasks.
        unreachable: the device of a task that could not be reached.
        unsent: the error of a value that could not be sent for another reason.
    """

    def __init__(self, number: int, device: str, forward: Callable[[_Part, str, str, Any, bool], None]) -> None:
        self.number = number
        self.cancellation = CancellationManager()
        self.channel = StepChannel(device, lambda receiver, key, value, is_dead: forward(self, receiver, key, value, is_dead))
        self.step: Step | None = None
        self.call: InterruptibleCall | None = None
        self.gate: Gate | None = None
        self.program: TaskProgram | None = None
        self.posts: list[asyncio.Task[None]] = []
        self.unreachable = ""
        self.unsent: Failure | None = None

    def stop(self, status: GraphError) -> None:
        """End its waits, and stop it before its next node."""
        self.channel.start_abort(status)
        if self.gate is not None:
            self.gate.close()
        self.cancellation.start_cancel()


class Task:
    """A task of a session.

    Its methods are coroutines, which run in the event loop of the worker: nodes run in other threads, and do not hold them up.

    Args:
        device: the full name of its device.
    """

    def __init__(self, device: str) -> None:
        self._worker = get_worker()
        self._loop = event_loop(self._worker.loop)
        self._device = device
        self._graph = Graph()
        resources = ResourceManager()
        resources.channel = Rendezvous()  # of nodes of functions that send and receive by themselves
        self._kernels = Kernels(self._graph.library, resources)
        self._programs: dict[str, TaskProgram] = {}
        self._parts: dict[int, _Part] = {}
        self._oldest = 0
        self._peers: Mapping[str, tuple[str, str]] = {}
        self._preparing = asyncio.Lock()

    # ---- programs --------------------------------------------------------------------------------------------------

    async def join(self, peers: Mapping[str, tuple[str, str]]) -> None:
        """Take the addresses and keys of all tasks, by device."""
        self._peers = peers
        ignore_interrupts(self._worker)

    async def prepare(self, parcel: Parcel) -> Prepared:
        """Prepare a partition."""
        shipment: Shipment = parcel.content
        async with self._preparing:
            return await self._loop.run_in_executor(None, self._prepare, shipment)

    def _prepare(self, shipment: Shipment) -> Prepared:
        library = self._graph.library
        functions, before = library.num_functions, library.version
        try:
            self._programs[shipment.digest] = build_task_program(shipment, library, self._kernels.maker(shipment.mild))
            failure = None
        except Exception as error:  # noqa: BLE001 - the session gets it
            failure = Failure.of(error, self._device)
        resources = self._kernels.resources
        redeclared, resources.redeclared = resources.redeclared, False
        added = library.num_functions - functions
        return Prepared(failure, redeclared, replaced=library.version - before > added)

    async def forget(self, digests: Sequence[str]) -> None:
        """Release programs."""
        for digest in digests:
            self._programs.pop(digest, None)

    # ---- steps -----------------------------------------------------------------------------------------------------

    async def run(self, parcel: Parcel) -> Parcel:
        """Run a partition to its end, and until all values that it sends have arrived."""
        request: Request = parcel.content
        part = self._part(request.step)
        for number in [earlier for earlier, other in self._parts.items() if earlier < request.oldest and other.call is None]:
            del self._parts[number]
        self._oldest = max(self._oldest, request.oldest)
        ended: asyncio.Future[Outcome] = self._loop.create_future()

        def work() -> None:
            try:
                outcome = self._outcome(part, request)
            except BaseException as error:  # noqa: BLE001 - the session gets it
                outcome = Outcome(failure=Failure.of(error, self._device))
            self._loop.call_soon_threadsafe(_set, ended, outcome)

        part.call = InterruptibleCall(work)
        try:
            outcome = await ended
            await asyncio.gather(*part.posts, return_exceptions=True)  # those of a stopped step were cancelled
        finally:
            self._parts.pop(request.step, None)
        if part.unsent is not None and outcome.failure is None:
            outcome = Outcome(failure=part.unsent, records=outcome.records)
        if part.unreachable:
            failure = outcome.failure or Failure.of(AbortedError(_unreachable(part.unreachable)), self._device)
            outcome = Outcome(failure=failure, unreachable=part.unreachable, records=outcome.records)
        return Parcel(outcome)

    def _outcome(self, part: _Part, request: Request) -> Outcome:
        """Run a partition in this thread."""
        values = None if request.patterns is None else ValueRecorder(request.patterns)
        recorder = Recorder(values) if request.is_traced else None
        if request.is_stepped and values is not None:
            recorder = part.gate = Gate(values)
            if part.cancellation.is_cancelled():  # before it began
                part.gate.close()
        part.step = step = Step(recorder, part.cancellation)
        results: Mapping[int, Any] = {}
        failure = None
        part.program = program = self._programs[request.digest]
        try:
            with np.errstate(all="ignore"), under_way(step):
                results = program.run(step, {place: arrived(value) for place, value in request.values.items()}, part.channel)
        except AbandonedCallError:
            failure = Failure.of(CancelledError(_STOPPED), self._device)
        except BaseException as error:  # noqa: BLE001 - the session gets it
            explained = program.explain(error)
            failure = Failure.of(explained, self._device)
            part.stop(explained if isinstance(explained, GraphError) else CancelledError(_STOPPED))
        if part.gate is not None:
            part.gate.end()
        records = None if recorder is None else self._records(program, recorder)
        return Outcome(results, failure, records=records)

    async def follow(self, number: int, first_event: int, first_value: int) -> News:
        """The progress of a part that is stepped through, once it waits or some time has passed."""
        part = self._parts.get(number)
        if part is None or part.gate is None or part.gate.values is None or part.program is None:
            await asyncio.sleep(_PAUSE)
            return News()
        gate, values = part.gate, part.gate.values
        rests = await self._loop.run_in_executor(None, gate.rest, _PAUSE)
        events = part.program.located(gate.events_from(0))[first_event:]
        return News(events, values.state(first_value), gate.next if rests else None)

    async def allow(self, number: int) -> None:
        """Let one more node of a part run."""
        part = self._parts.get(number)
        if part is not None and part.gate is not None:
            part.gate.allow()

    @staticmethod
    def _records(program: TaskProgram, recorder: Recorder) -> Records:
        state = None if recorder.values is None else recorder.values.state()
        return Records(program.located(list(recorder.events)), recorder.arrays, state)

    async def stop(self, number: int, failure: Failure | None) -> Ended:
        """Stop the part of a step before its next node, or in a slow node without lasting effect."""
        part = self._part(number)
        status = CancelledError(_STOPPED) if failure is None else failure.error()
        await self._loop.run_in_executor(None, part.stop, status)
        for post in part.posts:
            post.cancel()
        if part.call is None or part.step is None:
            return Ended()
        has_ended = await self._loop.run_in_executor(None, stop_call, part.call, part.step)
        node = part.step.node
        return Ended() if has_ended or node is None else Ended(node.name, node.op)

    async def deliver(self, parcel: Parcel) -> None:
        """Take a value from another task."""
        number, key, value, is_dead = parcel.content
        if number >= self._oldest:
            with suppress(GraphError):  # the step has failed here
                self._part(number).channel.deliver(key, arrived(value), is_dead)

    def _part(self, number: int) -> _Part:
        """The part of a step; values for it may arrive before it begins."""
        part = self._parts.get(number)
        if part is None:
            part = self._parts[number] = _Part(number, self._device, self._forward)
        return part

    def _forward(self, part: _Part, receiver: str, key: str, value: Any, is_dead: bool) -> None:
        """Pass a value on to another task; called in the thread of the run."""

        def begin() -> None:
            part.posts.append(self._loop.create_task(self._post(part, receiver, Parcel((part.number, key, value, is_dead)))))

        self._loop.call_soon_threadsafe(begin)

    async def _post(self, part: _Part, receiver: str, parcel: Parcel) -> None:
        address, key = self._peers[receiver]
        try:
            await call_actor(self._worker.rpc, address, key, "deliver", parcel)
        except UNREACHABLE:
            part.unreachable = part.unreachable or receiver
            await self._loop.run_in_executor(None, part.stop, AbortedError(_unreachable(receiver)))
        except Exception as error:  # noqa: BLE001 - the session gets it
            part.unsent = part.unsent or Failure.of(error, self._device)
            await self._loop.run_in_executor(None, part.stop, part.unsent.error())

    # ---- signs of life ---------------------------------------------------------------------------------------------

    async def alive(self) -> dict[int, str]:
        """The node that each step has reached, by the number of the step."""
        nodes = {number: part.step.node for number, part in self._parts.items() if part.step is not None}
        return {number: node.name for number, node in nodes.items() if node is not None}

    async def now(self) -> int:
        """The time of the clock of events, in nanoseconds."""
        return time.perf_counter_ns()

    # ---- resources -------------------------------------------------------------------------------------------------

    async def held(self) -> list[Held]:
        """Its variables, queues and the like."""
        resources = self._kernels.resources
        variables = [Held(resource.owner, resource.op, resource.value is not None) for resource in list(resources.variables.values())]
        return variables + [Held(resource.owner, resource.op) for resource in resources.shared.all()]

    async def disown(self, owners: Sequence[str]) -> None:
        """Clear the owner of resources whose owner is gone."""
        gone = frozenset(owners)
        self._kernels.resources.disown(lambda resource: resource.owner in gone)

    async def reset(self, containers: Sequence[str]) -> None:
        """Clear the variables and end the queues in `containers`."""
        await self._loop.run_in_executor(None, self._kernels.resources.reset, frozenset(containers))

    async def read(self, declaration: Declaration) -> Parcel:
        """The value of a variable, None if it has none."""
        return Parcel(_variable(self._kernels.resources, declaration).value)

    async def value_of(self, container: str, name: str) -> Parcel:
        """The value of a variable, None if it has none here. Makes nothing."""
        return Parcel(self._kernels.resources.value_of(container, name))

    async def assign(self, declaration: Declaration, parcel: Parcel) -> Failure | None:
        """Set the value of a variable; None takes it away."""
        return await self._loop.run_in_executor(None, self._assign, declaration, arrived(parcel.content))

    def _assign(self, declaration: Declaration, value: Any) -> Failure | None:
        try:
            _variable(self._kernels.resources, declaration).replace(value)
        except GraphError as error:
            return Failure.of(error, self._device)
        return None

    async def close(self) -> None:
        """End all that runs, and release the variables."""
        for part in list(self._parts.values()):
            await self._loop.run_in_executor(None, part.stop, CancelledError("The session was closed"))
        await self._loop.run_in_executor(None, self._kernels.close)
        self._programs.clear()


def ignore_interrupts(dask_worker: Any) -> None:
    """Let a worker in a process of its own ignore SIGINT.

    Ctrl-C, and the interrupt of a Jupyter kernel, reach all processes that were begun there. The session stops the step; the worker goes on.
    """
    if dask_worker.nanny and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _variable(resources: ResourceManager, made: Declaration) -> Any:
    return resources.variable(made.container, made.name, as_dtype(made.dtype), Shape(made.shape), made.source, made.op, made.node)


def _set(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


def _unreachable(device: str) -> str:
    return f"The task of {device} could not be reached"
