"""The visible boxes and frames, and the nodes of each box."""

from __future__ import annotations

import heapq
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from widgets.scene.calls import CallBody, callee_arguments, has_hub, is_choice
from widgets.scene.roles import Roles
from widgets.scene.state import SceneState
from widgets.scene.tree import FEW_NODES, FOLDS, Call, Group, Part, Scope, ScopeTree, Thing

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node, Tensor

HARD_LIMIT: Final = 500
"""However much the user opens: beyond this the oldest openings give way."""

_node_id: Final = attrgetter("id")

Foldable: TypeAlias = Scope | Group | Thing | Call


class Box:
    """One visible box. `main` is the node it shows (None for a scope), `nodes` are all its nodes."""

    __slots__ = ("group", "id", "main", "nodes", "part")

    def __init__(self, box_id: str, group: str, part: Part, main: Node | None, nodes: list[Node]) -> None:
        self.id = box_id
        self.group = group
        self.part = part
        self.main = main
        self.nodes = nodes


class Frame:
    """One open scope, thing, call or group."""

    __slots__ = ("id", "parent", "part")

    def __init__(self, frame_id: str, parent: str, part: Foldable) -> None:
        self.id = frame_id
        self.parent = parent
        self.part = part


class Visible:
    """The boxes and frames of one picture, the box of each node, open calls, and the backward pass."""

    __slots__ = ("box_of", "boxes", "calls", "frames", "given", "roles")

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        self.boxes: list[Box] = []
        self.frames: list[Frame] = []
        self.box_of: dict[str, Box] = {}
        self.calls: dict[str, Call] = {}
        self.given: dict[str, Tensor] = {}
        """The tensors that come into the arguments of open bodies from outside, by the name of the argument node."""

    def open_call(self, call: Call) -> None:
        """Record an open call."""
        self.calls[call.node.name] = call
        hub = has_hub(call.node)
        given = callee_arguments(call.node) or []
        for body in call.bodies():
            self.roles.inner |= body.gradients
            if not hub:
                self.given.update({arg.name: tensor for arg, tensor in zip(body.args, given, strict=False)})

    def argument_sources(self, tensor: Tensor) -> list[tuple[Box, Tensor]]:
        """The boxes that produce a tensor, with its name there: for an open call the returns of its bodies."""
        call = self.calls.get(tensor.node.name)
        if call is None or (has_hub(call.node) and not is_choice(call.node)):
            box = self.box_of.get(tensor.node.name)
            return [] if box is None else [(box, tensor)]
        rets = [body.rets[tensor.index] for body in call.bodies() if tensor.index < len(body.rets)]
        return [(self.box_of[ret.name], ret.inputs[0] if ret.inputs[0].shape.dims is not None else tensor) for ret in rets]

    def inner_nodes(self) -> list[Node]:
        """The nodes of all open bodies."""
        return [node for call in self.calls.values() for body in call.bodies() for node in body.nodes]

    def place_of(self, node: Node) -> str:
        """The id of a node's box, or of the frame of an open call; "" if it is not visible."""
        box = self.box_of.get(node.name)
        return box.id if box is not None else f"{node.name}/" if node.name in self.calls else ""

    def awaited(self, node: Node) -> list[Box]:
        """The boxes that a control dependency on a node waits for."""
        call = self.calls.get(node.name)
        if call is None or has_hub(call.node):
            box = self.box_of.get(node.name)
            return [] if box is None else [box]
        return [box for body in call.bodies() for last in (body.control_rets or body.rets) for box in self.awaited(last)]

    def beginnings(self, body: CallBody) -> list[Box]:
        """The first boxes of a body."""
        first = body.args or [node for node in body.nodes if not node.inputs and not node.control_inputs]
        return [box for node in first for box in self._first_boxes(node)]

    def _first_boxes(self, node: Node) -> list[Box]:
        call = self.calls.get(node.name)
        if call is None or has_hub(node):
            return [self.box_of[node.name]]
        return [box for body in call.bodies() for box in self.beginnings(body)]


def scope_tree(graph: Graph, state: SceneState) -> ScopeTree:
    """The view's scope tree of this graph, up to date."""
    if state.tree is None or state.tree.graph is not graph:
        state.tree = ScopeTree(graph)
    state.tree.sync()
    return state.tree


def visible_boxes(graph: Graph, state: SceneState) -> Visible:
    """Choose the visible boxes. Every node is in exactly one box."""
    tree = scope_tree(graph, state)
    root = tree.root
    visible = Visible(Roles(graph, tree))
    opened = choose_open(root, state, visible.roles)
    _place(root.parts(), "", opened, visible)
    box_of = visible.box_of
    for box in visible.boxes:
        for node in box.nodes:
            box_of[node.name] = box
    return visible


