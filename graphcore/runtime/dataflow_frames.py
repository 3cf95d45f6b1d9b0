"""Frames and iterations of a run of the dataflow engine, and how values move between them.

The rules are the reference's: a token is an item and an iteration; an item runs when all it waits for is there; it is dead if any of
its inputs is, other than a Merge, which takes the first that is alive. An Enter opens a frame, in which every NextIteration opens the
next iteration; a dead NextIteration ends, and a dead Exit leaves the frame when the frame is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from graphcore.kernel_context import DEAD
from graphcore.runtime.dataflow_table import ENTERING, ENTERING_CONSTANT, EXITING, NEXT, FrameTable, Item, Table
from graphcore.runtime.events import Kind, Recorder
from graphcore.runtime.holdings import Holdings
from graphcore.runtime.program import Step

Outputs = Sequence[Any] | None
"""What a node gave; None if it is dead."""
INDICES: Final = tuple(np.int32(i) for i in range(64))


class Iteration:
    """One turn of a frame: the values on their way to its items, and what each still waits for."""

    __slots__ = ("busy", "children", "dead", "dead_inputs", "frame", "inputs", "number", "open_frames", "pending")

    def __init__(self, frame: Frame, number: int) -> None:
        table = frame.table
        self.frame = frame
        self.number = number
        self.inputs: list[Any] = [None] * table.slots
        self.pending = table.pending.copy()
        self.dead = bytearray(len(table.pending))
        self.dead_inputs: dict[int, int] = {}
        self.busy = 0
        self.open_frames = 0
        self.children: dict[str, Frame] = {}


class Frame:
    """A loop under way: `parent` is the iteration around it, None for the outermost frame."""

    __slots__ = ("constants", "dead_exits", "identity", "iterations", "last", "parent", "postponed", "table", "under_way", "waiting_enters")

    def __init__(self, table: FrameTable, parent: Iteration | None) -> None:
        self.table = table
        self.parent = parent
        self.last = 0
        self.under_way = 1
        self.waiting_enters = table.enters
        self.iterations: dict[int, Iteration] = {0: Iteration(self, 0)}
        self.constants: list[tuple[Item, Outputs]] = []
        self.postponed: list[tuple[Item, Outputs]] = []
        self.dead_exits: list[Item] = []
        self.identity: int | None = None

    def number(self) -> int:
        """A number that tells this frame from others in rendezvous keys, the same in every process; 0 for the outermost."""
        if self.parent is None:
            return 0
        if self.identity is None:
            around = self.parent
            text = f"{around.frame.number()};{around.number};{self.table.name}"
            self.identity = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
        return self.identity


class Teller:
    """Tells a recorder what happens to items."""

    __slots__ = ("_call", "_frame", "_holdings", "_iteration", "_recorder", "_step")

    def __init__(self, recorder: Recorder, step: Step, given: Sequence[Any] = ()) -> None:
        self._recorder = recorder
        self._step = step
        self._call = step.call
        self._frame = step.frame
        self._iteration = step.iteration
        self._holdings = Holdings(step, given)

    @contextmanager
    def within(self, item: Item, at: Iteration) -> Iterator[None]:
        """What runs in here, the body of a function it may be, is `item` in iteration `at`."""
        step = self._step
        step.begin(item.name)
        if at.frame.parent is not None:
            step.frame, step.iteration = at.frame.table.name, at.number
        try:
            yield
        finally:
            step.frame, step.iteration = self._frame, self._iteration

    def close(self) -> None:
        """The run is over."""
        self._holdings.close()

    def tell(self, kind: Kind, item: Item, at: Iteration, outputs: Outputs = None) -> None:
        """Record that `kind` happens to `item` now; what it gave or moved counts in bytes. Fetches are no nodes, and what is fed does not run."""
        if item.context is None:
            return
        outside = at.frame.parent is None
        size = 0
        for value in outputs or ():
            size += getattr(value, "nbytes", 0)
        if outputs and kind == "end":
            self._holdings.add(outputs)
        self._recorder.record(
            kind,
            item.name,
            bytes=size,
            frame=self._frame if outside else at.frame.table.name,
            iteration=self._iteration if outside else at.number,
            call=self._call,
        )


class Propagation:
    """Moves what nodes gave to who waits for it.

    Attributes:
        ready: the tokens whose items may run.
        outermost: the iteration in which the run begins.
    """

    __slots__ = ("outermost", "ready", "teller")

    def __init__(self, table: Table, teller: Teller | None) -> None:
        self.ready: deque[tuple[Item, Iteration]] = deque()
        self.teller = teller
        self.outermost = Frame(table.outermost, None).iterations[0]

    def complete(self, item: Item, at: Iteration, outputs: Outputs) -> None:
        """`item` has run in iteration `at` and gave `outputs`."""
        kind = item.kind
        if not item.moves:
            self.activate(item, at, outputs)
        elif kind == NEXT:
            self._next(item, at, outputs)
        elif kind == EXITING:
            self._leave(item, at, outputs)
        else:
            self._enter(item, at, outputs)
        at.busy -= 1
        if not at.busy:
            self.clean(at.frame, at.number)

    def activate(self, item: Item, target: Iteration, outputs: Outputs) -> None:
        """Hand what `item` gave to its consumers in iteration `target`."""
        pending, inputs, ready = target.pending, target.inputs, self.ready
        before = len(ready)
        for port, consumer, slot in item.data_edges:
            index = consumer.index
            if outputs is None or outputs[port] is DEAD:
                target.dead[index] = 1
            else:
                inputs[slot] = outputs[port]
            left = pending[index] - 1
            pending[index] = left
            if not left:
                ready.append((consumer, target))
        for consumer in item.control_edges:
            index = consumer.index
            if outputs is None:
                target.dead[index] = 1
            left = pending[index] - 1
            pending[index] = left
            if not left:
                ready.append((consumer, target))
        if item.merge_edges:
            self._feed_merges(item, target, outputs)
        if item.merge_controls:
            self._release_merges(item, target)
        target.busy += len(ready) - before
        if self.teller is not None:
            self._tell_scheduled(before)

    def start(self, item: Item, at: Iteration) -> None:
        """Let an item that waits for nothing run."""
        self.ready.append((item, at))
        at.busy += 1
        if self.teller is not None:
            self._tell_scheduled(len(self.ready) - 1)

    def _tell_scheduled(self, before: int) -> None:
        assert self.teller is not None
        for i in range(before, len(self.ready)):
            self.teller.tell("scheduled", *self.ready[i])

    def _feed_merges(self, item: Item, target: Iteration, outputs: Outputs) -> None:
        pending, inputs, ready = target.pending, target.inputs, self.ready
        for port, merge, number in item.merge_edges:
            index = merge.index
            left = pending[index]
            if outputs is None or outputs[port] is DEAD:
                dead = target.dead_inputs[index] = target.dead_inputs.get(index, 0) + 1
                # A loop whose Enter is dead does not turn: no NextIteration will come.
                if left == 1 and (dead == len(merge.node.inputs) or item.kind in (ENTERING, ENTERING_CONSTANT)):
                    target.dead[index] = 1
                    ready.append((merge, target))
            elif left & 1:
                # The low bit stands for "no live input yet": only the first is taken.
                inputs[merge.base] = outputs[port]
                inputs[merge.base + 1] = INDICES[number] if number < len(INDICES) else np.int32(number)
                pending[index] = left - 1
                if left == 1:
                    ready.append((merge, target))

    def _release_merges(self, item: Item, target: Iteration) -> None:
        for merge in item.merge_controls:
            index = merge.index
            left = target.pending[index] - 2
            target.pending[index] = left
            dead = target.dead_inputs.get(index) == len(merge.node.inputs)
            if not left or (left == 1 and dead):
                target.dead[index] = left
                self.ready.append((merge, target))

    def _enter(self, item: Item, at: Iteration, outputs: Outputs) -> None:
        frame = at.children.get(item.child.name)
        if frame is None:
            frame = at.children[item.child.name] = Frame(item.child, at)
            at.open_frames += 1
        frame.waiting_enters -= 1
        if item.kind == ENTERING_CONSTANT:
            frame.constants.append((item, outputs))
            for iteration in list(frame.iterations.values()):
                self.activate(item, iteration, outputs)
        else:
            self.activate(item, frame.iterations[0], outputs)
        # All of the frame may be done already, if nothing in it waits for this value.
        self.clean(frame, 0)

    def _next(self, item: Item, at: Iteration, outputs: Outputs) -> None:
        if outputs is None:
            return
        frame = at.frame
        if at.number == frame.last:
            if frame.under_way == frame.table.parallel:
                frame.postponed.append((item, outputs))
                return
            self._begin_iteration(frame)
        self.activate(item, frame.iterations[at.number + 1], outputs)

    def _begin_iteration(self, frame: Frame) -> None:
        frame.last += 1
        frame.under_way += 1
        fresh = frame.iterations[frame.last] = Iteration(frame, frame.last)
        frame.dead_exits.clear()
        postponed, frame.postponed = frame.postponed, []
        for item, outputs in postponed:
            self.activate(item, fresh, outputs)
        for item, outputs in frame.constants:
            self.activate(item, fresh, outputs)

    def _leave(self, item: Item, at: Iteration, outputs: Outputs) -> None:
        frame = at.frame
        assert frame.parent is not None
        if outputs is not None:
            self.activate(item, frame.parent, outputs)
        elif at.number == frame.last:
            frame.dead_exits.append(item)

    def clean(self, frame: Frame, number: int) -> None:
        """Drop what is done from iteration `number` on; a frame that is done may be the last that the one around it waits for."""
        while self._drop_iterations(frame, number):
            around = frame.parent
            if around is None:
                return
            del around.children[frame.table.name]
            around.open_frames -= 1
            for item in frame.dead_exits:
                self.activate(item, around, None)
            frame, number = around.frame, around.number

    def _drop_iterations(self, frame: Frame, number: int) -> bool:
        """Drop iterations that are done; postponed ones may begin in their place. True iff all of the frame is done."""
        iterations = frame.iterations
        while number <= frame.last:
            iteration = iterations.get(number)
            if iteration is None or iteration.busy or iteration.open_frames:
                break
            if number - 1 in iterations if number else frame.waiting_enters:
                break
            del iterations[number]
            frame.under_way -= 1
            number += 1
            if frame.postponed:
                self._begin_iteration(frame)
        return not frame.waiting_enters and not frame.under_way
