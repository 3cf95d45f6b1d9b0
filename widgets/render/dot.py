"""A scene as DOT text for files and other tools. The `graphviz` package writes and quotes it."""

from __future__ import annotations

from typing import Final

from graphviz import Digraph
from graphviz.quoting import NoHtml, escape

from widgets.render.looks import box_texts, edge_text, group_text
from widgets.render.text_width import one_line
from widgets.scene.types import NodeKind, Scene, SceneEdge, SceneGroup, SceneNode

FONT: Final = "Helvetica,Arial,sans-serif"
_KINDS: Final[dict[NodeKind, dict[str, str]]] = {
    "op": {"shape": "box", "style": "rounded,filled", "fillcolor": "#ffffff", "color": "#aab6c5"},
    "constant": {"shape": "note", "style": "filled", "fillcolor": "#f1f3f6", "color": "#a5afbd"},
    "variable": {"shape": "cylinder", "style": "filled", "fillcolor": "#e6f4f0", "color": "#3f9281", "fontcolor": "#0d5044"},
    "placeholder": {"shape": "parallelogram", "style": "filled", "fillcolor": "#e8f1fd", "color": "#4d88d8", "fontcolor": "#174a8c"},
    "return": {"shape": "invtrapezium", "style": "filled", "fillcolor": "#e8f1fd", "color": "#4d88d8", "fontcolor": "#174a8c"},
    "control": {"shape": "hexagon", "style": "filled", "fillcolor": "#f7f2e6", "color": "#a98e57", "fontcolor": "#5b4617"},
    "scope": {"shape": "folder", "style": "filled", "fillcolor": "#eef2f7", "color": "#8295ad"},
    "function": {"shape": "component", "style": "filled", "fillcolor": "#fdf2e4", "color": "#c98736", "fontcolor": "#6d430c"},
    "stub": {"shape": "box", "style": "rounded,dashed", "color": "#7f8c9d", "fontcolor": "#566171"},
}
_STATES: Final[dict[str, dict[str, str]]] = {
    "normal": {},
    "new": {"color": "#18794e", "penwidth": "2"},
    "changed": {"color": "#8a5a00", "penwidth": "2"},
    "removed": {"color": "#c32222", "style": "filled,dashed"},
    "stale": {"color": "#5b6878"},
    "error": {"color": "#c32222", "penwidth": "2", "fillcolor": "#fdeeee", "fontcolor": "#8d1414"},
}


def to_dot(scene: Scene) -> str:
    """The scene as DOT: nodes `n<index>`, clusters for open scopes, tooltips with full names.

    Labels are never HTML-like, and no text of the graph becomes an attribute that a viewer would interpret (URL, image, font).
    """
    index = {node.id: f"n{number}" for number, node in enumerate(scene.nodes)}
    groups = {group.id: number for number, group in enumerate(scene.groups)}
    inside: dict[str, list[SceneGroup]] = {}
    for group in scene.groups:
        inside.setdefault(group.parent if group.parent in groups else "", []).append(group)
    members: dict[str, list[SceneNode]] = {}
    for node in scene.nodes:
        members.setdefault(node.group if node.group in groups else "", []).append(node)

    def fill(graph: Digraph, key: str) -> None:
        for node in members.get(key, ()):
            graph.node(index[node.id], **_node_attributes(node))
        for group in inside.get(key, ()):
            with graph.subgraph(name=f"cluster_{groups[group.id]}") as cluster:
                cluster.attr(**_group_attributes(group))
                fill(cluster, group.id)

    dot = Digraph(
        "scene", graph_attr={"rankdir": "TB", "newrank": "true", "label": _label([scene.title]), "labelloc": "t", "fontname": FONT}
    )
    dot.attr("node", fontname=FONT, fontsize="11", margin="0.14,0.06")
    dot.attr("edge", fontname=FONT, fontsize="9", color="#7f8c9d", fontcolor="#566171", arrowsize="0.7")
    fill(dot, "")
    for edge in scene.edges:
        if edge.source in index and edge.target in index:
            ends = (edge.target, edge.source) if edge.reversed else (edge.source, edge.target)
            dot.edge(index[ends[0]], index[ends[1]], **_edge_attributes(edge))
    return str(dot.source)


def _node_attributes(node: SceneNode) -> dict[str, str]:
    attributes = dict(_KINDS[node.kind])
    if node.role == "gradient" and node.kind != "stub":
        attributes |= {"fillcolor": "#f7effd", "color": "#8d44c9", "fontcolor": "#5f2394", "style": attributes["style"] + ",dashed"}
    attributes |= _STATES[node.state]
    attributes["label"] = _label([text for text, _ in box_texts(node)])
    attributes["tooltip"] = _label([node.stands_for or node.id, *node.error.splitlines()])
    return attributes


def _group_attributes(group: SceneGroup) -> dict[str, str]:
    gradient = group.role == "gradient"
    colours = {"color": "#c6a2e4", "bgcolor": "#f3edf9", "fontcolor": "#5f2394"} if gradient else {"color": "#c3ccd7", "bgcolor": "#eef1f5"}
    return colours | {"label": _label([group_text(group)]), "style": "rounded", "labeljust": "l", "fontsize": "10", "fontname": FONT}


def _edge_attributes(edge: SceneEdge) -> dict[str, str]:
    attributes = {}
    text = edge_text(edge)
    if text:
        attributes["label"] = _label([text])
    if edge.kind == "control":
        attributes |= {"style": "dashed", "weight": "0"}
    if edge.kind == "reference":
        attributes["penwidth"] = "2.5"
    if edge.role == "gradient":
        attributes["color"] = "#8d44c9"
    if edge.state != "normal":
        attributes |= {"color": _STATES[edge.state]["color"]} | ({"style": "dashed"} if edge.state == "removed" else {})
    if edge.error:
        attributes |= {"color": "#c32222", "fontcolor": "#8d1414", "penwidth": "2", "tooltip": _label(edge.error.splitlines())}
    if edge.clash:
        attributes |= {"color": "#c32222", "penwidth": "2"} | ({"style": "dashed"} if edge.clash > 1 else {})
    if edge.reversed:
        attributes["dir"] = "back"
    return attributes


def _label(lines: list[str]) -> str:
    """Lines of text as a plain label: backslashes are literal, and `<...>` is never markup."""
    text: str = NoHtml("\\n".join(escape(one_line(line)) for line in lines))
    return text
