"""Stubs: small boxes beside a consumer that stand for a far-away producer.

They replace edges that would cross the whole picture. Such edges, not boxes, make a layered layout slow and unreadable.
"""

from __future__ import annotations

from typing import Final

import msgspec

from widgets.scene.ranks import estimate_ranks
from widgets.scene.types import EdgeKind, SceneEdge, SceneNode

FAR: Final = 7
"""Layers that a line from the forward into the backward pass may span."""
LONG_TOTAL: Final = 300
"""Layers that all lines together may span before the longest are cut: Graphviz's time grows steeply with them
(160 boxes: 1.7 s with 1,500 layers, 0.13 s with 300)."""
VERY_FAR: Final = 5
"""Shorter lines are never cut for the sake of the total."""
MANY: Final = 6
"""More far producers than this of one box share one stub."""
MOST_ORDERS: Final = 9
"""Gradients of higher order are not told apart."""


def cut_long_edges(nodes: list[SceneNode], edges: list[SceneEdge], *, mirror: bool = False) -> tuple[list[SceneNode], list[SceneEdge]]:
    """Replace long edges by stubs. With `mirror` each gradient is in the row of its origin.

    Returns:
        The nodes with stubs, and the edges re-attached.
    """
    by_id = {node.id: node for node in nodes}
    row = _rows(by_id) if mirror else {node.id: node.id for node in nodes}
    ends = [(row[edge.target], row[edge.source]) if edge.reversed else (row[edge.source], row[edge.target]) for edge in edges]
    firm = [pair for edge, pair in zip(edges, ends, strict=True) if edge.kind != "control" and not edge.loose]
    waits = [pair for edge, pair in zip(edges, ends, strict=True) if edge.kind == "control" and not edge.reversed]
    ranks = estimate_ranks(list(dict.fromkeys(row.values())), firm, waits)
    cut = _chosen(edges, by_id, {node.id: ranks[row[node.id]] for node in nodes})
    if not cut:
        return nodes, edges
    per_target: dict[tuple[str, EdgeKind], list[SceneEdge]] = {}
    for edge in edges:
        if edge.id in cut:
            per_target.setdefault((edge.target, edge.kind), []).append(edge)
    stubs: dict[str, SceneNode] = {}
    result = [edge for edge in edges if edge.id not in cut]
    for (target, kind), far in per_target.items():
        if len(far) > MANY:
            stub = _crowd(far, by_id[target], kind)
            stubs[stub.id] = stub
            result.append(_bundled(far, stub))
            continue
        for edge in far:
            stub = _stub(by_id[edge.source], by_id[target])
            stubs[stub.id] = stub
            result.append(msgspec.structs.replace(edge, source=stub.id, reversed=False, loose=False))
    return [*nodes, *stubs.values()], result


def _rows(by_id: dict[str, SceneNode]) -> dict[str, str]:
    """For each box the forward box in whose row it is."""
    row: dict[str, str] = {}
    for box in by_id:
        first, steps = box, 0
        while (origin := by_id[first].mirrors) in by_id and steps < MOST_ORDERS:
            first, steps = origin, steps + 1
        row[box] = first
    return row


def _chosen(edges: list[SceneEdge], by_id: dict[str, SceneNode], ranks: dict[str, int]) -> set[str]:
    spans = {edge.id: abs(ranks[edge.target] - ranks[edge.source]) for edge in edges}
    cut = {
        edge.id for edge in edges if spans[edge.id] > FAR and by_id[edge.target].role == "gradient" and by_id[edge.source].role == "forward"
    }
    total = sum(span for key, span in spans.items() if key not in cut)
    for key, span in sorted(spans.items(), key=lambda item: -item[1]):
        if total <= LONG_TOTAL or span <= VERY_FAR:
            break
        if key not in cut:
            cut.add(key)
            total -= span
    return cut


def _crowd(far: list[SceneEdge], target: SceneNode, kind: EdgeKind) -> SceneNode:
    """One stub for many far producers; a row of stubs would be wider than the picture."""
    return SceneNode(
        id=f"stub:*{kind}:{target.id}",
        label=f"{len({edge.source for edge in far})} boxes far above",
        kind="stub",
        detail=", ".join(edge.source for edge in far),
        group=target.group,
        count=0,
    )


def _bundled(far: list[SceneEdge], stub: SceneNode) -> SceneEdge:
    target = far[0].target
    labels = {edge.label for edge in far}
    states = {edge.state for edge in far}
    return SceneEdge(
        id=f"{stub.id}->{target}",
        source=stub.id,
        target=target,
        kind=far[0].kind,
        label=labels.pop() if len(labels) == 1 else "",
        count=1 if far[0].kind == "control" else sum(edge.count for edge in far),
        error="\n".join(filter(None, (edge.error for edge in far))),
        role=far[0].role,
        state=states.pop() if len(states) == 1 else "normal",
    )


def _stub(source: SceneNode, target: SceneNode) -> SceneNode:
    return SceneNode(
        id=f"stub:{source.id}:{target.id}",
        label=source.label,
        kind="stub",
        op=source.op,
        detail=source.detail,
        group=target.group,
        role=source.role,
        state="error" if source.state == "error" else "normal",
        count=0,
        stands_for=source.id,
        cell=source.cell,
        lenses=source.lenses,
    )
