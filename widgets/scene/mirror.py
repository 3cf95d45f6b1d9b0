"""The mirrored picture: beside each forward box what differentiates it, folded as that box is folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from widgets.scene.boxes import Box, Foldable, Frame, Visible
from widgets.scene.calls import has_hub
from widgets.scene.origins import MIRROR
from widgets.scene.state import SceneState
from widgets.scene.structure import Bunch
from widgets.scene.tree import FOLDS, Group, Part, Scope, ScopeTree
from widgets.scene.words import last_part

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node

SUM: Final = "sum"
BACKWARD: Final = f"{MIRROR}/"
"""The frame of the backward pass, or its box."""


class Mirrored(Group):
    """The gradient nodes of one forward box or frame.

    Args:
        key: that of the forward part, with one more mark in front.
        label: `gradient of conv1`.
        nodes: its nodes.
        is_body: they differentiate one node.
    """

    __slots__ = ("is_body",)

    def __init__(self, key: str, label: str, nodes: list[Node], *, is_body: bool = False) -> None:
        super().__init__("", 0, Bunch([], label, is_plain=True), [])
        self._key = key
        self.is_body = is_body
        self.items = [*nodes]

    @property
    def total(self) -> int:
        """The number of its nodes."""
        return len(self.items)

    def parts(self) -> list[Part]:
        """Its nodes."""
        return self.items


def place_mirrored(graph: Graph, visible: Visible, tree: ScopeTree, state: SceneState, opened: set[str]) -> None:
    """Add the boxes of gradient nodes, beside the forward boxes that are there.

    Args:
        visible: the forward boxes and frames.
        state: the user's choices.
        opened: the keys of open parts.
    """
    origins = visible.origins
    if MIRROR in state.closed:
        nodes = [node for node in graph.nodes if node.name in origins]
        visible.add(Box(BACKWARD, "", Mirrored(MIRROR, "gradients", nodes), None, nodes))
        return
    for names in _levels(origins):
        _Level(graph, visible, tree, state, opened | {*state.opened}).place([node for node in map(graph.find, names) if node is not None])


def _levels(origins: Mapping[str, str]) -> Iterator[list[str]]:
    """The gradient nodes, then the gradients of gradients, and so on."""
    left = origins
    while left:
        here = [name for name in left if left[name] not in left]
        yield here
        done = set(here)
        left = {name: origin for name, origin in left.items() if name not in done}


class _Level:
    """Places the gradients of the boxes that are there."""

    def __init__(self, graph: Graph, visible: Visible, tree: ScopeTree, state: SceneState, opened: set[str]) -> None:
        self.graph = graph
        self.visible = visible
        self.tree = tree
        self.state = state
        self.opened = opened
        self.places = {box.id: place for place, box in enumerate(visible.boxes)}
        self.frames = {frame.id: frame for frame in visible.frames}

    def place(self, nodes: Sequence[Node]) -> None:
        """Place these gradient nodes."""
        records = self.graph.gradient_records
        bundles: dict[str, list[Node]] = {}
        for node in sorted(nodes, key=lambda node: node.id):
            bundles.setdefault(self.visible.place_of_name(self.visible.origins[node.name]), []).append(node)
        for place in sorted(bundles, key=lambda place: self.places.get(place, len(self.places))):
            label, group, is_node = self._forward(place)
            sums = []
            if is_node:
                sums = [node for node in bundles[place] if node.name in records and records[node.name].body_node == SUM]
            rest = [node for node in bundles[place] if node not in sums]
            inside = self._frame(group)
            for node in sums:
                self._add(Box(node.name, inside, node, node, [node]), f"sum of {len(node.inputs)} gradients of {label}")
            if rest:
                self._body(place, inside, f"gradient of {label}", rest)

    def _body(self, place: str, inside: str, words: str, nodes: list[Node]) -> None:
        key = MIRROR + place.removesuffix("/")
        part = Mirrored(key, words, nodes, is_body=not place.endswith("/") or place not in self.places)
        if key in self.opened and not place.endswith("/") and len(nodes) > 1:
            self.visible.frames.append(Frame(f"{key}/", inside, part))
            self._keep(inside, nodes)
            for node in nodes:
                self._node(node, f"{key}/")
        elif len(nodes) == 1:
            self._node(nodes[0], inside, words)
        else:
            self._add(Box(MIRROR + place, inside, part, None, nodes), words)

    def _node(self, node: Node, group: str, words: str = "") -> None:
        call = self.tree.call_of(node)
        if call is None or call.key not in self.opened or not call.opens:
            self._add(Box(node.name, group, node if call is None else call, node, [node]), words)
            return
        frame = f"{call.key}/"
        self.visible.frames.append(Frame(frame, group, call))
        self.visible.open_call(call)
        if has_hub(node):
            self.visible.add(Box(node.name, frame, node, node, [node]))
        bodies = {root.key for root in call.roots if root.key not in self.state.closed}
        self.visible.place(call.inside(), frame, self.opened | bodies)
        self._keep(group, [node])

    def _add(self, box: Box, words: str) -> None:
        self.visible.add(box)
        self._keep(box.group, box.nodes)
        if words:
            self.visible.words[box.id] = words

    def _forward(self, place: str) -> tuple[str, str, bool]:
        """The label of a forward box or of an open call, the frame around it, and True if it shows one node."""
        if place in self.places:
            box = self.visible.boxes[self.places[place]]
            known = self.visible.words.get(place)
            if box.main is not None:
                return known or last_part(box.id), box.group, True
            return known or _label(box.part), box.group, False
        frame = self.frames.get(place)
        return last_part(place.removesuffix("/")), "" if frame is None else frame.parent, True

    def _frame(self, forward: str) -> str:
        """The frame that mirrors a frame of the forward pass, made when it is needed."""
        frame = self.frames.get(forward)
        if frame is not None and not _is_mirrored(frame.part):
            return self._frame(frame.parent)
        mirrored = MIRROR + (forward or "/")
        if mirrored not in self.frames:
            parent = "" if frame is None else self._frame(frame.parent)
            label = "gradients" if frame is None else f"gradient of {_label(frame.part)}"
            made = self.frames[mirrored] = Frame(mirrored, parent, Mirrored(mirrored.removesuffix("/"), label, []))
            self.visible.frames.append(made)
        return mirrored

    def _keep(self, group: str, nodes: list[Node]) -> None:
        while (frame := self.frames.get(group)) is not None:
            if isinstance(frame.part, Mirrored):
                frame.part.items.extend(nodes)
            group = frame.parent


def _is_mirrored(part: Foldable) -> bool:
    """True for the frames of scopes and groups; other frames are those of single nodes."""
    if isinstance(part, Mirrored):
        return not part.is_body
    return isinstance(part, Group) or (isinstance(part, Scope) and part.callee is None)


def _label(part: Part) -> str:
    return part.label if isinstance(part, Scope | Group) else part.key if isinstance(part, FOLDS) else part.name
