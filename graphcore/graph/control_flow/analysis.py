"""Control-flow analysis: the loops among some nodes, and the branches that each node is on.

A node runs if the branches that it is on are taken. Its *guard* is the set of those branches within its frame: an output of a Switch has
the guard of the Switch and one branch more, a Merge that joins all sides of a branch has that one less, and any other node has the union of
the guards of its inputs. The test of a loop is a branch like others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph.control_flow.frames import OUTERMOST, NodeFrame, control_flow_info
from graphcore.graph.model.node import Node, Tensor, producers_of
from graphcore.graph.model.plain_graph import PlainGraph
from graphcore.plumbing import (
    ANY_SWITCH,
    CONTROL_TRIGGER,
    ENTER,
    EXIT,
    FRAME_OPS,
    LOOP_COND,
    MERGE,
    NEXT_ITERATION,
    SWITCH,
)


class Branch(NamedTuple):
    """One side of a conditional.

    Attributes:
        pred: the tensor that decides.
        side: the output of the Switch: 0 for false, 1 for true.
        sides: the number of outputs of the Switch; 0 stands for a Merge with inputs of unknown liveness.
    """

    pred: Tensor
    side: int
    sides: int


Guard = frozenset[Branch]
NO_BRANCH: Final[Guard] = frozenset()


class LoopVariable:
    """A value that each iteration of a loop passes to the next.

    Attributes:
        merge, enter, next: the Merge at its head, and the Enter and the NextIteration that feed it.
        switch: the Switch by the loop's test; None if it has none.
        exit: an Exit of its final value; None if it has none.
    """

    __slots__ = ("enter", "exit", "merge", "next", "switch")

    def __init__(self, merge: Node, enter: Node, next_iteration: Node) -> None:
        self.merge = merge
        self.enter = enter
        self.next = next_iteration
        self.switch: Node | None = None
        self.exit: Node | None = None


class Loop:
    """The nodes that make a frame a loop.

    Attributes:
        name: the name of the frame.
        parent: the name of the frame around it, "" for the outermost.
        enters: the Enter nodes that lead into it.
        entering: the guard of each Enter in the frame around the loop.
        guard: the branches that the loop lies on in the frame around it.
        variables: the loop variables, in the order of their Enters.
        conditions: its LoopCond nodes: one in a loop that is well formed.
        parallel_iterations: the attr of that name.
    """

    __slots__ = ("conditions", "entering", "enters", "guard", "name", "parallel_iterations", "parent", "variables")

    def __init__(self, name: str, parent: str, parallel_iterations: Any) -> None:
        self.name = name
        self.parent = parent
        self.enters: list[Node] = []
        self.entering: dict[Node, Guard] = {}
        self.guard = NO_BRANCH
        self.variables: list[LoopVariable] = []
        self.conditions: list[Node] = []
        self.parallel_iterations = parallel_iterations

    @property
    def condition(self) -> Node:
        """The LoopCond of a loop that has one."""
        return self.conditions[-1]

    def invariants(self) -> list[Node]:
        """The Enter nodes of loop invariants."""
        varying = {variable.enter for variable in self.variables}
        return [enter for enter in self.enters if enter not in varying]


class ControlFlow:
    """The loops and branches among given nodes.

    Args:
        nodes: the nodes, with all their ancestors up to feeds.
        info: their frames, from `control_flow_info`.
        feeds: the fed tensors.

    Attributes:
        nodes: the nodes, as given; of `fed_nodes` all outputs are fed.
        frames: the name of the frame of each node's outputs; "" for the root.
        loops: the loops by frame name.
        guards: the branches that each node is on in that frame.
        consumers: the consumers of a tensor, each with its slot.
        open_merges: the Merges with inputs of unknown liveness, each with the reason.
    """

    def __init__(self, nodes: Sequence[Node], info: Mapping[Node, NodeFrame], feeds: Collection[Tensor] = ()) -> None:
        self.nodes = nodes
        self.feeds = frozenset(feeds)
        self.fed_nodes = {tensor.node for tensor in self.feeds if all(output in self.feeds for output in tensor.node.outputs)}
        self.frames: dict[Node, str] = {}
        self.loops: dict[str, Loop] = {}
        self.guards: dict[Node, Guard] = {}
        self.consumers: dict[Tensor, list[tuple[Node, int]]] = {}
        self.open_merges: dict[Node, str] = {}
        self._tests: dict[str, Tensor | None] = {}
        self._branches: dict[Tensor, Branch] = {}
        for node in nodes:
            for slot, tensor in enumerate(node.inputs):
                self.consumers.setdefault(tensor, []).append((node, slot))
            self._find_frame(node, info)
        for loop in self.loops.values():
            self._find_variables(loop)
        self._find_guards()

    def decider(self, pred: Tensor) -> Tensor:
        """The tensor that decides a Switch on `pred`: the source of `pred` behind Identities."""
        while pred.node.registration.is_alias and pred.node.op not in FRAME_OPS and pred not in self.feeds:
            pred = pred.node.inputs[0]
        return pred

    def test(self, frame: str) -> Tensor | None:
        """The tensor that decides the continuation of a loop; None for a frame without one LoopCond."""
        if frame not in self._tests:
            conditions = self.loops[frame].conditions if frame in self.loops else ()
            self._tests[frame] = self.decider(conditions[0].inputs[0]) if len(conditions) == 1 else None
        return self._tests[frame]

    def guard_of(self, tensor: Tensor) -> Guard:
        """The guard of a tensor: the branches it is on."""
        node = tensor.node
        if tensor in self.feeds:
            return NO_BRANCH
        guard = self.guards.get(node, NO_BRANCH)
        if node.op not in ANY_SWITCH:
            return guard
        branch = self._branches.get(tensor)
        if branch is None:
            branch = self._branches[tensor] = Branch(self.decider(node.inputs[1]), tensor.index, len(node.outputs))
        return guard | {branch}

    def guard_of_inputs(self, node: Node) -> Guard:
        """The guard of the inputs and control inputs of a node."""
        branches = NO_BRANCH
        for tensor in node.inputs:
            guard = self.guard_of(tensor)
            if guard is not branches:
                branches |= guard
        for control in node.control_inputs:
            branches |= self.guards.get(control, NO_BRANCH)
        return branches

    def loop_left_by(self, exit_node: Node) -> Loop:
        """The loop that an Exit leaves.

        Raises:
            InvalidArgumentError: its input is in no loop.
        """
        loop = self.loops.get(self.frames[exit_node.inputs[0].node])
        if loop is None:
            outside = exit_node.inputs[0].name
            raise InvalidArgumentError.at(exit_node, f"Exit requires an input from within a loop, but '{outside}' is in none")
        return loop

    def add_exit(self, exit_node: Node, loop: Loop) -> None:
        """Add an Exit node made after the analysis."""
        self.frames[exit_node], self.guards[exit_node] = loop.parent, loop.guard

    def branches_of(self, tensor: Tensor) -> list[tuple[Tensor, int]]:
        """The predicate and side of each branch around a tensor, outermost first, without the loop's test."""
        return self._ordered(self.frames[tensor.node], self.guard_of(tensor))

    def branches_around(self, loop: Loop) -> list[tuple[Tensor, int]]:
        """The predicate and side of each branch around a loop, outermost first."""
        return self._ordered(loop.parent, loop.guard)

    def _ordered(self, frame: str, guard: Guard) -> list[tuple[Tensor, int]]:
        test = self.test(frame)
        outer_branches = [branch for branch in guard if branch.pred is not test and branch.sides]
        outer_branches.sort(key=lambda branch: (len(self.guard_of(branch.pred)), branch.pred.node.id))
        return [(branch.pred, branch.side) for branch in outer_branches]

    def joined_branches(self, merge: Node) -> list[Branch]:
        """The branch side of each input of a Merge; () if they are not sides of one branch."""
        guards = [self.guard_of(tensor) for tensor in merge.inputs]
        common = frozenset.intersection(*guards)
        ends = [tuple(guard - common) for guard in guards]
        branches = [own[0] for own in ends if len(own) == 1]
        return branches if len(branches) == len(ends) and len({branch.pred for branch in branches}) == 1 else []

    @staticmethod
    def is_loop_switch(node: Node) -> bool:
        """True iff a Switch belongs to a loop and not to a branch."""
        return node.inputs[1].node.op == LOOP_COND

    @staticmethod
    def is_loop_merge(node: Node) -> bool:
        """True iff a Merge is the head of a loop."""
        return any(tensor.node.op in NEXT_ITERATION for tensor in node.inputs)

    def _find_frame(self, node: Node, info: Mapping[Node, NodeFrame]) -> None:
        inside = info.get(node, OUTERMOST)
        around = "" if inside.parent_frame is None else info[inside.parent_frame].frame_name
        self.frames[node] = around if node.op in EXIT else inside.frame_name
        if node.op in ENTER:
            loop = self.loops.get(inside.frame_name)
            if loop is None:
                parallel = node.node_def.attr.get("parallel_iterations", 10)
                loop = self.loops[inside.frame_name] = Loop(inside.frame_name, around, parallel)
            loop.enters.append(node)
        elif node.op == LOOP_COND and inside.frame_name in self.loops:
            self.loops[inside.frame_name].conditions.append(node)

    def _find_variables(self, loop: Loop) -> None:
        for enter in loop.enters:
            for merge, _ in self.consumers.get(enter.outputs[0], ()):
                following = next((tensor.node for tensor in merge.inputs if tensor.node.op in NEXT_ITERATION), None)
                if merge.op not in MERGE or following is None:
                    continue
                variable = LoopVariable(merge, enter, following)
                for switch, slot in self.consumers.get(merge.outputs[0], ()):
                    if slot == 0 and switch.op in SWITCH and self.is_loop_switch(switch):
                        variable.switch = switch
                if variable.switch is not None:
                    takers = self.consumers.get(variable.switch.outputs[0], ())
                    variable.exit = next((node for node, _ in takers if node.op in EXIT), None)
                loop.variables.append(variable)

    def _find_guards(self) -> None:
        """Find the guard of each node after its inputs, and of an Exit after all Enters of its loop."""
        guards, frames, begun = self.guards, self.frames, set[Node]()
        for root in self.nodes:
            pending = [root]
            while pending:
                node = pending[-1]
                waiting = (
                    () if node in guards or node in begun else [producer for producer in self._producers(node) if producer not in guards]
                )
                if waiting:
                    begun.add(node)
                    pending += [producer for producer in waiting if producer in frames and producer not in begun]
                    continue
                pending.pop()
                if node not in guards:
                    self._find_guard(node)

    def _producers(self, node: Node) -> Iterable[Node]:
        if node in self.fed_nodes:
            return ()
        producers = producers_of(node)
        if node.op in MERGE:
            producers = [producer for producer in producers if producer.op not in NEXT_ITERATION]
        elif node.op in EXIT and node.inputs[0].node in self.frames:
            loop = self.loops.get(self.frames[node.inputs[0].node])
            producers += [] if loop is None else loop.enters
        return producers

    def _find_guard(self, node: Node) -> None:
        guard = NO_BRANCH
        if node.op == CONTROL_TRIGGER or node in self.fed_nodes:
            pass
        elif node.op in ENTER:
            loop = self.loops[self.frames[node]]
            loop.entering[node] = self.guard_of_inputs(node)
            loop.guard |= loop.entering[node]
        elif node.op in EXIT and (frame := self.frames.get(node.inputs[0].node)) in self.loops:
            guard = self.loops[frame].guard
        elif node.op in MERGE:
            guard = NO_BRANCH if self.is_loop_merge(node) else self._guard_of_merge(node)
        else:
            guard = self.guard_of_inputs(node)
        self.guards[node] = guard

    def _guard_of_merge(self, merge: Node) -> Guard:
        guards = [self.guard_of(tensor) for tensor in merge.inputs]
        common = frozenset.intersection(*guards)
        if len(guards) == 1:
            return common
        branches = self.joined_branches(merge)
        if not branches:
            self.open_merges[merge] = "its inputs are not the sides of one branch"
        elif sorted([branch.side for branch in branches]) != list(range(branches[0].sides)):
            self.open_merges[merge] = "its inputs are not all sides of a branch"
        else:
            return common
        return common if not any(guard - common for guard in guards) else common | {Branch(merge.outputs[0], 0, 0)}


def ancestors_of(starts: Iterable[Node]) -> list[Node]:
    """The nodes `starts` and all their ancestors, producers first except for loop back edges."""
    order: list[Node] = []
    done: dict[Node, bool] = {}
    roots = list(starts)
    while roots:
        pending = [roots.pop()]
        while pending:
            node = pending[-1]
            if node not in done:
                done[node] = False
                producers = producers_of(node)
                if node.op in MERGE:
                    roots += [other for other in producers if other.op in NEXT_ITERATION and other not in done]
                    producers = [other for other in producers if other.op not in NEXT_ITERATION]
                pending += [other for other in producers if other not in done]
                continue
            pending.pop()
            if not done[node]:
                done[node] = True
                order.append(node)
    return order


def uncertain_nodes(graph: PlainGraph) -> set[Node]:
    """The nodes on a branch that may not be taken, and those in a loop, where values vary."""
    nodes = list(graph.op_nodes())
    if not any(node.op in ANY_SWITCH or node.op in ENTER for node in nodes):
        return set()
    try:
        flow = ControlFlow(nodes, control_flow_info(nodes))
    except GraphError:  # a malformed loop: nothing is certain before it is repaired
        return set(nodes)
    return {node for node in nodes if flow.frames[node] or flow.guards[node]}
