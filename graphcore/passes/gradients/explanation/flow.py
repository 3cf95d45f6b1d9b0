"""Analysis of gradient flow and cuts on the forward graph, without building nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Final, Literal

import msgspec

from graphcore import dtypes
from graphcore.errors import GraphError
from graphcore.graph import Node, Tensor
from graphcore.graph.model.node import producers_of
from graphcore.graph.model.search import reachable
from graphcore.passes.gradients.bodies.template import gradient_template
from graphcore.passes.gradients.explanation.reachability import PathsFrom, PathsTo
from graphcore.passes.gradients.functions.functional import functional_gradient
from graphcore.passes.gradients.node_gradients import DIFFERENTIABLE
from graphcore.passes.gradients.overrides import gradient_function, op_of_gradient
from graphcore.plumbing import CONTROL_FLOW

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
    "custom gradient",
    "dropped",
]
_MOST_STEPS: Final = 1_000_000
"""The approximate number of nodes in all paths of cuts together; many cuts behind a long chain would repeat it."""


class Cut(msgspec.Struct, frozen=True, eq=False):
    """A place where gradients stop.

    Attributes:
        kind: the kind of the cut.
        node: the responsible node, None if there is no path at all.
        reason: the reason in words.
        path: the nodes from x to y through it; () after too many nodes in all paths.
    """

    kind: CutKind
    node: Node | None
    reason: str
    path: tuple[Node, ...]


class Flow:
    """The nodes that the gradient of `y` reaches.

    Attributes:
        reached: the tensors it reaches.
        slots: for each node that it goes through, the inputs that it reaches.
        upstream: all nodes that `y` depends on.
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
        self.slots: dict[Node, list[int]] = {}
        self._walk()
        self._paths_from: PathsFrom | None = None

    def _walk(self) -> None:
        pending = [self.y]
        while pending:
            tensor = pending.pop()
            node = tensor.node
            if tensor in self.stop or node in self.slots:
                continue
            self.slots[node] = passed_on = _open_slots(node)
            for slot, source in enumerate(node.inputs):
                if slot not in passed_on:
                    self.blocked.append((node, slot))
                elif source not in self.reached:
                    self.reached.add(source)
                    pending.append(source)

    def cuts(self, x: Tensor) -> list[Cut]:
        """The cuts on all paths from `x` to `y`. Long paths are omitted after `_MOST_STEPS` nodes in all."""
        if x is not self.y and x not in self.consumers:
            return [self._no_path(x)]
        before = self.paths_from(x)
        nearest: dict[tuple[CutKind, Node], tuple[int, str, Node, Node]] = {}
        stopped = [tensor for tensor in self.reached & self.stop if tensor.node in before and tensor is not x]
        for tensor in sorted(stopped, key=_id):
            nearest["stop_gradients", tensor.node] = 0, "is among stop_gradients", tensor.node, tensor.node
        for node, slot in sorted(self.blocked, key=lambda item: (-item[0].id, item[1])):
            source = node.inputs[slot]
            if source is not x and (source.node not in before or source.node is x.node):
                continue
            kind, culprit, reason = self._reason(x, node, slot)
            length = before.lengths[source.node] + self._paths_to.lengths.get(node, 0)
            nearer = nearest.get((kind, culprit))
            if nearer is None or length < nearer[0]:
                nearest[kind, culprit] = length, reason, source.node, node
        cuts, steps_left = [], _MOST_STEPS
        for (kind, culprit), (_, reason, last, first) in nearest.items():
            path: tuple[Node, ...] = ()
            if steps_left > 0:
                path = (*before.path(last), *self._paths_to.path(first)[1 if last is first else 0 :])
                steps_left -= len(path)
            cuts.append(Cut(kind, culprit, reason, path))
        return cuts

    def paths_from(self, x: Tensor) -> PathsFrom:
        """Shortest paths from `x` to the nodes upstream of `y`."""
        if self._paths_from is None or self._paths_from.x is not x:
            self._paths_from = PathsFrom(x, self.consumers, DIFFERENTIABLE)
        return self._paths_from

    @cached_property
    def _paths_to(self) -> PathsTo:
        return PathsTo(self.y, self.slots, self.reached, self.stop)

    def path_through(self, x: Tensor, node: Node, slot: int) -> tuple[Node, ...]:
        """A shortest path from `x` to `y` through input `slot` of `node`."""
        return (*self.paths_from(x).path(node.inputs[slot].node), *self._paths_to.path(node))

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
            later = _downstream(x_node)
            waiting = min(
                (node for node in self.upstream if not later.isdisjoint(node.control_inputs)), key=lambda node: node.id, default=None
            )
            return Cut("control only", waiting, f"only waits for '{x_node.name}': a control dependency passes no value on", ())
        shared = _nearest_shared(x_node, self.upstream)
        hint = "" if shared is None else f"; both use '{shared.name}', whose gradient is not None"
        if shared is not None and not any(tensor in self.reached for tensor in shared.outputs):
            hint = f"; both use '{shared.name}'"
        return Cut("no path", None, f"'{self.y.name}' does not depend on '{x.name}'{hint}", ())

    def _reason(self, x: Tensor, node: Node, slot: int) -> tuple[CutKind, Node, str]:
        source = node.inputs[slot]
        if source.dtype in DIFFERENTIABLE:
            lacking = node.registration.no_gradient_by.get(slot)
            if lacking is not None:
                return (
                    "not differentiable",
                    node,
                    f"has op {node.op}, which has no gradient by '{node.op_def.input_arg[slot].name}': {lacking}",
                )
            return _op_reason(node)
        if source.dtype.base is dtypes.resource:
            text = f"takes the resource '{source.name}', a handle and no number: ask for the gradient by a value that is read from it"
            return "resource", node, text
        if x.dtype not in DIFFERENTIABLE:
            return "dtype", x.node, f"gives '{x.name}', which is {x.dtype.text}: only floating and complex tensors have gradients"
        # The responsible node is the one where the path leaves differentiable tensors, not the one where it returns to them.
        leaving = self.paths_from(x).leaving(source)
        if leaving is None:
            return _op_reason(node)
        if leaving.node.registration.traits.needs_only_shapes:
            return "shape only", leaving.node, f"takes only the shape of '{leaving.given.name}', which has no derivative"
        text = (
            f"gives '{leaving.tensor.name}', which is {leaving.tensor.dtype.text}: gradients flow through floating and complex tensors only"
        )
        return "dtype", leaving.node, text


