"""Both states of a difference in one graph, for views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from graphcore.definitions import FunctionDefLibrary, GradientDef, OpDef
from graphcore.difference.diff import FunctionsDiff, GraphDiff, counts_text, diff_text, names_of_groups, text_of_group
from graphcore.difference.marks import Mark, MarkKind, Marks, OldEdge, shown_difference
from graphcore.difference.regrouping import Regrouping
from graphcore.difference.scopes import scope_of_renaming
from graphcore.difference.state import GraphState, NodeState
from graphcore.difference.wiring import CONTROL, parse_input
from graphcore.dtypes import INVALID
from graphcore.functions.library import names_in_node
from graphcore.graph import GradientRecord, Graph, Node, Tensor
from graphcore.graph.attached import Attached
from graphcore.graph.model.node import NO_CONTROLS, absent_tensor
from graphcore.inference import ShapeHandle
from graphcore.registry import OpRegistration

_GRAPH: Final = "_graph"
"""Holds the graph in the difference, so that it is made once."""
_differences: Final[Attached[GraphDiff]] = Attached()
FORMER: Final = " (before)"
"""Follows the name of a removed node if a later node has that name."""


def difference_graph(diff: GraphDiff) -> Graph:
    """A graph of all nodes of the later state and the removed ones of the earlier state.

    `shown_difference.of` it has the marks. It is for views and cannot be run. Kept nodes have their later definitions; a removed node is fed by the nodes that fed it.
    """
    graph: Graph | None = vars(diff).get(_GRAPH)
    if graph is None:
        graph = vars(diff)[_GRAPH] = _Union(diff).graph
        _differences.set(graph, diff)
    return graph


def difference_of(graph: Graph) -> GraphDiff | None:
    """The difference that a graph of `difference_graph` shows, None for any other graph."""
    return _differences.of(graph)


class _Union:
    def __init__(self, diff: GraphDiff) -> None:
        self.diff = diff
        self.graph = Graph(diff.after.registry)
        self.now = {**diff.pairs}
        self.now.update({name: name + FORMER if name in diff.after.nodes else name for name in diff.removed})
        self.widths = _used_outputs([(diff.before, self.now), (diff.after, {})])
        self.nodes: dict[str, Node] = {}
        graph = self.graph
        with graph.lock, graph.transaction():
            graph.add_function_library(_library(diff))
            for number, (name, state) in enumerate(self._ordered(), graph.num_node_ids):
                self.nodes[name] = self._bare(number, name, state)
            self._connect()
            for node in self.nodes.values():
                graph.node_store.adopt(node)
                graph.names.take(node.name)
                graph.edge_store.add_node(node)
                graph.journal.publish("added", node)
            graph.ranks_are_stale = True
            graph.gradient_records.update({**self._removed_records(diff), **diff.after.gradient_records})
        shown_difference.set(graph, self._marks())
        graph.finalize()

    def _removed_records(self, diff: GraphDiff) -> dict[str, GradientRecord]:
        """The gradient records of removed nodes, by their names here."""
        return {self.now[name]: record for name, record in diff.before.gradient_records.items() if name in diff.removed_names}

    def _ordered(self) -> Iterable[tuple[str, NodeState]]:
        """The later nodes in their order, each removed node behind the kept one that it stood behind."""
        behind: dict[str, list[str]] = {}
        last = ""
        for name in self.diff.before.nodes:
            kept = self.diff.pairs.get(name)
            if kept is None:
                behind.setdefault(last, []).append(name)
            else:
                last = kept
        for name in ["", *self.diff.after.nodes]:
            if name:
                yield name, self.diff.after.nodes[name]
            yield from ((self.now[old], self.diff.before.nodes[old]) for old in behind.get(name, ()))

    def _bare(self, number: int, name: str, state: NodeState) -> Node:
        registration = state.registration or OpRegistration(OpDef(name=state.op), is_opaque=True)
        types = state.output_types or (INVALID,) * self.widths.get(name, 0)
        node = Node(self.graph, number, name, state.node_def, registration, [], NO_CONTROLS, state.input_types, types, state.source)
        node.output_handles = state.shapes or tuple([ShapeHandle() for _ in types])
        node.assigned_device = state.device
        return node

    def _connect(self) -> None:
        removed = {name: self.diff.before.nodes[name] for name in self.diff.removed}
        for nodes, names in ((removed, self.now), (self.diff.after.nodes, {})):
            for name, node_state in nodes.items():
                node = self.nodes[names.get(name, name)]
                for text in node_state.node_def.input:
                    producer, output = parse_input(text)
                    source = self.nodes.get(names.get(producer, producer))
                    if output != CONTROL:
                        node.inputs.append(self._tensor(source, producer, output_index(output)))
                    elif source is not None:
                        node.control_inputs = [*node.control_inputs, source]

    def _tensor(self, source: Node | None, producer: str, index: int) -> Tensor:
        if source is None or index >= len(source.outputs):
            return absent_tensor(self.graph, producer, index)
        return source.outputs[index]

    def _marks(self) -> Marks:
        diff = self.diff
        marks = {name: self._mark_of_call(name) for name in self._callers()} | _marks_of_kept(diff)
        before, _ = names_of_groups(diff)
        marks |= {self.now[name]: Mark("removed", text_of_group(diff, before[name]) if name in before else "") for name in diff.removed}
        old_edges: list[OldEdge] = []
        for name, change in diff.changed.items():
            for wire in change.of_kind("input"):
                old_edges.extend(self._old_edge(wire.before, name, int(wire.what)))
            for wire in change.of_kind("control"):
                old_edges.extend(self._old_edge(wire.before and CONTROL + wire.before, name, -1))
        return Marks(
            nodes=marks,
            new_inputs=_new_inputs(diff),
            old_edges=tuple(old_edges),
            scopes={} if diff.is_between_frameworks else {new: old for old, new in diff.renamed_scopes.items() if new},
            summary=diff_text(diff).partition("\n")[0],
            functions={name: _marks_of_kept(changed) for name, changed in diff.functions.changed.items()},
        )

    def _callers(self) -> Iterable[str]:
        """The nodes that call a function with another body."""
        changed = self.diff.functions.changed
        if not changed:
            return
        for name, node in self.diff.after.nodes.items():
            if any(called in changed for called in names_in_node(node.node_def)):
                yield name

    def _mark_of_call(self, name: str) -> Mark:
        changed = self.diff.functions.changed
        called = [function for function in dict.fromkeys(names_in_node(self.diff.after.nodes[name].node_def)) if function in changed]
        texts = [
            counts_text(len(changed[function].added), len(changed[function].removed), len(changed[function].changed)) for function in called
        ]
        return Mark(
            "changed", "; ".join([f"body of {function}: {text or 'other signature'}" for function, text in zip(called, texts, strict=True)])
        )

    def _old_edge(self, text: str, consumer: str, slot: int) -> Iterable[OldEdge]:
        if not text:
            return
        producer, output = parse_input(text)
        # Changes name kept producers as they are called now, removed ones as they were.
        source = producer if producer in self.nodes and producer not in self.diff.removed_names else self.now.get(producer, producer)
        if source in self.nodes:
            yield OldEdge(source, -1 if output == CONTROL else output_index(output), consumer, slot)


def _marks_of_kept(diff: GraphDiff) -> dict[str, Mark]:
    """The marks of the later state's nodes, by their later names."""
    former = {new: old for old, new in diff.renamed.items()}
    scopes = diff.renamed_scopes
    marks = {}
    for name, old in former.items():
        scope = scope_of_renaming(old, name)
        moved = diff.is_between_frameworks or (scope is not None and scopes.get(scope[0]) == scope[1])
        marks[name] = Mark("moved" if moved else "renamed", f"was {old}")
    for name, change in diff.changed.items():
        text = change.brief() + (f"; was {former[name]}" if name in former else "")
        marks[name] = Mark("follows" if change.follows else "changed", text)
    _, groups = names_of_groups(diff)
    for name, group in groups.items():
        if name not in diff.changed and group.way == "became":
            marks[name] = Mark("changed", text_of_group(diff, group))
    return marks | {name: Mark("added", text_of_group(diff, groups[name]) if name in groups else "") for name in diff.added}


