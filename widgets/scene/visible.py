"""The choice of the boxes and frames that show."""

from __future__ import annotations

import heapq
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, TypeAlias

from graphcore.difference.marks import shown_difference
from graphcore.graph.attached import Attached
from widgets.scene.boxes import Foldable, Visible
from widgets.scene.mirror import place_mirrored
from widgets.scene.origins import origins_of
from widgets.scene.roles import Roles
from widgets.scene.state import SceneState
from widgets.scene.tree import FEW_NODES, FOLDS, MOST_FRAMES, Call, Part, Scope, ScopeTree

if TYPE_CHECKING:
    from graphcore.graph import Graph

HARD_LIMIT: Final = 500
"""However much the user opens: beyond this the oldest openings give way."""

_Closed: TypeAlias = "tuple[str, int, Foldable]"
"""The key of the part around it, the number of parts around it, and a closed part."""


_trees: Final[Attached[ScopeTree]] = Attached()


def scope_tree(graph: Graph) -> ScopeTree:
    """The scope tree of a graph, up to date."""
    tree = _trees.of(graph)
    if tree is None:
        tree = ScopeTree(graph)
        _trees.set(graph, tree)
    tree.sync()
    return tree


def visible_boxes(graph: Graph, state: SceneState) -> Visible:
    """Choose the visible boxes. Every node is in exactly one box."""
    tree = scope_tree(graph)
    visible = Visible(Roles(graph, tree), origins_of(graph) if state.mirror else None)
    opened = choose_open(tree, state, visible)
    visible.place(tree.root.parts(), "", opened)
    if visible.origins:
        place_mirrored(graph, visible, tree, state, opened)
    return visible


def choose_open(tree: ScopeTree, state: SceneState, visible: Visible) -> set[str]:
    """The keys of everything open: the user's choices first, then the largest while there is space."""
    root, requested = tree.root, list(state.opened)
    first = frozenset() if state.mode == "none" else tree.opened_first - state.closed
    while True:
        opened, boxes, closed = _open_requested(root, visible, first.union(requested), state.closed)
        if boxes <= HARD_LIMIT or not requested:
            break
        requested.pop(0)
    if state.mode != "none":
        _Opener(root, state, visible, opened, boxes).run(closed)
    return opened


def _open_requested(root: Scope, visible: Visible, requested: AbstractSet[str], shut: set[str]) -> tuple[set[str], int, list[_Closed]]:
    opened: set[str] = set()
    closed: list[_Closed] = []
    boxes = 0
    stack: list[tuple[str, int, Part]] = [("", 0, part) for part in visible.shown(root.parts())]
    while stack:
        parent, depth, part = stack.pop()
        if not isinstance(part, FOLDS):
            boxes += 1
        elif depth < MOST_FRAMES and _is_requested(part, requested, shut):
            opened.add(part.key)
            stack.extend((part.key, depth + 1, inner) for inner in visible.shown(part.parts()))
        else:
            boxes += 1
            closed.append((parent, depth, part))
    return opened, boxes, closed


def _is_requested(part: Foldable, requested: AbstractSet[str], shut: set[str]) -> bool:
    if part.key in requested:
        return not isinstance(part, Call) or part.opens
    # The branches of a call are opened together.
    return isinstance(part, Scope) and part.callee is not None and part.key not in shut


class _Opener:
    """Opens the largest first, and gradients once there is space for everything else.

    Siblings of similar size open together or not at all, so that equal layers look equal.
    """

    def __init__(self, root: Scope, state: SceneState, visible: Visible, opened: set[str], boxes: int) -> None:
        self.state = state
        self.visible = visible
        self.roles = visible.roles
        self.opened = opened
        self.boxes = boxes
        self.limit = state.max_boxes if state.mode == "all" else min(state.max_boxes, state.auto_boxes)
        if visible.origins:
            self.limit = 2 * self.limit // 3  # the rest is for their gradients
        total = root.total - len(visible.origins)
        self.marks = shown_difference.of(visible.roles.graph)
        self.least = total // 4 if total > FEW_NODES and self.marks is None else 0
        self.families: list[tuple[bool, int, str, int, list[Foldable]]] = []

    def run(self, closed: list[_Closed]) -> None:
        """Continue with the closed parts."""
        siblings: dict[tuple[str, int], list[Foldable]] = {}
        for parent, depth, part in closed:
            siblings.setdefault((parent, depth), []).append(part)
        for (_, depth), parts in siblings.items():
            self._consider(parts, depth)
        is_full = False
        while self.families:
            is_gradient, _, _, depth, family = heapq.heappop(self.families)
            more = sum(len(self.visible.shown(part.parts())) - 1 for part in family)
            if self.boxes + more > self.limit or (is_gradient and is_full):
                is_full = True
                continue
            self.boxes += more
            for part in family:
                self.opened.add(part.key)
                self._consider([inner for inner in self.visible.shown(part.parts()) if isinstance(inner, FOLDS)], depth + 1)

    def _consider(self, siblings: list[Foldable], depth: int) -> None:
        if depth >= MOST_FRAMES:
            return
        may_open = sorted((part for part in siblings if self._may_open(part)), key=lambda part: -part.total)
        while may_open:
            largest = may_open[0].total
            family = [part for part in may_open if 2 * part.total >= largest]
            heapq.heappush(
                self.families, (self.roles.of_nodes(family[0].all_nodes()) == "gradient", -largest, family[0].key, depth, family)
            )
            may_open = may_open[len(family) :]

    def _may_open(self, part: Foldable) -> bool:
        """Scopes may open, but no bodies of gradients, and in a large graph only major scopes.

        In the picture of a difference everything may open that is different inside.
        """
        if part.key in self.state.closed:
            return False
        if self.marks is not None and self.state.mode != "all":
            return not isinstance(part, Call) and any(self.marks.is_touched(node.name) for node in part.all_nodes())
        if isinstance(part, Call):
            return self.state.mode == "all" and part.opens
        if self.state.mode == "all" or not isinstance(part, Scope):
            return self.state.mode == "all"
        says_all = part.is_layer or part.only_repeat is not None
        return part.total >= self.least and not self.roles.body_of(part.path) and not says_all