def _open_slots(node: Node) -> list[int]:
    """The inputs that a gradient of an output of `node` reaches."""
    closed = node.registration.no_gradient_by
    slots = [
        slot for slot, tensor in enumerate(node.inputs) if tensor.node.output_types[tensor.index] in DIFFERENTIABLE and slot not in closed
    ]
    return slots if slots and _has_gradient(node) else []


def _has_gradient(node: Node) -> bool:
    if node.registration.is_function or node.op in CONTROL_FLOW or functional_gradient(node) is not None:
        return True
    try:
        return gradient_function(node) is not None or gradient_template(op_of_gradient(node), node.node_def.attr) is not None
    except GraphError:
        return False


def _op_reason(node: Node) -> tuple[CutKind, Node, str]:
    """The reason for which no gradient goes through `node` to a floating input."""
    if node.op == "StopGradient":
        return "stop_gradient", node, "stops gradients: that is what gc.stop_gradient is for"
    if node.registration.traits.needs_only_shapes:
        return "shape only", node, f"takes only the shape of '{node.inputs[0].name}', which has no derivative"
    if node.registration.gradient_kind == "none":
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
    return reachable(starts, producers_of if controls else lambda node: [tensor.node for tensor in node.inputs])


def _downstream(start: Node) -> set[Node]:
    """The nodes downstream of `start`, by data and control edges, itself included."""
    return reachable([start], lambda node: [consumer for consumer, _ in node.consumers()])


def _consumers(node: Node) -> list[Node]:
    return [consumer for consumer, slot in node.consumers() if slot >= 0]


def _is_assignment(node: Node) -> bool:
    return node.registration.traits.writes_input and node.inputs[0].node.registration.traits.role == "variable"


def _nearest_shared(node: Node, upstream: set[Node]) -> Node | None:
    """The nearest common ancestor of `node` and `y`, if it is a tensor to differentiate by."""
    seen = {node}
    waiting = deque([node])
    while waiting:
        current = waiting.popleft()
        if current in upstream and any(tensor.dtype in DIFFERENTIABLE for tensor in current.outputs):
            return current
        for tensor in current.inputs:
            if tensor.node not in seen:
                seen.add(tensor.node)
                waiting.append(tensor.node)
    return None


def _id(tensor: Tensor) -> tuple[int, int]:
    return tensor.node.id, tensor.index
