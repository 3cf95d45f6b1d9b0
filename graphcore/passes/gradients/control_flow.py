"""Gradients through branches and loops in Switch/Merge form.

A branch is differentiated as it is: the gradient of a Merge goes to the branch that was taken, and the gradients of a Switch are
merged. A loop is differentiated as a whole: its gradient is a loop that runs through the iterations backwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.graph import Node, Tensor
from graphcore.graph.control_flow.analysis import ControlFlow, Loop, LoopVariable, ancestors_of
from graphcore.graph.control_flow.frames import control_flow_info, frame_name
from graphcore.graph.model.search import post_order
from graphcore.passes.gradients.bodies.body import GradientBody, Value
from graphcore.passes.gradients.functions.functional import functional_gradient
from graphcore.passes.gradients.loop_frames import LoopBuilder, LoopRegion, Region
from graphcore.passes.gradients.node_gradients import NodeGradients
from graphcore.passes.gradients.overrides import gradient_kind
from graphcore.plumbing import ENTER, EXIT, MERGE, NEXT_ITERATION, SWITCH

_Unit = Node | Loop


class ControlFlowGradients:
    """The backward pass through a graph with branches and loops.

    Args:
        back: the surrounding pass; the gradients of the ys have arrived.
        ys: the differentiated tensors.

    Raises:
        InvalidArgumentError: a y or an x is within a loop.
        UnimplementedError: loops or branches not built in TensorFlow's form.
    """

    def __init__(self, back: NodeGradients, ys: Sequence[Tensor]) -> None:
        self.back = back
        self.graph = back.graph
        nodes = ancestors_of([y.node for y in ys])
        self.structure = ControlFlow(nodes, control_flow_info(nodes))
        for loop in self.structure.loops.values():
            if not loop.conditions:
                raise InvalidArgumentError.at(loop.enters[0], f"Loop '{loop.name}' has no LoopCond")
        for tensor in (*ys, *back.xs):
            if self.structure.frames.get(tensor.node):
                raise InvalidArgumentError.at(
                    tensor.node,
                    f"'{tensor.name}' is within the loop '{self.structure.frames[tensor.node]}': it has a value in each iteration, and cannot be "
                    f"differentiated or differentiated by from outside",
                )
        self.useful = self._useful()
        self._refuse_stacks()
        self.build = LoopBuilder(back.graph, back.scope)
        self.targets = [y.node for y in ys]
        self.frames = {frame_name(node) for node in self.graph.op_nodes() if node.op in ENTER}

    def run(self) -> None:
        """Propagate all gradients."""
        self._backward(Region(), self._order("", self.targets))

    def _useful(self) -> set[Node]:
        """The nodes that depend on an x along differentiable edges."""
        back, consumers = self.back, self.structure.consumers
        useful = {x.node for x in back.xs if x.node in self.structure.frames}
        pending = list(back.xs)
        while pending:
            for node, _ in consumers.get(pending.pop(), ()):
                if node in useful or gradient_kind(node) == "stop":
                    continue
                useful.add(node)
                pending += [tensor for tensor in node.outputs if tensor not in back.stop]
        return useful

    def _refuse_stacks(self) -> None:
        """Refuse stacks: a popped value depends on pushes, which no edge shows."""
        nodes = self.structure.nodes
        stored = {_stack_of(node): node for node in nodes if node.op == "StackPushV2" and self._depends(node.inputs[1])}
        for node in nodes:
            if node.op != "StackPopV2" or _stack_of(node) not in stored:
                continue
            pushed = stored[_stack_of(node)].inputs[1]
            raise UnimplementedError.at(
                node,
                f"Gradients through stacks are not supported: '{node.name}' gives back what '{pushed.name}' was in an iteration of a loop. "
                f"Loops that keep what they need for their gradients in lists, as gc.gradients builds them, can be differentiated again",
            )

    def _depends(self, tensor: Tensor) -> bool:
        return tensor in self.back.x_set or (tensor.node in self.useful and tensor not in self.back.stop)

    def _order(self, frame: str, targets: Sequence[Node]) -> list[_Unit]:
        """The nodes of a frame that `targets` depend on, consumers first. Each inner loop is one item."""
        order = post_order([self._unit(node) for node in targets], lambda unit: [self._unit(node) for node in self._producers(unit, frame)])
        order.reverse()
        return order

    def _unit(self, node: Node) -> _Unit:
        return self.structure.loop_left_by(node) if node.op in EXIT else node

    def _producers(self, unit: _Unit, frame: str) -> list[Node]:
        if isinstance(unit, Loop):
            return [enter.inputs[0].node for enter in unit.enters]
        if unit.op in ENTER or (frame and unit.op in MERGE and self.structure.is_loop_merge(unit)):
            return []
        return [tensor.node for tensor in unit.inputs]

    def _backward(self, region: Region, order: list[_Unit]) -> None:
        arrived, stop = self.back.arrived, self.back.stop
        for unit in order:
            if isinstance(unit, Loop):
                self._loop(unit, region)
            elif unit.op not in ENTER and any(tensor in arrived and tensor not in stop for tensor in unit.outputs):
                self._node(unit, region)

    def _node(self, node: Node, region: Region) -> None:
        slots = self.back.slots(node, self.useful)
        if not slots or node.op in NEXT_ITERATION or (node.op in SWITCH and self.structure.is_loop_switch(node)):
            return
        if node.op in MERGE:
            if not self.structure.is_loop_merge(node):
                self._merge(node, slots, region)
            return
        if node.op in SWITCH:
            self._switch(node, region)
            return
        if region.frame or self.structure.guards[node]:
            self._op(node, slots, region)
            return
        self.back.differentiate(node, self.useful)

    def _op(self, node: Node, slots: list[int], region: Region) -> None:
        """An op within a branch or a loop."""
        back = self.back
        through_functions = functional_gradient(node, simplify=back.simplify)
        if through_functions is not None:
            if not region.frame:
                back.differentiate(node, self.useful)
                return
            scope = back.writer.new_scope(f"{back.scope}{node.name}_grad")
            for slot, gradient in through_functions(_RegionDifferentiation(self, node, region), node, slots, scope).items():
                back.arrive(node.inputs[slot], gradient, node, slot)
            return
        template = back.fitting_template(node, slots)
        if template is None:
            return
        scope = back.writer.new_scope(f"{back.scope}{node.name}_grad")
        values = _RegionValues(self, node, region)
        anchor = next(back.total(tensor).node for tensor in node.outputs if tensor in back.arrived)
        body = GradientBody(self.graph, template, node, values, simplify=back.simplify, anchor=anchor)
        with self.graph.control_dependencies(None):
            results = back.in_scope(body, slots, scope)
        for slot, gradient in zip(slots, results, strict=True):
            back.arrive(node.inputs[slot], gradient, node, slot)

    def _new_frame(self, loop: Loop) -> str:
        """A unique frame name for a loop's backward loop, unique also among imported gradients."""
        wanted = name = f"{self.back.scope}{loop.name}"
        count = 0
        while name in self.frames:
            count += 1
            name = f"{wanted}_{count}"
        self.frames.add(name)
        return name

    # ---- branches --------------------------------------------------------------------------------------------------

    def _merge(self, node: Node, slots: list[int], region: Region) -> None:
        """The end of a conditional: the gradient goes into the branch that was taken."""
        joined = self.structure.joined_branches(node)
        if not joined:
            raise UnimplementedError.at(
                node,
                f"The branches that Merge '{node.name}' joins cannot be told apart: required a Switch of one predicate before each input",
            )
        gradient = self.back.total(node.outputs[0])
        switch = self.build.add("Switch", [gradient, region.tensor(joined[0].pred)], node, f"{node.name}_grad")
        for slot in slots:
            side = joined[slot].side
            taken = self.build.add("Identity", [switch.outputs[side]], node, f"{node.name}_grad/branch_{side}")
            self.back.arrive(node.inputs[slot], taken.outputs[0], node, slot)

    def _switch(self, node: Node, region: Region) -> None:
        """The beginning of a conditional: the gradient of the branch taken, or zeros if that has none."""
        back = self.back
        parts = [back.total(tensor) if tensor in back.arrived else self._zeros(node, tensor.index, region) for tensor in node.outputs]
        merged = self.build.add("Merge", [parts], node, f"{node.name}_grad")
        if not merged.outputs[0].shape.is_fully_defined:
            self.graph.set_shape_like(merged.outputs[0], node.inputs[0])
        back.arrive(node.inputs[0], merged.outputs[0], node, 0)

    def _zeros(self, node: Node, branch: int, region: Region) -> Tensor:
        value, pred = region.tensor(node.inputs[0]), region.tensor(self.structure.decider(node.inputs[1]))
        alive = self.build.switched(value, [(pred, branch)], node, f"{node.name}_grad/unused")
        return self.build.add("ZerosLike", [alive], node, f"{node.name}_grad/zeros").outputs[0]

    # ---- loops -----------------------------------------------------------------------------------------------------

    def _loop(self, loop: Loop, region: Region) -> None:
        """A whole loop: from the gradients of its exits to those of its entries."""
        back = self.back
        variables = self._differentiated(loop)
        if not variables:
            return
        scope = back.writer.new_scope(f"{back.scope}{loop.condition.name.rpartition('/')[0] or 'loop'}_grad")
        outer_scope, self.build.scope = self.build.scope, scope
        inner = LoopRegion(self.build, self.structure, loop, region, self._new_frame(loop))
        made = [(variable, *inner.variable(self._start(variable, region), variable.merge, "b_grad")) for variable in variables]
        for variable, _, switch, _ in made:
            assert variable.switch is not None
            arriving = self.build.add("Identity", [switch.outputs[1]], variable.merge, "b_arrived").outputs[0]
            self.graph.set_shape_like(arriving, variable.next.inputs[0])
            back.arrive(variable.next.inputs[0], arriving, variable.next, 0)
        order = self._order(loop.name, [variable.next.inputs[0].node for variable in variables])
        self._backward(inner, order)
        for variable, merge, switch, final in made:
            self._close(variable, merge, switch)
            self.graph.set_shape_like(final.outputs[0], variable.enter.inputs[0])
            back.arrive(variable.enter.inputs[0], final.outputs[0], variable.enter, 0)
        for enter in loop.invariants():
            if enter.outputs[0] in back.arrived and back.slots(enter, self.useful):
                self._accumulate(enter, inner, region)
        self.build.scope = outer_scope

    def _differentiated(self, loop: Loop) -> list[LoopVariable]:
        """The variables with a gradient: at the loop's end, or between iterations."""
        back, useful = self.back, self.useful
        candidates = {v.switch.outputs[1]: v for v in loop.variables if v.switch is not None and v.merge in useful}
        differentiated = {v for v in candidates.values() if v.exit is not None and v.exit.outputs[0] in back.arrived}
        pending = [variable.next.inputs[0] for variable in differentiated]
        seen: set[Tensor] = set()
        while pending:
            tensor = pending.pop()
            if tensor in seen:
                continue
            seen.add(tensor)
            variable = candidates.get(tensor)
            if variable is not None:
                if variable not in differentiated:
                    differentiated.add(variable)
                    pending.append(variable.next.inputs[0])
                continue
            node = tensor.node
            if node.op in EXIT:
                pending += [enter.inputs[0] for enter in self.structure.loop_left_by(node).enters]
            else:
                pending += [node.inputs[slot] for slot in back.slots(node, useful)]
        return [variable for variable in loop.variables if variable in differentiated]

    def _start(self, variable: LoopVariable, region: Region) -> Tensor:
        """The initial gradient of a variable in the backward loop."""
        if variable.exit is not None and variable.exit.outputs[0] in self.back.arrived:
            return self.back.total(variable.exit.outputs[0])
        assert variable.switch is not None
        if variable.exit is None:
            loop = self.structure.loops[self.structure.frames[variable.merge]]
            variable.exit = self.build.add("Exit", [variable.switch.outputs[0]], variable.merge, "f_exit")
            self.structure.add_exit(variable.exit, loop)
        return self.build.add("ZerosLike", [region.tensor(variable.exit.outputs[0])], variable.merge, "b_zeros").outputs[0]

    def _close(self, variable: LoopVariable, merge: Node, switch: Node) -> None:
        back = self.back
        assert variable.switch is not None
        if variable.merge.outputs[0] in back.arrived:
            raise UnimplementedError.at(
                variable.merge,
                f"Loop variable '{variable.merge.name}' is used before the loop's condition: required a loop whose body begins at its Switch",
            )
        inside = variable.switch.outputs[1]
        if inside in back.arrived:
            gradient = back.total(inside)
        else:  # the next value does not depend on this one
            gradient = self.build.add("ZerosLike", [switch.outputs[1]], variable.merge, "b_zeros").outputs[0]
        self.build.close(merge, gradient, variable.merge, "b_grad")

    def _accumulate(self, enter: Node, inner: LoopRegion, region: Region) -> None:
        """A loop invariant: its gradient is the sum over all iterations."""
        gradient = self.back.total(enter.outputs[0])
        zeros = self.build.add("ZerosLike", [region.tensor(enter.inputs[0])], enter, "b_zeros").outputs[0]
        merge, switch, final = inner.variable(zeros, enter, "b_acc")
        total = self.build.add("AddN", [[switch.outputs[1], gradient]], enter, "b_sum").outputs[0]
        self.build.close(merge, total, enter, "b_acc")
        self.graph.set_shape_like(final.outputs[0], enter.inputs[0])
        self.back.arrive(enter.inputs[0], final.outputs[0], enter, 0)


