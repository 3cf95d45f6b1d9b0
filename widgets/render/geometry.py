"""The interface to the layout engine: DOT made of numbers only, and positions read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from widgets.render.looks import Size, box_look, edge_label_size, group_label_size
from widgets.scene.types import Scene, SceneEdge, SceneGroup


class Point(NamedTuple):
    """A point of the picture: pixels, y downwards."""

    x: float
    y: float


class Rect(NamedTuple):
    """A rectangle, by its upper left corner."""

    x: float
    y: float
    width: float
    height: float


class Route(NamedTuple):
    """The route of an edge: Bezier points (1 + 3n) to the arrowhead, its tip, the label's centre."""

    points: list[Point]
    tip: Point
    label: Point | None


class Geometry(msgspec.Struct, frozen=True):
    """Positions by the scene's ids. `engine` names the layout engine, `note` is a remark for the reader."""

    width: float
    height: float
    nodes: dict[str, Rect]
    groups: dict[str, Rect]
    edges: dict[str, Route]
    engine: str
    note: str = ""


class FoldedPlaces(msgspec.Struct, frozen=True):
    """The places that folding changes."""

    width: float
    height: float
    nodes: dict[str, Rect]
    groups: dict[str, Rect]
    edges: dict[str, Route]


def layout_dot(scene: Scene, *, fast: bool = False, across: bool = False, labels: bool = True) -> str:
    """DOT with nodes `n<index>`, clusters `cluster_<index>` and edge ids `e<index>`; without user text.

    Args:
        fast: let the engine take shortcuts (no edge labels, straight lines).
        across: data flows to the right instead of down.
        labels: with labels of edges; without them boxes are closer to one another, and only edges with an error keep theirs.

    One ranking for the whole picture (`newrank`) keeps lines between frames pointing down and gradients beside their forward boxes; ranked
    frame by frame, Graphviz turns some upwards and sometimes loses one.
    """
    index = {node.id: number for number, node in enumerate(scene.nodes)}
    parents = group_parents(scene.groups)
    members: dict[str, list[str]] = {"": [], **{group.id: [] for group in scene.groups}}
    for number, node in enumerate(scene.nodes):
        look = box_look(node)
        members[node.group if node.group in parents else ""].append(f"n{number}[width={_inches(look.width)},height={_inches(look.height)}]")
    numbers = {group.id: number for number, group in enumerate(scene.groups)}
    for group in sorted(scene.groups, key=lambda item: -len(group_ancestors(item.id, parents))):
        inner = members[group.id]
        if inner:
            label = _empty_label(group_label_size(group))
            head = f"subgraph cluster_{numbers[group.id]}{{graph[margin=12,labeljust=l,label={label}]"
            members[parents[group.id]].append("\n".join([head, *inner, "}"]))
    shortcuts = ",splines=line,nslimit=2,nslimit1=2,mclimit=.3" if fast else ""
    return "\n".join(
        [
            f"digraph{{graph[rankdir={'LR' if across else 'TB'},newrank=true,nodesep=.25,ranksep={0.3 if labels else 0.2},pad=0,margin=0{shortcuts}]",
            'node[shape=box,fixedsize=true,label=""]',
            "edge[arrowsize=.55]",
            *_halves(members[""], scene, index),
            *_edge_lines(scene, index, lambda edge: not fast and not edge.loose and (labels or edge.error != "")),
            "}",
        ]
    )


def _halves(members: list[str], scene: Scene, index: dict[str, int]) -> list[str]:
    """The statements at the top; a mirrored scene has its forward pass apart, and rows."""
    if not scene.mirror:
        return members
    backward = [
        text for text in members if text.startswith("subgraph") and scene.groups[int(text[17 : text.index("{")])].role == "gradient"
    ]
    forward = [text for text in members if text not in backward]
    rows = [
        f"{{rank=same;n{index[node.mirrors]}->n{number}[style=invis]}}" for number, node in enumerate(scene.nodes) if node.mirrors in index
    ]
    return ["subgraph cluster_{graph[margin=0]", *forward, "}", *backward, *rows]


