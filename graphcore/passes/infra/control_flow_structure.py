"""Branches and loops in Switch/Merge form, read off a graph: frames, loop variables, and which branch each node is in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.graph import Node, Tensor

SWITCH: Final = frozenset({"Switch", "RefSwitch"})
MERGE: Final = frozenset({"Merge", "RefMerge"})
ENTER: Final = frozenset({"Enter", "RefEnter"})
EXIT: Final = frozenset({"Exit", "RefExit"})
NEXT: Final = frozenset({"NextIteration", "RefNextIteration"})
CONTROL_FLOW: Final = SWITCH | MERGE | ENTER | EXIT | NEXT | {"LoopCond"}

Guard = tuple[Tensor, int]
"""A predicate and the branch of it: 0 if false, 1 if true."""


class LoopVariable:
    """A value that goes round a loop."""

    __slots__ = ("enter", "exit", "merge", "next", "switch")

    def __init__(self, merge: Node) -> None:
        self.merge = merge
        self.enter = next(tensor.node for tensor in merge.inputs if tensor.node.op in ENTER)
        self.next = next(tensor.node for tensor in merge.inputs if tensor.node.op in NEXT)
        self.switch: Node | None = None
        self.exit: Node | None = None


class Loop:
    """One loop.

    Attributes:
        name: its frame.
        parent: the frame around it, "" for none.
        enters: the nodes that bring values in, those of variables among them.
        variables: what goes round it.
        cond: its LoopCond.
        guards: the branches around it within its parent frame.
    """

    __slots__ = ("cond", "enters", "guards", "name", "parallel_iterations", "parent", "variables")

    def __init__(self, enter: Node, parent: str) -> None:
        self.name = frame_name(enter)
        self.parent = parent
        self.enters: list[Node] = []
        self.variables: list[LoopVariable] = []
        self.cond: Node | None = None
        self.guards: tuple[Guard, ...] = ()
        self.parallel_iterations: Any = enter.node_def.attr.get("parallel_iterations", 10)

    def invariants(self) -> list[Node]:
        """The Enter nodes of values that stay as they are."""
        varying = {variable.enter for variable in self.variables}
        return [enter for enter in self.enters if enter not in varying]


class ControlFlow:
    """The structure of what some nodes depend on.

    Attributes:
        order: these nodes and all that they depend on, producers first but for the back edges of loops.
        frames: the frame in which a node gives its outputs; "" outside of all loops.
        loops: by frame.
        guards: the branches that a node is in within its frame, the outermost first.

    Raises:
        InvalidArgumentError: loops that are not built as the reference builds them.
    """

    def __init__(self, starts: Iterable[Node]) -> None:
        self.order = _producers_first(starts)
        self.frames: dict[Node, str] = {}
        self.loops: dict[str, Loop] = {}
        self.guards: dict[Node, tuple[Guard, ...]] = {}
        self.consumers: dict[Tensor, list[tuple[Node, int]]] = {}
        for node in self.order:
            for slot, tensor in enumerate(node.inputs):
                self.consumers.setdefault(tensor, []).append((node, slot))
        for node in self.order:
            self._place(node)
        for loop in self.loops.values():
            self._complete(loop)

    def loop_of_exit(self, node: Node) -> Loop:
        """The loop that an Exit leaves."""
        return self.loops[self.frames[node.inputs[0].node]]

    def tensor_guards(self, tensor: Tensor) -> tuple[Guard, ...]:
        """The branches that a tensor is in."""
        node = tensor.node
        guards = self.guards.get(node, ())
        if node.op in SWITCH and not self.is_loop_switch(node):
            return (*guards, (predicate(node.inputs[1]), tensor.index))
        return guards

    @staticmethod
    def is_loop_switch(node: Node) -> bool:
        """True iff a Switch belongs to a loop and not to a branch."""
        return node.inputs[1].node.op == "LoopCond"

    @staticmethod
    def is_loop_merge(node: Node) -> bool:
        """True iff a Merge begins a loop's iteration."""
        return any(tensor.node.op in NEXT for tensor in node.inputs)

    def _place(self, node: Node) -> None:
        producers = [tensor for tensor in node.inputs if tensor.node in self.frames]
        first = producers[0].node if producers else next((control for control in node.control_inputs if control in self.frames), None)
        frame = "" if first is None else self.frames[first]
        if node.op in ENTER:
            loop = self.loops.get(frame_name(node))
            if loop is None:
                loop = self.loops[frame_name(node)] = Loop(node, frame)
            loop.enters.append(node)
            loop.guards = _joined([loop.guards, self.tensor_guards(node.inputs[0])])
            self.frames[node], self.guards[node] = loop.name, ()
            return
        if node.op in EXIT:
            loop = self.loops[frame]
            self.frames[node], self.guards[node] = loop.parent, loop.guards
            return
        if node.op == "LoopCond" and frame in self.loops:
            self.loops[frame].cond = node
        self.frames[node] = frame
        guards = [self.tensor_guards(tensor) for tensor in producers]
        if node.op in MERGE:
            self.guards[node] = _common(guards)
            return
        self.guards[node] = _joined([*guards, *[self.guards.get(control, ()) for control in node.control_inputs]])

    def _complete(self, loop: Loop) -> None:
        for enter in loop.enters:
            for merge, _ in self.consumers.get(enter.outputs[0], ()):
                if merge.op in MERGE and self.is_loop_merge(merge):
                    loop.variables.append(self._variable(merge))
        if loop.cond is None:
            raise InvalidArgumentError(f"Loop '{loop.name}' has no LoopCond", node=loop.enters[0].name, op=loop.enters[0].op)

    def _variable(self, merge: Node) -> LoopVariable:
        variable = LoopVariable(merge)
        for switch, slot in self.consumers.get(merge.outputs[0], ()):
            if slot == 0 and switch.op in SWITCH and self.is_loop_switch(switch):
                variable.switch = switch
        if variable.switch is not None:
            exits = [node for node, _ in self.consumers.get(variable.switch.outputs[0], ()) if node.op in EXIT]
            variable.exit = exits[0] if exits else None
        return variable


