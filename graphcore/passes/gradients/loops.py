"""The backward pass of Switch/Merge loops: a counter and lists forwards, a countdown loop backwards.

The forward loop counts its iterations, and appends each value that the backward loop needs to a list in every iteration; the backward loop
takes it from the list's end in the matching one. Lists are ordinary loop variables, so that edges show all dependencies, and the backward
loop can be differentiated like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphcore import dtypes
from graphcore.attrs import TensorValue
from graphcore.graph import GradientRecord, Graph, Node, Tensor, constant_node, constant_value
from graphcore.graph.control_flow.analysis import ControlFlow, Loop
from graphcore.plumbing import ENTER

if TYPE_CHECKING:
    from graphcore.passes.gradients.bodies.body import Value

_MOST_CONSTANT = 4096


class LoopBuilder:
    """Builder of loop nodes, each with a record of its forward node.

    Args:
        graph: the graph for the nodes.
        scope: the prefix of their names.
    """

    def __init__(self, graph: Graph, scope: str) -> None:
        self.graph = graph
        self.scope = scope

    def add(
        self, op: str, inputs: list[Any], forward: Node, name: str, attrs: dict[str, Any] | None = None, controls: list[Node] | None = None
    ) -> Node:
        """A node with control inputs `controls` only; `name` describes it."""
        scopes = self.graph.scopes
        outer, scopes.name = scopes.name, self.scope
        try:
            with self.graph.control_dependencies(None), self.graph.control_dependencies(controls or []):
                made = self.graph.apply_op(op, inputs, attrs, name)
        finally:
            scopes.name = outer
        return self.recorded(made, forward, name)

    def constant(self, value: TensorValue, forward: Node, name: str, controls: list[Node]) -> Tensor:
        """A constant that runs with `controls`."""
        scopes = self.graph.scopes
        outer, scopes.name = scopes.name, self.scope
        try:
            with self.graph.control_dependencies(None), self.graph.control_dependencies(controls):
                made = constant_node(self.graph, value, name)
        finally:
            scopes.name = outer
        return self.recorded(made, forward, name).outputs[0]

    def recorded(self, made: Node, forward: Node, what: str) -> Node:
        """Add a record to `made` that it belongs to `forward`."""
        self.graph.gradient_records[made.name] = GradientRecord(forward.name, None, {}, what)
        return made

    def enter(self, tensor: Tensor, frame: str, parallel: Any, forward: Node, name: str, *, constant: bool = False) -> Tensor:
        """An Enter of `tensor` into a loop."""
        attrs = {"frame_name": frame, "is_constant": constant, "parallel_iterations": parallel}
        return self.add("Enter", [tensor], forward, name, attrs).outputs[0]

    def variable(self, start: Tensor, frame: str, parallel: Any, forward: Node, name: str) -> Node:
        """The Merge of a loop variable; `close` adds its second input."""
        entered = self.enter(start, frame, parallel, forward, name)
        return self.add("Merge", [[entered, entered]], forward, f"{name}_merge")

    def close(self, merge: Node, value: Tensor, forward: Node, name: str) -> None:
        """Set `value` as the loop variable in the next iteration."""
        following = self.add("NextIteration", [value], forward, f"{name}_next")
        self.graph.update_edge(following, 0, merge, 1)

    def switched(self, tensor: Tensor, predicates: list[tuple[Tensor, int]], forward: Node, name: str) -> Tensor:
        """`tensor` if all these branches are taken, else dead."""
        for taken, branch in predicates:
            switch = self.add("Switch", [tensor, taken], forward, f"{name}_switch")
            tensor = self.add("Identity", [switch.outputs[branch]], forward, name).outputs[0]
        return tensor

    def within_branch(
        self, tensor: Tensor, predicates: list[tuple[Tensor, int]], act: Callable[[Tensor], Tensor], forward: Node, name: str
    ) -> Tensor:
        """`act(tensor)` if all these branches are taken, else `tensor`."""
        others: list[tuple[Tensor, int]] = []
        for taken, branch in predicates:
            switch = self.add("Switch", [tensor, taken], forward, f"{name}_switch")
            others.append((switch.outputs[1 - branch], branch))
            tensor = switch.outputs[branch]
        tensor = act(tensor)
        for other, branch in reversed(others):
            ends = [other, tensor] if branch else [tensor, other]
            tensor = self.add("Merge", [ends], forward, f"{name}_merge").outputs[0]
        return tensor


class ForwardCounter:
    """Counts the iterations of a loop.

    Attributes:
        add: runs once an iteration.
        total: the number of iterations, in the frame around the loop.
    """

    def __init__(self, build: LoopBuilder, structure: ControlFlow, loop: Loop, around: list[Node]) -> None:
        self.build = build
        self.cond = cond = loop.condition
        zero = build.constant(TensorValue(np.asarray(0, np.int32)), cond, "f_zero", around)
        start = build.switched(zero, structure.branches_around(loop), cond, "f_start")
        self.merge = build.variable(start, loop.name, loop.parallel_iterations, cond, "f_count")
        switch = build.add("Switch", [self.merge.outputs[0], cond.outputs[0]], cond, "f_switch")
        going = build.add("Identity", [switch.outputs[1]], cond, "f_going")
        one = build.constant(TensorValue(np.asarray(1, np.int32)), cond, "f_one", [going])
        self.add = build.add("AddV2", [going.outputs[0], one], cond, "f_add")
        build.close(self.merge, self.add.outputs[0], cond, "f_count")
        self.total = build.add("Exit", [switch.outputs[0]], cond, "f_total").outputs[0]
        structure.add_exit(self.total.node, loop)


class BackwardCounter:
    """The loop with as many iterations as the forward loop.

    Attributes:
        cond: its LoopCond.
        pivot: runs once an iteration; a control input for nodes that must be in the loop.
    """

    def __init__(self, build: LoopBuilder, total: Tensor, frame: str, loop: Loop) -> None:
        self.build = build
        self.forward = forward = loop.condition
        self.frame = frame
        self.parallel = loop.parallel_iterations
        self.merge = build.variable(total, frame, self.parallel, forward, "b_count")
        one = build.constant(TensorValue(np.asarray(1, np.int32)), forward, "b_one", [self.merge])
        more = build.add("GreaterEqual", [self.merge.outputs[0], one], forward, "b_more")
        self.cond = build.add("LoopCond", [more.outputs[0]], forward, "b_cond")
        switch = build.add("Switch", [self.merge.outputs[0], self.cond.outputs[0]], forward, "b_switch")
        going = build.add("Identity", [switch.outputs[1]], forward, "b_going")
        self.pivot = build.add("Sub", [going.outputs[0], one], forward, "b_sub")
        build.close(self.merge, self.pivot.outputs[0], forward, "b_count")

    def variable(self, start: Tensor, forward: Node, name: str) -> tuple[Node, Node, Node]:
        """A further loop variable: its Merge, Switch and Exit."""
        merge = self.build.variable(start, self.frame, self.parallel, forward, name)
        switch = self.build.add("Switch", [merge.outputs[0], self.cond.outputs[0]], forward, f"{name}_loop")
        return merge, switch, self.build.add("Exit", [switch.outputs[0]], forward, f"{name}_exit")


class Region:
    """A frame of the forward graph and its counterpart in the backward pass; here the root frame.

    Attributes:
        frame: the forward frame.
        pivot: the control input of nodes without inputs, None outside of loops.
    """

    frame = ""
    pivot: Node | None = None

    def value(self, tensor: Tensor) -> Value:
        """A tensor of the forward frame, as seen from the backward pass."""
        return tensor

    def tensor(self, tensor: Tensor) -> Tensor:
        """`value`, converted to a tensor."""
        return tensor

    def predicates(self, branches: list[tuple[Tensor, int]]) -> list[tuple[Tensor, int]]:
        """Branches of the forward pass by the predicates' values in the backward pass."""
        return [(self.tensor(pred), side) for pred, side in branches]


