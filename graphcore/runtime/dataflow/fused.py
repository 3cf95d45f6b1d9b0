"""Runs of the dataflow engine in which nobody looks at single nodes: groups of them run in one go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcore.kernel_context import DEAD
from graphcore.runtime.core.error_notes import explain_at
from graphcore.runtime.dataflow.dataflow import LATER, DataflowRun, checked_outputs
from graphcore.runtime.dataflow.frames import Iteration, Outputs
from graphcore.runtime.dataflow.table import BRANCH, SENDING, Call, Item, Table
from graphcore.runtime.dataflow.text import write_loops


def _is_scalar(pred: Any) -> bool:
    return type(pred) is np.bool_ or (pred is not DEAD and not pred.shape)


def branched(item: Item, data: Any, pred: Any) -> Sequence[Any]:
    """What a Switch gives, whatever it takes."""
    if data is DEAD or pred is DEAD:
        return DEAD, DEAD
    if not pred.shape:
        return (DEAD, data) if pred else (data, DEAD)
    return checked_outputs(item, item.kernel(data, pred))


def prepare(table: Table) -> Table:
    """Make a fused table, and what its loops repeat, ready to run."""
    table.texts = write_loops(table.items, {"checked": checked_outputs, "branched": branched})
    return table


class FusedRun(DataflowRun):
    """One run of a fused table."""

    __slots__ = ()

    def _turn(self) -> None:
        move, ready = self.move, self.move.ready
        item: Item | None = None
        try:
            while True:
                while ready:
                    item, at = ready.popleft()
                    advance = item.advance
                    if advance is not None:
                        advance(self, at)
                    elif not self._advance(item, at):
                        continue
                    at.busy -= 1
                    if not at.busy and at is at.frame.oldest:
                        move.clean(at)
                if not self.waiting:
                    return
                self._arrive(self.arrivals.get())
        except BaseException as error:
            told = self._explained(error)
            self.tell_interrupted(told, item)
            if told is error:
                raise
            raise told from error

    def _advance(self, item: Item, at: Iteration) -> bool:
        """Run `item`, and hand on what it gives. False if that will arrive."""
        outputs = self._do(item, at)
        if outputs is LATER:
            return False
        self.move.hand(item, at, outputs)
        return True

    def _explained(self, error: BaseException) -> BaseException:
        """`error` with the node whose line in the text of a loop it came from, if it came from one."""
        traceback = error.__traceback__
        while traceback is not None:
            text = self.table.texts.get(id(traceback.tb_frame.f_globals))
            if text is not None:
                call = text.calls.get(traceback.tb_lineno)
                return error if call is None else explain_at(call.item.node, error, text.inputs(call, traceback.tb_frame.f_locals))
            traceback = traceback.tb_next
        return error

    def _do(self, item: Item, at: Iteration) -> Outputs:
        """What `item` gives; of a tape, whose calls are made, all its registers."""
        tape = item.tape
        if tape is None:
            return super()._do(item, at)
        if at.dead is not None and item.index in at.dead:
            self.die_out(item, at)
            return None
        registers, count = tape.registers.copy(), tape.count
        base, inputs = item.base, at.inputs
        if count == 1:
            registers[0] = inputs[base]
            inputs[base] = None
        elif count:
            registers[:count] = inputs[base : base + count]
            inputs[base : base + count] = [None] * count
        is_watched, call = self.cancellation is not None, None
        try:
            for arity, kernel, left, right, out, dtype, clear, call in tape.calls:
                if is_watched:
                    self.go_on_to(call.item)
                if arity == 2:
                    first, second = registers[left], registers[right]
                    value = DEAD if first is DEAD or second is DEAD else kernel(first, second)
                elif arity == 1:
                    first = registers[left]
                    value = DEAD if first is DEAD else kernel(first)
                elif arity == BRANCH and _is_scalar(pred := registers[right]) and registers[left] is not DEAD:
                    live, first = bool(pred), registers[left]
                    registers[call.outputs[not live]] = DEAD
                    registers[call.outputs[live]] = first
                    continue
                else:
                    self._call(call, registers, at)
                    continue
                if dtype is not None and getattr(value, "dtype", None) is not dtype and value is not DEAD:
                    value = checked_outputs(call.item, value)[0]
                registers[out] = value
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
        if item.kind != SENDING and any(value is DEAD for value in values):
            for register in call.outputs:
                registers[register] = DEAD
            for register in call.cleared:
                registers[register] = None
            return
        for slot in item.variables:
            values[slot] = values[slot].read()
        if item.kind == SENDING:
            self.send(item, at, values[0])
        else:
            for register, value in zip(call.outputs, checked_outputs(item, item.kernel(*values)), strict=True):
                registers[register] = value
        for register in call.cleared:
            registers[register] = None

    def die_out(self, item: Item, at: Iteration) -> None:
        """A dead tape gives nothing, other than word of it to who would receive or fetch its values."""
        tape = item.tape
        assert tape is not None
        at.inputs[item.base : item.base + item.count] = [None] * item.count
        for sender in tape.sends:
            self.send(sender, at, None, is_dead=True)
        for number, _ in tape.fetches:
            self.results[number] = DEAD
