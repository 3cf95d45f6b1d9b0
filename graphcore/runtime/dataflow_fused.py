"""Runs of the dataflow engine in which nobody looks at single nodes: groups of them run in one go, and what only passes values on at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from graphcore.errors import CancelledError
from graphcore.kernel_context import DEAD, RefVariable
from graphcore.runtime.dataflow import LATER, STOPPED, DataflowRun, checked_outputs
from graphcore.runtime.dataflow_frames import INDICES, Iteration, Outputs, Propagation
from graphcore.runtime.dataflow_table import ENTERING, ENTERING_CONSTANT, EXITING, NEXT, SENDING, SWITCH, Call, Item, Table, Tape
from graphcore.runtime.explaining import explain_at

_DEEPEST: Final = 20
"""So many items hand on a value within each other at most, for the sake of Python's stack; what comes then waits for its turn."""


class FusedPropagation(Propagation):
    """Moves values through Merge, Enter, Exit and NextIteration without a token where they wait for nothing else."""

    __slots__ = ("depth",)

    def __init__(self, table: Table) -> None:
        super().__init__(table, None)
        self.depth = 0

    def activate(self, item: Item, target: Iteration, outputs: Outputs) -> None:
        """Hand what `item` gave to its consumers in iteration `target`."""
        pending, ready, count = target.pending, self.ready, 0
        if outputs is None:
            dead = target.dead
            for _, consumer, _ in item.data_edges:
                index = consumer.index
                dead[index] = 1
                left = pending[index] = pending[index] - 1
                if not left:
                    ready.append((consumer, target))
                    count += 1
        else:
            inputs = target.inputs
            for port, consumer, slot in item.data_edges:
                value = outputs[port]
                index = consumer.index
                if value is DEAD:
                    target.dead[index] = 1
                else:
                    inputs[slot] = value
                left = pending[index] = pending[index] - 1
                if not left:
                    ready.append((consumer, target))
                    count += 1
        for consumer in item.control_edges:
            index = consumer.index
            if outputs is None:
                target.dead[index] = 1
            left = pending[index] = pending[index] - 1
            if not left:
                ready.append((consumer, target))
                count += 1
        target.busy += count
        if item.movers:
            for port, mover in item.movers:
                value = DEAD if outputs is None else outputs[port]
                if value is not DEAD:
                    if mover.kind == NEXT and self.depth < _DEEPEST:
                        self._turn_around(mover, target, (value,))
                    else:
                        self._move(mover, target, (value,))
                elif mover.kind == EXITING:
                    if target.number == target.frame.last:
                        target.frame.dead_exits.append(mover)
                elif mover.kind != NEXT:
                    self._move(mover, target, None)
        if item.merge_edges:
            self._feed_merges(item, target, outputs)
        if item.merge_controls:
            before = len(ready)
            self._release_merges(item, target)
            target.busy += len(ready) - before

    def _move(self, mover: Item, at: Iteration, outputs: Outputs) -> None:
        """Hand a value on to another frame or iteration."""
        if self.depth >= _DEEPEST:
            if outputs is None:
                at.dead[mover.index] = 1
            else:
                at.inputs[mover.base] = outputs[0]
            self.start(mover, at)
            return
        self.depth += 1
        if mover.kind == EXITING:
            self._leave(mover, at, outputs)
        else:
            self._enter(mover, at, outputs)
        self.depth -= 1

    def _turn_around(self, mover: Item, at: Iteration, outputs: Outputs) -> None:
        """Hand a live value on to the next iteration."""
        frame, number = at.frame, at.number
        if number == frame.last:
            if frame.under_way == frame.table.parallel:
                frame.postponed.append((mover, outputs))
                return
            self._begin_iteration(frame)
        self.depth += 1
        if mover.is_turn:
            self._feed_merges(mover, frame.iterations[number + 1], outputs)
        else:
            self.activate(mover, frame.iterations[number + 1], outputs)
        self.depth -= 1

    def _feed_merges(self, item: Item, target: Iteration, outputs: Outputs) -> None:
        pending = target.pending
        for port, merge, number in item.merge_edges:
            index = merge.index
            left = pending[index]
            if outputs is None or outputs[port] is DEAD:
                dead = target.dead_inputs[index] = target.dead_inputs.get(index, 0) + 1
                if left == 1 and (dead == len(merge.node.inputs) or item.kind in (ENTERING, ENTERING_CONSTANT)):
                    target.dead[index] = 1
                    self.start(merge, target)
            elif left & 1:
                value = outputs[port]
                pending[index] = left - 1
                place = INDICES[number] if number < len(INDICES) else np.int32(number)
                if left == 1 and self.depth < _DEEPEST:
                    if type(value) is RefVariable and not merge.node.input_types[0].is_ref:
                        value = value.read()
                    self.depth += 1
                    self.activate(merge, target, (value, place))
                    self.depth -= 1
                    continue
                target.inputs[merge.base] = value
                target.inputs[merge.base + 1] = place
                if left == 1:
                    self.start(merge, target)


