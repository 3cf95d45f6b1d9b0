"""The user's choices in a view: open scopes, lens, renderer."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from widgets.scene.origins import MIRROR
from widgets.scene.types import Mode, Openings

MAX_BOXES: Final = 300
"""The most boxes that are shown unless the user opens them one by one."""

AUTO_BOXES: Final = 40
"""Scopes open on their own up to this many boxes: as many as a reader takes in. `expand("*")` goes on to the view's limit."""

Asked: TypeAlias = tuple[Literal["part", "node"], str]
"""The key of a part that was opened, or the name of a node that was revealed."""


class SceneState:
    """The choices in one view. Scopes are known by path, so they survive any change of the graph.

    Args:
        max_boxes: the most boxes that may be opened without an explicit request by name.
        auto_boxes: the most boxes that may open automatically.

    Attributes:
        opened: paths that the user opened, in that order (the latest wins when there are too many).
        closed: paths that the user closed.
        mode: the rule for all other scopes: `auto` opens them while there is space, small helpers excepted;
            `all` opens helpers too; `none` opens nothing.
        mirror: show the gradient of each forward box beside it.
        lens, renderer: the selected ones.
        asked: what was opened and revealed since a compiler of scenes has last opened all around it.
    """

    def __init__(
        self,
        *,
        max_boxes: int = MAX_BOXES,
        auto_boxes: int = AUTO_BOXES,
        lens: str = "structure",
        renderer: Literal["graphviz", "mermaid"] = "graphviz",
        mirror: bool = False,
    ) -> None:
        self.opened: dict[str, None] = {}
        self.closed: set[str] = set()
        self.mode: Mode = "auto"
        self.mirror = mirror
        self.max_boxes = max_boxes
        self.auto_boxes = auto_boxes
        self.lens = lens
        self.renderer: Literal["graphviz", "mermaid"] = renderer
        self.asked: list[Asked] = []

    def expand(self, box_id: str) -> None:
        """Open a box; "*" opens everything there is space for."""
        if box_id == "*":
            self._start_over("all")
            return
        path = self._forward(box_id)
        self.closed.discard(path)
        self.opened.pop(path, None)
        self.opened[path] = None
        self.asked.append(("part", path))

    def collapse(self, box_id: str) -> None:
        """Close a frame; "*" closes everything."""
        if box_id == "*":
            self._start_over("none")
            return
        path = scope_path(box_id)
        path = path if path in self.opened else self._forward(box_id)
        self.opened.pop(path, None)
        self.closed.add(path)

    def reveal(self, name: str) -> None:
        """Open all scopes around the node called `name`, in the next picture."""
        self.asked.append(("node", name))

    def copy(self) -> SceneState:
        """The same choices for another view."""
        other = SceneState(max_boxes=self.max_boxes, auto_boxes=self.auto_boxes, lens=self.lens, renderer=self.renderer)
        other.restore(self.openings())
        other.asked.extend(self.asked)
        return other

    def openings(self) -> Openings:
        """The open and closed scopes, to be restored later."""
        return Openings(opened=list(self.opened), closed=sorted(self.closed), mode=self.mode, mirror=self.mirror)

    def restore(self, openings: Openings) -> None:
        """Open and close scopes as they were."""
        self._start_over(openings.mode)
        self.mirror = openings.mirror
        self.opened.update(dict.fromkeys(openings.opened))
        self.closed.update(openings.closed)

    def choices(self) -> tuple[object, ...]:
        """All choices that decide which boxes show, for comparison of two moments."""
        return (tuple(self.opened), tuple(self.asked), frozenset(self.closed), self.mode, self.mirror, self.max_boxes, self.auto_boxes)

    def _forward(self, box_id: str) -> str:
        """The path to open or close for a box.

        A scope of the backward pass opens with the scope that it mirrors.
        """
        path = scope_path(box_id)
        is_scope = self.mirror and box_id.endswith("/") and path.startswith(MIRROR)
        return path.lstrip(MIRROR) or MIRROR if is_scope else path

    def _start_over(self, mode: Mode) -> None:
        self.mode = mode
        self.opened.clear()
        self.closed.clear()
        self.asked.clear()


def scope_path(box_id: str) -> str:
    """The path of a box or frame: frames and collapsed scopes are `path/`, things are `path`."""
    return box_id.removesuffix("/")
