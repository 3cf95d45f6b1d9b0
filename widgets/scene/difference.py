"""The picture of a difference: the states, words and edges of its boxes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from widgets.scene.boxes import Box, Foldable, Visible
from widgets.scene.edges import CROWD, Bundle
from widgets.scene.tree import Scope
from widgets.scene.types import State

if TYPE_CHECKING:
    from graphcore.difference import Marks
    from graphcore.graph import Graph, Node, Tensor


def box_difference(box: Box, marks: Marks) -> tuple[State, str]:
    """The state of a box, and its difference in words: the changes of a node, counts for several nodes."""
    kinds = {marks.kind_of(node.name) for node in box.nodes}
    state: State = "normal"
    if kinds == {"added"}:
        state = "new"
    elif kinds == {"removed"}:
        state = "removed"
    elif kinds & {"added", "removed", "changed", "renamed"}:
        state = "changed"
    return state, "; ".join(
        filter(None, [former_scope(box.part, marks) if box.main is None else _own_words(box, marks), _counts(box, marks)])
    )


def _own_words(box: Box, marks: Marks) -> str:
    mark = None if box.main is None else marks.nodes.get(box.main.name)
    return "" if mark is None or mark.kind == "moved" else mark.text


def _counts(box: Box, marks: Marks) -> str:
    return marks.counts(node.name for node in box.nodes) if len(box.nodes) > 1 else ""


def former_scope(part: object, marks: Marks) -> str:
    """The former name of a renamed scope in words, "" for any other part."""
    former = marks.scopes.get(part.path) if isinstance(part, Scope) else None
    return "" if former is None else f"was {former or 'outside'}"


def frame_words(part: Foldable, marks: Marks) -> str:
    """The differences in an open frame, for its name: ` +3 −1`."""
    words = ", ".join(filter(None, [marks.counts(node.name for node in part.all_nodes()), former_scope(part, marks)]))
    return f"  {words}" if words else ""


def mark_edges(visible: Visible, graph: Graph, marks: Marks, bundles: list[Bundle]) -> list[Bundle]:
    """Mark the bundles of new edges and of removed nodes' own. Returns bundles of other removed edges."""
    by_ends = {(bundle.source, bundle.target, bundle.kind == "control"): bundle for bundle in bundles}
    seen: set[tuple[Bundle, str]] = set()
    for box in visible.boxes:
        for node in box.nodes:
            if node.graph is not graph:
                continue
            for producer, name, slot in _in_edges(node):
                source = visible.box_of.get(producer.name)
                bundle = None if source is None or source is box else by_ends.get((source, box, slot < 0))
                if bundle is None or (bundle, name) in seen:
                    continue
                if marks.kind_of(node.name) == "removed":
                    bundle.removed += 1
                elif marks.is_new_edge(producer.name, node.name, slot):
                    bundle.new += 1
                else:
                    continue
                seen.add((bundle, name))
    return _old_edges(visible, graph, marks)


def _in_edges(node: Node) -> list[tuple[Node, str, int]]:
    data = [(tensor.node, tensor.name, slot) for slot, tensor in enumerate(node.inputs)]
    return data + [(producer, producer.name, -1) for producer in node.control_inputs]


def _old_edges(visible: Visible, graph: Graph, marks: Marks) -> list[Bundle]:
    """Bundles of edges that are gone. Crowds of control edges are left to the words of their consumers."""
    found: dict[tuple[Box, Box, bool], Bundle] = {}
    for edge in marks.old_edges:
        source, target = visible.box_of.get(edge.producer), visible.box_of.get(edge.consumer)
        if source is None or target is None or source is target:
            continue
        key = (source, target, edge.slot < 0)
        bundle = found.get(key)
        if bundle is None:
            bundle = found[key] = Bundle(source, target, "control" if edge.slot < 0 else "data")
            bundle.is_gone = True
        tensor = _output(graph, edge.producer, edge.output)
        if tensor is not None:
            bundle.tensors[tensor.node.name, tensor.index] = tensor
    waits = Counter(bundle.target for bundle in found.values() if bundle.kind == "control")
    return [bundle for bundle in found.values() if bundle.kind != "control" or waits[bundle.target] <= CROWD]


def _output(graph: Graph, name: str, index: int) -> Tensor | None:
    node = graph.find(name)
    return node.outputs[index] if node is not None and 0 <= index < len(node.outputs) else None
