"""Builds scenes from a graph and a view's state: the visible part as pure data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from graphcore.difference.marks import shown_difference
from graphcore.plumbing import ARG
from graphcore.support.budget import within_one_budget
from widgets.scene.boxes import TOO_DEEP, Box, Foldable, Visible
from widgets.scene.calls import callees, has_hub, is_choice
from widgets.scene.colocation import colocations_of
from widgets.scene.difference import box_difference, frame_words, mark_edges
from widgets.scene.edges import LostInput, bundle_edges, scene_edge
from widgets.scene.faults import REFUSED, fault_text, is_faulty, refused_boxes, refused_input
from widgets.scene.gaps import gap_boxes, gaps_of
from widgets.scene.instances import number_of
from widgets.scene.lenses import LensView, all_lenses, cell_label
from widgets.scene.mirror import BACKWARD, Mirrored
from widgets.scene.roles import Roles
from widgets.scene.shapes.clash_lines import ClashLines
from widgets.scene.shapes.dimensions import Dimensions
from widgets.scene.snapshot import Snapshot
from widgets.scene.state import SceneState
from widgets.scene.stubs import cut_long_edges
from widgets.scene.tree import MOST_FRAMES, Call, Group, Part, Scope, Thing
from widgets.scene.types import NodeKind, Role, Scene, SceneEdge, SceneGroup, SceneNode, State
from widgets.scene.visible import visible_boxes
from widgets.scene.words import counted, is_short, last_part, node_detail, node_kind, op_label, tensor_label, user_name

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node

MAX_NAMED_ERRORS: Final = 3
_ENDS: Final = {"_Arg": "argument", "_DeviceArg": "argument", "_Retval": "return", "_DeviceRetval": "return"}
_DEFAULT_NAME: Final = re.compile(r"(Const|zeros|ones)(_\d+)?")


@within_one_budget
def build_scene(
    graph: Graph, state: SceneState | None = None, *, previous: Snapshot | None = None, title: str = "graph", revision: int = 0
) -> Scene:
    """The visible part of `graph`.

    Args:
        state: the folding; a fresh state opens as many scopes as there is space for.
        previous: an earlier snapshot (`take_snapshot`), to mark new and changed boxes; None marks nothing.
        title, revision: carried in the scene.
    """
    graph.settle()
    state = state or SceneState()
    visible = visible_boxes(graph, state)
    roles = visible.roles
    dimensions = Dimensions(graph, visible)
    lenses = all_lenses(graph, visible.boxes, roles, dimensions)
    box_roles: dict[str, Role] = {box.id: _role(box, visible) for box in visible.boxes}
    mirrors = _mirrors(visible, box_roles)
    clashes = ClashLines(visible)
    captures = _captures(visible)
    colocations, together = colocations_of(graph, visible)
    nodes = [
        _scene_node(
            box,
            visible,
            dimensions,
            role=box_roles[box.id],
            state=_box_state(graph, box, previous),
            mirrors=mirrors.get(box.id, ""),
            clash=clashes.notes.get(box.id, ""),
            lenses=lenses,
            captures=captures,
            together=together.get(box.id, ""),
        )
        for box in visible.boxes
    ]
    bundles, lost = bundle_edges(visible)
    marks = shown_difference.of(graph)
    if marks is not None:
        bundles.extend(mark_edges(visible, graph, marks, bundles))
    edges = [scene_edge(bundle, box_roles, dimensions, clashes, visible) for bundle in bundles]
    gone_nodes, gone_edges = _lost_inputs(lost)
    gone_edges += _circles(visible)
    refused, refused_edges = refused_boxes(graph, visible)
    gap_nodes, gap_edges = gap_boxes(visible, gaps_of(graph)) if state.mirror else ([], [])
    mirror = bool(visible.origins or gap_nodes)
    nodes, edges = cut_long_edges(
        [*nodes, *gone_nodes, *refused, *gap_nodes], [*edges, *gone_edges, *refused_edges, *gap_edges], mirror=mirror
    )
    shown = sum(1 for box in visible.boxes if len(box.nodes) == 1)
    return Scene(
        title=title,
        nodes=nodes,
        edges=edges,
        groups=_groups(visible, roles),
        lenses=[view.lens for view in lenses],
        colocations=colocations,
        revision=revision,
        total_nodes=len(visible.box_of),
        hidden_nodes=len(visible.box_of) - shown,
        summary=_summary(graph, visible, nodes, edges),
        mirror=mirror,
        since="with the last cell" if marks is None else "",
    )


def boxes_of(graph: Graph, state: SceneState) -> dict[str, str]:
    """The box id of each node by its name, in the picture made by `build_scene`."""
    return {name: box.id for name, box in visible_boxes(graph, state).box_of.items()}


def _role(box: Box, visible: Visible) -> Role:
    roles, first = visible.roles, box.nodes[0].name
    if visible.origins and first not in roles.inner:
        return "gradient" if first in visible.origins else "forward"
    if box.main is not None:
        return "gradient" if roles.is_gradient(box.main) else "forward"
    return roles.of_nodes(box.nodes)


def _mirrors(visible: Visible, box_roles: dict[str, Role]) -> dict[str, str]:
    if "gradient" not in box_roles.values():
        return {}
    if visible.origins:
        # The nodes of an open gradient function have no row: they would all be in one.
        open_bodies = {frame.id for frame in visible.frames if isinstance(frame.part, Mirrored) and frame.part.is_body}
        return {
            box.id: visible.place_of_name(visible.origins[box.nodes[0].name])
            for box in visible.boxes
            if box.nodes[0].name in visible.origins and box.id != BACKWARD and box.group not in open_bodies
        }
    box_ids = {name: box.id for name, box in visible.box_of.items()}
    return {box.id: visible.roles.mirrored(box.nodes, box_ids) for box in visible.boxes if box_roles[box.id] == "gradient"}


def _scene_node(
    box: Box,
    visible: Visible,
    dimensions: Dimensions,
    *,
    role: Role,
    state: State,
    mirrors: str,
    clash: str,
    lenses: list[LensView],
    captures: Mapping[str, str],
    together: str,
) -> SceneNode:
    error = _box_error(box)
    main = box.main
    kind: NodeKind
    if main is None:
        body = _is_function(box.part) or (isinstance(box.part, Scope) and visible.roles.body_of(box.part.path))
        kind, op, label = "function" if body else "scope", "", _part_label(box)
        repeat = _repeat_of(box.part)
        detail = TOO_DEEP if box.depth >= MOST_FRAMES else "" if repeat is None else repeat.differences
    else:
        kind, op, label, detail = _node_texts(box, main, visible, dimensions)
        if box.id in visible.words:
            op, label = op_label(main), visible.words[box.id]
        if main.op in ARG:
            label = user_name(main.node_def.attr) or captures.get(main.name, label)
    marks = shown_difference.of(box.nodes[0].graph)
    if marks is not None:
        state, words = box_difference(box, marks)
        detail = "; ".join(filter(None, [words, detail])) if main is None else words or detail
    return SceneNode(
        id=box.id,
        label=label,
        kind=kind,
        op=op,
        detail=detail,
        group=box.group,
        role=role,
        state="error" if error else state,
        error=error,
        clash=clash,
        count=len(box.nodes),
        repeat=0 if (repeated := _repeat_of(box.part)) is None else len(repeated.instances),
        expandable=not _is_single(box),
        mirrors=mirrors,
        cell=_cells(box),
        together=together,
        lenses={view.lens.name: view.marks[box.id] for view in lenses if box.id in view.marks},
    )


def _is_single(box: Box) -> bool:
    if box.depth >= MOST_FRAMES:
        return True
    if isinstance(box.part, Call):
        return bool(box.part.refusal) and box.part.scope is None
    return not isinstance(box.part, Scope | Group | Thing)


def _part_label(box: Box) -> str:
    repeat = _repeat_of(box.part)
    if repeat is not None:
        return repeat.label
    return box.part.label if isinstance(box.part, Scope) else box.id


def _repeat_of(part: Part) -> Group | None:
    """The group that a box stands for: itself, or the repeat that is all of a module."""
    return part if isinstance(part, Group) else part.only_repeat if isinstance(part, Scope) else None


def _node_texts(box: Box, node: Node, visible: Visible, dimensions: Dimensions) -> tuple[NodeKind, str, str, str]:
    """Kind, op, label and detail. A constant shows its value, or type and shape, with its name if the user chose one."""
    kind = node_kind(node)
    label = _label(node, box.group)
    detail = node_detail(node, dimensions.label)
    if kind in {"placeholder", "return"} and node.op in _ENDS:
        return kind, _ENDS[node.op], label, detail
    if isinstance(box.part, Call) and box.part.refusal and not box.part.failure:
        detail = box.part.refusal
    if kind != "constant" or not detail:
        return kind, op_label(node), label, detail
    name = last_part(node.name)
    unnamed = _DEFAULT_NAME.fullmatch(name) or node.name in visible.roles
    return (kind, "", detail, "") if unnamed and (is_short(node) or name.startswith("Const")) else (kind, "", label, detail)


def _label(node: Node, group: str) -> str:
    """The name within the surrounding frame; in the body of a call, without the call's name."""
    if group == f"{node.name}/":
        return last_part(node.name)
    name = node.name.removeprefix(group.partition("#")[0])
    return name.rpartition(":/")[2] if name == node.name and ":/" in name else name