def state_graphs(diff: GraphDiff) -> tuple[Graph, Graph]:
    """A graph of each state alone, for views of both side by side.

    In each, `shown_difference` marks what is different in the other. They cannot be run.
    """
    before, after = [_Union(_alone(state)).graph for state in (diff.before, diff.after)]
    shown_difference.set(before, _marks_of_earlier(diff))
    shown_difference.set(after, _marks_of_later(diff))
    return before, after


def _alone(state: GraphState) -> GraphDiff:
    """The difference of a state from itself, which is all that a graph of it shows."""
    return GraphDiff(state, state, {name: name for name in state.nodes}, (), (), {}, {}, FunctionsDiff(), None)


def _marks_of_earlier(diff: GraphDiff) -> Marks:
    former = {new: old for old, new in diff.pairs.items()}
    groups, _ = names_of_groups(diff)
    kept = [(former[name], name, mark) for name, mark in _marks_of_kept(diff).items() if name in former]
    marks = {old: Mark(mark.kind, mark.text.replace(f"was {old}", f"is now {name}")) for old, name, mark in kept}
    marks |= _marks_of_one_sided(diff, "removed", diff.removed, groups)
    return Marks(marks, frozenset(), (), {}, diff_text(diff).partition("\n")[0])


def _marks_of_later(diff: GraphDiff) -> Marks:
    _, groups = names_of_groups(diff)
    marks = _marks_of_kept(diff) | _marks_of_one_sided(diff, "added", diff.added, groups)
    scopes = {} if diff.is_between_frameworks else {new: old for old, new in diff.renamed_scopes.items() if new}
    return Marks(marks, _new_inputs(diff), (), scopes, diff_text(diff).partition("\n")[0])


