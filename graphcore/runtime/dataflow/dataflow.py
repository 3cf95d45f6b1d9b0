"""A run of the dataflow engine, by tokens: a waiting node blocks no other."""

from __future__ import annotations

from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, Final

import numpy as np

from graphcore.dtypes import as_dtype, resource
from graphcore.errors import CancelledError, GraphError, InternalError, InvalidArgumentError
from graphcore.kernel_context import DEAD, RefVariable
from graphcore.runtime.core.cancellation import CancellationManager
from graphcore.runtime.core.kernel_checks import dead_fetch, explain_at
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.rendezvous import RendezvousArgs
from graphcore.runtime.dataflow.frames import Iteration, Outputs, StepTracer
from graphcore.runtime.dataflow.propagation import Propagation
from graphcore.runtime.dataflow.table import (
    AWAITING,
    FETCH,
    MERGING,
    SENDING,
    SWITCH,
    TRIGGER,
    Item,
    Table,
)

STOPPED: Final = "The operation was cancelled"
_MISSING: Final = object()
LATER: Final[tuple[Any, ...]] = ("later",)
"""In place of outputs: they will arrive."""


Arrival = tuple[Item, Iteration, Exception | None, Any, bool] | None
"""The end of a wait: its error or value; None when the run stops."""


class DataflowRun:
    """One run."""

    __slots__ = ("arrivals", "cancellation", "move", "own", "results", "step", "stopped", "table", "tracer", "waiting")

    def __init__(self, table: Table, step: Step, feeds: Sequence[Any] = (), device: str = "") -> None:
        self.table = table
        self.tracer = None if step.recorder is None else StepTracer(step.recorder, step, feeds, device)
        self.step = step
        self.cancellation = step.cancellation
        self.move = Propagation(table, self.tracer)
        self.results: list[Any] = [_MISSING] * len(table.fetches)
        self.arrivals: SimpleQueue[Arrival] = SimpleQueue()
        self.own: CancellationManager | None = None
        self.waiting: dict[tuple[Item, Iteration], None] = {}
        self.stopped = False

    def feed(self, number: int, value: Any) -> None:
        """Feed a value; nodes that need it run when the run continues."""
        self.move.activate(self.table.feeds[number], self.move.outermost, (value,))

    def start(self) -> None:
        """Start the nodes without inputs."""
        for item in self.table.roots:
            self.move.start(item, self.move.outermost)

    def resume(self) -> None:
        """Run all nodes that can run.

        Raises:
            GraphError: an error of a kernel, with its node.
        """
        try:
            if self.cancellation is not None:
                self.watch()
            self._run_ready()
        except BaseException:
            if self.own is not None:
                self.own.start_cancel()  # nothing waits for this run any more
            raise

    def result(self, number: int) -> Any:
        """The fetched values, once available.

        Raises:
            InvalidArgumentError: one is dead.
        """
        return self._fetched(number, self.results[number])

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Feed all values, run all nodes, and return the fetches."""
        table = self.table
        self.start()
        for number, value in enumerate(values):
            self.feed(number, value)
        try:
            self.resume()
        finally:
            if self.tracer is not None:
                self.tracer.close()
        for number, feed_number in table.fed_fetches:
            self.results[number] = values[feed_number]
        return [self._fetched(number, value) for number, value in enumerate(self.results)]

    def watch(self) -> CancellationManager:
        """Register the end of waiting receives on cancellation, and the stop of the run itself."""
        if self.own is None:
            self.own = CancellationManager(self.cancellation)
            if not self.own.register_callback(self.own.get_cancellation_token(), self._stop):
                raise CancelledError(STOPPED)
        return self.own

    def _stop(self) -> None:
        self.stopped = True
        self.announce(None)

    def announce(self, arrival: Arrival) -> None:
        """Put the end of a wait where the thread of this run takes it. Called from any thread."""
        self.arrivals.put(arrival)

    def _run_ready(self) -> None:
        try:
            while True:
                self.run_ready()
                if not self.waiting:
                    return
                self.arrive(self.arrivals.get())
        except BaseException as error:
            self._note_interruption(error, None)
            raise

    def run_ready(self) -> None:
        """Run nodes until none is ready; values may still be awaited.

        Raises:
            GraphError: an error of a kernel, with its node.
        """
        ready, complete, do = self.move.ready, self.move.complete, self._do
        item: Item | None = None
        try:
            while True:
                if not ready:
                    return
                item, at = ready.popleft()
                outputs = do(item, at)
                if outputs is LATER:
                    continue
                complete(item, at, outputs)
        except BaseException as error:
            self._note_interruption(error, item)
            raise

    def _note_interruption(self, error: BaseException, item: Item | None) -> None:
        """Record the place of Ctrl-C outside of kernels: the last item to run, or the one waited for."""
        if isinstance(error, Exception) or getattr(error, "__notes__", None):
            return
        if not self.move.ready and self.waiting:
            item = next(iter(self.waiting))[0]
        if item is not None:
            explain_at(item.node, error)

    def _do(self, item: Item, at: Iteration) -> Outputs:
        """The outputs of `item` in iteration `at`; LATER if they arrive later.

        Raises:
            CancelledError: the run is cancelled.
            GraphError: an error of its kernel, with its node.
        """
        self._check_may_run(item)
        try:
            return self._execute(item, at) if self.tracer is None else self._execute_recorded(item, at)
        except BaseException as error:  # noqa: BLE001 - any error of a kernel is reported with its node
            explained = explain_at(item.node, error, at.inputs[item.base : item.base + item.count])
            raise explained from (None if explained is error else error)

    def _check_may_run(self, item: Item) -> None:
        """Raise before `item` if the run is cancelled or late."""
        if self.cancellation is not None:
            self.step.node = item.node  # set before the check: a canceller reads it afterwards
            if self.step.is_late():
                self.stopped = True  # only ever set to True, also by a concurrent canceller
        if self.stopped:
            raise CancelledError.at(item.node, STOPPED)

    def _execute(self, item: Item, at: Iteration) -> Outputs:
        """Run the kernel of `item` in iteration `at` and release its inputs."""
        kind = item.kind
        if at.dead is not None and item.index in at.dead and kind != TRIGGER:
            self._die(item, at)
            return None
        if kind >= MERGING:
            return self._execute_special(item, at)
        inputs, base, count = at.inputs, item.base, item.count
        if item.passes:
            result = inputs[base]
            inputs[base] = None
            return (result,)
        for slot in item.variables:
            inputs[base + slot] = inputs[base + slot].read()
        if count == 1:
            result = item.kernel(inputs[base])
            inputs[base] = None
        elif count == 2:
            result = item.kernel(inputs[base], inputs[base + 1])
            inputs[base] = inputs[base + 1] = None
        else:
            result = item.kernel(*inputs[base : base + count])
            inputs[base : base + count] = [None] * count
        if item.dtype is not None and getattr(result, "dtype", None) is item.dtype and len(item.dtypes) == 1:
            return (result,)
        if kind == SWITCH:
            return result if type(result) is tuple else (result,)
        return checked_outputs(item, result)

    def _execute_special(self, item: Item, at: Iteration) -> tuple[Any, ...]:
        kind, inputs, base = item.kind, at.inputs, item.base
        if kind == MERGING:
            value, number = inputs[base], inputs[base + 1]
            inputs[base] = None
            input_type = item.node.input_types[0]
            if type(value) is RefVariable and not input_type.is_ref and input_type is not resource:
                value = value.read()
            return value, number
        if kind == FETCH:
            self.results[item.number] = inputs[base]
            return ()
        if kind == SENDING:
            value = inputs[base].read() if item.variables else inputs[base]
            inputs[base] = None
            self.send(item, at, value)
            return ()
        if kind == AWAITING:
            self._await(item, at)
        else:
            self._receive(item, at)
        return LATER

    def _execute_recorded(self, item: Item, at: Iteration) -> Outputs:
        tracer = self.tracer
        assert tracer is not None
        if at.is_dead(item) and item.kind != TRIGGER:
            tracer.record("dead", item, at)
            return self._execute(item, at)
        held = at.inputs[item.base : item.base + item.count]  # while the kernel runs, its inputs occupy memory too
        tracer.record("start", item, at)
        with tracer.within(item, at):
            outputs = self._execute(item, at)
        if outputs is not LATER:
            tracer.record("end", item, at, outputs)
        del held
        return outputs

    def _die(self, item: Item, at: Iteration) -> None:
        """Complete a dead item; sends and fetches pass the dead value on."""
        at.inputs[item.base : item.base + item.count] = [None] * item.count
        if item.kind == SENDING:
            self.send(item, at, None, is_dead=True)
        elif item.kind == FETCH:
            self.results[item.number] = DEAD

    def channel_of(self, item: Item) -> Any:
        """The rendezvous of a sending or receiving item.

        Raises:
            InvalidArgumentError: there is none.
        """
        resources = None if item.context is None else item.context.resources
        channel = None if resources is None else resources.channel
        if channel is None:
            raise InvalidArgumentError(f"'{item.name}' (op {item.node.op}) needs a rendezvous, and nothing here has one")
        return channel

    def send(self, item: Item, at: Iteration, value: Any, *, is_dead: bool = False) -> None:
        """Send the value of `item`, or a dead value."""
        self.channel_of(item).send(f"{item.key}{at.frame.number()}:{at.number}", None, value, is_dead)
        if self.tracer is not None:
            self.tracer.record("sent", item, at, None if is_dead else (value,))

    def receive_args(self, item: Item) -> RendezvousArgs | None:  # noqa: ARG002 - those of some items differ in other runs
        """The arguments of the receive of `item`: it ends when this run does."""
        return RendezvousArgs(cancellation_manager=self.watch())

    def _receive(self, item: Item, at: Iteration) -> None:
        arrive = self.announce

        def done(status: GraphError | None, _sent: object, _own: object, value: Any, is_dead: bool) -> None:
            arrive((item, at, status, value, is_dead))

        self.waiting[item, at] = None
        args = self.receive_args(item)
        self.channel_of(item).recv_async(f"{item.key}{at.frame.number()}:{at.number}", args, done)

    def _await(self, item: Item, at: Iteration) -> None:
        """Begin the wait of the kernel of `item`."""
        inputs, base = at.inputs[item.base : item.base + item.count], item.base
        at.inputs[base : base + item.count] = [None] * item.count
        for slot in item.variables:
            inputs[slot] = inputs[slot].read()
        pending = item.kernel(*inputs)
        own, arrive = self.watch(), self.announce
        token = own.get_cancellation_token()

        def done(outputs: Any, error: Exception | None) -> None:
            own.try_deregister_callback(token)
            arrive((item, at, error, outputs, False))

        self.waiting[item, at] = None
        if not own.register_callback(token, pending.cancel):
            raise CancelledError.at(item.node, STOPPED)
        pending.begin(done)

    def arrive(self, arrival: Arrival) -> None:
        """Take the end of a wait.

        Raises:
            GraphError: the wait failed, or the run is to stop.
        """
        if arrival is None:
            waits = next(iter(self.waiting), None)
            raise CancelledError(STOPPED) if waits is None else CancelledError.at(waits[0].node, STOPPED)
        item, at, status, value, is_dead = arrival
        del self.waiting[item, at]
        if status is not None:
            explained = explain_at(item.node, status)
            raise explained from (None if explained is status else status)
        if item.kind == AWAITING:
            outputs: Outputs = checked_outputs(item, value)
        else:
            outputs = None if is_dead else self.received(item, at, value)
        if self.tracer is not None:
            if item.kind != AWAITING:
                self.tracer.record("received", item, at, outputs)
            self.tracer.record("dead" if is_dead else "end", item, at, outputs)
        self.move.complete(item, at, outputs)

    def received(self, item: Item, at: Iteration, value: Any) -> tuple[Any, ...]:
        """The outputs of a receive.

        Raises:
            InternalError: the value has another type than declared.
        """
        wanted = item.dtype
        if wanted is None:
            return (value,)
        array = np.asarray(value)
        if array.dtype == wanted:
            return (array,)
        raise InternalError.at(
            item.node,
            f"'{item.name}' (op {item.node.op}) expected to receive {item.node.output_types[0].text}, got {array.dtype} "
            f"under {item.key}{at.frame.number()}:{at.number}",
        )

    def _fetched(self, number: int, value: Any) -> Any:
        if type(value) is RefVariable and self.table.fetches[number].dtype is not resource:
            return value.read()  # read at the end of the run
        if value is not DEAD and value is not _MISSING:
            return value
        raise dead_fetch(number, self.table.fetches[number])


def checked_outputs(item: Item, returned: Any) -> tuple[Any, ...]:
    """Check the outputs of a kernel, one value for each.

    Raises:
        InternalError: an output is missing, or of another type than declared.
    """
    node, dtypes = item.node, item.dtypes
    outputs = () if returned is None else returned if type(returned) is tuple else (returned,)
    for index, dtype in enumerate(dtypes):
        value = outputs[index] if index < len(outputs) else None
        if value is None:
            raise InternalError(f"Missing {index}-th output from {{{{node {node.name}}}}}")
        if dtype is None:
            continue
        own = getattr(value, "dtype", None)
        if own is None or own != dtype:
            raise InternalError(
                f"Output {index} of type {_type_name(value, own)} does not match declared output type {node.output_types[index].text} "
                f"for node {{{{node {node.name}}}}}"
            )
    if len(outputs) > len(dtypes):
        raise InternalError(f"{{{{node {node.name}}}}} gave {len(outputs)} outputs; its op {node.op} declares {len(dtypes)}")
    return outputs


def _type_name(value: Any, own: Any) -> str:
    if own is None:
        return f"{type(value).__name__} (no array)"
    try:
        return f"{as_dtype(own).text}_ref" if type(value) is RefVariable else as_dtype(own).text
    except (GraphError, TypeError):
        return str(own)
