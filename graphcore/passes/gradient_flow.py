"""Where gradients flow, and what cuts them: read off the forward graph, without building anything."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from typing import Final, Literal

import msgspec

from graphcore import dtypes
from graphcore.errors import GraphError
from graphcore.graph import Node, Tensor
from graphcore.passes.control_flow_structure import CONTROL_FLOW
from graphcore.passes.gradient_template import gradient_template
from graphcore.passes.gradients import DIFFERENTIABLE
from graphcore.passes.gradients_functional import functional_gradient

CutKind = Literal[
    "no path",
    "control only",
    "reversed",
    "state",
    "dtype",
    "shape only",
    "resource",
    "not differentiable",
    "stop_gradient",
    "stop_gradients",
    "not registered",
    "forbidden",
    "inside a function",
]
SHAPE_OPS: Final = frozenset({"Shape", "ShapeN", "Rank", "Size", "ZerosLike", "OnesLike", "BroadcastGradientArgs"})
STATE_OPS: Final = frozenset({"Variable", "VariableV2", "VarHandleOp"})


class Cut(msgspec.Struct, frozen=True, eq=False):
    """A place where gradients stop.

    Attributes:
        kind: what sort of cut it is.
        node: the node that is the reason, None where there is no path at all.
        reason: the same in words.
        path: the nodes from x to y through it.
    """

    kind: CutKind
    node: Node | None
    reason: str
    path: tuple[Node, ...]


class Flow:
    """Where the gradient of `y` gets to.

    Attributes:
        reached: the tensors that it gets to.
        upstream: all nodes whose values `y` uses.
    """

    def __init__(self, y: Tensor, stop: Collection[Tensor] = ()) -> None:
        self.y = y
        self.stop = frozenset(stop)
        self.reached: set[Tensor] = {y}
        self.blocked: list[tuple[Node, int]] = []
        self.upstream = _upstream([y.node])
        self.consumers: dict[Tensor, list[Node]] = {}
        for node in self.upstream:
            for tensor in node.inputs:
                self.consumers.setdefault(tensor, []).append(node)
        self._walk()

    def _walk(self) -> None:
        pending = [self.y]
        seen: set[Node] = set()
        while pending:
            tensor = pending.pop()
            node = tensor.node
            if tensor in self.stop or node in seen:
                continue
            seen.add(node)
            for slot, source in enumerate(node.inputs):
                if not passes(node, slot):
                    self.blocked.append((node, slot))
                elif source not in self.reached:
                    self.reached.add(source)
                    pending.append(source)

    def cuts(self, x: Tensor) -> list[Cut]:
        """What keeps the gradient from `x`, on every way from `x` to `y` that is cut."""
        if x is not self.y and x not in self.consumers:
            return [self._no_path(x)]
        ahead = self.dependents(x)
        found: dict[tuple[CutKind, Node | None], Cut] = {}
        stopped = [tensor for tensor in self.reached & self.stop if tensor.node in ahead and tensor is not x]
        for tensor in sorted(stopped, key=_id):
            path = (*self._way(x, tensor.node), *self._way_on(tensor.node)[1:])
            found["stop_gradients", tensor.node] = Cut("stop_gradients", tensor.node, "is among stop_gradients", path)
        for node, slot in sorted(self.blocked, key=lambda item: (-item[0].id, item[1])):
            source = node.inputs[slot]
            if source is not x and (source.node not in ahead or source.node is x.node):
                continue
            way = self._way(x, source.node)
            kind, culprit, reason = self._reason(x, way, node, slot)
            path = (*way, *self._way_on(node))
            known = found.get((kind, culprit))
            if known is None or len(path) < len(known.path):
                found[kind, culprit] = Cut(kind, culprit, reason, path)
        return list(found.values())

    def dependents(self, x: Tensor) -> set[Node]:
        """The node of `x`, and what of `y`'s upstream depends on `x`."""
        found = {x.node}
        pending = [x]
        while pending:
            for consumer in self.consumers.get(pending.pop(), ()):
                if consumer not in found:
                    found.add(consumer)
                    pending.extend(consumer.outputs)
        return found

    def way_through(self, x: Tensor, node: Node, slot: int) -> tuple[Node, ...]:
        """A shortest way from `x` to `y` through input `slot` of `node`."""
        return (*self._way(x, node.inputs[slot].node), *self._way_on(node))

    def _way(self, x: Tensor, end: Node) -> tuple[Node, ...]:
        """A shortest way from `x` to `end` along data edges, both ends included."""
        before: dict[Node, Node | None] = {end: None}
        waiting = deque([end])
        while waiting:
            node = waiting.popleft()
            if node is x.node:
                break
            for tensor in node.inputs:
                if tensor.node not in before and (tensor.node is not x.node or tensor is x):
                    before[tensor.node] = node
                    waiting.append(tensor.node)
        way: list[Node] = []
        step: Node | None = x.node
        while step is not None and step in before:
            way.append(step)
            step = before[step]
        return tuple(way)

    def _way_on(self, node: Node) -> tuple[Node, ...]:
        """A shortest way from `node`, one of whose outputs gradients reach, to `y` along which they flow."""
        after: dict[Node, Node | None] = {self.y.node: None}
        waiting = deque([self.y])
        while waiting and node not in after:
            tensor = waiting.popleft()
            if tensor in self.stop:
                continue
            for slot, source in enumerate(tensor.node.inputs):
                if source.node not in after and source in self.reached and passes(tensor.node, slot):
                    after[source.node] = tensor.node
                    waiting.extend(t for t in source.node.outputs if t in self.reached)
        way: list[Node] = []
        step: Node | None = node
        while step is not None and step in after:
            way.append(step)
            step = after[step]
        return tuple(way)

    def _no_path(self, x: Tensor) -> Cut:
        x_node, y_node = x.node, self.y.node
        if y_node is not x_node and y_node in _upstream([x_node]):
            return Cut("reversed", None, f"'{x.name}' is computed from '{self.y.name}', not the other way round", ())
        assigned = next((node for node in _consumers(x_node) if _is_assignment(node) and node.inputs[0].node in self.upstream), None)
        if assigned is not None:
            variable = assigned.inputs[0].node
            reason = f"stores '{x.name}' in variable '{variable.name}', which is state: reading it does not lead back to what was stored"
            return Cut("state", assigned, reason, ())
        if x_node in _upstream([y_node], controls=True):
            waiting = next((node for node in self.upstream if x_node in _upstream(node.control_inputs, controls=True)), None)
            return Cut("control only", waiting, f"only waits for '{x_node.name}': a control dependency passes no value on", ())
        shared = _nearest_shared(x_node, self.upstream)
        hint = "" if shared is None else f"; both use '{shared.name}', whose gradient is not None"
        if shared is not None and not any(tensor in self.reached for tensor in shared.outputs):
            hint = f"; both use '{shared.name}'"
        return Cut("no path", None, f"'{self.y.name}' does not depend on '{x.name}'{hint}", ())

    def _reason(self, x: Tensor, way: tuple[Node, ...], node: Node, slot: int) -> tuple[CutKind, Node, str]:
        source = node.inputs[slot]
        if source.dtype in DIFFERENTIABLE:
            return _op_reason(node)
        if source.dtype.base is dtypes.resource:
            text = f"takes the resource '{source.name}', a handle and no number: ask for the gradient by a value that is read from it"
            return "resource", node, text
        if x.dtype not in DIFFERENTIABLE:
            return "dtype", x.node, f"gives '{x.name}', which is {x.dtype.name}: only floating and complex tensors have gradients"
        # The culprit is where the way leaves the numbers, not where the gradient would have come back to them.
        given = x
        for producer, consumer in zip(way, (*way[1:], node), strict=True):
            taken = [x] if producer is x.node else [tensor for tensor in consumer.inputs if tensor.node is producer]
            if any(tensor.dtype in DIFFERENTIABLE for tensor in taken):
                given = taken[0]
                continue
            if producer.op in SHAPE_OPS:
                return "shape only", producer, f"takes only the shape of '{given.name}', which has no derivative"
            text = f"gives '{taken[0].name}', which is {taken[0].dtype.name}: gradients flow through floating and complex tensors only"
            return "dtype", producer, text
        return _op_reason(node)