class LoopRegion(Region):
    """The frame of a loop and its backward loop.

    Args:
        build: makes the nodes.
        structure: the forward graph.
        loop: the loop.
        outer: the surrounding region.
        frame: the name of the backward loop's frame.
    """

    def __init__(self, build: LoopBuilder, structure: ControlFlow, loop: Loop, outer: Region, frame: str) -> None:
        self.build = build
        self.structure = structure
        self.loop = loop
        self.outer = outer
        self.frame = loop.name
        self._around = [outer.forward.add] if isinstance(outer, LoopRegion) else []
        self.forward: ForwardCounter = ForwardCounter(build, structure, loop, self._around)
        self.backward = BackwardCounter(build, outer.tensor(self.forward.total), frame, loop)
        self.pivot = self.backward.pivot
        self._values: dict[Tensor, Value] = {}
        self._tensors: dict[Tensor, Tensor] = {}

    def value(self, tensor: Tensor) -> Value:
        """A tensor of the loop in the matching iteration of the backward loop."""
        found = self._values.get(tensor)
        if found is None:
            found = self._values[tensor] = self._fetched(tensor)
        return found

    def tensor(self, tensor: Tensor) -> Tensor:
        """`value`, converted to a tensor."""
        value = self.value(tensor)
        if isinstance(value, Tensor):
            return value
        if tensor not in self._tensors:
            self._tensors[tensor] = self.build.constant(value, tensor.node, "constant", [self.backward.pivot])
        return self._tensors[tensor]

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
        return self._kept(tensor)

    def _kept(self, tensor: Tensor) -> Tensor:
        """Append the tensor to a list in each iteration, and take it in the matching backward iteration."""
        build, node, branches = self.build, tensor.node, self.structure.branches_of(tensor)
        exit_node = self._appended(tensor, branches)
        merge, switch, _ = self.backward.variable(self.outer.tensor(exit_node.outputs[0]), node, "b_list")
        going = build.add("Identity", [switch.outputs[1]], node, "b_going").outputs[0]
        taken: list[Tensor] = []

        def take(handle: Tensor) -> Tensor:
            attrs = {"element_dtype": tensor.dtype.base}
            shape = build.constant(_element_shape(tensor), node, "b_shape", [self.backward.pivot])
            popped = build.add("TensorListPopBack", [handle, shape], node, "b_take", attrs)
            taken.append(popped.outputs[1])
            return popped.outputs[0]

        build.close(merge, build.within_branch(going, self.predicates(branches), take, node, "b_list"), node, "b_list")
        if tensor.dtype.base is not dtypes.variant:
            build.graph.set_shape_like(taken[0], tensor)
        return taken[0]

    def _appended(self, tensor: Tensor, branches: list[tuple[Tensor, int]]) -> Node:
        """The Exit of the list of the tensor's values; unchanged in iterations without its branch."""
        build, node, loop = self.build, tensor.node, self.loop
        shape = build.constant(_element_shape(tensor), node, "f_shape", self._around)
        limit = build.constant(TensorValue(np.asarray(-1, np.int32)), node, "f_limit", self._around)
        attrs = {"element_dtype": tensor.dtype.base, "shape_type": dtypes.int32}
        empty = build.add("EmptyTensorList", [shape, limit], node, "f_empty", attrs).outputs[0]
        start = build.switched(empty, self.structure.branches_around(loop), node, "f_start")
        merge = build.variable(start, loop.name, loop.parallel_iterations, node, "f_list")
        switch = build.add("Switch", [merge.outputs[0], loop.condition.outputs[0]], node, "f_switch")
        going = build.add("Identity", [switch.outputs[1]], node, "f_going").outputs[0]

        def keep(handle: Tensor) -> Tensor:
            return build.add("TensorListPushBack", [handle, tensor], node, "f_keep").outputs[0]

        build.close(merge, build.within_branch(going, branches, keep, node, "f_list"), node, "f_list")
        end = build.add("Exit", [switch.outputs[0]], node, "f_exit")
        self.structure.add_exit(end, loop)
        return end


def _element_shape(tensor: Tensor) -> TensorValue:
    """The known element shape of a tensor, as taken by list ops."""
    shape = tensor.shape
    if tensor.dtype.base is dtypes.variant or shape.rank is None:
        return TensorValue(np.asarray(-1, np.int32))
    return TensorValue(np.asarray([-1 if size is None else size for size in shape.as_list()], np.int32))
