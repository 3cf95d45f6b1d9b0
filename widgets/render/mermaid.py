"""A scene as Mermaid flowchart text. Ids are numbers; labels are escaped.

Mermaid reads markup inside labels, even in its strict mode. So all but letters, digits, spaces and `_` are written as `#NN;`.
"""

from __future__ import annotations

from typing import Final

from widgets.render.looks import box_texts, edge_text, group_text
from widgets.render.text_width import one_line
from widgets.scene.types import NodeKind, Scene, SceneEdge, SceneGroup, SceneNode

MAX_LABEL: Final = 60
_SHAPES: Final[dict[NodeKind, tuple[str, str]]] = {
    "op": ("(", ")"),
    "constant": ("[", "]"),
    "variable": ("[(", ")]"),
    "placeholder": ("[/", "/]"),
    "return": ("[\\", "/]"),
    "control": ("{{", "}}"),
    "scope": ("[[", "]]"),
    "function": ("[[", "]]"),
    "stub": ("([", "])"),
}
_STYLES: Final = {
    "kindOp": "fill:#ffffff,stroke:#aab6c5,color:#1b2430",
    "kindConstant": "fill:#f1f3f6,stroke:#a5afbd,color:#1b2430",
    "kindVariable": "fill:#e6f4f0,stroke:#3f9281,color:#0d5044",
    "kindPlaceholder": "fill:#e8f1fd,stroke:#4d88d8,color:#174a8c",
    "kindReturn": "fill:#e8f1fd,stroke:#4d88d8,color:#174a8c",
    "kindControl": "fill:#f7f2e6,stroke:#a98e57,color:#5b4617",
    "kindScope": "fill:#eef2f7,stroke:#8295ad,color:#1b2430",
    "kindFunction": "fill:#fdf2e4,stroke:#c98736,color:#6d430c",
    "kindStub": "fill:#f8f9fb,stroke:#7f8c9d,stroke-dasharray:2 3,color:#566171",
    "roleGradient": "fill:#f7effd,stroke:#8d44c9,stroke-dasharray:5 3,color:#5f2394",
    "groupForward": "fill:#eef1f5,stroke:#c3ccd7,color:#566171",
    "groupGradient": "fill:#f3edf9,stroke:#c6a2e4,stroke-dasharray:5 3,color:#5f2394",
    "stateNew": "stroke:#18794e,stroke-width:2px",
    "stateChanged": "stroke:#8a5a00,stroke-width:2px",
    "stateRemoved": "stroke:#c32222,stroke-dasharray:4 3",
    "stateStale": "stroke:#5b6878",
    "stateError": "fill:#fdeeee,stroke:#c32222,stroke-width:2px,color:#8d1414",
}


def to_mermaid(scene: Scene) -> str:
    """The scene as a flowchart: nodes `n<index>`, subgraphs `g<index>`, by place in the scene's lists."""
    index = {node.id: f"n{number}" for number, node in enumerate(scene.nodes)}
    groups = {group.id: f"g{number}" for number, group in enumerate(scene.groups)}
    inside: dict[str, list[SceneGroup]] = {}
    for group in scene.groups:
        inside.setdefault(group.parent if group.parent in groups else "", []).append(group)
    members: dict[str, list[SceneNode]] = {}
    for node in scene.nodes:
        members.setdefault(node.group if node.group in groups else "", []).append(node)
    lines = ["flowchart TB"]

    def write(group: str, depth: int) -> None:
        indent = "  " * depth
        lines.extend(f"{indent}{_box(index[node.id], node)}" for node in members.get(group, ()))
        for inner in inside.get(group, ()):
            lines.append(f'{indent}subgraph {groups[inner.id]}["{safe(group_text(inner))}"]')
            write(inner.id, depth + 1)
            lines.append(f"{indent}end")

    write("", 1)
    drawn = [edge for edge in scene.edges if edge.source in index and edge.target in index]
    lines.extend(f"  {_arrow(edge, index)}" for edge in drawn)
    for style, numbers in (
        ("stroke:#8d44c9", [number for number, edge in enumerate(drawn) if edge.role == "gradient" and not edge.error and not edge.clash]),
        ("stroke:#18794e,stroke-width:2px", [number for number, edge in enumerate(drawn) if edge.state == "new"]),
        ("stroke:#c32222,stroke-dasharray:4 3", [number for number, edge in enumerate(drawn) if edge.state == "removed"]),
        ("stroke:#c32222,stroke-width:2px", [number for number, edge in enumerate(drawn) if edge.error or edge.clash == 1]),
        ("stroke:#c32222,stroke-width:2px,stroke-dasharray:7 3", [n for n, edge in enumerate(drawn) if edge.clash > 1 and not edge.error]),
    ):
        if numbers:
            lines.append(f"  linkStyle {','.join(map(str, numbers))} {style}")
    lines.extend(_class_lines(scene, index, groups))
    return "\n".join(lines) + "\n"


_PLAIN: Final = " _[],.?+-/"
"""Signs of labels that are written as they are."""


def safe(text: str) -> str:
    """Letters, digits, single spaces of ASCII, and signs without meaning in quotes; else `#NN;`. Cut off when long."""
    line = one_line(text)
    if len(line) > MAX_LABEL:
        line = line[: MAX_LABEL - 1] + "…"
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in _PLAIN) else f"#{ord(letter)};" for letter in line)


def _box(key: str, node: SceneNode) -> str:
    opening, closing = _SHAPES[node.kind]
    label = "<br/>".join(safe(text) for text, _ in box_texts(node)) or " "
    return f'{key}{opening}"{label}"{closing}'


def _class_lines(scene: Scene, index: dict[str, str], groups: dict[str, str]) -> list[str]:
    """Definitions of the classes in use, and their nodes; a later class overrides an earlier one."""
    members: dict[str, list[str]] = {name: [] for name in _STYLES}
    for node in scene.nodes:
        members[f"kind{node.kind.capitalize()}"].append(index[node.id])
        if node.role == "gradient" and node.kind != "stub":
            members["roleGradient"].append(index[node.id])
        if node.state != "normal":
            members[f"state{node.state.capitalize()}"].append(index[node.id])
    for group in scene.groups:
        members[f"group{group.role.capitalize()}"].append(groups[group.id])
    used = {name: ids for name, ids in members.items() if ids}
    return [f"  classDef {name} {_STYLES[name]}" for name in used] + [f"  class {','.join(ids)} {name}" for name, ids in used.items()]


def _arrow(edge: SceneEdge, index: dict[str, str]) -> str:
    line = {"data": "-->", "control": "-.->", "reference": "==>"}[edge.kind]
    text = safe(edge_text(edge))
    label = f'|"{text}"|' if text else ""
    return f"{index[edge.source]} {line}{label} {index[edge.target]}"
