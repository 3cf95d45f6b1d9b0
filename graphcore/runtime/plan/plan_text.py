"""The text of a plan: one generated Python function, a line for each node; a long one in parts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array
from graphcore.dtypes import ALL_TYPES, string
from graphcore.graph.model.node import Node
from graphcore.plumbing import SEND
from graphcore.runtime.core.interruptible_call import call_interruptibly
from graphcore.runtime.core.kernel_checks import wrong_dtype
from graphcore.runtime.plan.plan_instrumentation import Note
from graphcore.runtime.plan.schedule import BEGIN, JOIN, Operation, Schedule, Value
from graphcore.support.deadline import check_time
from graphcore.support.thread_pool import kernel_pool

PART: Final = 2000
"""The most lines of one generated function, since compiling takes longer than in proportion."""
_UFUNCS: Final = {name: value for name, value in vars(np).items() if type(value) is np.ufunc and value.__name__ == name}
_NUMPY_NAMES: Final = {id(function): name for name, function in {**_UFUNCS, "dot": np.dot}.items()}
"""NumPy's names of its functions, by their ids. Their results have the declared type."""
WORDS: Final = frozenset([
    *_NUMPY_NAMES.values(), *[f"d_{dtype.text}" for dtype in ALL_TYPES], "run", "before", "after", "begin", "note", "iterate", "leave", "v",
    "old", "read", "result", "out", "submit", "interruptible", "dtype", "shape", "truth", "side",
])  # fmt: skip
"""The words of generated code beside names with counters."""
_BY_KEYWORD: Final = (np.maximum, np.minimum)


class PlanText:
    """Generated code.

    Attributes:
        source: the text; it defines `run`.
        scope: its kernels and constants.
        line_nodes: the node of each line, by line number from 1.
        notes: the notes of nodes without kernel calls, for the watched text.
        starts: the first lines of functions, from 0, which can be compiled separately.
    """

    __slots__ = ("line_nodes", "notes", "scope", "source", "starts")

    def __init__(
        self, source: str, scope: dict[str, Any], line_nodes: dict[int, Node], notes: Sequence[Note] = (), starts: Sequence[int] = (0,)
    ) -> None:
        self.notes = notes
        self.starts = starts
        self.source = source
        self.scope = scope
        self.line_nodes = line_nodes

    def annotated(self) -> str:
        """The text with each node's name and op behind its line, for people."""
        lines = self.source.split("\n")
        for number, node in self.line_nodes.items():
            lines[number - 1] += f"  # {node.name} ({node.op})"
        return "\n".join(lines)


def plan_text(schedule: Schedule, *, watched: bool = False) -> PlanText:
    """Generate the code of `schedule`.

    Args:
        watched: call `before(number)` and `after(number, *outputs)` around each node, `begin(number, kernel, *inputs)` for one that
            runs in another thread, and `note(first, last)` for those that need no kernel; `run` then takes these four first.
    """
    return Writer(schedule, watched).write()