def choose_open(root: Scope, state: SceneState, roles: Roles) -> set[str]:
    """The keys of everything open: the user's choices first, then the largest while there is space."""
    requested = list(state.opened)
    while True:
        opened, boxes, closed = _open_requested(root, {*requested}, state.closed)
        if boxes <= HARD_LIMIT or not requested:
            break
        requested.pop(0)
    if state.mode != "none":
        _Opener(root, state, roles, opened, boxes).run(closed)
    return opened


def _open_requested(root: Scope, requested: set[str], shut: set[str]) -> tuple[set[str], int, list[tuple[str, Foldable]]]:
    opened: set[str] = set()
    closed: list[tuple[str, Foldable]] = []
    boxes = 0
    stack: list[tuple[str, Part]] = [("", part) for part in root.parts()]
    while stack:
        parent, part = stack.pop()
        if not isinstance(part, FOLDS):
            boxes += 1
        elif _is_requested(part, requested, shut):
            opened.add(part.key)
            stack.extend((part.key, inner) for inner in part.parts())
        else:
            boxes += 1
            closed.append((parent, part))
    return opened, boxes, closed


def _is_requested(part: Foldable, requested: set[str], shut: set[str]) -> bool:
    if part.key in requested:
        return not isinstance(part, Call) or part.opens
    # The branches of a call are opened together.
    return isinstance(part, Scope) and part.callee is not None and part.key not in shut


class _Opener:
    """Opens the largest first, and gradients once there is space for everything else.

    Siblings of similar size open together or not at all, so that equal layers look equal.
    """

    def __init__(self, root: Scope, state: SceneState, roles: Roles, opened: set[str], boxes: int) -> None:
        self.state = state
        self.roles = roles
        self.opened = opened
        self.boxes = boxes
        self.limit = state.max_boxes if state.mode == "all" else min(state.max_boxes, state.auto_boxes)
        self.least = root.total // 4 if root.total > FEW_NODES else 0
        self.families: list[tuple[bool, int, str, list[Foldable]]] = []

    def run(self, closed: list[tuple[str, Foldable]]) -> None:
        """Continue with the closed parts, given with their parents' keys."""
        siblings: dict[str, list[Foldable]] = {}
        for parent, part in closed:
            siblings.setdefault(parent, []).append(part)
        for parts in siblings.values():
            self._consider(parts)
        is_full = False
        while self.families:
            is_gradient, _, _, family = heapq.heappop(self.families)
            more = sum(len(part.parts()) - 1 for part in family)
            if self.boxes + more > self.limit or (is_gradient and is_full):
                is_full = True
                continue
            self.boxes += more
            for part in family:
                self.opened.add(part.key)
                self._consider([inner for inner in part.parts() if isinstance(inner, FOLDS)])

    def _consider(self, siblings: list[Foldable]) -> None:
        may_open = sorted((part for part in siblings if self._may_open(part)), key=lambda part: -part.total)
        while may_open:
            largest = may_open[0].total
            family = [part for part in may_open if 2 * part.total >= largest]
            heapq.heappush(self.families, (self.roles.of_nodes(family[0].all_nodes()) == "gradient", -largest, family[0].key, family))
            may_open = may_open[len(family) :]

    def _may_open(self, part: Foldable) -> bool:
        """Scopes may open, but no bodies of gradients, and in a large graph only major scopes."""
        if part.key in self.state.closed:
            return False
        if isinstance(part, Call):
            return self.state.mode == "all" and part.opens
        return self.state.mode == "all" or (isinstance(part, Scope) and part.total >= self.least and not self.roles.body_of(part.path))


def _place(parts: list[Part], group: str, opened: set[str], visible: Visible) -> None:
    for part in parts:
        if not isinstance(part, FOLDS):
            visible.boxes.append(Box(part.name, group, part, part, [part]))
        elif part.key in opened:
            frame = part.key + "/"
            visible.frames.append(Frame(frame, group, part))
            if isinstance(part, Call):
                visible.open_call(part)
            _place(part.parts(), frame, opened, visible)
        elif isinstance(part, Thing | Call):
            visible.boxes.append(Box(part.node.name, group, part, part.node, in_order(part)))
        else:
            visible.boxes.append(Box(part.key + "/", group, part, None, in_order(part)))


def in_order(part: Foldable) -> list[Node]:
    """The nodes of a part by id: their order does not depend on how the part was formed."""
    return sorted(part.all_nodes(), key=_node_id)
