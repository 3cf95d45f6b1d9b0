"""The tape of a group of nodes: their calls one after the other, on registers that are used again when nobody needs what is in them."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from graphcore.registry import Kernel
from graphcore.runtime.dataflow.table import BRANCH, PLAIN, SENDING, SWITCH, Call, Item, QuickCall, Tape, nothing

Source = tuple[Item, int]
"""An item and which of its outputs."""
CONTROL: Final = -1
"""In place of an output: the item is waited for."""
Sources = Mapping[Item, Sequence[tuple[Source, int]]]
"""What each item reads, with the slot that it goes into, and what it waits for."""
_OPERATORS: Final[dict[Any, Kernel]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}
"""What Python's operators do just as well, and several times faster where both sides are NumPy scalars."""

_COMPARING: Final = frozenset({np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal})


def write_tape(
    members: Sequence[Item], inputs: Sequence[Source], sources: Sources, constants: Mapping[Item, Any], kept: Collection[Source]
) -> tuple[Tape, dict[Source, int]]:
    """The tape of `members`, and the register of everything that is there when it has run.

    Args:
        members: the nodes, producers first.
        inputs: what is given, in the order of the registers.
        sources: see `Sources`.
        constants: nodes whose output is always the same.
        kept: what somebody else reads.
    """
    return _TapeWriter(members, inputs, sources, constants, kept).write()


class _TapeWriter:
    """Values have numbers first, in the order in which they come to be; then each gets a register."""

    def __init__(
        self, members: Sequence[Item], inputs: Sequence[Source], sources: Sources, constants: Mapping[Item, Any], kept: Collection[Source]
    ) -> None:
        self.members = members
        self.sources = sources
        self.constants = constants
        self.kept = kept
        self.tape = Tape(len(inputs))
        self.values: dict[Source, int] = {source: i for i, source in enumerate(inputs)}
        self.registers: list[int] = list(range(len(inputs)))
        self.calls: list[tuple[Item, list[int], list[int]]] = []

    def write(self) -> tuple[Tape, dict[Source, int]]:
        for item in _sending_early(self.members, self.sources):
            self._add(item)
        self._allocate()
        return self.tape, {source: self.registers[value] for source, value in self.values.items()}

    def _add(self, item: Item) -> None:
        if item in self.constants:
            self._value((item, 0))
        elif item.kernel is nothing and item.kind == PLAIN:
            return
        else:
            read = sorted([(slot, source) for source, slot in self.sources[item] if slot != CONTROL], key=lambda pair: pair[0])
            inputs = [self._value(source) for _, source in read]
            if item.passes:
                self.values[item, 0] = inputs[0]
                return
            outputs = list(range(len(self.registers), len(self.registers) + len(item.dtypes)))
            self.registers += [-1] * len(outputs)
            self.values.update([((item, port), value) for port, value in enumerate(outputs)])
            self.calls.append((item, inputs, outputs))
            if item.kind == SENDING:
                self.tape.sends.append(item)

    def _value(self, source: Source) -> int:
        found = self.values.get(source)
        if found is None:
            found = self.values[source] = len(self.registers)
            self.registers.append(len(self.tape.registers))
            constant = self.constants[source[0]]
            if source not in self.kept and not constant.ndim and constant.dtype.kind in "biufc":
                constant = constant[()]  # a scalar costs less than an array without axes
            self.tape.registers.append(constant)
        return found

    def _allocate(self) -> None:
        members = set(self.members)
        kept = {value for source, value in self.values.items() if source in self.kept and source[0] in members}
        kept |= {value for source, value in self.values.items() if source[0] in self.constants}
        last: dict[int, int] = {}
        for place, (_, inputs, outputs) in enumerate(self.calls):
            last.update(dict.fromkeys((*outputs, *inputs), place))
        free: list[int] = []
        for place, (item, inputs, outputs) in enumerate(self.calls):
            gone = [self.registers[value] for value in dict.fromkeys(inputs) if last[value] == place and value not in kept]
            read = [self.registers[value] for value in inputs]
            taken = []
            for value in outputs:
                taken.append(gone.pop(0) if gone else free.pop() if free else self._another())
                self.registers[value] = taken[-1]
            unread = [self.registers[value] for value in outputs if last[value] == place and value not in kept]
            free += gone + unread
            self.tape.calls.append(_quick(Call(item, read, taken, gone + unread)))

    def _another(self) -> int:
        self.tape.registers.append(None)
        return len(self.tape.registers) - 1


def _quick(call: Call) -> QuickCall:
    item, inputs = call.item, call.inputs
    if item.kind == SWITCH:
        return (BRANCH, nothing, inputs[0], inputs[1], 0, None, -1, call)
    is_quick = item.kind == PLAIN and not item.variables and len(item.dtypes) == 1 and item.dtype is not None
    if not is_quick or len(inputs) not in (1, 2) or len(call.cleared) > 1:
        return (0, nothing, 0, 0, 0, None, -1, call)
    kernel, dtype = item.kernel, item.dtype
    if type(kernel) is np.ufunc:
        kernel, dtype = _OPERATORS.get(kernel, kernel), None if _keeps_type(item) else dtype
    return (len(inputs), kernel, inputs[0], inputs[-1], call.outputs[0], dtype, call.cleared[0] if call.cleared else -1, call)


def _keeps_type(item: Item) -> bool:
    """Whether NumPy itself sees to it that the output of a ufunc is of the declared type: that of the inputs, or whether something is so."""
    given = {dtype.as_numpy for dtype in item.node.input_types}
    return given == {item.dtype} or (item.kernel in _COMPARING and item.dtype == np.dtype(bool))


def _sending_early(members: Sequence[Item], sources: Sources) -> Iterable[Item]:
    """`members` in order, but that sends come as soon as they can: somebody waits for them."""
    sends = [item for item in members if item.kind == SENDING]
    if not sends:
        return members
    among = set(members)
    waiting = {send: {source for (source, _), _ in sources[send] if source in among} for send in sends}
    followers: dict[Item, list[Item]] = {}
    for send, needs in waiting.items():
        for need in needs:
            followers.setdefault(need, []).append(send)
    order = [send for send in sends if not waiting[send]]
    pending = [item for item in reversed(members) if item.kind != SENDING]
    while pending:
        item = pending.pop()
        order.append(item)
        for send in followers.get(item, ()):
            waiting[send].discard(item)
            if not waiting[send]:
                pending.append(send)
    return order
