"""The schedule of loops and branches: each operation with the branches that it lies on, between marks where loops begin, test, turn and end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from graphcore.graph.model.control_flow import NO_BRANCH, Branch, ControlFlow, Guard
from graphcore.graph.model.node import Node, Tensor
from graphcore.passes.infra.value_numbering import ValueNumbering
from graphcore.plumbing import ANY_SWITCH, CONTROL_TRIGGER, ENTER, EXIT, LOOP_COND, MERGE, NO_OP
from graphcore.runtime.core.events import PASSED, UNNEEDED
from graphcore.runtime.core.prune import is_replaced
from graphcore.runtime.plan.loop_structure import AFTER, BEFORE, INSIDE, PlannedLoop, Structure, Unit
from graphcore.runtime.plan.schedule import MakeKernel, Operation, Schedule, Scheduler, Skipped, Value, bind, check_runs, number

_PASSING: Final = ANY_SWITCH | ENTER | EXIT | {LOOP_COND}
_NOTHING: Final = frozenset({CONTROL_TRIGGER, NO_OP})


class Mark(Operation):
    """An operation that calls no kernel, but has a place in the text.

    Attributes:
        loop: of the marks of a loop: which.
    """

    __slots__ = ("loop",)

    def __init__(self, node: Node, inputs: list[Value], outputs: list[Value], loop: PlannedLoop | None = None) -> None:
        reads = [value.is_reference and not any(output.is_reference for output in outputs) for value in inputs]
        super().__init__(node, None, inputs, reads, outputs)
        self.loop = loop

    def may_fail(self) -> bool:
        """It only hands on what others have made."""
        return False


class Decide(Mark):
    """Which way the Switches go that go by a value: its output is a bool, or a number."""

    __slots__ = ("sides",)

    def __init__(self, node: Node, pred: Value, decision: Value, sides: int) -> None:
        super().__init__(node, [pred], [decision])
        self.sides = sides


class Choose(Mark):
    """The end of a branch: the first output is the input of the side that was taken, the second which input that is.

    Attributes:
        branches: the side of each input.
    """

    __slots__ = ("branches",)

    def __init__(self, node: Node, inputs: list[Value], outputs: list[Value], branches: list[Branch]) -> None:
        super().__init__(node, inputs, outputs)
        self.reads = [value.is_reference and not node.input_types[0].is_ref for value in inputs]
        self.branches = branches


class Begin(Mark):
    """A loop begins: each output takes its first value from the input of the same number.

    Attributes:
        unit: the loop where it stands, and `around` the loop around it.
    """

    __slots__ = ("around", "unit")

    def __init__(self, unit: Unit, around: PlannedLoop, inputs: list[Value], outputs: list[Value]) -> None:
        assert unit.loop is not None
        assert unit.loop.pivot is not None
        super().__init__(unit.loop.pivot, inputs, outputs, unit.loop)
        self.reads = [value.is_reference and not header.is_reference for value, header in zip(inputs, outputs, strict=True)]
        self.unit = unit
        self.around = around


class Test(Mark):
    """The loop ends here unless the input is true."""


class Turn(Mark):
    """The next iteration: each value that goes around takes its next value from the input of the same number."""

    __slots__ = ("headers",)

    def __init__(self, node: Node, inputs: list[Value], headers: list[Value], loop: PlannedLoop) -> None:
        super().__init__(node, inputs, [], loop)
        self.reads = [value.is_reference and not header.is_reference for value, header in zip(inputs, headers, strict=True)]
        self.headers = headers


class End(Mark):
    """The loop has ended."""


class Leave(Mark):
    """All that runs when the loop has ended has run."""


class LoopSchedule(Schedule):
    """What a plan with branches and loops does.

    Attributes:
        guards: the branches that each operation lies on, within its loop.
        decisions: what decides each branch, by its tensor.
        fetches: what the results are the values of, and `result_guards` the branches that each lies on.
        flow: the loops and branches of the graph.
    """

    __slots__ = ("decisions", "fetches", "flow", "guards", "result_guards")

    def __init__(
        self,
        operations: list[Operation],
        feeds: list[Value],
        results: list[Value],
        scheduler: _LoopScheduler,
        fetches: Sequence[Tensor],
    ) -> None:
        super().__init__(operations, feeds, results, scheduler.variables)
        self.guards = scheduler.guards
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
        structure: the branches and loops among `nodes`, which is what a run needs.

    Raises:
        GraphError: a node carries an error or cannot run.
    """
    scheduler = _LoopScheduler(structure, feeds, make_kernel)
    scheduler.run()
    results = [scheduler.values[tensor] for tensor in fetches]
    awaited = {structure.replacements.get(node, node) for node in (*targets, *[node for other in nodes for node in other.control_inputs])}
    schedule = LoopSchedule(
        _wanted(scheduler.operations, results, awaited, scheduler.guards),
        [scheduler.values[tensor] for tensor in feeds],
        results,
        scheduler,
        fetches,
    )
    number(schedule.operations, results)
    _keep_through_loops(schedule.operations)
    for operation in schedule.operations:
        if not isinstance(operation, Mark) and operation.node.op not in _PASSING:
            bind(operation, make_kernel, scheduler.variables)
    return schedule