def _edge_lines(scene: Scene, index: dict[str, int], is_labelled: Callable[[SceneEdge], bool]) -> list[str]:
    lines = []
    for number, edge in enumerate(scene.edges):
        if edge.source not in index or edge.target not in index:
            continue
        attributes = [f'id="e{number}"']
        if edge.kind == "control":
            attributes.append("weight=0")
        if edge.reversed:
            attributes.append("dir=back")
        if edge.loose:
            attributes.append("constraint=false")
        size = edge_label_size(edge) if is_labelled(edge) else None
        if size:
            attributes.append(f"label={_empty_label(size)}")
        ends = (edge.target, edge.source) if edge.reversed else (edge.source, edge.target)
        lines.append(f"n{index[ends[0]]}->n{index[ends[1]]}[{','.join(attributes)}]")
    return lines


def parse_geometry(text: str, scene: Scene, *, engine: str, note: str = "") -> Geometry:
    """Read the engine's JSON for `layout_dot(scene)`.

    Raises:
        ValueError: the text is not a layout.
    """
    graph: dict[str, Any] = msgspec.json.decode(text)
    if "bb" not in graph:
        raise ValueError("the layout engine gave no bounding box")
    _, _, width, top = _numbers(graph["bb"])
    nodes: dict[str, Rect] = {}
    groups: dict[str, Rect] = {}
    edges: dict[str, Route] = {}
    for item in graph.get("objects", ()):
        name = item.get("name", "")
        if name.startswith("cluster_") and name[8:] and "bb" in item:
            left, bottom, right, upper = _numbers(item["bb"])
            groups[scene.groups[int(name[8:])].id] = Rect(left, top - upper, right - left, upper - bottom)
        elif name.startswith("n") and "pos" in item:
            x, y = _numbers(item["pos"])
            w, h = float(item["width"]) * 72, float(item["height"]) * 72
            nodes[scene.nodes[int(name[1:])].id] = Rect(x - w / 2, top - y - h / 2, w, h)
    for item in graph.get("edges", ()):
        number = item.get("id", "")[1:]
        edge = scene.edges[int(number)] if number else None
        if edge is not None and item.get("pos"):
            edges[edge.id] = _route(item, top, backwards=edge.reversed)
    return Geometry(width, top, nodes, groups, edges, engine, note)


def _route(item: dict[str, Any], top: float, *, backwards: bool) -> Route:
    points = []
    tip = None
    for part in item["pos"].split():
        x, y = _numbers(part.removeprefix("e,").removeprefix("s,"))
        if part[0] in "es":
            tip = Point(x, top - y)
        else:
            points.append(Point(x, top - y))
    if backwards:
        points.reverse()
    # Graphviz sometimes leaves the last curve unfinished; the missing part becomes a straight line to the tip.
    points = points[: 1 + 3 * ((len(points) - 1) // 3)]
    label = Point(_numbers(item["lp"])[0], top - _numbers(item["lp"])[1]) if "lp" in item else None
    return Route(points, tip or points[-1], label)


def group_parents(groups: Iterable[SceneGroup]) -> dict[str, str]:
    """The parent of each frame; "" if it is missing or part of a cycle."""
    parents = {group.id: group.parent for group in groups}
    for key, parent in list(parents.items()):
        if parent not in parents or key in group_ancestors(key, parents):
            parents[key] = ""
    return parents


def group_ancestors(key: str, parents: dict[str, str]) -> list[str]:
    """The frames around a frame, innermost first."""
    found: list[str] = []
    above = parents.get(key, "")
    while above and above not in found:
        found.append(above)
        above = parents.get(above, "")
    return found


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _inches(pixels: float) -> str:
    return f"{pixels / 72:.3f}"


def _empty_label(size: Size) -> str:
    fixed = f'FIXEDSIZE="TRUE" WIDTH="{size.width:.0f}" HEIGHT="{size.height:.0f}"'
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0" {fixed}><TR><TD></TD></TR></TABLE>>'
