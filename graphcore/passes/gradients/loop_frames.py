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
from graphcore.passes.gradients.functions.augmented_loops import element_sizes
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
        return self._recorded(lambda: self.graph.apply_op(op, inputs, attrs, name), forward, name, controls or [])

    def constant(self, value: TensorValue, forward: Node, name: str, controls: list[Node]) -> Tensor:
        """A constant that runs with `controls`."""
        return self._recorded(lambda: constant_node(self.graph, value, name), forward, name, controls).outputs[0]

    def ints(self, values: int | list[int], forward: Node, name: str, controls: list[Node]) -> Tensor:
        """A constant of int32 that runs with `controls`."""
        return self.constant(TensorValue(np.asarray(values, np.int32)), forward, name, controls)

    def _recorded(self, make: Callable[[], Node], forward: Node, what: str, controls: list[Node]) -> Node:
        """A node in the scope, with a record that it belongs to `forward`."""
        graph = self.graph
        with graph.name_scope(self.scope), graph.control_dependencies(None), graph.control_dependencies(controls):
            made = make()
        graph.gradient_records[made.name] = GradientRecord(forward.name, None, {}, what)
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


class Region:
    """A frame of the forward graph and its counterpart in the backward pass; here the root frame.

    Attributes:
        frame: the forward frame.
    """

    frame = ""

    def value(self, tensor: Tensor) -> Value:
        """A tensor of the forward frame, as seen from the backward pass."""
        return tensor

    def tensor(self, tensor: Tensor) -> Tensor:
        """`value`, converted to a tensor."""
        return tensor