def _marks_of_one_sided(diff: GraphDiff, kind: MarkKind, names: Iterable[str], groups: Mapping[str, Regrouping]) -> dict[str, Mark]:
    """The marks of nodes of one state: changed if they became others, none for weights of such."""
    followers = diff.explained[0] | diff.explained[1]
    marks = {}
    for name in names:
        group = groups.get(name)
        if group is not None:
            marks[name] = Mark("changed" if group.way == "became" else kind, text_of_group(diff, group))
        elif name not in followers:
            marks[name] = Mark(kind)
    return marks


def _new_inputs(diff: GraphDiff) -> frozenset[tuple[str, int, str]]:
    inputs = [(name, int(wire.what), "") for name, change in diff.changed.items() for wire in change.of_kind("input") if wire.after]
    waits = [(name, -1, wire.after) for name, change in diff.changed.items() for wire in change.of_kind("control") if wire.after]
    return frozenset([*inputs, *waits])


def output_index(output: str) -> int:
    """The number of an output; in a function's body the number within its output argument."""
    tail = output.rpartition(":")[2]
    return int(tail) if tail.isdecimal() else 0


def _used_outputs(states: Iterable[tuple[GraphState, dict[str, str]]]) -> dict[str, int]:
    """The outputs of each node that are used, counted, for nodes of unknown types."""
    widths: dict[str, int] = {}
    for state, names in states:
        if any(node.output_types for node in state.nodes.values()):
            continue
        for node in state.nodes.values():
            for text in node.node_def.input:
                name, output = parse_input(text)
                if output != CONTROL:
                    name = names.get(name, name)
                    widths[name] = max(widths.get(name, 0), output_index(output) + 1)
    return widths


def _library(diff: GraphDiff) -> FunctionDefLibrary:
    """The functions of both states; where both have one of a name, the later."""
    functions = {**diff.before.functions, **diff.after.functions}
    gradients = {**diff.before.gradients, **diff.after.gradients}
    return FunctionDefLibrary(tuple(functions.values()), tuple([GradientDef(*pair) for pair in gradients.items()]))
