"""The order of `if`s and `while`s in a plan for a graph in Switch/Merge form.

It follows from the loops and guards of the control-flow analysis: in a loop, nodes on no branch of the LoopCond run before the test, nodes
on its true branch after it, and nodes on its false branch after the loop.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from heapq import heappop, heappush
from typing import Final, NamedTuple

from graphcore.errors import UnimplementedError
from graphcore.graph.control_flow.analysis import NO_BRANCH, Branch, ControlFlow, Guard, LoopVariable
from graphcore.graph.control_flow.frames import NodeFrame
from graphcore.graph.model.node import Node, Tensor, producers_of
from graphcore.graph.model.search import topological_sort
from graphcore.passes.optimize.redundant_calls import find_redundant_calls
from graphcore.plumbing import ANY_SWITCH, CONTROL_TRIGGER, ENTER, EXIT, LOOP_COND, MERGE, NEXT_ITERATION, RECV, SEND

_MAX_DEPTH: Final = 12
_MAX_BRANCHES: Final = 24
BEFORE, INSIDE, AFTER = 0, 1, 2
"""The parts of a loop that a call belongs to: before the test, in the body, after the loop."""


class Unit:
    """A unit of execution: a node, or a loop.

    Attributes:
        guard: the branches it is on, except that of its loop's test.
        phase: its phase in the loop.
    """

    __slots__ = ("guard", "loop", "node", "phase")

    def __init__(self, node: Node | None, loop: PlannedLoop | None) -> None:
        self.node = node
        self.loop = loop
        self.guard = NO_BRANCH
        self.phase = BEFORE

    @property
    def nodes(self) -> list[Node]:
        """The node, or the Enters of the loop."""
        return self.loop.enters if self.loop is not None else [self.node] if self.node is not None else []


class PlannedLoop:
    """A frame, or the root, with the order of its parts.

    Attributes:
        name: the frame's name; "" for the root.
        variables: the loop variables; `constants` are the Enters of loop invariants.
        pivot: the LoopCond.
        phases: the units before the test, in the body, and after the loop, in order. The root has only the first.
        members: the nodes of the frame except `enters`, its Enters; `inner` are the loops in it.
    """

    __slots__ = ("constants", "depth", "enters", "inner", "members", "name", "phases", "pivot", "variables")

    def __init__(self, name: str, depth: int) -> None:
        self.name = name
        self.depth = depth
        self.variables: list[LoopVariable] = []
        self.constants: list[Node] = []
        self.pivot: Node | None = None
        self.phases: tuple[list[Unit], list[Unit], list[Unit]] = ([], [], [])
        self.members: list[Node] = []
        self.enters: list[Node] = []
        self.inner: list[PlannedLoop] = []


class Structure(NamedTuple):
    """The control-flow structure of a plan.

    Attributes:
        outermost: the root, with the loops in it.
        flow: the loops and branches of the graph.
        deciders: the predicates of Switches, each with the number of its branches.
        replacements: the redundant nodes, each with its replacement.
    """

    outermost: PlannedLoop
    flow: ControlFlow
    deciders: dict[Tensor, int]
    replacements: dict[Node, Node]


def find_structure(nodes: Sequence[Node], info: Mapping[Node, NodeFrame], feeds: Collection[Tensor]) -> Structure:
    """Find the branches and loops among `nodes`.

    Args:
        nodes: the nodes of a run, producers first.
        info: their frames.
        feeds: the fed tensors.

    Raises:
        UnimplementedError: the nodes are not composed of branches and loops; the message names the exception.
    """
    return _Finder(nodes, info, feeds).find()


class _Finder:
    def __init__(self, nodes: Sequence[Node], info: Mapping[Node, NodeFrame], feeds: Collection[Tensor]) -> None:
        self.nodes = nodes
        self.info = info
        self.flow = ControlFlow(nodes, info, feeds)
        self.feeds = self.flow.feeds
        self.deciders: dict[Tensor, int] = {}
        self.replacements = find_redundant_calls(nodes)
        self.loops: dict[str, PlannedLoop] = {"": PlannedLoop("", 0)}
        self.followers: dict[Node, set[Node]] = {}
        for node in nodes:
            for producer in producers_of(node):
                if producer.op in ENTER:
                    self.followers.setdefault(producer, set()).add(node)

    def find(self) -> Structure:
        for node in self.nodes:
            self._place(node)
        for name in sorted(self.loops, key=lambda name: -self.loops[name].depth):
            self._fill(self.loops[name])
        return Structure(self.loops[""], self.flow, self.deciders, self.replacements)

    def _place(self, node: Node) -> None:
        inside = self.info[node]
        name = inside.frame_name
        if node.op in RECV:
            raise _unfit(node, "it may receive a dead value")
        if name not in self.loops:
            around = self.loops["" if inside.parent_frame is None else self.info[inside.parent_frame].frame_name]
            depth = around.depth + 1
            if depth > _MAX_DEPTH:
                raise _unfit(node, f"its loop lies within {_MAX_DEPTH} others")
            self.loops[name] = PlannedLoop(name, depth)
            around.inner.append(self.loops[name])
        loop = self.loops[name]
        (loop.enters if node.op in ENTER else loop.members).append(node)

    def _fill(self, loop: PlannedLoop) -> None:
        """Find the variables of a loop, and the phase of each of its nodes. Inner loops come first."""
        if loop.name:
            self._find_variables(loop)
        headers = {variable.merge for variable in loop.variables} | {variable.next for variable in loop.variables}
        units = {node: Unit(node, None) for node in loop.members if node not in headers}
        loops = {inner.name: Unit(None, inner) for inner in loop.inner}
        everyone = [*units.values(), *loops.values()]
        needs = {unit: self._needs(loop, unit, units, loops) for unit in everyone}
        order, stuck = topological_sort(everyone, needs.__getitem__, lambda _: 0)
        if stuck:
            raise UnimplementedError(f"Loop '{loop.name}' and one in it wait for each other", op="Enter")
        test = self.flow.test(loop.name)
        for unit in order:
            self._classify(loop, unit, needs[unit], test)
        self._check_iterations(loop, units, test)
        for number, phase in enumerate(loop.phases):
            phase += _clustered([unit for unit in order if unit.phase == number], needs)

    def _find_variables(self, loop: PlannedLoop) -> None:
        variables = {variable.merge: variable for variable in self.flow.loops[loop.name].variables}
        for node in loop.members:
            if node.op in MERGE and any(tensor.node.op in ENTER for tensor in node.inputs):
                loop.variables.append(self._checked(node, variables.get(node)))
            for control in node.control_inputs:
                if control.op in NEXT_ITERATION:
                    raise _unfit(node, "it waits for what goes on into the next iteration")
        pivots = [node for node in loop.members if node.op == LOOP_COND]
        if len(pivots) != 1:
            raise _unfit(loop.enters[0], f"loop '{loop.name}' has {len(pivots)} LoopConds")
        loop.pivot = pivots[0]
        renewed = {variable.next for variable in loop.variables}
        for node in loop.members:
            if node.op in NEXT_ITERATION and node not in renewed:
                raise _unfit(node, "its value goes to no Merge that an Enter goes to")
        first = {variable.enter: variable.merge for variable in loop.variables}
        for enter in loop.enters:
            if enter.node_def.attr.get("is_constant"):
                loop.constants.append(enter)
            elif self.followers.get(enter, set()) != {first.get(enter)}:
                raise _unfit(enter, "its value is there in the first iteration only")

    def _checked(self, merge: Node, variable: LoopVariable | None) -> LoopVariable:
        if variable is None or len(merge.inputs) != 2 or merge.control_inputs:
            raise _unfit(merge, "it does not take one Enter and one NextIteration")
        if variable.enter.node_def.attr.get("is_constant") or merge.outputs[1] in self.flow.consumers:
            raise _unfit(merge, "what comes out of it depends on the iteration")
        return variable

    def _needs(self, loop: PlannedLoop, unit: Unit, units: Mapping[Node, Unit], loops: Mapping[str, Unit]) -> list[Unit]:
        """The units that must run before `unit`."""
        reached: list[Unit] = []
        for node in unit.nodes:
            if node in self.flow.fed_nodes:
                continue
            before = (
                [self.replacements[node]]
                if node in self.replacements
                else [tensor.node for tensor in node.inputs if tensor not in self.feeds]
            )
            for producer in [*before, *node.control_inputs]:
                other = self._unit_of(loop, producer, units, loops)
                if other is not None:
                    reached.append(other)
        return reached

    def _unit_of(self, loop: PlannedLoop, producer: Node, units: Mapping[Node, Unit], loops: Mapping[str, Unit]) -> Unit | None:
        inside = self.info[producer]
        if producer.op in EXIT and inside.frame_name != loop.name:
            return loops[inside.frame_name]
        return units.get(producer)  # Enters, Merges of loops and NextIterations are available when the iteration begins

    def _classify(self, loop: PlannedLoop, unit: Unit, needs: Collection[Unit], test: Tensor | None) -> None:
        """Find the guard and phase of `unit`."""
        node = unit.nodes[0]
        guard = self._guard_of_node(node) if unit.loop is None else self._guard_of_loop(unit.loop)
        if len(guard) > _MAX_BRANCHES:
            raise _unfit(node, f"it lies on more than {_MAX_BRANCHES} branches")
        sides: dict[Tensor | None, int] = {branch.pred: branch.side for branch in guard}
        if len(sides) < len(guard):
            raise _unfit(node, "it lies on two sides of one branch")
        if test in sides:
            unit.phase = INSIDE if sides[test] else AFTER
        unit.guard = frozenset([branch for branch in guard if branch.pred is not test])
        later = {need.phase for need in needs} - {BEFORE, unit.phase}
        if later and node.op == CONTROL_TRIGGER and unit.phase == BEFORE and len(later) == 1:
            unit.phase = later.pop()
        if later or (node is loop.pivot and guard):
            raise _unfit(node, "it waits for what runs later in its loop")

    def _guard_of_loop(self, inner: PlannedLoop) -> Guard:
        flow = self.flow.loops[inner.name]
        for enter, own in flow.entering.items():
            if own != flow.guard and enter not in inner.constants:
                raise _unfit(enter, "its value may be there where others that enter the same loop are not")
        return flow.guard

    def _guard_of_node(self, node: Node) -> Guard:
        if node in self.flow.open_merges:
            raise _unfit(node, self.flow.open_merges[node])
        if node.op in EXIT:
            return self.flow.guard_of_inputs(node)
        guard = self.flow.guards[node]
        if node.op in ANY_SWITCH and node not in self.flow.fed_nodes:
            self._note_decider(node)
        if node.op in SEND and guard:
            raise _unfit(node, "it sends word of a dead value")
        return guard

    def _note_decider(self, switch: Node) -> None:
        pred, sides = self.flow.decider(switch.inputs[1]), len(switch.outputs)
        if self.deciders.setdefault(pred, sides) != sides:
            raise _unfit(switch, "what decides here decides elsewhere between another number of ways")

    def _check_iterations(self, loop: PlannedLoop, units: Collection[Node], test: Tensor | None) -> None:
        """Check that every value continues if the test is true, and leaves if it is false."""
        if test is None:
            return
        onward, out = frozenset([Branch(test, 1, 2)]), frozenset([Branch(test, 0, 2)])
        for variable in loop.variables:
            if self.flow.guard_of(variable.next.inputs[0]) != onward:
                raise _unfit(variable.next, "its value is not there in every iteration but the last")
            if any(self.flow.guards.get(control, NO_BRANCH) - onward for control in variable.next.control_inputs):
                raise _unfit(variable.next, "it waits for what does not run in every iteration")
        for node in units:
            if node.op in EXIT and self.flow.guard_of_inputs(node) != out:
                raise _unfit(node, "its value is not there exactly when the loop ends")


def _clustered(units: Sequence[Unit], needs: Mapping[Unit, Sequence[Unit]]) -> list[Unit]:
    """`units` in topological order, with equal guards adjacent as far as possible."""
    place = {unit: i for i, unit in enumerate(units)}
    waiting = {}
    followers: dict[Unit, list[Unit]] = {}
    ready: dict[Guard, list[int]] = {}
    for unit in units:
        own = place.keys() & needs[unit]
        waiting[unit] = len(own)
        for need in own:
            followers.setdefault(need, []).append(unit)
        if not own:
            heappush(ready.setdefault(unit.guard, []), place[unit])
    order: list[Unit] = []
    current: Guard | None = None
    while ready:
        if current not in ready:
            current = min(ready, key=lambda guard: ready[guard][0])
        heap = ready[current]
        unit = units[heappop(heap)]
        if not heap:
            del ready[current]
        order.append(unit)
        for follower in followers.get(unit, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                heappush(ready.setdefault(follower.guard, []), place[follower])
    return order


def _unfit(node: Node, reason: str) -> UnimplementedError:
    return UnimplementedError.at(
        node,
        f"'{node.name}' (op {node.op}) is no part of a branch or loop that the plan engine knows: {reason}; the dataflow engine runs it",
    )
