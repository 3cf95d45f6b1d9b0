"""How values move through a run of the dataflow engine, within frames and between them.

The rules are the reference's: a token is an item and an iteration; an item runs when all it waits for is there; it is dead if any of
its inputs is, other than a Merge, which takes the first that is alive. An Enter opens a frame, in which every NextIteration opens the
next iteration; a dead NextIteration ends, and a dead Exit leaves the frame when the frame is done.

Where nobody looks at single nodes, what only hands a value on does so at once, without a token: a Merge, a Switch, and an Enter, Exit
or NextIteration that waits for nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from graphcore.kernel_context import DEAD, RefVariable
from graphcore.runtime.dataflow_frames import Frame, Iteration, Outputs, Teller
from graphcore.runtime.dataflow_table import ENTERING, ENTERING_CONSTANT, EXITING, NEXT, Item, Table

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
        self.outermost = Frame(table.outermost, None).iterations[0]
        self._deepest = _DEEPEST if teller is None else -1

    def complete(self, item: Item, at: Iteration, outputs: Outputs) -> None:
        """`item` has run in iteration `at` and gave `outputs`."""
        if item.moves:
            self._move(item, at, outputs, 0)
        else:
            self.activate(item, at, outputs)
        at.busy -= 1
        if not at.busy:
            self.clean(at.frame, at.number)

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
                target.dead[index] = 1
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
                target.dead[index] = 1
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
                self._branch(consumer, target, depth)
        if not item.hands_on:
            return
        for port, mover in item.movers:
            value = given[port]
            if value is DEAD and mover.kind == EXITING:
                if target.number == target.frame.last:
                    target.frame.dead_exits.append(mover)
            elif depth > self._deepest:
                self._move_later(mover, target, value)
            elif mover.kind != NEXT:
                self._move(mover, target, None if value is DEAD else (value,), depth + 1)
            elif value is not DEAD:
                self._next(mover, target, (value,), depth + 1)
        if item.merge_edges:
            self._feed_merges(item, target, given, depth)
        if item.merge_controls:
            self._release_merges(item, target)

    def _tell_scheduled(self, count: int) -> None:
        assert self.teller is not None
        for i in range(len(self.ready) - count, len(self.ready)):
            self.teller.tell("scheduled", *self.ready[i])

    def _branch(self, item: Item, at: Iteration, depth: int) -> None:
        """Hand on what a Switch takes, whose inputs are there."""
        inputs, base = at.inputs, item.base
        data, pred = inputs[base], inputs[base + 1]
        if depth > self._deepest or at.dead[item.index] or pred.shape:
            self.start(item, at)
            return
        inputs[base] = inputs[base + 1] = None
        self.activate(item, at, (DEAD, data) if pred else (data, DEAD), depth + 1)

    def _move_later(self, mover: Item, at: Iteration, value: Any) -> None:
        """Have a token move a value that comes from too deep."""
        if value is DEAD:
            at.dead[mover.index] = 1
        else:
            at.inputs[mover.base] = value
        self.start(mover, at)

    def _feed_merges(self, item: Item, target: Iteration, given: Sequence[Any], depth: int) -> None:
        pending = target.pending
        for port, merge, number in item.merge_edges:
            index = merge.index
            left = pending[index]
            if given[port] is DEAD:
                if target.dead_inputs is None:
                    target.dead_inputs = {}
                dead = target.dead_inputs[index] = target.dead_inputs.get(index, 0) + 1
                # A loop whose Enter is dead does not turn: no NextIteration will come.
                if left == 1 and (dead == len(merge.node.inputs) or item.kind in (ENTERING, ENTERING_CONSTANT)):
                    target.dead[index] = 1
                    self.start(merge, target)
            elif left & 1:
                # The low bit stands for "no live input yet": only the first is taken.
                pending[index] = left - 1
                value, place = given[port], _INDICES[number] if number < len(_INDICES) else np.int32(number)
                if left == 1 and depth <= self._deepest:
                    if type(value) is RefVariable and not merge.node.input_types[0].is_ref:
                        value = value.read()
                    self.activate(merge, target, (value, place), depth + 1)
                    continue
                target.inputs[merge.base] = value
                target.inputs[merge.base + 1] = place
                if left == 1:
                    self.start(merge, target)

    def _release_merges(self, item: Item, target: Iteration) -> None:
        for merge in item.merge_controls:
            index = merge.index
            left = target.pending[index] - 2
            target.pending[index] = left
            dead = target.dead_inputs is not None and target.dead_inputs.get(index) == len(merge.node.inputs)
            if not left or (left == 1 and dead):
                target.dead[index] = left
                self.start(merge, target)

    def _move(self, item: Item, at: Iteration, outputs: Outputs, depth: int) -> None:
        """Hand a value on into another frame or iteration."""
        if item.kind == NEXT:
            self._next(item, at, outputs, depth)
        elif item.kind == EXITING:
            self._leave(item, at, outputs, depth)
        else:
            self._enter(item, at, outputs, depth)

    def _enter(self, item: Item, at: Iteration, outputs: Outputs, depth: int) -> None:
        if at.children is None:
            at.children = {}
        frame = at.children.get(item.child.name)
        if frame is None:
            frame = at.children[item.child.name] = Frame(item.child, at)
            at.open_frames += 1
        frame.waiting_enters -= 1
        if item.kind == ENTERING_CONSTANT:
            frame.constants.append((item, outputs))
            for iteration in list(frame.iterations.values()):
                self.activate(item, iteration, outputs, depth)
        else:
            self.activate(item, frame.iterations[0], outputs, depth)
        # All of the frame may be done already, if nothing in it waits for this value.
        self.clean(frame, 0, depth)

    def _next(self, item: Item, at: Iteration, outputs: Outputs, depth: int) -> None:
        if outputs is None:
            return
        frame = at.frame
        if at.number == frame.last:
            if frame.under_way == frame.table.parallel:
                frame.postponed.append((item, outputs))
                return
            self._begin_iteration(frame, depth)
        fresh = frame.iterations[at.number + 1]
        merge = item.turns
        if merge is not None and fresh.pending[merge[0].index] == 1 and depth <= self._deepest:
            fresh.pending[merge[0].index] = 0
            self.activate(merge[0], fresh, (outputs[0], merge[1]), depth)
        else:
            self.activate(item, fresh, outputs, depth)

    def _begin_iteration(self, frame: Frame, depth: int) -> None:
        frame.last += 1
        frame.under_way += 1
        fresh = frame.iterations[frame.last] = Iteration(frame, frame.last)
        frame.dead_exits.clear()
        if frame.postponed:
            postponed, frame.postponed = frame.postponed, []
            for item, outputs in postponed:
                self.activate(item, fresh, outputs, depth)
        for item, outputs in frame.constants:
            self.activate(item, fresh, outputs, depth)

    def _leave(self, item: Item, at: Iteration, outputs: Outputs, depth: int) -> None:
        frame = at.frame
        assert frame.parent is not None
        if outputs is not None:
            self.activate(item, frame.parent, outputs, depth)
        elif at.number == frame.last:
            frame.dead_exits.append(item)

    def clean(self, frame: Frame, number: int, depth: int = 0) -> None:
        """Drop what is done from iteration `number` on; a frame that is done may be the last that the one around it waits for."""
        while True:
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
                if frame.postponed:  # they may begin in its place
                    self._begin_iteration(frame, depth)
            around = frame.parent
            if frame.waiting_enters or frame.under_way or around is None:
                return
            assert around.children is not None
            del around.children[frame.table.name]
            around.open_frames -= 1
            for item in frame.dead_exits:
                self.activate(item, around, None, depth)
            frame, number = around.frame, around.number
