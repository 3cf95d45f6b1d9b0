"""Which boxes and frames show, and which nodes each box stands for."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, TypeAlias

from widgets.scene.state import SceneState
from widgets.scene.tree import Chunk, Part, Scope, ScopeTree, Thing

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node

HARD_LIMIT: Final = 500
"""However much the user opens: beyond this the oldest openings give way."""
AUTO_BOXES: Final = 150
"""Scopes open on their own up to this many boxes: as many as a reader takes in. `expand("*")` goes on to the view's limit."""

Foldable: TypeAlias = Scope | Chunk | Thing


class Box:
    """One visible box. `main` is the node it shows (None for a scope), `nodes` all that it stands for."""

    __slots__ = ("group", "id", "main", "nodes", "part")

    def __init__(self, box_id: str, group: str, part: Part, main: Node | None, nodes: list[Node]) -> None:
        self.id = box_id
        self.group = group
        self.part = part
        self.main = main
        self.nodes = nodes


class Frame:
    """One open scope, thing or chunk."""

    __slots__ = ("id", "parent", "part")

    def __init__(self, frame_id: str, parent: str, part: Scope | Chunk | Thing) -> None:
        self.id = frame_id
        self.parent = parent
        self.part = part


class Visible:
    """The boxes and frames of one picture, and the box of every node by name."""

    __slots__ = ("box_of", "boxes", "frames")

    def __init__(self) -> None:
        self.boxes: list[Box] = []
        self.frames: list[Frame] = []
        self.box_of: dict[str, Box] = {}


def scope_tree(graph: Graph, state: SceneState) -> ScopeTree:
    """The view's scope tree of this graph, up to date."""
    if state.tree is None or state.tree.graph is not graph:
        state.tree = ScopeTree(graph)
    state.tree.sync()
    return state.tree


def visible_boxes(graph: Graph, state: SceneState) -> Visible:
    """Decide what shows. Every node is in exactly one box."""
    root = scope_tree(graph, state).root
    opened = choose_open(root, state)
    visible = Visible()
    _place(root.parts(), "", opened, visible)
    box_of = visible.box_of
    for box in visible.boxes:
        for node in box.nodes:
            box_of[node.name] = box
    return visible


def choose_open(root: Scope, state: SceneState) -> set[str]:
    """The keys of everything open: what the user opened first, then by size while there is room."""
    wanted = list(state.opened)
    while True:
        opened, boxes, closed = _open_wanted(root, set(wanted))
        if boxes <= HARD_LIMIT or not wanted:
            break
        wanted.pop(0)
    if state.mode != "none":
        _open_by_size(closed, opened, boxes, state)
    return opened


def _open_wanted(root: Scope, wanted: set[str]) -> tuple[set[str], int, list[tuple[str, Foldable]]]:
    opened: set[str] = set()
    closed: list[tuple[str, Foldable]] = []
    boxes = 0
    stack: list[tuple[str, Part]] = [("", part) for part in root.parts()]
    while stack:
        parent, part = stack.pop()
        if not isinstance(part, Scope | Chunk | Thing):
            boxes += 1
        elif part.key in wanted:
            opened.add(part.key)
            stack.extend((part.key, inner) for inner in part.parts())
        else:
            boxes += 1
            closed.append((parent, part))
    return opened, boxes, closed


def _open_by_size(closed: list[tuple[str, Foldable]], opened: set[str], boxes: int, state: SceneState) -> None:
    """Open the largest first. Siblings of like size open together or not at all, so that equal layers look equal."""
    limit = state.max_boxes if state.mode == "all" else min(state.max_boxes, AUTO_BOXES)
    families: list[tuple[int, str, list[Foldable]]] = []
    for parent in dict.fromkeys(parent for parent, _ in closed):
        _push_families(families, [part for above, part in closed if above == parent], state)
    while families:
        _, _, family = heapq.heappop(families)
        more = sum(len(part.parts()) - 1 for part in family)
        if boxes + more > limit:
            continue
        boxes += more
        for part in family:
            opened.add(part.key)
            _push_families(families, [inner for inner in part.parts() if isinstance(inner, Scope | Chunk | Thing)], state)


def _push_families(families: list[tuple[int, str, list[Foldable]]], siblings: list[Foldable], state: SceneState) -> None:
    may_open = [part for part in siblings if part.key not in state.closed and (state.mode == "all" or isinstance(part, Scope))]
    may_open.sort(key=lambda part: -part.total)
    while may_open:
        largest = may_open[0].total
        family = [part for part in may_open if 2 * part.total >= largest]
        heapq.heappush(families, (-largest, family[0].key, family))
        may_open = may_open[len(family) :]


def _place(parts: list[Part], group: str, opened: set[str], visible: Visible) -> None:
    for part in parts:
        if not isinstance(part, Scope | Chunk | Thing):
            visible.boxes.append(Box(part.name, group, part, part, [part]))
        elif part.key in opened:
            frame = part.key + "/"
            visible.frames.append(Frame(frame, group, part))
            _place(part.parts(), frame, opened, visible)
        elif isinstance(part, Thing):
            visible.boxes.append(Box(part.node.name, group, part, part.node, part.all_nodes()))
        else:
            visible.boxes.append(Box(part.key + "/", group, part, None, part.all_nodes()))