def merged_branches(structure: ControlFlow, merge: Node) -> tuple[Tensor, list[int]]:
    """The predicate of a conditional, and the branch that each input of its Merge comes from.

    Raises:
        UnimplementedError: they cannot be told.
    """
    depth = len(structure.guards[merge])
    ends = [structure.tensor_guards(tensor)[depth:] for tensor in merge.inputs]
    predicates = {end[0][0] for end in ends if end}
    if len(predicates) != 1 or not all(ends):
        raise UnimplementedError.at(
            merge,
            f"The branches that Merge '{merge.name}' joins cannot be told apart: required a Switch of one predicate before each input",
        )
    return predicates.pop(), [end[0][1] for end in ends]


def frame_name(enter: Node) -> str:
    """The frame that an Enter leads into."""
    name = enter.node_def.attr.get("frame_name", b"")
    return name.decode(errors="surrogateescape") if isinstance(name, bytes) else str(name)


def predicate(tensor: Tensor) -> Tensor:
    """The tensor that a predicate is a copy of."""
    while tensor.node.op == "Identity":
        tensor = tensor.node.inputs[0]
    return tensor


def _producers_first(starts: Iterable[Node]) -> list[Node]:
    order: list[Node] = []
    done: dict[Node, bool] = {}
    roots = list(starts)
    while roots:
        pending = [roots.pop()]
        while pending:
            node = pending[-1]
            if node not in done:
                done[node] = False
                producers = [tensor.node for tensor in node.inputs] + node.control_inputs
                if node.op in MERGE:
                    roots += [other for other in producers if other.op in NEXT and other not in done]
                    producers = [other for other in producers if other.op not in NEXT]
                pending += [other for other in producers if other not in done]
                continue
            pending.pop()
            if not done[node]:
                done[node] = True
                order.append(node)
    return order


def _joined(guards: Iterable[tuple[Guard, ...]]) -> tuple[Guard, ...]:
    """All of them, the longest first: it says what lies around what."""
    return tuple(dict.fromkeys([guard for each in sorted(guards, key=len, reverse=True) for guard in each]))


def _common(guards: list[tuple[Guard, ...]]) -> tuple[Guard, ...]:
    """What all begin with."""
    common: list[Guard] = []
    for place in zip(*guards, strict=False):
        if len(set(place)) > 1:
            break
        common.append(place[0])
    return tuple(common)
