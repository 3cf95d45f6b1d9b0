"""A scene as a text tree: frames and boxes with their inputs, for terminals and screen readers."""

from __future__ import annotations

from graphcore.support.shown import one_line
from widgets.scene.types import Scene, SceneEdge, SceneGroup, SceneNode


def to_outline(scene: Scene) -> str:
    """The scene as indented text, one line a frame or box: `MatMul h <- x:Placeholder float [?,64], W`."""
    names = {node.id: _name(node) for node in scene.nodes}
    feeding: dict[str, list[SceneEdge]] = {}
    for edge in scene.edges:
        feeding.setdefault(edge.target, []).append(edge)
    groups = {group.id: group for group in scene.groups}
    inside: dict[str, list[str]] = {}
    for group in scene.groups:
        inside.setdefault(group.parent if group.parent in groups else "", []).append(group.id)
    members: dict[str, list[SceneNode]] = {}
    for node in scene.nodes:
        if node.kind != "stub" or node.state == "error":
            members.setdefault(node.group if node.group in groups else "", []).append(node)
    lines = [one_line(f"{scene.title}: {scene.summary}")]

    def write(group: str, depth: int) -> None:
        indent = "  " * depth
        lines.extend(indent + line for node in members.get(group, ()) for line in _box_lines(node, feeding.get(node.id, []), names))
        for inner in inside.get(group, ()):
            frame = groups[inner]
            count = f" ({frame.count:,} {'node' if frame.count == 1 else 'nodes'})" if frame.count else ""
            lines.append(one_line(f"{_named(frame)}{count}") if not indent else indent + one_line(f"{frame.label}/{count}"))
            write(inner, depth + 1)

    write("", 0)
    return "\n".join(lines) + "\n"


def _name(node: SceneNode) -> str:
    return node.stands_for or (node.label if node.kind == "stub" else _named(node))


def _named(part: SceneNode | SceneGroup) -> str:
    """The id, or the label of a group by dataflow, whose id says nothing."""
    return f"{part.label}/" if _is_by_dataflow(part) else part.id


def _is_by_dataflow(part: SceneNode | SceneGroup) -> bool:
    return "/#" in part.id


def _box_lines(node: SceneNode, edges: list[SceneEdge], names: dict[str, str]) -> list[str]:
    what = f"{node.op or node.kind} {node.id}"
    if node.kind == "scope":
        named = f"{node.label} x {node.repeat}{'' if _is_by_dataflow(node) else f' {node.id}'}" if node.repeat else f"scope {_named(node)}"
        what = f"{named} ({node.count:,} nodes)"
    detail = f" {node.detail}" if node.detail else ""
    if node.kind == "constant" and not node.op and not node.id.endswith(node.label):
        detail = f" = {node.label}"
    if node.kind == "stub" and node.mirrors:
        what = f"{node.label} {node.id}"
    notes: list[str] = [node.state] if node.state != "normal" else []
    if node.role == "gradient" and node.kind != "stub":
        notes.insert(0, f"gradient of {names.get(node.mirrors, node.mirrors)}" if node.mirrors else "gradient")
    note = f" [{', '.join(notes)}]" if notes else ""
    data = [_input(edge, names) for edge in edges if edge.kind != "control"]
    controls = [names.get(edge.source, edge.source) for edge in edges if edge.kind == "control"]
    fed = f" <- {', '.join(data)}" if data else ""
    after = f" @ {', '.join(controls)}" if controls else ""
    lines = [one_line(f"{what}{detail}{note}{fed}{after}")]
    lines.extend(f"  ! {one_line(line)}" for line in node.error.splitlines())
    return lines


def _input(edge: SceneEdge, names: dict[str, str]) -> str:
    count = f"{edge.count} x " if edge.count > 1 else ""
    label = edge.label or ("tensors" if edge.count > 1 else "")
    return f"{names.get(edge.source, edge.source)} {count}{label}".rstrip()
