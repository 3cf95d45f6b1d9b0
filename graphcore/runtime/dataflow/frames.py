"""Frames and iterations of a run of the dataflow engine, and the tracer that records their events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

from graphcore.runtime.core.events import Around, Kind
from graphcore.runtime.core.memory import LiveArrays, may_assign_inputs
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.recorder import Recorder
from graphcore.runtime.dataflow.table import FrameTable, Item

Outputs = Sequence[Any] | None
"""The outputs of a node; None if it is dead."""


class Iteration:
    """One iteration of a frame: the values for its items, and the counts of pending inputs.

    Attributes:
        dead: the indices of the items with a dead input; None if there are none.
        dead_inputs: the number of dead inputs of a Merge, by its index.
        children: the frames opened in it, by name.
        following: the next iteration; None for the last.
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
        """Record a dead input of the item with that index."""
        if self.dead is None:
            self.dead = set()
        self.dead.add(index)

    def is_dead(self, item: Item) -> bool:
        """True if an input of `item` is dead."""
        return self.dead is not None and item.index in self.dead


class Frame:
    """A running loop.

    Attributes:
        parent: the surrounding iteration, None for the root frame.
        around: the surrounding loops, computed on first use.
        oldest: the first unfinished iteration, None if all are finished.
        under_way: the number of unfinished iterations.
        constants: loop invariants, passed to every iteration.
        postponed: inputs of an iteration beyond the limit, with their source iterations.
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
        """A stable number that identifies this frame in rendezvous keys; 0 for the root frame."""
        if self.parent is None:
            return 0
        if self.identity is None:
            around = self.parent
            text = f"{around.frame.number()};{around.number};{self.table.name}"
            self.identity = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
        return self.identity


class StepTracer:
    """Records the events of a run on one device, and counts the bytes of its live arrays."""

    __slots__ = ("_around", "_call", "_device", "_frame", "_iteration", "_live_arrays", "_recorder", "_step", "_within")

    def __init__(self, recorder: Recorder, step: Step, feeds: Sequence[Any] = (), device: str = "") -> None:
        self._recorder = recorder
        self._device = device
        self._step = step
        self._call = step.call
        self._frame = step.frame
        self._iteration = step.iteration
        self._around = step.around
        self._within = step.within()
        self._live_arrays = LiveArrays(step, recorder, feeds, device)

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
            self._live_arrays.add(outputs, item.name)
        if kind == "end" and may_assign_inputs(item.node):
            self._live_arrays.settle()
        frame = self._frame if outside else at.frame.table.name
        iteration = self._iteration if outside else at.number
        around = self._around if outside else self._loops_around(at.frame)
        self._recorder.record(
            kind,
            item.name,
            bytes=size,
            device=self._device,
            frame=frame,
            iteration=iteration,
            call=self._call,
            around=around,
        )
        if outputs and kind == "end" and self._recorder.values is not None:
            self._recorder.values.record(item.name, outputs, (frame, iteration, around, self._call))
