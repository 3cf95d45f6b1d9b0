"""What the backward pass adds to a loop in Switch/Merge form: a counter and stacks on the way forward, a loop that counts down on the way back.

As in the reference: the forward loop counts its iterations, and each of its values that the backward loop needs is pushed on a stack in
every iteration and popped in the matching one. The counter waits for the pushes of its iteration, so that they happen in order, and what
the backward loop begins with is the counter's final value, so that all of them have happened by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphcore import dtypes
from graphcore.attrs import TensorValue
from graphcore.graph import GradientRecord, Graph, Node, Tensor, constant_node, constant_value
from graphcore.passes.control_flow_structure import ENTER, ControlFlow, Guard, Loop

if TYPE_CHECKING:
    from graphcore.passes.gradient_body import Value

_MOST_CONSTANT = 4096


class LoopBuilder:
    """Makes the nodes of loops: each with a record of the forward node that it is for.

    Args:
        graph: where they go.
        scope: the prefix of their names.
    """

    def __init__(self, graph: Graph, scope: str) -> None:
        self.graph = graph
        self.scope = scope

    def add(
        self, op: str, inputs: list[Any], forward: Node, name: str, attrs: dict[str, Any] | None = None, controls: list[Node] | None = None
    ) -> Node:
        """A node that waits for `controls` and for nothing else; `name` says what it does as well."""
        scopes = self.graph.scopes
        outer, scopes.name = scopes.name, self.scope
        try:
            with self.graph.control_dependencies(None), self.graph.control_dependencies(controls or []):
                made = self.graph.apply_op(op, inputs, attrs, name)
        finally:
            scopes.name = outer
        return self.recorded(made, forward, name)

    def constant(self, value: TensorValue, forward: Node, name: str, controls: list[Node]) -> Tensor:
        """A constant that runs where and when `controls` do."""
        scopes = self.graph.scopes
        outer, scopes.name = scopes.name, self.scope
        try:
            with self.graph.control_dependencies(None), self.graph.control_dependencies(controls):
                made = constant_node(self.graph, value, name)
        finally:
            scopes.name = outer
        return self.recorded(made, forward, name).outputs[0]

    def recorded(self, made: Node, forward: Node, what: str) -> Node:
        """`made`, with the record that it is there for `forward`."""
        self.graph.gradient_records[made.name] = GradientRecord(forward.name, None, {}, what)
        return made

    def enter(self, tensor: Tensor, frame: str, parallel: Any, forward: Node, name: str, *, constant: bool = False) -> Tensor:
        """`tensor` within a loop."""
        attrs = {"frame_name": frame, "is_constant": constant, "parallel_iterations": parallel}
        return self.add("Enter", [tensor], forward, name, attrs).outputs[0]

    def variable(self, start: Tensor, frame: str, parallel: Any, forward: Node, name: str) -> tuple[Node, Node]:
        """The Enter and the Merge of a loop variable; `close` gives the Merge its second input."""
        entered = self.enter(start, frame, parallel, forward, name)
        return entered.node, self.add("Merge", [[entered, entered]], forward, f"{name}_merge")

    def close(self, merge: Node, value: Tensor, forward: Node, name: str, controls: list[Node] | None = None) -> None:
        """Let `value` be what the loop variable is in the next iteration."""
        following = self.add("NextIteration", [value], forward, f"{name}_next", None, controls)
        self.graph.update_edge(following, 0, merge, 1)

    def switched(self, tensor: Tensor, predicates: list[tuple[Tensor, int]], forward: Node, name: str) -> Tensor:
        """`tensor` where all these branches are taken, dead elsewhere."""
        for taken, branch in predicates:
            switch = self.add("Switch", [tensor, taken], forward, f"{name}_switch")
            tensor = self.add("Identity", [switch.outputs[branch]], forward, name).outputs[0]
        return tensor


class ForwardCounter:
    """Counts the iterations of a loop.

    Attributes:
        add: runs once an iteration; stacks are pushed after it.
        total: the number of iterations, in the frame around the loop.
        waits: what an iteration must have done before the next one counts.
    """

    def __init__(self, build: LoopBuilder, structure: ControlFlow, loop: Loop, around: Node | None) -> None:
        assert loop.cond is not None
        self.build = build
        self.cond = cond = loop.cond
        zero = build.constant(TensorValue(np.asarray(0, np.int32)), cond, "f_zero", [] if around is None else [around])
        start = build.switched(zero, list(loop.guards), cond, "f_start")
        entered, self.merge = build.variable(start, loop.name, loop.parallel_iterations, cond, "f_count")
        switch = build.add("Switch", [self.merge.outputs[0], cond.outputs[0]], cond, "f_switch")
        going = build.add("Identity", [switch.outputs[1]], cond, "f_going")
        one = build.constant(TensorValue(np.asarray(1, np.int32)), cond, "f_one", [going])
        self.add = build.add("AddV2", [going.outputs[0], one], cond, "f_add")
        self.total = build.add("Exit", [switch.outputs[0]], cond, "f_total").outputs[0]
        self.waits: list[Node] = []
        for node in (zero.node, entered, self.merge, switch, going, one.node, self.add):
            structure.frames[node] = loop.name
        structure.frames[self.total.node] = loop.parent
        structure.guards[self.total.node] = loop.guards

    def close(self) -> None:
        """All is known that an iteration has to do."""
        self.build.close(self.merge, self.add.outputs[0], self.cond, "f_count", self.waits)


class BackwardCounter:
    """The loop that runs as often as the forward loop did.

    Attributes:
        cond: its LoopCond.
        pivot: runs once an iteration; what needs to be in the loop waits for it.
        done: runs when the loop has ended.
        waits: what an iteration must have done before the next one begins.
    """

    def __init__(self, build: LoopBuilder, total: Tensor, frame: str, loop: Loop) -> None:
        assert loop.cond is not None
        self.build = build
        self.forward = forward = loop.cond
        self.frame = frame
        self.parallel = loop.parallel_iterations
        _, self.merge = build.variable(total, frame, self.parallel, forward, "b_count")
        one = build.constant(TensorValue(np.asarray(1, np.int32)), forward, "b_one", [self.merge])
        more = build.add("GreaterEqual", [self.merge.outputs[0], one], forward, "b_more")
        self.cond = build.add("LoopCond", [more.outputs[0]], forward, "b_cond")
        switch = build.add("Switch", [self.merge.outputs[0], self.cond.outputs[0]], forward, "b_switch")
        going = build.add("Identity", [switch.outputs[1]], forward, "b_going")
        self.pivot = build.add("Sub", [going.outputs[0], one], forward, "b_sub")
        self.done = build.add("Exit", [switch.outputs[0]], forward, "b_done")
        self.waits: list[Node] = []

    def variable(self, start: Tensor, forward: Node, name: str) -> tuple[Node, Node, Node]:
        """A further variable of the loop: its Merge, its Switch, and the Exit that gives its final value."""
        _, merge = self.build.variable(start, self.frame, self.parallel, forward, name)
        switch = self.build.add("Switch", [merge.outputs[0], self.cond.outputs[0]], forward, f"{name}_loop")
        return merge, switch, self.build.add("Exit", [switch.outputs[0]], forward, f"{name}_exit")

    def close(self) -> None:
        """All is known that an iteration has to do."""
        waits = self.waits
        if waits:  # what was popped in a branch that was not taken is dead, and must not keep the loop from going on
            waits = [self.build.add("ControlTrigger", [], self.forward, "b_sync", None, waits)]
        self.build.close(self.merge, self.pivot.outputs[0], self.forward, "b_count", waits)


class Region:
    """A frame of the forward graph and what stands for it in the backward pass: the frame of no loop, which stands for itself.

    Attributes:
        frame: the forward frame.
        pivot: what nodes without inputs wait for, None outside of loops.
    """

    frame = ""
    pivot: Node | None = None

    def value(self, tensor: Tensor) -> Value:
        """A tensor of the forward frame where the backward pass can reach it."""
        return tensor

    def tensor(self, tensor: Tensor) -> Tensor:
        """`value`, as a tensor in any case."""
        return tensor

    def predicates(self, guards: tuple[Guard, ...]) -> list[tuple[Tensor, int]]:
        """Branches of the forward pass by the predicates' values in the backward pass."""
        return [(self.tensor(pred), branch) for pred, branch in guards]

    def forward_handle(self, handle: Tensor) -> Tensor:
        """A handle made outside of all loops, in the forward frame."""
        return handle

    def backward_handle(self, handle: Tensor) -> Tensor:
        """The same in the backward frame."""
        return handle