class _LoopScheduler(Scheduler):
    def __init__(self, structure: Structure, feeds: Sequence[Tensor], make_kernel: MakeKernel) -> None:
        super().__init__(feeds, make_kernel)
        self.structure = structure
        self.flow = structure.flow
        self.guards: dict[Operation, Guard] = {}
        self.decisions: dict[Tensor, Value] = {}
        self.guard = NO_BRANCH
        self.base = NO_BRANCH
        self.loop = structure.outermost
        self.tests = {self.flow.test(loop.name) for loop in _all_loops(self.loop)}
        self.scopes: dict[tuple[PlannedLoop, int, Guard], ValueNumbering[Operation]] = {}

    def run(self) -> None:
        """Lower everything."""
        for tensor in self.flow.feeds:
            self._decide(tensor)
        self._add_phase(self.loop, 0)

    def _add_phase(self, loop: PlannedLoop, phase: int) -> None:
        for unit in loop.phases[phase]:
            self.loop, self.guard = loop, unit.guard
            self.computed = self.scopes.setdefault((loop, phase, unit.guard), ValueNumbering())
            if unit.loop is not None:
                self._add_loop(unit.loop, unit)
                continue
            assert unit.node is not None
            self._add_node(unit.node)
            for tensor in unit.node.outputs:
                self._decide(tensor)
        if phase == 0:
            for unit in [*loop.phases[1], *loop.phases[2]]:
                self._skip_enters(loop, unit, 0)

    def _skip_enters(self, around: PlannedLoop, unit: Unit, phase: int) -> None:
        """Tell of the Enters of a loop that run in this phase of the loop around it: what stays the same may be there early."""
        before = self.guard
        for enter in () if unit.loop is None else unit.loop.enters:
            if enter_phase(self.flow, around, enter) == phase:
                self.guard = enter_guard(self.flow, around, enter)
                self.guard |= self.base
                self.skip(enter, PASSED)
        self.guard = before

    def skip(self, node: Node, how: str) -> None:
        """Note that `node` needs no kernel, and why."""
        self.skips += 1
        self._append(Skipped(node, how))

    def _append(self, operation: Operation) -> None:
        self.guards[operation] = self.guard
        self.operations.append(operation)

    def _emit(self, node: Node, inputs: list[Value]) -> None:
        before = len(self.operations)
        super()._emit(node, inputs)
        for operation in self.operations[before:]:
            self.guards[operation] = self.guard

    def _add_node(self, node: Node) -> None:
        check_runs(node)
        if is_replaced(node, self.values):
            return
        if node in self.structure.replacements:
            self.stand_in(node, self.structure.replacements[node])
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
        """What `node` passes on of `value`: a variable is read, unless it is wanted as such."""
        if not value.is_reference or node.input_types[0].is_ref:
            return value
        read = self._value(node.outputs[0], 0)
        self._append(Mark(node, [value], [read]))
        return read

    def _add_merge(self, node: Node) -> None:
        values = [self.values[tensor] for tensor in node.inputs]
        outputs = [self._value(tensor, tensor.index) for tensor in node.outputs]
        outputs[0].is_reference = node.output_types[0].is_ref
        for tensor, value in zip(node.outputs, outputs, strict=True):
            self.values.setdefault(tensor, value)
        self._append(Choose(node, values, outputs, self.flow.joined_branches(node) if len(node.inputs) > 1 else []))

    def _decide(self, tensor: Tensor) -> None:
        """Look which way Switches go by `tensor`, now that it has a value."""
        sides = self.structure.deciders.get(tensor)
        if sides is None or tensor in self.tests or tensor in self.decisions:
            return
        decision = self._value(tensor, 0)
        decision.is_kept = True
        self.decisions[tensor] = decision
        self._append(Decide(tensor.node, self.values[tensor], decision, sides))

    def _value(self, tensor: Tensor, index: int) -> Value:
        return Value(tensor, f"t{self.next_number}_{index}")

    def _add_loop(self, loop: PlannedLoop, unit: Unit) -> None:
        around, pivot = self.loop, loop.pivot
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
        self._append(Begin(unit, around, starts, headers))
        base, self.base = self.base, NO_BRANCH
        self.guard = NO_BRANCH
        for variable in loop.variables:
            self.skip(variable.merge, PASSED)
        self.computed = self.scopes.setdefault((loop, 0, NO_BRANCH), ValueNumbering())
        for enter in loop.constants:
            self._decide_within(loop, enter.outputs[0])
        for variable in loop.variables:
            self._decide_within(loop, variable.merge.outputs[0])
        self._add_phase(loop, 0)
        self.guard = NO_BRANCH
        self._append(Test(pivot, [self.values[pivot.inputs[0]]], [], loop))
        self._add_phase(loop, 1)
        self.guard = NO_BRANCH
        for variable in loop.variables:
            self.skip(variable.next, PASSED)
        self._append(Turn(pivot, [self.values[variable.next.inputs[0]] for variable in loop.variables], headers, loop))
        self.guard = unit.guard
        self._append(End(pivot, [], [], loop))
        self.base = unit.guard
        self._add_after(loop, unit)
        self.guard, self.base = unit.guard, base
        self._append(Leave(pivot, [], [], loop))
        self.loop = around

    def _decide_within(self, loop: PlannedLoop, tensor: Tensor) -> None:
        self.loop = loop
        self._decide(tensor)

    def _add_after(self, loop: PlannedLoop, unit: Unit) -> None:
        """What runs when the loop has ended: on the branches that the loop lies on, and its own."""
        for after in loop.phases[2]:
            after.guard |= unit.guard
        self._add_phase(loop, 2)