class Writer:
    """Writes the function of some operations."""

    _takes_over = True
    _observers: tuple[str, ...] = ("before", "after", "begin", "note")

    def __init__(self, schedule: Schedule, watched: bool) -> None:
        self.operations = schedule.operations
        self.results = schedule.results
        self.scope: dict[str, Any] = dict(schedule.variables)
        self.observers = list(self._observers) if watched else []
        self.feeds = [value.name for value in schedule.feeds]
        self.parameters = ", ".join(self.observers + self.feeds)
        self.watched = watched
        self.released = schedule.released()
        self.skipped = schedule.skipped
        self.notes: list[Note] = []

    def write(self) -> PlanText:
        """Write the whole text."""
        count = len(self.operations)
        if count <= PART:
            lines = [f"def run({self.parameters}):", *[self._line(i, operation) for i, operation in enumerate(self.operations)]]
            lines += [f"    {self._noted(None)}return {self._list_of_results()}", ""]
            nodes = {number + 2: operation.node for number, operation in enumerate(self.operations)}
            return PlanText("\n".join(lines), self.scope, nodes, self.notes)
        return self._in_parts()

    def _in_parts(self) -> PlanText:
        """Split into parts; values shared between parts are in the list `v`."""
        places = self._share_between_parts()
        lines: list[str] = []
        nodes: dict[int, Node] = {}
        parts = range(0, len(self.operations), PART)
        parameters: list[str] = []
        starts = []
        for first in parts:
            node = self.operations[first].node
            check_time(node.name, node.op)
            starts.append(len(lines))
            parameters.append(", ".join(["v", *self.observers, *self._feeds_of(self.operations[first : first + PART])]))
            lines.append(f"def part{first}({parameters[-1]}):")
            for number in range(first, min(first + PART, len(self.operations))):
                lines.append(self._line(number, self.operations[number]))
                nodes[len(lines)] = self.operations[number].node
        starts.append(len(lines))
        lines += [f"def run({self.parameters}):", f"    v = [None] * {places}"]
        lines += [f"    part{first}({names})" for first, names in zip(parts, parameters, strict=True)]
        lines += [f"    {self._noted(None)}return {self._list_of_results()}", ""]
        return PlanText("\n".join(lines), self.scope, nodes, self.notes, starts)

    def _feeds_of(self, operations: Sequence[Operation]) -> list[str]:
        """The feeds that these operations read: passing all of many to each part would be slow."""
        read = {value.name for operation in operations for value in operation.inputs}
        return [name for name in self.feeds if name in read]

    def _share_between_parts(self) -> int:
        places = 0
        for number, operation in enumerate(self.operations):
            for value in operation.outputs:
                if value.name not in self.scope and (value.is_kept or value.last_use // PART != number // PART):
                    value.name = f"v[{places}]"
                    places += 1
        return places

    def _line(self, number: int, operation: Operation) -> str:
        released: Collection[Value] = self.released.get(number, ())
        ending, released = released, self._take_over(operation, released) if released else released
        line = self._call(number, operation)
        if self.watched:
            if not operation.apart:
                values = [value.name for value in (operation.inputs if operation.node.op in SEND else operation.outputs)]
                line = f"before({number}); {line}; after({', '.join([str(number), *values])})"
                taken = [value.name for value in ending if value not in released]
                if taken:  # while the kernel ran, both were live
                    line = f"old = {', '.join(taken)}; {line}; del old"
            line = self._noted(operation) + line
        if not released:
            return f"    {line}"
        gone = [value.name for value in released]
        local = [name for name in gone if name[0] != "v"]
        line += "".join([f"; {name} = None" for name in gone if name[0] == "v"])
        return f"    {line}; del {', '.join(local)}" if local else f"    {line}"

    def _take_over(self, operation: Operation, released: Collection[Value]) -> Collection[Value]:
        """Give results the names of dead inputs: functions with fewer names compile faster.

        The inputs of a failed kernel are still under their names: nothing has been assigned by then.

        Returns:
            The values still to be released.
        """
        if operation.apart or not self._takes_over:
            return released
        left = dict.fromkeys(released)
        inputs = operation.inputs if operation.into is None else [operation.inputs[operation.into], *operation.inputs]
        ending = iter(inputs)
        for heir in operation.outputs:
            if heir in left or heir.name[0] == "v":
                continue
            for value in ending:
                if value in left and value.name[0] != "v":
                    heir.name = value.name
                    del left[value]
                    break
        return left

    def _noted(self, operation: Operation | None) -> str:
        """The call that records skipped nodes before `operation`."""
        due = self.skipped.get(operation) if self.watched else None
        if not due:
            return ""
        first = len(self.notes)
        self.notes += [Note.of(skipped) for skipped in due]
        return f"note({first}, {len(self.notes) - 1}); "

    def _call(self, number: int, operation: Operation) -> str:
        arguments = []
        for value in operation.inputs:
            if value.constant is not None:
                self._hold(value, value.constant)
            arguments.append(value.name)
        if True in operation.reads:
            arguments = [f"{name}.read()" if read else name for name, read in zip(arguments, operation.reads, strict=True)]
        outputs = [value.name for value in operation.outputs]
        if operation.apart == JOIN:
            return f"{', '.join(outputs)} = {arguments[0]}.result()"
        if operation.kernel is None:
            return f"{outputs[0]} = {arguments[0]}" if arguments else outputs[0]
        kernel = self._kernel(number, operation.kernel)
        if operation.into is not None:
            # By position is faster; NumPy requires the keyword where the third argument could be read as an operand.
            target = arguments[operation.into]
            arguments.append(f"out={target}" if operation.kernel in _BY_KEYWORD else target)
        if operation.apart == BEGIN and self.watched:
            return f"{outputs[0]} = begin({', '.join([str(number), kernel, *arguments])})"
        if operation.apart == BEGIN:
            self.scope["submit"] = kernel_pool.submit
            return f"{outputs[0]} = submit({', '.join([kernel, *arguments])})"
        call = f"{kernel}({', '.join(arguments)})"
        if operation.is_long:
            self.scope["interruptible"] = call_interruptibly
            call = f"interruptible({', '.join([kernel, *arguments])})"
        if not outputs:
            return call
        return f"{', '.join(outputs)} = {call}{self._check(number, operation)}"

    def _kernel(self, number: int, kernel: Any) -> str:
        """The name of a kernel in the text. NumPy's functions have their own names, shared by many nodes."""
        name = _NUMPY_NAMES.get(id(kernel))
        if name is None:
            name = f"k{number}"
        self.scope[name] = kernel
        return name

    def _check(self, number: int, operation: Operation) -> str:
        """The code after a call that checks its results."""
        kernel, node = operation.kernel, operation.node
        if id(kernel) in _NUMPY_NAMES or type(kernel) is np.ufunc or node.registration.is_function:
            return ""
        checks: list[str] = []
        for place, value in enumerate(operation.outputs):
            dtype = value.tensor.dtype
            wanted = None if dtype.is_ref or dtype is string else dtype.as_numpy
            if wanted is None:
                continue
            self.scope[f"d_{dtype.text}"] = wanted
            refuse = f"w{number}" if value.tensor.node is node else f"w{number}_{place}"  # one kernel can stand for several nodes
            self.scope[refuse] = wrong_dtype(value.tensor.node)
            checks.append(f"; {value.name}.dtype is d_{dtype.text} or {refuse}({value.tensor.index}, {value.name})")
        return "".join(checks)

    def _argument(self, value: Value, read: bool) -> str:
        if value.constant is not None:
            self._hold(value, value.constant)
        return f"{value.name}.read()" if read else value.name

    def _hold(self, value: Value, constant: Array) -> None:
        """Bind a constant to its name in the text."""
        self.scope[value.name] = constant

    def _list_of_results(self) -> str:
        return f"[{', '.join([self._argument(value, value.is_reference) for value in self.results])}]"