class FusedRun(DataflowRun):
    """One run of a fused table."""

    __slots__ = ()

    def _propagation(self, table: Table) -> Propagation:
        return FusedPropagation(table)

    def _turn(self) -> None:
        move, step, is_cancellable = self.move, self.step, self.cancellation is not None
        ready, activate, play = move.ready, move.activate, self._play
        while True:
            while ready:
                item, at = ready.popleft()
                tape = item.tape
                if tape is not None:
                    outputs: Outputs = None
                    if at.dead[item.index]:
                        self._die_out(item, tape, at)
                    else:
                        outputs = play(item, tape, at)
                else:
                    if is_cancellable:
                        step.node = item.node
                        self.stopped = self.stopped or step.is_late()
                    outputs = self._switch(item, at) if item.kind == SWITCH else self._alone(item, at)
                    if outputs is LATER:
                        continue
                    if item.moves:
                        move.complete(item, at, outputs)
                        continue
                activate(item, at, outputs)
                at.busy -= 1
                if not at.busy:
                    move.clean(at.frame, at.number)
            if not self.waiting:
                return
            self._arrive(self.arrivals.get())

    def _switch(self, item: Item, at: Iteration) -> Outputs:
        inputs, base = at.inputs, item.base
        data, pred = inputs[base], inputs[base + 1]
        if item.variables or at.dead[item.index] or self.stopped or pred.shape or item.node.op == "_SwitchN":
            return self._alone(item, at)
        inputs[base] = inputs[base + 1] = None
        return (DEAD, data) if pred else (data, DEAD)

    def _alone(self, item: Item, at: Iteration) -> Outputs:
        if self.stopped:
            raise self._stopped_at(item)
        try:
            return self._execute(item, at)
        except BaseException as error:  # noqa: BLE001 - whatever a kernel raises is told with its node
            told = explain_at(item.node, error, at.inputs[item.base : item.base + item.count])
            raise told from (None if told is error else error)

    def _play(self, item: Item, tape: Tape, at: Iteration) -> list[Any]:
        """Make the calls of a tape; all its registers."""
        registers, count = tape.registers.copy(), tape.count
        base, inputs = item.base, at.inputs
        if count == 1:
            registers[0] = inputs[base]
            inputs[base] = None
        elif count:
            registers[:count] = inputs[base : base + count]
            inputs[base : base + count] = [None] * count
        is_cancellable, call = self.cancellation is not None, None
        try:
            for arity, kernel, left, right, out, dtype, clear, call in tape.calls:
                if is_cancellable:
                    self.step.node = call.item.node
                    self.stopped = self.stopped or self.step.is_late()
                if self.stopped:
                    raise self._stopped_at(call.item)
                if arity == 2:
                    value = kernel(registers[left], registers[right])
                elif arity:
                    value = kernel(registers[left])
                else:
                    self._call(call, registers, at)
                    continue
                registers[out] = value if getattr(value, "dtype", None) is dtype else checked_outputs(call.item, value)[0]
                if clear >= 0:
                    registers[clear] = None
        except BaseException as error:  # noqa: BLE001 - whatever a kernel raises is told with its node
            assert call is not None
            told = explain_at(call.item.node, error, [registers[i] for i in call.inputs])
            raise told from (None if told is error else error)
        for number, register in tape.fetches:
            self.results[number] = registers[register]
        return registers

    def _call(self, call: Call, registers: list[Any], at: Iteration) -> None:
        """Make a call that is not of the simplest kind."""
        item = call.item
        values = [registers[i] for i in call.inputs]
        for slot in item.variables:
            values[slot] = values[slot].read()
        if item.kind == SENDING:
            self._send(item, at, values[0], is_dead=False)
        else:
            for register, value in zip(call.outputs, checked_outputs(item, item.kernel(*values)), strict=True):
                registers[register] = value
        for register in call.cleared:
            registers[register] = None

    def _die_out(self, item: Item, tape: Tape, at: Iteration) -> None:
        """A dead tape gives nothing, other than word of it to who would receive or fetch its values."""
        at.inputs[item.base : item.base + item.count] = [None] * item.count
        for sender in tape.sends:
            self._send(sender, at, None, is_dead=True)
        for number, _ in tape.fetches:
            self.results[number] = DEAD

    def _stopped_at(self, item: Item) -> CancelledError:
        return CancelledError(STOPPED, op=item.node.op, node=item.name, source=item.node.source)