class LoopRegion(Region):
    """The frame of a loop and its backward loop.

    Args:
        build: makes the nodes.
        structure: the forward graph.
        loop: the loop.
        outer: the region around it.
        frame: the name of the backward loop's frame.
    """

    def __init__(self, build: LoopBuilder, structure: ControlFlow, loop: Loop, outer: Region, frame: str) -> None:
        self.build = build
        self.structure = structure
        self.loop = loop
        self.outer = outer
        self.frame = loop.name
        around: Node | None = outer.forward.add if isinstance(outer, LoopRegion) else None
        self.forward: ForwardCounter = ForwardCounter(build, structure, loop, around)
        self.backward = BackwardCounter(build, outer.tensor(self.forward.total), frame, loop)
        self.pivot = self.backward.pivot
        self._values: dict[Tensor, Value] = {}
        self._tensors: dict[Tensor, Tensor] = {}
        self._forward_handles: dict[Tensor, Tensor] = {}
        self._backward_handles: dict[Tensor, Tensor] = {}

    def value(self, tensor: Tensor) -> Value:
        """A tensor of the loop in the matching iteration of the backward loop."""
        found = self._values.get(tensor)
        if found is None:
            found = self._values[tensor] = self._fetched(tensor)
        return found

    def tensor(self, tensor: Tensor) -> Tensor:
        """`value`, as a tensor in any case."""
        value = self.value(tensor)
        if isinstance(value, Tensor):
            return value
        if tensor not in self._tensors:
            self._tensors[tensor] = self.build.constant(value, tensor.node, "constant", [self.backward.pivot])
        return self._tensors[tensor]

    def forward_handle(self, handle: Tensor) -> Tensor:
        """A handle made outside of all loops, within the loop."""
        if handle not in self._forward_handles:
            outside = self.build.switched(self.outer.forward_handle(handle), list(self.loop.guards), handle.node, "f_handle")
            self._forward_handles[handle] = self._entered(outside, self.loop.name, handle.node)
        return self._forward_handles[handle]

    def backward_handle(self, handle: Tensor) -> Tensor:
        """The same within the backward loop."""
        if handle not in self._backward_handles:
            guards = self.outer.predicates(self.loop.guards)
            outside = self.build.switched(self.outer.backward_handle(handle), guards, handle.node, "b_handle")
            self._backward_handles[handle] = self._entered(outside, self.backward.frame, handle.node)
        return self._backward_handles[handle]

    def close(self) -> None:
        """Nothing more is needed of the loop."""
        self.forward.close()
        if isinstance(self.outer, LoopRegion):
            self.outer.backward.waits.append(self.backward.done)
        self.backward.close()

    def _entered(self, tensor: Tensor, frame: str, forward: Node) -> Tensor:
        return self.build.enter(tensor, frame, self.loop.parallel_iterations, forward, "enter", constant=True)

    def _fetched(self, tensor: Tensor) -> Value:
        node = tensor.node
        if node.op in ENTER and node in self.loop.invariants():
            outside = self.outer.tensor(node.inputs[0])
            return self._entered(outside, self.backward.frame, node)
        known = constant_value(tensor) if tensor.dtype.as_numpy is not None and tensor.shape.num_elements <= _MOST_CONSTANT else None
        if known is not None:
            return TensorValue(known, tensor.dtype.base)
        return self._stacked(tensor)

    def _stacked(self, tensor: Tensor) -> Tensor:
        """Push the tensor in each iteration, pop it in the matching iteration of the backward loop."""
        build, node = self.build, tensor.node
        dtype = tensor.dtype.base
        guards = self.structure.tensor_guards(tensor)
        size = build.constant(TensorValue(np.asarray(-1, np.int32)), node, "f_size", [])
        handle = build.add("StackV2", [size], node, "f_stack", {"elem_type": dtype, "stack_name": node.name}).outputs[0]
        pushed = build.add("StackPushV2", [self.forward_handle(handle), tensor], node, "f_push", None, [self.forward.add])
        if guards:  # dead where the branch was not taken
            pushed = build.add("ControlTrigger", [], node, "f_sync", None, [pushed])
        self.forward.waits.append(pushed)
        popping = build.switched(self.backward_handle(handle), self.predicates(guards), node, "b_handle")
        popped = build.add("StackPopV2", [popping], node, "b_pop", {"elem_type": dtype}, [self.backward.pivot])
        self.backward.waits.append(popped)
        if dtype is not dtypes.variant:
            build.graph.set_shape_like(popped.outputs[0], tensor)
        return popped.outputs[0]
