"""The text of a plan with branches and loops: `if` and `while` around the lines of the nodes."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array
from graphcore.errors import InvalidArgumentError
from graphcore.graph.control_flow.analysis import NO_BRANCH, Guard
from graphcore.graph.model.node import Node, Tensor
from graphcore.runtime.core.kernel_checks import dead_fetch
from graphcore.runtime.plan.loop_dead import dead_loop, dead_phase
from graphcore.runtime.plan.loop_schedule import Begin, Choose, Decide, End, Leave, LoopSchedule, Mark, Repeat, Test
from graphcore.runtime.plan.loop_structure import AFTER, INSIDE
from graphcore.runtime.plan.plan_instrumentation import Note
from graphcore.runtime.plan.plan_text import PlanText, Writer
from graphcore.runtime.plan.schedule import Operation, Schedule, Value

_INFIX: Final[dict[Any, str]] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.less: "<",
    np.less_equal: "<=",
    np.greater: ">",
    np.greater_equal: ">=",
    np.equal: "==",
    np.not_equal: "!=",
}
"""NumPy functions that Python's operators replace, several times faster for NumPy scalars."""


def loops_text(schedule: Schedule, *, watched: bool = False) -> PlanText:
    """Generate the code of `schedule`.

    Args:
        watched: call `before(number)` and `after(number, *outputs)` around each node, `note(first, last)` for those that need no kernel
            or are dead, and `iterate(number)` when an iteration of a loop begins, `leave()` when the loop has ended; `run` then takes
            these, and `begin`, first.
    """
    assert isinstance(schedule, LoopSchedule)
    return _LoopWriter(schedule, watched).write()