def passes(node: Node, slot: int) -> bool:
    """True iff a gradient that reaches an output of `node` goes on to input `slot`."""
    tensor = node.inputs[slot]
    if tensor.node.output_types[tensor.index] not in DIFFERENTIABLE:
        return False
    if node.registration.is_function or node.op in CONTROL_FLOW or functional_gradient(node) is not None:
        return True
    try:
        return gradient_template(node.op, node.node_def.attr) is not None
    except GraphError:
        return False


def _op_reason(node: Node) -> tuple[CutKind, Node, str]:
    """Why no gradient goes through `node` to a floating input."""
    if node.op == "StopGradient":
        return "stop_gradient", node, "stops gradients: that is what gc.stop_gradient is for"
    if node.op in SHAPE_OPS:
        return "shape only", node, f"takes only the shape of '{node.inputs[0].name}', which has no derivative"
    if not node.registration.has_gradient:
        why = f" ({node.registration.why_no_gradient})" if node.registration.why_no_gradient else ""
        text = (
            f"has op {node.op}, for which no gradient is registered{why}, so gc.gradients fails: gc.register_op_gradient('{node.op}', creator) "
            f"registers one, gc.stop_gradient before it cuts it off"
        )
        return "not registered", node, text
    try:
        gradient_template(node.op, node.node_def.attr)
    except GraphError as error:
        return "forbidden", node, f"has op {node.op}, whose gradient is an error: {error.message}"
    why = node.registration.why_no_gradient or "it says so"
    return "not differentiable", node, f"has op {node.op}, which is registered as not differentiable: {why}"


def _upstream(starts: Iterable[Node], *, controls: bool = False) -> set[Node]:
    found = set(starts)
    pending = list(found)
    while pending:
        node = pending.pop()
        for other in [tensor.node for tensor in node.inputs] + (node.control_inputs if controls else []):
            if other not in found:
                found.add(other)
                pending.append(other)
    return found


def _consumers(node: Node) -> list[Node]:
    return [consumer for consumer, slot in node.consumers() if slot >= 0]


def _is_assignment(node: Node) -> bool:
    return node.op.startswith("Assign") and bool(node.inputs) and node.inputs[0].node.op in STATE_OPS


def _nearest_shared(node: Node, upstream: set[Node]) -> Node | None:
    """The nearest node that `node` and `y` both use, if it is one whose value somebody would differentiate by."""
    seen = {node}
    waiting = deque([node])
    while waiting:
        current = waiting.popleft()
        if current in upstream and any(tensor.dtype in DIFFERENTIABLE for tensor in current.outputs) and current.op != "Const":
            return current
        for tensor in current.inputs:
            if tensor.node not in seen:
                seen.add(tensor.node)
                waiting.append(tensor.node)
    return None


def _id(tensor: Tensor) -> tuple[int, int]:
    return tensor.node.id, tensor.index
