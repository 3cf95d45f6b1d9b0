"""Frames and iterations of a run of the dataflow engine, and the tracer that records their events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

from graphcore.runtime.core.events import Around, Kind, Recorder
from graphcore.runtime.core.memory import LiveArrays, gives_to_variables
from graphcore.runtime.core.program import Step
from graphcore.runtime.dataflow.table import FrameTable, Item

Outputs = Sequence[Any] | None
"""The outputs of a node; None if it is dead."""


class Iteration:
    """One iteration of a frame: the values on their way to its items, and how much each still waits for.

    Attributes:
        dead: the indices of the items of which an input is dead; None if none is.
        dead_inputs: how many inputs of a Merge are dead, by its index.
        children: the frames that were opened in it, by name.
        following: the next iteration; None if this is the last that has begun.
    """

    __slots__ = ("busy", "children", "dead", "dead_inputs", "following", "frame", "inputs", "number", "open_frames", "pending")

    def __init__(self, frame: Frame, number: int) -> None:
        self.frame = frame
        self.number = number
        self.inputs: list[Any] = [None] * frame.table.slots
        self.pending = frame.table.pending.copy()
        self.dead: set[int] | None = None
        self.dead_inputs: dict[int, int] = {}
        self.busy = 0
        self.open_frames = 0
        self.children: dict[str, Frame] = {}
        self.following: Iteration | None = None

    def kill(self, index: int) -> None:
        """Note that an input of the item of that index is dead."""
        if self.dead is None:
            self.dead = set()
        self.dead.add(index)

    def is_dead(self, item: Item) -> bool:
        """True if an input of `item` is dead."""
        return self.dead is not None and item.index in self.dead


class Frame:
    """A loop under way.

    Attributes:
        parent: the iteration around it, None for the outermost frame.
        around: the loops around it, once asked for.
        oldest: the first iteration that is not done, None if all are.
        under_way: how many are not done.
        constants: what every iteration gets when it begins.
        postponed: what would begin an iteration too many, and the iteration that it comes from.
    """

    __slots__ = (
        "around",
        "constants",
        "dead_exits",
        "identity",
        "oldest",
        "parent",
        "postponed",
        "table",
        "under_way",
        "waiting_enters",
    )

    def __init__(self, table: FrameTable, parent: Iteration | None) -> None:
        self.table = table
        self.parent = parent
        self.under_way = 1
        self.waiting_enters = table.enters
        self.oldest: Iteration | None = Iteration(self, 0)
        self.constants: list[tuple[Item, Outputs]] = []
        self.postponed: list[tuple[Item, Outputs, Iteration]] = []
        self.dead_exits: list[Item] = []
        self.identity: int | None = None
        self.around: Around | None = None

    def number(self) -> int:
        """A number that tells this frame from others in rendezvous keys, the same in every process; 0 for the outermost."""
        if self.parent is None:
            return 0
        if self.identity is None:
            around = self.parent
            text = f"{around.frame.number()};{around.number};{self.table.name}"
            self.identity = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
        return self.identity


class StepTracer:
    """Records the events of a run, and counts the bytes of its live arrays."""

    __slots__ = ("_around", "_call", "_frame", "_iteration", "_live_arrays", "_recorder", "_step", "_within")

    def __init__(self, recorder: Recorder, step: Step, given: Sequence[Any] = ()) -> None:
        self._recorder = recorder
        self._step = step
        self._call = step.call
        self._frame = step.frame
        self._iteration = step.iteration
        self._around = step.around
        self._within = step.within()
        self._live_arrays = LiveArrays(step, given)

    @contextmanager
    def within(self, item: Item, at: Iteration) -> Iterator[None]:
        """Attribute the events in this block, those of a function's body too, to `item` in iteration `at`."""
        step = self._step
        step.begin(item.name)
        if at.frame.parent is not None:
            step.frame, step.iteration, step.around = at.frame.table.name, at.number, self._loops_around(at.frame)
        try:
            yield
        finally:
            step.frame, step.iteration, step.around = self._frame, self._iteration, self._around

    def _loops_around(self, frame: Frame) -> Around:
        """The loops around an inner frame."""
        if frame.around is None:
            outer = frame.parent
            assert outer is not None
            inside = outer.frame.parent is not None
            frame.around = (*self._loops_around(outer.frame), (outer.frame.table.name, outer.number)) if inside else self._within
        return frame.around

    def close(self) -> None:
        """End the live-array accounting of the run."""
        self._live_arrays.close()

    def record(self, kind: Kind, item: Item, at: Iteration, outputs: Outputs = None) -> None:
        """Record an event of `item` with the bytes of its outputs; feeds and fetches have no events."""
        if item.context is None:
            return
        outside = at.frame.parent is None
        size = 0
        for value in outputs or ():
            size += getattr(value, "nbytes", 0)
        if outputs and kind == "end":
            self._live_arrays.add(outputs)
        if kind == "end" and gives_to_variables(item.node):
            self._live_arrays.settle()
        self._recorder.record(
            kind,
            item.name,
            bytes=size,
            frame=self._frame if outside else at.frame.table.name,
            iteration=self._iteration if outside else at.number,
            call=self._call,
            around=self._around if outside else self._loops_around(at.frame),
        )