class _LoopWriter(Writer):
    _takes_over = False  # a name may be unset if a branch is not taken, or set again in the next iteration
    _observers = (*Writer._observers, "iterate", "leave")

    def __init__(self, schedule: LoopSchedule, watched: bool) -> None:
        super().__init__(schedule, watched)
        self.decisions = schedule.decisions
        self.fetches, self.result_guards = schedule.fetches, schedule.result_guards
        self.order = {value: place for place, value in enumerate(schedule.decisions.values())}
        self.flow = schedule.flow
        self.bases: list[Guard] = [NO_BRANCH]
        self.unread: set[Value] = set()  # loop variables without readers would only keep arrays alive
        self.deaths: dict[Guard, list[Note]] = {}
        self.lines = [f"def run({self.parameters}):"]
        self.line_nodes: dict[int, Node] = {}
        self.indent = 1
        self.guard: Guard = NO_BRANCH
        self.around: list[tuple[int, Guard, dict[Guard, list[Note]]]] = []

    def write(self) -> PlanText:
        """Write the whole text."""
        for number, operation in enumerate(self.operations):
            self._write_skipped(operation)
            if isinstance(operation, End):
                self._end(number, operation)
            elif isinstance(operation, Leave):
                self._leave(operation)
            elif isinstance(operation, Mark):
                self._go_to(operation.guard)
                self._mark(number, operation)
            else:
                self._go_to(operation.guard)
                self._write(self._line(number, operation).strip(), operation.node)
                self._may_die(operation)
        self._write_skipped(None)
        self._go_to(NO_BRANCH)
        results = [self._result(i, value, guard) for i, (value, guard) in enumerate(zip(self.results, self.result_guards, strict=True))]
        self._write(f"return [{', '.join(results)}]")
        return PlanText("\n".join([*self.lines, ""]), self.scope, self.line_nodes, self.notes)

    def _write(self, line: str, node: Node | None = None) -> None:
        self.lines.append("    " * (self.indent + bool(self.guard)) + line)
        if node is not None:
            self.line_nodes[len(self.lines)] = node

    def _go_to(self, guard: Guard) -> None:
        """Open exactly the branches of `guard`."""
        if guard == self.guard:
            return
        left, self.guard = self.guard, NO_BRANCH
        self._write_dead(left)
        if guard:
            self._write(f"if {self._condition(guard)}:")
        self.guard = guard

    def _write_skipped(self, operation: Operation | None) -> None:
        for guard, group in groupby(self.skipped.get(operation, ()) if self.watched else (), attrgetter("guard")):
            skipped = list(group)
            self._go_to(guard)
            self._write(self._note_call([Note.of(one) for one in skipped]))
            for one in skipped:
                self._may_die(one)

    def _noted(self, operation: Operation | None) -> str:  # noqa: ARG002 - what is overridden takes it
        return ""  # skipped nodes may be on other branches and have lines of their own

    def _note_call(self, notes: list[Note]) -> str:
        first = len(self.notes)
        self.notes += notes
        return f"note({first}, {len(self.notes) - 1})"

    def _may_die(self, operation: Operation) -> None:
        """Record an operation as dead if its branches are not taken."""
        # Operations after a loop that does not begin are dead, and recorded with the loop.
        if self.watched and self.guard != self.bases[-1]:
            deaths = self.deaths.setdefault(self.bases[-1], [])
            deaths += dead_loop(self.flow, operation.loop) if isinstance(operation, Begin) else [Note(operation.node.name)]

    def _write_dead(self, left: Guard) -> None:
        """Record the dead nodes if the branches just closed are not taken."""
        for base, notes in self.deaths.items():
            begun = f"{self._condition(base)} and " if base else ""
            self._write(f"if {begun}not ({self._condition(left)}): {self._note_call(notes)}")
        self.deaths = {}

    def _condition(self, guard: Guard) -> str:
        """The condition of the branches of `guard`. A nested decision comes after the decision on its branch."""
        parts = []
        for branch in sorted(guard, key=lambda branch: self.order[self.decisions[branch.pred]]):
            name = self.decisions[branch.pred].name
            parts.append(f"{name} == {branch.side}" if branch.sides != 2 else name if branch.side else f"not {name}")
        return " and ".join(parts)

    def _mark(self, number: int, mark: Mark) -> None:
        node, inputs = mark.node, [self._argument(value, read) for value, read in zip(mark.inputs, mark.reads, strict=True)]
        outputs = [value.name for value in mark.outputs]
        if isinstance(mark, Begin):
            self._assign(outputs, inputs, node)
            self._clear(number)
            self.unread.update(value for value in self.released.get(number, ()) if value in mark.outputs)
            self._may_die(mark)
            self._write("while True:", node)  # Python checks for Ctrl-C at backward jumps
            self.around.append((self.indent, self.guard, self.deaths))
            self.indent, self.guard, self.deaths = self.indent + 1 + bool(self.guard), NO_BRANCH, {}
            self.bases.append(NO_BRANCH)
            if self.watched:
                self._write(f"iterate({number})", node)
        elif isinstance(mark, Test):
            self.scope["truth"] = _truth
            pred = inputs[0]
            dead = dead_phase(self.flow, mark.loop, INSIDE) if self.watched else []
            ending = f"{self._note_call(dead)}; break" if dead else "break"
            self._write(f"if not (truth({pred}) if {pred}.shape else {pred}): {ending}", node)
        elif isinstance(mark, Repeat):
            renewed = [(header.name, value) for header, value in zip(mark.headers, inputs, strict=True) if header not in self.unread]
            self._assign([name for name, _ in renewed], [value for _, value in renewed], node)
            self._clear(number)
            dead = dead_phase(self.flow, mark.loop, AFTER) if self.watched else []
            if dead:
                self._write(self._note_call(dead))
        elif isinstance(mark, Decide):
            self.scope["truth"], self.scope["side"] = _truth, _side
            self._write(f"{outputs[0]} = " + (f"truth({inputs[0]})" if mark.sides == 2 else f"side({inputs[0]}, {mark.sides})"), node)
            self._clear(number)
        elif isinstance(mark, Choose):
            self._choose(number, mark, inputs, outputs)
            self._clear(number)
        else:
            self._assign(outputs, inputs, node)
            self._clear(number)

    def _assign(self, names: list[str], values: list[str], node: Node) -> None:
        if names:
            self._write(f"{', '.join(names)} = {', '.join(values)}", node)

    def _clear(self, number: int) -> None:
        """Release values after a mark; those of a branch that was not taken may not be set."""
        gone = [value.name for value in self.released.get(number, ())]
        if gone:
            self._write(" = ".join([*gone, "None"]))

    def _choose(self, number: int, mark: Choose, inputs: list[str], outputs: list[str]) -> None:
        numbers = []
        for i in range(len(inputs)):
            numbers.append(f"i{i}")
            self.scope[f"i{i}"] = np.int32(i)
        self._write(f"{outputs[0]} = {self._chosen(mark, inputs)}", mark.node)
        if mark.outputs[1].is_kept or mark.outputs[1].last_use > number:
            self._write(f"{outputs[1]} = {self._chosen(mark, numbers)}", mark.node)

    def _chosen(self, mark: Choose, inputs: list[str]) -> str:
        text = inputs[-1]
        for name, branch in list(zip(inputs, mark.branches, strict=False))[-2::-1]:
            text = f"{name} if {self._condition(frozenset([branch]))} else {text}"
        return text

    def _end(self, number: int, end: End) -> None:
        self._go_to(NO_BRANCH)
        self.indent, self.guard, self.deaths = self.around.pop()
        self.bases[-1] = end.guard
        self._clear(number)

    def _leave(self, leave: Leave) -> None:
        if self.watched:
            self._go_to(leave.guard)
            self._write("leave()")
        self.bases.pop()

    def _call(self, number: int, operation: Operation) -> str:
        sign = _INFIX.get(operation.kernel) if type(operation.kernel) is np.ufunc else None
        if sign is None or operation.into is not None or any(operation.reads):
            return super()._call(number, operation)
        left, right = [self._argument(value, False) for value in operation.inputs]
        return f"{operation.outputs[0].name} = {left} {sign} {right}"

    def _hold(self, value: Value, constant: Array) -> None:
        is_number = not constant.ndim and constant.dtype.kind in "biufc"
        super()._hold(value, constant[()] if is_number else constant)  # a scalar is faster than a rank-0 array

    def _result(self, number: int, value: Value, guard: Guard) -> str:
        text = self._argument(value, value.is_reference)
        if not guard:
            return text
        self.scope[f"dead{number}"] = _dead(number, self.fetches[number])
        return f"{text} if {self._condition(guard)} else dead{number}()"


def _truth(pred: Any) -> bool:
    """The condition of a Switch."""
    if pred.shape:
        raise InvalidArgumentError(f"The second input must be a scalar, but it has shape {list(pred.shape)}")
    return bool(pred)


def _side(index: Any, sides: int) -> int:
    """The branch index of a multi-way switch."""
    if index.shape:
        raise InvalidArgumentError(f"The second input must be a scalar, but it has shape {list(index.shape)}")
    number = int(index)
    return number if 0 <= number < sides else sides - 1


def _dead(number: int, tensor: Tensor) -> Any:
    """Raise the error for a fetched value that was not computed."""

    def refuse() -> None:
        raise dead_fetch(number, tensor)

    return refuse
