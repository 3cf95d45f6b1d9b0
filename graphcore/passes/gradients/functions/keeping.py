"""All values of functions with side effects, for gradients.

Gradients of one node that are taken apart, in several bodies or again need different values of its functions. If these have side effects,
two augmented nodes would run the effects twice, and see other elements or random numbers. So they return all values that results depend on:
however many gradients a node has, its augmented nodes are equal, and a run needs one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from graphcore import dtypes
from graphcore.attrs import Func
from graphcore.graph import Graph, Node, Tensor
from graphcore.graph.model.search import reachable
from graphcore.opset.control_flow.function_calls import func_attr
from graphcore.passes.functions.expand import called_function
from graphcore.passes.gradients.functions.augmented_branches import augment_branches, branch_functions
from graphcore.passes.gradients.functions.augmented_calls import augment_call
from graphcore.passes.gradients.functions.augmented_loops import augment_loop, is_invariant
from graphcore.passes.gradients.functions.differentiation import DifferentiatedBody, Differentiation, Place
from graphcore.passes.gradients.functions.kinds import is_branching, is_differentiated_call, is_loop
from graphcore.passes.gradients.functions.reaching import FLOWING
from graphcore.plumbing import CONTROL_FLOW

_INDICES: Final = frozenset({dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8})
_KEPT: Final = FLOWING | _INDICES
"""The dtypes of the values that gradients take."""


class AllValues:
    """The values of the functions of a node that any gradient may take.

    Args:
        node: a branch, a loop or a call.

    Attributes:
        can_be_returned: False for functions with dead values, and for other nodes.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.bodies = [ForwardBody(node.graph, function, in_loop=is_loop(node)) for function in _functions(node)]
        self.can_be_returned = bool(self.bodies) and not any(body.has_dead_values for body in self.bodies)

    def include(self, function: int, body: DifferentiatedBody, values: Sequence[Tensor]) -> bool:
        """True iff they include `values` of another body of function number `function`."""
        kept = self.bodies[function] if self.can_be_returned else None
        return kept is not None and all(kept.position(body.place(tensor)) is not None for tensor in values)

    def add(self, scope: str, controls: Sequence[Node] = ()) -> Node:
        """Add the augmented node to the graph of the node.

        Args:
            scope: the prefix of the new nodes' names.
            controls: the control inputs of nodes without inputs.
        """
        bodies, kept = [body.body for body in self.bodies], [body.kept for body in self.bodies]
        if is_branching(self.node):
            return augment_branches(self.node, bodies, kept, scope, shared=True)
        if is_loop(self.node):
            return augment_loop(self.node, bodies[0], kept[0], scope, controls, shared=True)
        return augment_call(self.node, bodies[0], kept[0], scope)

    def outputs(self, augmented: Node, function: int, body: DifferentiatedBody, values: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of the augmented node for some values; see `include`."""
        before = sum(len(other.kept) for other in self.bodies[:function]) - len(self.bodies[function].body.rets)
        first = len(self.node.outputs) + is_loop(self.node) + before
        positions = [self.bodies[function].position(body.place(tensor)) for tensor in values]
        return [augmented.outputs[first + position] for position in positions if position is not None]


class ForwardBody:
    """A function in which nodes that run functions are replaced by augmented ones.

    Attributes:
        body: the function.
        kept: the values that its results depend on, and in a loop the variables that change. Without other arguments, constants, and
            values that gradients do not take.
        has_dead_values: True iff it contains Switch or Merge nodes.
    """

    def __init__(self, graph: Graph, func: Func, *, in_loop: bool) -> None:
        body = self.body = DifferentiatedBody(graph, func, None)
        needed = reachable([ret.node for ret in body.rets], lambda node: [tensor.node for tensor in node.inputs])
        nodes = [node for node in body.forward_order if node in needed and node.op != "Const"]
        self.has_dead_values = any(node.op in CONTROL_FLOW for node in nodes)
        values = [arg for arg in body.args if in_loop and not is_invariant(body, arg)]
        for node in nodes if not self.has_dead_values else ():
            inner = AllValues(node)
            if inner.can_be_returned:
                body.augmented[node] = inner.add(f"{node.name}_grad/")
            values += body.augmented.get(node, node).outputs
        self.kept = [tensor for tensor in values if tensor.dtype.base in _KEPT]
        self._positions = {body.place(tensor): len(body.rets) + number for number, tensor in enumerate(self.kept)}

    def position(self, place: Place) -> int | None:
        """The index of a value among the results of the function, followed by the values."""
        return self._positions.get(place)


def keeps_all_values(back: Differentiation, node: Node) -> bool:
    """True iff the augmented node of `node` returns all values.

    So do nodes with side effects, and those in their functions.
    """
    return back.keeps_all or node.op_def.is_stateful


def _functions(node: Node) -> list[Func]:
    if is_branching(node):
        return branch_functions(node)
    if is_loop(node):
        return [func_attr(node.node_def.attr, "body")]
    return [called_function(node.node_def)] if is_differentiated_call(node) else []
