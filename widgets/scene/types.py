"""The definition of scenes: the content of a view as pure data.

The TypeScript types of the viewer are generated from these structs, so a field is added only here.
"""

from __future__ import annotations

from typing import Literal

import msgspec

NodeKind = Literal["op", "constant", "variable", "placeholder", "return", "control", "scope", "function", "stub"]
Role = Literal["forward", "gradient"]
Mode = Literal["auto", "all", "none"]
State = Literal["normal", "new", "changed", "removed", "error", "stale"]
EdgeKind = Literal["data", "control", "reference"]


class Openings(msgspec.Struct, frozen=True, kw_only=True):
    """The open and closed scopes of a view, by path.

    `opened` and `closed` are those that the user opened and closed. `mode` is the rule for all others: `auto` opens them while there is
    space, small helpers excepted; `all` opens helpers too; `none` opens nothing. With `mirror` the gradient of
    each forward box is beside it.
    """

    opened: list[str] = []
    closed: list[str] = []
    mode: Mode = "auto"
    mirror: bool = False


class LensMark(msgspec.Struct, frozen=True, kw_only=True):
    """The mark of one lens on a box or edge.

    `text` is shown in words, `tone` (0 to 7) selects a colour and a pattern, so that colour is never the only sign.
    """

    text: str
    tone: int = 0


class Dim(msgspec.Struct, frozen=True, kw_only=True):
    """One dimension of a shape: its size, `?` if unknown. Equal keys mean the same number everywhere."""

    text: str
    key: str


class SceneNode(msgspec.Struct, frozen=True, kw_only=True):
    """One box: an op node, a collapsed scope or call, or a stub for a far-away producer.

    `clash` names a number that clashes with another one downstream, and the cell that wrote it. `repeat` is the number of instances of
    a structure that is shown once, 0 for anything else; `detail` then lists their differences. `together` are the nodes that must be on one
    device with nodes of the box, in words.
    """

    id: str
    label: str
    kind: NodeKind
    op: str = ""
    detail: str = ""
    group: str = ""
    role: Role = "forward"
    state: State = "normal"
    error: str = ""
    clash: str = ""
    count: int = 1
    repeat: int = 0
    expandable: bool = False
    mirrors: str = ""
    stands_for: str = ""
    cell: str = ""
    together: str = ""
    lenses: dict[str, LensMark] = {}


class SceneEdge(msgspec.Struct, frozen=True, kw_only=True):
    """One edge between two boxes for `count` tensors; `label` is their type and shape.

    With `reversed`, the layout ranks the target before the source (the arrow still points at the target); `loose` edges leave ranks alone. `dims` are the dimensions in
    the label. `clash` is the number of the chain of a shape error on this edge, 0 if there is none. `state` is `new` or `removed` in the picture
    of a difference; the label says so too.
    """

    id: str
    source: str
    target: str
    kind: EdgeKind = "data"
    label: str = ""
    count: int = 1
    dims: list[Dim] = []
    error: str = ""
    clash: int = 0
    reversed: bool = False
    loose: bool = False
    role: Role = "forward"
    state: State = "normal"
    lenses: dict[str, LensMark] = {}


class SceneGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A frame around boxes: an open name scope or call. `parent` is "" at the top."""

    id: str
    label: str
    parent: str = ""
    count: int = 0
    role: Role = "forward"
    kind: Literal["scope", "function"] = "scope"


class LegendEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a lens's legend."""

    tone: int
    text: str


class Lens(msgspec.Struct, frozen=True, kw_only=True):
    """A lens with marks in this scene. `note` is the reason why it marks nothing, or where its marks come from."""

    name: str
    title: str
    legend: list[LegendEntry] = []
    note: str = ""


class LensNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """The exact numbers of a lens in this scene, by the ids of boxes."""

    lens: str
    unit: str
    values: dict[str, float]


class Colocation(msgspec.Struct, frozen=True, kw_only=True):
    """Boxes of nodes that must be on one device: all nodes in words, and the constraints that join them."""

    nodes: list[str]
    text: str
    reasons: list[str]


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """The complete content of one picture. `revision` increases with every scene of a view.

    `mirror` puts each gradient beside its origin. `since` says in the legend since when boxes are new or changed. `numbers` are those of overlays.
    """

    title: str
    nodes: list[SceneNode]
    edges: list[SceneEdge]
    groups: list[SceneGroup] = []
    lenses: list[Lens] = []
    numbers: list[LensNumbers] = []
    colocations: list[Colocation] = []
    revision: int = 0
    total_nodes: int = 0
    hidden_nodes: int = 0
    summary: str = ""
    mirror: bool = False
    since: str = "with the last cell"