def _captures(visible: Visible) -> dict[str, str]:
    """The names of the tensors that open loops and branches use, by the names of the arguments for them."""
    names = {}
    for call in [frame.part for frame in visible.frames if isinstance(frame.part, Call) and has_hub(frame.part.node)]:
        inputs = call.node.inputs[1 if is_choice(call.node) else 0 :]
        for body in call.bodies():
            for argument, tensor in zip(body.args, inputs, strict=False):
                names[argument.name] = tensor.node.name.rpartition(":/")[2]
    return names


def _cells(box: Box) -> str:
    if box.main is not None:
        return cell_label(box.main)
    labels = list(dict.fromkeys(cell_label(node) for node in box.nodes))
    return ", ".join(label for label in labels[:4] if label) + (", …" if len(labels) > 4 else "")


def _box_error(box: Box) -> str:
    failure = f"does not open: {box.part.failure}" if isinstance(box.part, Call) and box.part.failure else ""
    return "\n".join(filter(None, (_nodes_error(box), failure)))


def _nodes_error(box: Box) -> str:
    if len(box.nodes) == 1:
        node = box.nodes[0]
        return fault_text(node) if is_faulty(node) else ""
    wrong = [node for node in box.nodes if is_faulty(node)]
    if not wrong:
        return ""
    lines = [f"{number_of(box.part, node)}{node.name}: {fault_text(node)}" for node in wrong[:MAX_NAMED_ERRORS]]
    if len(wrong) > MAX_NAMED_ERRORS:
        lines.append(f"and {len(wrong) - MAX_NAMED_ERRORS} more")
    return "\n".join(lines)