class LoopRegion(Region):
    """The frame of a loop and its backward loop, which has as many iterations.

    Args:
        build: makes the nodes.
        structure: the forward graph.
        loop: the loop.
        outer: the surrounding region.
        frame: the name of the backward loop's frame.

    Attributes:
        turn: the node that counts an iteration of the forward loop.
    """

    def __init__(self, build: LoopBuilder, structure: ControlFlow, loop: Loop, outer: Region, frame: str) -> None:
        self.build = build
        self.structure = structure
        self.loop = loop
        self.outer = outer
        self.frame = loop.name
        self._back = frame
        self._around = [outer.turn] if isinstance(outer, LoopRegion) else []
        self.turn: Node
        self.turn, total = self._count()
        self._cond, self._pivot = self._count_down(outer.tensor(total))
        self._values: dict[Tensor, Value] = {}
        self._tensors: dict[Tensor, Tensor] = {}

    def variable(self, start: Tensor, forward: Node, name: str) -> tuple[Node, Node, Node]:
        """A further variable of the backward loop: its Merge, Switch and Exit."""
        merge = self.build.variable(start, self._back, self.loop.parallel_iterations, forward, name)
        switch = self.build.add("Switch", [merge.outputs[0], self._cond.outputs[0]], forward, f"{name}_loop")
        return merge, switch, self.build.add("Exit", [switch.outputs[0]], forward, f"{name}_exit")

    def value(self, tensor: Tensor) -> Value:
        """A tensor of the loop in the matching iteration of the backward loop."""
        value = self._values.get(tensor)
        if value is None:
            value = self._values[tensor] = self._fetched(tensor)
        return value

    def tensor(self, tensor: Tensor) -> Tensor:
        """`value`, converted to a tensor."""
        value = self.value(tensor)
        if isinstance(value, Tensor):
            return value
        if tensor not in self._tensors:
            self._tensors[tensor] = self.build.constant(value, tensor.node, "constant", [self._pivot])
        return self._tensors[tensor]

    def _fetched(self, tensor: Tensor) -> Value:
        node = tensor.node
        if node.op in ENTER and node in self.loop.invariants():
            outside = self.outer.tensor(node.inputs[0])
            return self.build.enter(outside, self._back, self.loop.parallel_iterations, node, "enter", constant=True)
        constant = constant_value(tensor) if tensor.dtype.as_numpy is not None and tensor.shape.num_elements <= _MOST_CONSTANT else None
        if constant is not None:
            return TensorValue(constant, tensor.dtype.base)
        return self._kept(tensor)

    def _count(self) -> tuple[Node, Tensor]:
        """The node that counts an iteration of the forward loop, and the number of iterations, around it."""
        build, cond = self.build, self.loop.condition
        counts: list[Node] = []

        def count(going: Tensor) -> Tensor:
            counts.append(build.add("AddV2", [going, build.ints(1, cond, "f_one", [going.node])], cond, "f_add"))
            return counts[0].outputs[0]

        total = self._forward_variable(build.ints(0, cond, "f_zero", self._around), cond, "f_count", count, "f_total")
        return counts[0], total

    def _count_down(self, total: Tensor) -> tuple[Node, Node]:
        """The LoopCond of the backward loop, and a node that runs once in each of its iterations."""
        build, forward = self.build, self.loop.condition
        merge = build.variable(total, self._back, self.loop.parallel_iterations, forward, "b_count")
        one = build.ints(1, forward, "b_one", [merge])
        more = build.add("GreaterEqual", [merge.outputs[0], one], forward, "b_more")
        cond = build.add("LoopCond", [more.outputs[0]], forward, "b_cond")
        switch = build.add("Switch", [merge.outputs[0], cond.outputs[0]], forward, "b_switch")
        going = build.add("Identity", [switch.outputs[1]], forward, "b_going")
        less = build.add("Sub", [going.outputs[0], one], forward, "b_sub")
        build.close(merge, less.outputs[0], forward, "b_count")
        return cond, less

    def _kept(self, tensor: Tensor) -> Tensor:
        """Append the tensor to a list in each iteration, and take it in the matching backward iteration."""
        build, node, branches = self.build, tensor.node, self.structure.branches_of(tensor)
        merge, switch, _ = self.variable(self.outer.tensor(self._appended(tensor, branches)), node, "b_list")
        going = build.add("Identity", [switch.outputs[1]], node, "b_going").outputs[0]
        taken: list[Tensor] = []

        def take(handle: Tensor) -> Tensor:
            attrs = {"element_dtype": tensor.dtype.base}
            shape = build.ints(element_sizes(tensor.shape), node, "b_shape", [self._pivot])
            popped = build.add("TensorListPopBack", [handle, shape], node, "b_take", attrs)
            taken.append(popped.outputs[1])
            return popped.outputs[0]

        predicates = [(self.tensor(pred), side) for pred, side in branches]
        build.close(merge, build.within_branch(going, predicates, take, node, "b_list"), node, "b_list")
        build.graph.set_shape_like(taken[0], tensor)
        return taken[0]

    def _appended(self, tensor: Tensor, branches: list[tuple[Tensor, int]]) -> Tensor:
        """The list of the tensor's values, around the loop; unchanged in iterations without its branch."""
        build, node = self.build, tensor.node
        shape = build.ints(element_sizes(tensor.shape), node, "f_shape", self._around)
        limit = build.ints(-1, node, "f_limit", self._around)
        attrs = {"element_dtype": tensor.dtype.base, "shape_type": dtypes.int32}
        empty = build.add("EmptyTensorList", [shape, limit], node, "f_empty", attrs).outputs[0]

        def keep(handle: Tensor) -> Tensor:
            return build.add("TensorListPushBack", [handle, tensor], node, "f_keep").outputs[0]

        return self._forward_variable(
            empty, node, "f_list", lambda going: build.within_branch(going, branches, keep, node, "f_list"), "f_exit"
        )

    def _forward_variable(self, start: Tensor, node: Node, name: str, renew: Callable[[Tensor], Tensor], end_name: str) -> Tensor:
        """A further variable of the forward loop, as it is after the loop."""
        build, loop = self.build, self.loop
        start = build.switched(start, self.structure.branches_around(loop), node, "f_start")
        merge = build.variable(start, loop.name, loop.parallel_iterations, node, name)
        switch = build.add("Switch", [merge.outputs[0], loop.condition.outputs[0]], node, "f_switch")
        going = build.add("Identity", [switch.outputs[1]], node, "f_going").outputs[0]
        build.close(merge, renew(going), node, name)
        end = build.add("Exit", [switch.outputs[0]], node, end_name)
        self.structure.add_exit(end, loop)
        return end.outputs[0]
