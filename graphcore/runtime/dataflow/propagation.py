"""Propagation of values between nodes, frames and iterations in a run of the dataflow engine.

The rules are TensorFlow's: a token is an item and an iteration; an item runs when all its inputs have arrived; it is dead if any of them
is, except for a Merge, which takes the first live one. An Enter opens a frame, in which every NextIteration opens the next iteration; a
dead NextIteration ends, and a dead Exit leaves the frame when the frame is done.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from graphcore.kernel_context import DEAD
from graphcore.runtime.dataflow.frames import Frame, Iteration, Outputs, StepTracer
from graphcore.runtime.dataflow.table import ENTERING, ENTERING_CONSTANT, EXITING, NEXT, Item, Table


class Propagation:
    """Moves the outputs of nodes to their consumers.

    Attributes:
        ready: the tokens of runnable items.
        outermost: the iteration in which the run begins.
    """

    __slots__ = ("outermost", "ready", "tracer")

    def __init__(self, table: Table, tracer: StepTracer | None) -> None:
        self.ready: deque[tuple[Item, Iteration]] = deque()
        self.tracer = tracer
        outermost = Frame(table.outermost, None).oldest
        assert outermost is not None
        self.outermost = outermost

    def complete(self, item: Item, at: Iteration, outputs: Outputs) -> None:
        """Pass on the `outputs` of `item` in iteration `at`, and end its token."""
        kind = item.kind
        if kind < ENTERING or kind > NEXT:
            self.activate(item, at, outputs)
        elif kind == NEXT:
            self._next(item, at, outputs)
        elif kind == EXITING:
            self._leave(item, at, outputs)
        else:
            self._enter(item, at, outputs)
        at.busy -= 1
        if not at.busy:
            self.clean(at)

    def start(self, item: Item, at: Iteration) -> None:
        """Make a token of an item without pending inputs."""
        self.ready.append((item, at))
        at.busy += 1
        if self.tracer is not None:
            self.tracer.record("scheduled", item, at)

    def activate(self, item: Item, target: Iteration, outputs: Outputs) -> None:
        """Pass the outputs of `item` to its consumers in iteration `target`."""
        pending, inputs, ready, begun = target.pending, target.inputs, self.ready, 0
        for port, consumer, slot, index in item.data_edges:
            if outputs is None or (value := outputs[port]) is DEAD:
                target.kill(index)
            else:
                inputs[slot] = value
            left = pending[index] = pending[index] - 1
            if not left:
                ready.append((consumer, target))
                begun += 1
        for consumer in item.control_edges:
            index = consumer.index
            if outputs is None:
                target.kill(index)
            left = pending[index] = pending[index] - 1
            if not left:
                ready.append((consumer, target))
                begun += 1
        if begun:
            target.busy += begun
            if self.tracer is not None:
                for i in range(len(ready) - begun, len(ready)):
                    self.tracer.record("scheduled", *ready[i])
        for port, merge, number in item.merge_edges:
            self._feed_merge(item, merge, number, target, DEAD if outputs is None else outputs[port])
        for merge in item.merge_controls:
            self._release_merge(merge, target)

    def _feed_merge(self, item: Item, merge: Item, number: int, target: Iteration, value: Any) -> None:
        """Pass an output of `item` to a Merge, as its input `number`."""
        pending, index = target.pending, merge.index
        left = pending[index]
        if value is DEAD:
            dead = target.dead_inputs[index] = target.dead_inputs.get(index, 0) + 1
            # No NextIteration follows a dead Enter: the loop does not run.
            if left == 1 and (dead == len(merge.node.inputs) or item.kind in (ENTERING, ENTERING_CONSTANT)):
                target.kill(index)
                self.start(merge, target)
        elif left & 1:
            # The low bit means "no live input yet": only the first is taken.
            pending[index] = left - 1
            target.inputs[merge.base] = value
            target.inputs[merge.base + 1] = np.int32(number)
            if left == 1:
                self.start(merge, target)

    def _release_merge(self, merge: Item, target: Iteration) -> None:
        """Count one control input of a Merge as done."""
        index = merge.index
        left = target.pending[index] = target.pending[index] - 2
        dead = target.dead_inputs.get(index) == len(merge.node.inputs)
        if not left or (left == 1 and dead):
            if left:
                target.kill(index)
            self.start(merge, target)

    def _enter(self, item: Item, at: Iteration, outputs: Outputs) -> None:
        """Pass the input of an Enter into its frame, which it may open."""
        frame = at.children.get(item.child.name)
        if frame is None:
            frame = at.children[item.child.name] = Frame(item.child, at)
            at.open_frames += 1
        frame.waiting_enters -= 1
        first = frame.oldest
        assert first is not None
        first.busy += 1  # keeps the frame open until its first value has been passed on
        if item.kind == ENTERING_CONSTANT:
            iteration: Iteration | None = first
            while iteration is not None:
                self.activate(item, iteration, outputs)
                iteration = iteration.following
            frame.constants.append((item, outputs))
        else:
            self.activate(item, first, outputs)
        first.busy -= 1
        self.clean(first)  # nothing in it may wait for this value

    def _next(self, item: Item, at: Iteration, outputs: Outputs) -> None:
        """Pass the input of a NextIteration to the next iteration, or postpone it at the limit."""
        if outputs is None:
            return
        frame = at.frame
        if at.following is not None:
            self.activate(item, at.following, outputs)
        elif frame.under_way < frame.table.parallel:
            self.activate(item, self._begin(at), outputs)
        else:
            frame.postponed.append((item, outputs, at))

    def _begin(self, last: Iteration) -> Iteration:
        """Begin the iteration after the last."""
        frame = last.frame
        fresh = last.following = Iteration(frame, last.number + 1)
        if frame.oldest is None:
            frame.oldest = fresh
        frame.under_way += 1
        frame.dead_exits.clear()
        postponed, frame.postponed = frame.postponed, []
        for item, outputs, _ in postponed:
            self.activate(item, fresh, outputs)
        for item, outputs in frame.constants:
            self.activate(item, fresh, outputs)
        return fresh

    def _leave(self, item: Item, at: Iteration, outputs: Outputs) -> None:
        """Pass the input of an Exit to the surrounding iteration."""
        frame = at.frame
        assert frame.parent is not None
        if outputs is not None:
            self.activate(item, frame.parent, outputs)
        elif at.following is None:
            frame.dead_exits.append(item)

    def clean(self, at: Iteration | None) -> None:
        """Remove finished iterations from `at` on, and frames finished by that."""
        while at is not None:
            frame = at.frame
            while at is not None and at is frame.oldest and not (at.busy or at.open_frames or (not at.number and frame.waiting_enters)):
                frame.oldest = at.following
                frame.under_way -= 1
                if frame.postponed:  # the next iteration may begin now
                    self._begin(frame.postponed[0][2])
                at = frame.oldest
            around = frame.parent
            if frame.waiting_enters or frame.under_way or around is None:
                return
            del around.children[frame.table.name]
            around.open_frames -= 1
            for item in frame.dead_exits:
                self.activate(item, around, None)
            at = around