def _box_state(graph: Graph, box: Box, previous: Snapshot | None) -> State:
    if graph.cells.failed and any(graph.cells.is_partial(node) for node in box.nodes):
        return "stale"
    if previous is None or box.nodes[0].graph is not graph:
        return "normal"
    states = {previous.state_of(node) for node in box.nodes}
    if states == {"new"}:
        return "new"
    return "normal" if states == {"normal"} else "changed"


def _lost_inputs(lost: list[LostInput]) -> tuple[list[SceneNode], list[SceneEdge]]:
    """Inputs without a producer, each drawn as a stub."""
    nodes: dict[str, SceneNode] = {}
    edges: dict[str, SceneEdge] = {}
    for item in lost:
        name = item.tensor.node.name
        error = item.error or f"{name} is no longer in the graph"
        box_id = f"gone:{name}:{item.target.id}"
        kind: NodeKind = "stub"
        nodes[box_id] = SceneNode(
            id=box_id, label=f"{name} is gone", kind=kind, group=item.target.group, state="error", error=error, count=0
        )
        edge = f"{box_id}->{item.target.id}"
        edges[edge] = SceneEdge(id=edge, source=box_id, target=item.target.id, label=tensor_label(item.tensor), error=error)
    return list(nodes.values()), list(edges.values())


def _circles(visible: Visible) -> list[SceneEdge]:
    """The inputs that would have closed a circle, from the node that its cell failed to make again."""
    edges = []
    for box in visible.boxes:
        for node in box.nodes:
            refused = refused_input(node)
            source = visible.box_of.get(refused)
            if source is None or (source is box and len(box.nodes) > 1):
                continue
            error = f"'{node.name}' would take '{refused}' as an input, which itself depends on '{node.name}'"
            edges.append(SceneEdge(id=f"circle:{refused}->{box.id}", source=source.id, target=box.id, error=error, reversed=True))
    return edges


def _groups(visible: Visible, roles: Roles) -> list[SceneGroup]:
    marks = shown_difference.of(roles.graph)
    return [
        SceneGroup(
            id=frame.id,
            label=_frame_label(frame.part, frame.parent) + ("" if marks is None else frame_words(frame.part, marks)),
            parent=frame.parent,
            count=sum(len(body.nodes) for body in frame.part.bodies()) if isinstance(frame.part, Call) else frame.part.total,
            role=roles.of_part(frame.part),
            kind="function" if _is_function(frame.part) or roles.body_of(frame.part.key) else "scope",
        )
        for frame in visible.frames
    ]


def _is_function(part: Part) -> bool:
    if isinstance(part, Mirrored):
        return part.is_body
    return isinstance(part, Call) or (isinstance(part, Scope) and part.callee is not None)


def _frame_label(part: Foldable, parent: str) -> str:
    if isinstance(part, Group) and part.instances:
        return f"{part.label} ×{len(part.instances)}"
    if isinstance(part, Scope | Group):
        return part.label
    if isinstance(part, Thing):
        return _label(part.node, parent)
    name = last_part(part.node.name)
    called = ", ".join(callee.title for callee in callees(part.node))
    return name if called == name else f"{name} · {called}"


def _summary(graph: Graph, visible: Visible, nodes: list[SceneNode], edges: list[SceneEdge]) -> str:
    total = len(visible.box_of)
    boxes = len(visible.boxes)
    parts = [counted(total, "node") + (f" in {boxes:,} boxes" if boxes != total else "")]
    marks = shown_difference.of(graph)
    if marks is not None:
        return f"{marks.summary}; {parts[0]}"
    wrong = sum(1 for node in nodes if node.error and (node.kind != "stub" or node.id.startswith(REFUSED)))
    if wrong:  # first, because the end of a long line is cut off
        parts.append(f"{wrong:,} with errors")
    parts.append(counted(len(edges), "edge"))
    gradient = len(graph.gradient_records)
    if gradient:
        parts.append(counted(gradient, "gradient node"))
    fresh = sum(1 for node in nodes if node.state == "new")
    if fresh:
        parts.append(f"{fresh:,} new")
    left = sum(1 for node in nodes if node.state == "stale")
    if left:
        parts.append(f"{left:,} from failed cells")
    return ", ".join(parts)