def _all_loops(loop: PlannedLoop) -> Iterable[PlannedLoop]:
    pending = [loop]
    while pending:
        found = pending.pop()
        yield found
        for phase in found.phases:
            pending += [unit.loop for unit in phase if unit.loop is not None]


def enter_guard(flow: ControlFlow, around: PlannedLoop, enter: Node) -> Guard:
    """The branches that an Enter lies on in the loop that it stands in, other than that of the test."""
    test = flow.test(around.name)
    return frozenset([branch for branch in _entering(flow, enter) if branch.pred is not test])


def enter_phase(flow: ControlFlow, around: PlannedLoop, enter: Node) -> int:
    """The phase of the loop around it in which an Enter runs."""
    test = flow.test(around.name)
    side = next((branch.side for branch in _entering(flow, enter) if branch.pred is test), None)
    return BEFORE if side is None else INSIDE if side else AFTER


def _entering(flow: ControlFlow, enter: Node) -> Guard:
    return flow.loops[flow.frames[enter]].entering[enter]


def _wanted(
    operations: list[Operation], results: list[Value], awaited: Collection[Node], guards: dict[Operation, Guard]
) -> list[Operation]:
    """Without what nobody reads or waits for."""
    used = set(results)
    kept: list[Operation] = []
    for operation in reversed(operations):
        node = operation.node
        if type(operation) is Skipped:
            kept.append(operation)
            continue
        if isinstance(operation, Mark):
            acts = operation.loop is not None
        else:
            acts = node in awaited or not node.outputs or node.op_def.is_stateful or any(dtype.is_ref for dtype in node.input_types)
        if acts or not used.isdisjoint(operation.outputs) or isinstance(operation, Decide) or operation.may_fail():
            used.update(operation.inputs)
            kept.append(operation)
        elif not isinstance(operation, Mark):
            kept.append(Skipped(node, UNNEEDED))
            guards[kept[-1]] = guards[operation]
    kept.reverse()
    return kept


def _keep_through_loops(operations: list[Operation]) -> None:
    """What a loop reads that is made before it, it reads in every iteration; and a turn gives what goes around a new value."""
    begun: list[int] = []
    for place, operation in enumerate(operations):
        if isinstance(operation, Begin):
            begun.append(place)
        if not isinstance(operation, End):
            continue
        first = begun.pop()
        for header in operations[first].outputs:
            if header.last_use < place and isinstance(operations[header.last_use], Turn):
                header.last_use = place
        for inner in operations[first + 1 : place]:
            for value in inner.inputs:
                if value.producer < first and value.last_use < place:
                    value.last_use = place
