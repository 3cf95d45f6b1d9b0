"""Instrumentation of plans: callbacks around each node of a watched run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphcore.errors import CancelledError
from graphcore.plumbing import SEND
from graphcore.runtime.core.events import Around
from graphcore.runtime.core.memory import LiveArrays, may_assign_inputs
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.recorder import Recorder
from graphcore.runtime.core.value_records import FixedValue
from graphcore.runtime.plan.schedule import Schedule, Skipped, Value
from graphcore.support.thread_pool import Task, kernel_pool


class Note(NamedTuple):
    """The record of a node whose kernel is not called.

    Attributes:
        name: the node.
        how: the reason (see `events.SKIPPED`); "" if it is dead.
        frames: the loops that it would have run in, outermost first; () for the current one.
        values: for each output the tensor with its value, or its constant value; None if neither is known.
    """

    name: str
    how: str = ""
    frames: tuple[str, ...] = ()
    values: tuple[tuple[str, int] | FixedValue | None, ...] = ()

    @classmethod
    def of(cls, skipped: Skipped) -> Note:
        """The record of a skipped node."""
        return cls(skipped.node.name, skipped.how, values=tuple([_source(value) for value in skipped.stands_for]))


class WatchedPlan:
    """The instrumented code of a plan, with the properties of its operations.

    Attributes:
        run: the code.
        names, giving, sends: the names of the operations' nodes; the numbers of those that may assign inputs, and of those that send.
        notes: the records of nodes without kernels.
        are_plain: True iff all of these have a reason, and none is in a loop that does not run.
    """

    __slots__ = ("are_plain", "giving", "names", "notes", "run", "schedule", "sends")

    def __init__(self, schedule: Schedule, run: Callable[..., list[Any]], notes: Sequence[Note]) -> None:
        self.schedule = schedule
        self.run = run
        self.notes = notes
        self.are_plain = all(note.how and not note.frames for note in notes)
        self.names = [operation.node.name for operation in schedule.operations]
        self.giving = frozenset([number for number, operation in enumerate(schedule.operations) if may_assign_inputs(operation.node)])
        self.sends = frozenset([number for number, operation in enumerate(schedule.operations) if operation.node.op in SEND])


class Watcher:
    """Records the nodes of one run, and stops it when it is cancelled.

    Attributes:
        before, after: called with a node's number, the latter also with its outputs (a sending node's input).
    """

    __slots__ = ("_call", "_live_arrays", "_names", "_plan", "_record", "_step", "_values", "after", "before")

    def __init__(self, plan: WatchedPlan, step: Step, feeds: Sequence[Any] = ()) -> None:
        self._plan = plan
        self._names = plan.names
        self._step = step
        self._call = step.call
        recorder = Recorder() if step.recorder is None else step.recorder
        self._record = recorder.record
        self._values = recorder.values
        self._live_arrays = LiveArrays(step, recorder, feeds)
        self.before: Callable[[int], None] = self._check
        self.after: Callable[..., None] = _nothing
        if step.recorder is not None:
            self.before, self.after = self._start, self._end

    def observers(self) -> list[Callable[..., Any]]:
        """The first arguments of the watched code."""
        return [self.before, self.after, self.begin, self.note]

    def note(self, first: int, last: int) -> None:
        """Emit the notes from `first` to `last`."""
        step, record, call = self._step, self._record, self._call
        recorder = step.recorder
        if recorder is None:
            return
        notes = self._plan.notes[first : last + 1]
        if self._plan.are_plain:
            self._skip(recorder, notes, step.frame, step.iteration, step.around)
            return
        for note in notes:
            frame, iteration, around = step.frame, step.iteration, step.around
            if note.frames:
                frame, iteration, around = note.frames[-1], 0, (*step.within(), *[(loop, 0) for loop in note.frames[:-1]])
            if note.how:
                self._skip(recorder, [note], frame, iteration, around)
            else:
                record("scheduled", note.name, frame=frame, iteration=iteration, call=call, around=around)
                record("dead", note.name, frame=frame, iteration=iteration, call=call, around=around)

    def _skip(self, recorder: Recorder, notes: Sequence[Note], frame: str, iteration: int, around: Around) -> None:
        """Record nodes that need no kernel, in one loop."""
        recorder.record_skipped(notes, frame, iteration, self._call, around)
        if recorder.values is not None:
            recorder.values.record_same(notes, (frame, iteration, around, self._call))

    def begin(self, number: int, kernel: Callable[..., Any], *inputs: Any) -> Task:
        """Call a kernel in another thread, which records its times."""
        if self._step.recorder is None:
            self._check(number)
            return kernel_pool.submit(kernel, *inputs)
        if self._step.cancellation is not None:
            self._check(number)
        step = self._step
        self._record("scheduled", self._names[number], frame=step.frame, iteration=step.iteration, call=self._call, around=step.around)
        return kernel_pool.submit(self._apart, number, kernel, (step.frame, step.iteration, step.around), *inputs)

    def _apart(self, number: int, kernel: Callable[..., Any], place: tuple[str, int, Around], *inputs: Any) -> Any:
        name, record, (frame, iteration, around) = self._names[number], self._record, place
        record("start", name, frame=frame, iteration=iteration, call=self._call, around=around)
        result = kernel(*inputs)
        values = result if type(result) is tuple else (result,)
        record("end", name, bytes=_size(values), frame=frame, iteration=iteration, call=self._call, around=around)
        if self._values is not None:
            self._values.record(name, values, (frame, iteration, around, self._call))
        self._live_arrays.add(values, name)
        return result

    def _check(self, number: int) -> None:
        step, node = self._step, self._plan.schedule.operations[number].node
        cancellation = step.cancellation
        step.node = node  # set before the check: a canceller reads it afterwards
        if cancellation is not None and (cancellation.is_cancelled() or cancellation.is_cancelling() or step.is_late()):
            raise CancelledError.at(node, f"The run was stopped before '{node.name}' (op {node.op})")

    def _start(self, number: int) -> None:
        if self._step.cancellation is not None:
            self._check(number)
        step, name, record = self._step, self._names[number], self._record
        step.begin(name)
        record("scheduled", name, frame=step.frame, iteration=step.iteration, call=self._call, around=step.around)
        record("start", name, frame=step.frame, iteration=step.iteration, call=self._call, around=step.around)

    def _end(self, number: int, *values: Any) -> None:
        step, name, call = self._step, self._names[number], self._call
        frame, iteration, around = step.frame, step.iteration, step.around
        size = _size(values)
        if number in self._plan.sends:
            self._record("end", name, frame=frame, iteration=iteration, call=call, around=around)
            self._record("sent", name, bytes=size, frame=frame, iteration=iteration, call=call, around=around)
            return
        self._record("end", name, bytes=size, frame=frame, iteration=iteration, call=call, around=around)
        if self._values is not None:
            self._values.record(name, values, (frame, iteration, around, call))
        self._live_arrays.add(values, name)
        if number in self._plan.giving:
            self._live_arrays.settle()

    def close(self) -> None:
        """End the run: its results belong to the caller."""
        self._live_arrays.close()


def _source(value: Value | None) -> tuple[str, int] | FixedValue | None:
    """The tensor that has a value, or the value if it is constant."""
    if value is None:
        return None
    return (value.tensor.node.name, value.tensor.index) if value.constant is None else FixedValue(value.constant)


def _size(values: Sequence[Any]) -> int:
    size = 0
    for value in values:
        size += getattr(value, "nbytes", 0)
    return size


def _nothing(_number: int, *_outputs: Any) -> None:
    return None