class _RegionDifferentiation:
    """The backward pass of a node with functions inside a loop: see `Differentiation`."""

    def __init__(self, flow: ControlFlowGradients, node: Node, region: Region) -> None:
        self.flow = flow
        self.graph = flow.graph
        self.simplify = flow.back.simplify
        self.keeps_all = flow.back.keeps_all
        self.arrived = flow.back.arrived
        self.stop = flow.back.stop
        self.within = flow.back.within
        self._node = node
        self._region = region
        self._values = _RegionValues(flow, node, region)
        self._control_inputs: list[Node] = []

    def output_gradient(self, _: Node, index: int, __: str) -> Tensor:
        """The gradient of an output, zeros if there is none."""
        return self._values.gradient(index)

    def forward_value(self, tensor: Tensor) -> Tensor:
        """A forward value in the matching iteration. Outputs of the augmented node replace those of the node."""
        structure = self.flow.structure
        if tensor.node not in structure.frames:
            structure.frames[tensor.node] = structure.frames[self._node]
            structure.guards[tensor.node] = structure.guards[self._node]
        return self._region.tensor(tensor)

    def control_inputs(self, node: Node) -> list[Node]:
        """A node that runs in each iteration in which the differentiated node runs."""
        if not self._control_inputs:
            self._control_inputs = [self.flow.build.add("Identity", [node.inputs[0]], node, f"{node.name}_grad/f_beside")]
        return self._control_inputs


def _stack_of(node: Node) -> Node:
    """The StackV2 whose handle a node takes."""
    stack = node.inputs[0].node
    while stack.op in ENTER | SWITCH | {"Identity"}:
        stack = stack.inputs[0].node
    return stack


class _RegionValues:
    """The values of a node within a branch or a loop."""

    __slots__ = ("flow", "gradients", "node", "region")

    def __init__(self, flow: ControlFlowGradients, node: Node, region: Region) -> None:
        self.flow = flow
        self.node = node
        self.region = region
        self.gradients: dict[int, Tensor] = {}

    def input(self, slot: int) -> Value:
        return self.region.value(self.node.inputs[slot])

    def output(self, index: int) -> Value:
        return self.region.value(self.node.outputs[index])

    def gradient(self, index: int) -> Tensor:
        tensor = self.node.outputs[index]
        if tensor in self.flow.back.arrived:
            return self.flow.back.total(tensor)
        if index not in self.gradients:
            made = self.flow.build.add("ZerosLike", [self.region.tensor(tensor)], self.node, f"{self.node.name}_grad/zeros")
            self.gradients[index] = made.outputs[0]
        return self.gradients[index]
