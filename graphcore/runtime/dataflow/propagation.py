"""How values move through a run of the dataflow engine, within frames and between them.

The rules are the reference's: a token is an item and an iteration; an item runs when all it waits for is there; it is dead if any of
its inputs is, other than a Merge, which takes the first that is alive. An Enter opens a frame, in which every NextIteration opens the
next iteration; a dead NextIteration ends, and a dead Exit leaves the frame when the frame is done.

Where nobody looks at single nodes, what only hands a value on does so at once, without a token: a Merge, a Switch, and an Enter, Exit
or NextIteration that waits for nothing else.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import numpy as np

from graphcore.kernel_context import DEAD, RefVariable
from graphcore.runtime.dataflow.frames import Frame, Iteration, Outputs, Teller
from graphcore.runtime.dataflow.table import ENTERING, ENTERING_CONSTANT, EXITING, NEXT, Item, Table

_DEEPEST: Final = 20
"""So many items hand on a value within each other at most, for the sake of Python's stack; what comes then waits for its turn."""
_INDICES: Final = tuple(np.int32(i) for i in range(64))


class Propagation:
    """Moves what nodes gave to who waits for it.

    Attributes:
        ready: the tokens whose items may run.
        outermost: the iteration in which the run begins.
    """

    __slots__ = ("_deepest", "outermost", "ready", "teller")

    def __init__(self, table: Table, teller: Teller | None) -> None:
        self.ready: deque[tuple[Item, Iteration]] = deque()
        self.teller = teller
        outermost = Frame(table.outermost, None).oldest
        assert outermost is not None
        self.outermost = outermost
        self._deepest = _DEEPEST if teller is None else -1

    def complete(self, item: Item, at: Iteration, outputs: Outputs) -> None:
        """`item` has run in iteration `at` and gave `outputs`."""
        self.hand(item, at, outputs)
        at.busy -= 1
        if not at.busy:
            self.clean(at)

    def hand(self, item: Item, at: Iteration, outputs: Outputs) -> None:
        """Hand what `item` gave to who waits for it."""
        if item.moves:
            self._move(item, at, outputs, 0)
        else:
            self.activate(item, at, outputs)

    def start(self, item: Item, at: Iteration) -> None:
        """Let an item run for which there is nothing to wait."""
        self.ready.append((item, at))
        at.busy += 1
        if self.teller is not None:
            self.teller.tell("scheduled", item, at)

    def activate(self, item: Item, target: Iteration, outputs: Outputs, depth: int = 0) -> None:
        """Hand what `item` gave to its consumers in iteration `target`; so many items are handing on already."""
        pending, inputs, ready, branching, begun = target.pending, target.inputs, self.ready, None, 0
        given = item.all_dead if outputs is None else outputs
        for port, consumer, slot, index in item.data_edges:
            value = given[port]
            if value is DEAD:
                target.kill(index)
            else:
                inputs[slot] = value
            left = pending[index] = pending[index] - 1
            if left:
                continue
            if not consumer.branches:
                ready.append((consumer, target))
                begun += 1
            elif branching is None:
                branching = [consumer]
            else:
                branching.append(consumer)
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
            if self.teller is not None:
                self._tell_scheduled(begun)
        if branching is not None:
            for consumer in branching:
                self.branch(consumer, target, depth)
        if not item.hands_on:
            return
        for port, mover in item.movers:
            value = given[port]
            if value is DEAD and mover.kind == EXITING:
                if target.following is None:
                    target.frame.dead_exits.append(mover)
            elif depth > self._deepest:
                self._move_later(mover, target, value)
            elif mover.kind != NEXT:
                self._move(mover, target, None if value is DEAD else (value,), depth + 1)
            elif value is not DEAD:
                self.next(mover, target, (value,), depth + 1)
        for port, merge, number in item.merge_edges:
            self.feed_merge(item, merge, number, target, given[port], depth)
        for merge in item.merge_controls:
            self.release_merge(merge, target)

    def _tell_scheduled(self, count: int) -> None:
        assert self.teller is not None
        for i in range(len(self.ready) - count, len(self.ready)):
            self.teller.tell("scheduled", *self.ready[i])

    def branch(self, item: Item, at: Iteration, depth: int = 0) -> None:
        """Hand on what a Switch takes, whose inputs are there."""
        inputs, base = at.inputs, item.base
        data, pred = inputs[base], inputs[base + 1]
        if depth > self._deepest or at.is_dead(item) or pred.shape:
            self.start(item, at)
            return
        inputs[base] = inputs[base + 1] = None
        self.activate(item, at, (DEAD, data) if pred else (data, DEAD), depth + 1)

    def _move_later(self, mover: Item, at: Iteration, value: Any) -> None:
        """Have a token move a value that comes from too deep."""
        if value is DEAD:
            at.kill(mover.index)
        else:
            at.inputs[mover.base] = value
        self.start(mover, at)

    def feed_merge(self, item: Item, merge: Item, number: int, target: Iteration, value: Any, depth: int = 0) -> None:
        """Hand what `item` gave to a Merge, as its input `number`."""
        pending, index = target.pending, merge.index
        left = pending[index]
        if value is DEAD:
            if target.dead_inputs is None:
                target.dead_inputs = {}
            dead = target.dead_inputs[index] = target.dead_inputs.get(index, 0) + 1
            # A loop whose Enter is dead does not turn: no NextIteration will come.
            if left == 1 and (dead == len(merge.node.inputs) or item.kind in (ENTERING, ENTERING_CONSTANT)):
                target.kill(index)
                self.start(merge, target)
        elif left & 1:
            # The low bit stands for "no live input yet": only the first is taken.
            pending[index] = left - 1
            place = _INDICES[number] if number < len(_INDICES) else np.int32(number)
            if left == 1 and depth <= self._deepest:
                if type(value) is RefVariable and not merge.node.input_types[0].is_ref:
                    value = value.read()
                self.activate(merge, target, (value, place), depth + 1)
                return
            target.inputs[merge.base] = value
            target.inputs[merge.base + 1] = place
            if left == 1:
                self.start(merge, target)

    def release_merge(self, merge: Item, target: Iteration) -> None:
        """What a Merge waits for by a control edge has run, or is dead."""
        index = merge.index
        left = target.pending[index] = target.pending[index] - 2
        dead = target.dead_inputs is not None and target.dead_inputs.get(index) == len(merge.node.inputs)
        if not left or (left == 1 and dead):
            if left:
                target.kill(index)
            self.start(merge, target)

    def _move(self, item: Item, at: Iteration, outputs: Outputs, depth: int) -> None:
        """Hand a value on into another frame or iteration."""
        if item.kind == NEXT:
            self.next(item, at, outputs, depth)
        elif item.kind == EXITING:
            self.leave(item, at, outputs, depth)
        else:
            self.enter(item, at, outputs, depth)

    def enter(self, item: Item, at: Iteration, outputs: Outputs, depth: int = 0) -> None:
        """Hand what an Enter takes into the frame that it leads to, which it may open."""
        if at.children is None:
            at.children = {}
        frame = at.children.get(item.child.name)
        if frame is None:
            frame = at.children[item.child.name] = Frame(item.child, at)
            at.open_frames += 1
        frame.waiting_enters -= 1
        first = frame.oldest
        assert first is not None
        first.busy += 1  # what is handed on here may be all that the frame waits for, and ends with word that it is done
        if item.kind == ENTERING_CONSTANT:
            iteration: Iteration | None = first
            while iteration is not None:
                self.activate(item, iteration, outputs, depth)
                iteration = iteration.following
            if not frame.keep(item, outputs):
                frame.constants.append((item, outputs))
        else:
            self.activate(item, first, outputs, depth)
        first.busy -= 1
        self.clean(first, depth)  # nothing in it may wait for this value

    def next(self, item: Item, at: Iteration, outputs: Outputs, depth: int = 0) -> None:
        """Hand what a NextIteration takes on into the next iteration."""
        if outputs is None:
            return
        fresh = at.following or self.begin(item, at, outputs, depth)
        if fresh is None:
            return
        merge = item.turns
        if merge is not None and fresh.pending[merge[0].index] == 1 and depth <= self._deepest:
            fresh.pending[merge[0].index] = 0
            self.activate(merge[0], fresh, (outputs[0], merge[1]), depth)
        else:
            self.activate(item, fresh, outputs, depth)

    def begin(self, item: Item, at: Iteration, outputs: Outputs, depth: int = 0) -> Iteration | None:
        """Begin the iteration after `at` for what a NextIteration takes; None if that must wait."""
        frame = at.frame
        if frame.under_way < frame.table.parallel:
            return self._begin(at, depth)
        frame.postponed.append((item, outputs, at))
        return None

    def _begin(self, last: Iteration, depth: int) -> Iteration:
        """Begin the iteration after the last."""
        frame = last.frame
        fresh = last.following = Iteration(frame, last.number + 1)
        if frame.oldest is None:
            frame.oldest = fresh
        frame.under_way += 1
        frame.dead_exits.clear()
        if frame.postponed:
            postponed, frame.postponed = frame.postponed, []
            for item, outputs, _ in postponed:
                self.activate(item, fresh, outputs, depth)
        for item, outputs in frame.constants:
            self.activate(item, fresh, outputs, depth)
        return fresh

    def leave(self, item: Item, at: Iteration, outputs: Outputs, depth: int = 0) -> None:
        """Hand what an Exit takes to the iteration around its frame."""
        frame = at.frame
        assert frame.parent is not None
        if outputs is not None:
            self.activate(item, frame.parent, outputs, depth)
        elif at.following is None:
            frame.dead_exits.append(item)

    def clean(self, at: Iteration | None, depth: int = 0) -> None:
        """Drop what is done from iteration `at` on; a frame that is done may be the last that the one around it waits for."""
        while at is not None:
            frame = at.frame
            while at is not None and at is frame.oldest and not (at.busy or at.open_frames or (not at.number and frame.waiting_enters)):
                frame.oldest = at.following
                frame.under_way -= 1
                if frame.postponed:  # they may begin in its place
                    self._begin(frame.postponed[0][2], depth)
                at = frame.oldest
            around = frame.parent
            if frame.waiting_enters or frame.under_way or around is None:
                return
            assert around.children is not None
            del around.children[frame.table.name]
            around.open_frames -= 1
            for item in frame.dead_exits:
                self.activate(item, around, None, depth)
            at = around
