"""The schedule of loops and branches: operations with guards, and marks of loops.

Marks begin a loop, test its condition, start an iteration, and end it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from graphcore.graph.control_flow.analysis import NO_BRANCH, Branch, ControlFlow, Guard
from graphcore.graph.model.node import Node, Tensor
from graphcore.passes.infra.value_numbering import ValueNumbering
from graphcore.plumbing import ANY_SWITCH, CONTROL_TRIGGER, ENTER, EXIT, LOOP_COND, MERGE, NO_OP
from graphcore.runtime.core.events import PASSED
from graphcore.runtime.core.prune import is_replaced
from graphcore.runtime.plan.loop_structure import AFTER, BEFORE, INSIDE, PlannedLoop, Structure, Unit
from graphcore.runtime.plan.schedule import MakeKernel, Operation, Schedule, Scheduler, Value, bind, check_runs, number, without_unread

_PASSING: Final = ANY_SWITCH | ENTER | EXIT | {LOOP_COND}
_NOTHING: Final = frozenset({CONTROL_TRIGGER, NO_OP})


class Mark(Operation):
    """An operation without a kernel that has lines of its own in the generated code."""

    __slots__ = ()
    is_call = False

    def __init__(self, node: Node, inputs: list[Value], outputs: list[Value]) -> None:
        reads = [value.is_reference and not any(output.is_reference for output in outputs) for value in inputs]
        super().__init__(node, None, inputs, reads, outputs)

    def may_fail(self) -> bool:
        """False: a mark only passes values on."""
        return False

    def acts(self, awaited: Collection[Node]) -> bool:  # noqa: ARG002 - what is overridden takes it
        """False: a value that is passed on may have no readers."""
        return False


class Decide(Mark):
    """The decision of Switches by a value: its output is a bool, or a number."""

    __slots__ = ("sides",)

    def __init__(self, node: Node, pred: Value, decision: Value, sides: int) -> None:
        super().__init__(node, [pred], [decision])
        self.sides = sides

    def acts(self, awaited: Collection[Node]) -> bool:  # noqa: ARG002 - what is overridden takes it
        """True: conditions of the code name it."""
        return True


class Choose(Mark):
    """The end of a branch: its outputs are the input of the side taken, and the index of that input.

    Attributes:
        branches: the side of each input.
    """

    __slots__ = ("branches",)

    def __init__(self, node: Node, inputs: list[Value], outputs: list[Value], branches: list[Branch]) -> None:
        super().__init__(node, inputs, outputs)
        self.reads = [value.is_reference and not node.input_types[0].is_ref for value in inputs]
        self.branches = branches


class LoopMark(Mark):
    """A mark of a loop: the code is not whole without it."""

    __slots__ = ("loop",)

    def __init__(self, loop: PlannedLoop, inputs: Sequence[Value] = (), outputs: Sequence[Value] = ()) -> None:
        assert loop.pivot is not None
        super().__init__(loop.pivot, list(inputs), list(outputs))
        self.loop = loop

    def acts(self, awaited: Collection[Node]) -> bool:  # noqa: ARG002 - what is overridden takes it
        """True: the code is not whole without it."""
        return True


class Begin(LoopMark):
    """The beginning of a loop: each output gets its initial value from the input of the same index."""

    def __init__(self, loop: PlannedLoop, inputs: list[Value], outputs: list[Value]) -> None:
        super().__init__(loop, inputs, outputs)
        self.reads = _reads(inputs, outputs)


class Test(LoopMark):
    """The end of the loop unless the input is true."""


class Repeat(LoopMark):
    """The next iteration: each loop variable gets its next value from the input of the same index."""

    __slots__ = ("headers",)

    def __init__(self, loop: PlannedLoop, inputs: list[Value], headers: list[Value]) -> None:
        super().__init__(loop, inputs)
        self.reads = _reads(inputs, headers)
        self.headers = headers


class End(LoopMark):
    """The end of the loop."""


class Leave(LoopMark):
    """The end of the operations after the loop."""


def _reads(values: list[Value], headers: list[Value]) -> list[bool]:
    """The values to be read for loop variables that are no references."""
    return [value.is_reference and not header.is_reference for value, header in zip(values, headers, strict=True)]


class LoopSchedule(Schedule):
    """The operations of a plan with branches and loops.

    Attributes:
        decisions: the decision of each branch, by its tensor.
        fetches: the fetched tensors, and `result_guards` the branches of each.
        flow: the loops and branches of the graph.
    """

    __slots__ = ("decisions", "fetches", "flow", "result_guards")

    def __init__(
        self,
        operations: list[Operation],
        feeds: list[Value],
        results: list[Value],
        scheduler: _LoopScheduler,
        fetches: Sequence[Tensor],
    ) -> None:
        super().__init__(operations, feeds, results, scheduler.variables)
        self.decisions = scheduler.decisions
        self.fetches = fetches
        self.flow = scheduler.flow
        self.result_guards = [scheduler.flow.guard_of(tensor) for tensor in fetches]


def schedule_loops(
    structure: Structure,
    nodes: Iterable[Node],
    fetches: Sequence[Tensor],
    targets: Collection[Node],
    feeds: Sequence[Tensor],
    make_kernel: MakeKernel,
) -> LoopSchedule:
    """The operations that compute `fetches` and run `targets`.

    Args:
        structure: the branches and loops among the nodes of a run.

    Raises:
        GraphError: a node has an error or cannot run.
    """
    scheduler = _LoopScheduler(structure, feeds, make_kernel)
    scheduler.run()
    results = [scheduler.values[tensor] for tensor in fetches]
    awaited = {structure.replacements.get(node, node) for node in (*targets, *[node for other in nodes for node in other.control_inputs])}
    schedule = LoopSchedule(
        without_unread(scheduler.operations, results, awaited),
        [scheduler.values[tensor] for tensor in feeds],
        results,
        scheduler,
        fetches,
    )
    number(schedule.operations, results)
    _extend_lifetimes(schedule.operations)
    for operation in schedule.operations:
        if not isinstance(operation, Mark) and operation.node.op not in _PASSING:
            bind(operation, make_kernel, scheduler.variables)
    return schedule


class _LoopScheduler(Scheduler):
    def __init__(self, structure: Structure, feeds: Sequence[Tensor], make_kernel: MakeKernel) -> None:
        super().__init__(feeds, make_kernel)
        self.structure = structure
        self.flow = structure.flow
        self.decisions: dict[Tensor, Value] = {}
        self.guard = NO_BRANCH
        self.base = NO_BRANCH
        self.tests = {self.flow.test(name) for name in self.flow.loops}
        self.scopes: dict[tuple[PlannedLoop, int, Guard], ValueNumbering[Operation]] = {}

    def run(self) -> None:
        """Make all operations."""
        for tensor in self.flow.feeds:
            self._decide(tensor)
        self._add_phase(self.structure.outermost, 0)

    def _add_phase(self, loop: PlannedLoop, phase: int) -> None:
        for unit in loop.phases[phase]:
            self.guard = unit.guard
            self.computed = self.scopes.setdefault((loop, phase, unit.guard), ValueNumbering())
            if unit.loop is not None:
                self._add_loop(unit.loop, unit, loop)
                continue
            assert unit.node is not None
            self._add_node(unit.node)
            for tensor in unit.node.outputs:
                self._decide(tensor)
        if phase == 0:
            for unit in [*loop.phases[1], *loop.phases[2]]:
                self._skip_enters(loop, unit, 0)

    def _skip_enters(self, around: PlannedLoop, unit: Unit, phase: int) -> None:
        """Record the Enters of a loop in this phase of the surrounding loop; loop invariants may be early."""
        before = self.guard
        for enter in () if unit.loop is None else unit.loop.enters:
            if enter_phase(self.flow, around, enter) == phase:
                self.guard = enter_guard(self.flow, around, enter)
                self.guard |= self.base
                self.skip(enter, PASSED)
        self.guard = before

    def append(self, operation: Operation) -> None:
        """Add an operation on the current branches."""
        operation.guard = self.guard
        super().append(operation)

    def _add_node(self, node: Node) -> None:
        check_runs(node)
        if is_replaced(node, self.values):
            return
        if node in self.structure.replacements:
            self.substitute(node, self.structure.replacements[node])
        elif node.op in _NOTHING:
            self.skip(node, PASSED)
        elif node.op in MERGE:
            self._add_merge(node)
            self.skip(node, PASSED)
        elif node.op in _PASSING:
            passed = self._passed(node, self.values[node.inputs[0]])
            for tensor in node.outputs:
                self.values.setdefault(tensor, passed)
            self.skip(node, PASSED)
        else:
            self.add(node)

    def _passed(self, node: Node, value: Value) -> Value:
        """The value that `node` passes on from `value`: a variable is read, unless a reference is required."""
        if not value.is_reference or node.input_types[0].is_ref:
            return value
        read = self._value(node.outputs[0], 0)
        self.append(Mark(node, [value], [read]))
        return read

    def _add_merge(self, node: Node) -> None:
        values = [self.values[tensor] for tensor in node.inputs]
        outputs = [self._value(tensor, tensor.index) for tensor in node.outputs]
        outputs[0].is_reference = node.output_types[0].is_ref
        for tensor, value in zip(node.outputs, outputs, strict=True):
            self.values.setdefault(tensor, value)
        self.append(Choose(node, values, outputs, self.flow.joined_branches(node) if len(node.inputs) > 1 else []))

    def _decide(self, tensor: Tensor) -> None:
        """Decide Switches by `tensor` once it has a value."""
        sides = self.structure.deciders.get(tensor)
        if sides is None or tensor in self.tests or tensor in self.decisions:
            return
        decision = self._value(tensor, 0)
        decision.is_kept = True
        self.decisions[tensor] = decision
        self.append(Decide(tensor.node, self.values[tensor], decision, sides))

    def _value(self, tensor: Tensor, index: int) -> Value:
        return Value(tensor, f"t{self.next_number}_{index}")

    def _add_loop(self, loop: PlannedLoop, unit: Unit, around: PlannedLoop) -> None:
        pivot = loop.pivot
        assert pivot is not None
        self._skip_enters(around, unit, unit.phase)
        for enter in loop.constants:
            check_runs(enter)
            self.values.setdefault(enter.outputs[0], self._passed(enter, self.values[enter.inputs[0]]))
        starts = [self.values[variable.enter.inputs[0]] for variable in loop.variables]
        headers = [self._value(variable.merge.outputs[0], i) for i, variable in enumerate(loop.variables)]
        for variable, header in zip(loop.variables, headers, strict=True):
            header.is_reference = variable.merge.output_types[0].is_ref
            self.values[variable.merge.outputs[0]] = header
        self.append(Begin(loop, starts, headers))
        base, self.base = self.base, NO_BRANCH
        self.guard = NO_BRANCH
        for variable in loop.variables:
            self.skip(variable.merge, PASSED)
        self.computed = self.scopes.setdefault((loop, 0, NO_BRANCH), ValueNumbering())
        for entering in [*loop.constants, *[variable.merge for variable in loop.variables]]:
            self._decide(entering.outputs[0])
        self._add_phase(loop, 0)
        self.guard = NO_BRANCH
        self.append(Test(loop, [self.values[pivot.inputs[0]]]))
        self._add_phase(loop, 1)
        self.guard = NO_BRANCH
        for variable in loop.variables:
            self.skip(variable.next, PASSED)
        self.append(Repeat(loop, [self.values[variable.next.inputs[0]] for variable in loop.variables], headers))
        self.guard = unit.guard
        self.append(End(loop))
        self.base = unit.guard
        for after in loop.phases[2]:
            after.guard |= unit.guard
        self._add_phase(loop, 2)
        self.guard, self.base = unit.guard, base
        self.append(Leave(loop))


def enter_guard(flow: ControlFlow, around: PlannedLoop, enter: Node) -> Guard:
    """The branches that an Enter is on in the surrounding loop, without that of the loop's test."""
    test = flow.test(around.name)
    return frozenset([branch for branch in _entering(flow, enter) if branch.pred is not test])


def enter_phase(flow: ControlFlow, around: PlannedLoop, enter: Node) -> int:
    """The phase of the surrounding loop in which an Enter runs."""
    test = flow.test(around.name)
    side = next((branch.side for branch in _entering(flow, enter) if branch.pred is test), None)
    return BEFORE if side is None else INSIDE if side else AFTER


def _entering(flow: ControlFlow, enter: Node) -> Guard:
    return flow.loops[flow.frames[enter]].entering[enter]


def _extend_lifetimes(operations: list[Operation]) -> None:
    """Extend lifetimes over loops: outer values are read in every iteration; loop variables are renewed."""
    begun: list[int] = []
    for place, operation in enumerate(operations):
        if isinstance(operation, Begin):
            begun.append(place)
        if not isinstance(operation, End):
            continue
        first = begun.pop()
        for header in operations[first].outputs:
            if header.last_use < place and isinstance(operations[header.last_use], Repeat):
                header.last_use = place
        for inner in operations[first + 1 : place]:
            for value in inner.inputs:
                if value.producer < first and value.last_use < place:
                    value.last_use = place
