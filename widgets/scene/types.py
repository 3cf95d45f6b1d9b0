"""What a view shows, as pure data: the one definition of a scene.

The TypeScript types of the viewer are generated from these structs, so a field is added here and nowhere else.
"""

from __future__ import annotations

from typing import Literal

import msgspec

NodeKind = Literal["op", "constant", "variable", "placeholder", "return", "control", "scope", "function", "stub"]
Role = Literal["forward", "gradient"]
State = Literal["normal", "new", "changed", "error", "stale"]
EdgeKind = Literal["data", "control", "reference"]


class LensMark(msgspec.Struct, frozen=True, kw_only=True):
    """What one lens says of one box or line.

    `text` is shown in words, `tone` (0 to 7) picks a colour and a pattern, so that colour is never the only sign.
    """

    text: str
    tone: int = 0


class Dim(msgspec.Struct, frozen=True, kw_only=True):
    """One dimension of a shape: its size, `?` if it is known only when the graph runs. Equal keys: the same number, wherever it occurs."""

    text: str
    key: str


class SceneNode(msgspec.Struct, frozen=True, kw_only=True):
    """One box: an op node, a collapsed scope or function call, or a stub that stands for a far-away producer.

    `clash` names a number that clashes with another one further on, and the cell in which it was written.
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
    expandable: bool = False
    mirrors: str = ""
    stands_for: str = ""
    cell: str = ""
    lenses: dict[str, LensMark] = {}


class SceneEdge(msgspec.Struct, frozen=True, kw_only=True):
    """One line between two boxes; `count` tensors are bundled in it, `label` is their type and shape.

    `reversed` tells the layout to rank the target before the source (the arrow still points at the target). `dims` are the dimensions
    in the label. `clash` is the number of the chain of a shape error that runs here, 0 if none does.
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
    role: Role = "forward"
    lenses: dict[str, LensMark] = {}


class SceneGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A frame around boxes: a name scope or a function call that is open. `parent` is "" at the top."""

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
    """A lens that this scene carries marks for."""

    name: str
    title: str
    legend: list[LegendEntry] = []


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one picture shows. `revision` grows with every scene that one view sends."""

    title: str
    nodes: list[SceneNode]
    edges: list[SceneEdge]
    groups: list[SceneGroup] = []
    lenses: list[Lens] = []
    revision: int = 0
    total_nodes: int = 0
    hidden_nodes: int = 0
    summary: str = ""
