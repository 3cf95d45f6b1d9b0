"""Runs of the dataflow engine in which nobody looks at single nodes: groups of them run in one go."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcore.kernel_context import DEAD
from graphcore.runtime.dataflow import DataflowRun, checked_outputs
from graphcore.runtime.dataflow_frames import Iteration, Outputs
from graphcore.runtime.dataflow_table import BRANCH, SENDING, Call, Item, Tape
from graphcore.runtime.explaining import explain_at


def _is_scalar(pred: Any) -> bool:
    return type(pred) is np.bool_ or (pred is not DEAD and not pred.shape)


class FusedRun(DataflowRun):
    """One run of a fused table."""

    __slots__ = ()

    def _do(self, item: Item, at: Iteration) -> Outputs:
        """What `item` gives; of a tape, whose calls are made, all its registers."""
        tape = item.tape
        if tape is None:
            return super()._do(item, at)
        if at.dead[item.index]:
            self._die_out(item, tape, at)
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
                    self._go_on_to(call.item)
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
