"""Comparison of graphs up to the names of their nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, Final

import msgspec
import networkx as nx

from graphcore.api.graph_diff import state_of
from graphcore.attrs import Func
from graphcore.definitions.types import without_docs
from graphcore.difference import GraphState, NodeState, compare, state_of_graph
from graphcore.difference.wiring import input_text, parse_input
from graphcore.graph import Graph, Node, Tensor
from graphcore.testing.answering import answered
from graphcore.testing.failure import CheckFailed
from graphcore.testing.parts import definitions, functions_of, node_of, part

_COLOCATION: Final = "_class"
_ROOT: Final = "root"

Colors = dict[Hashable, int]
Roots = list[tuple[str, int]]


def same_graph(actual: Any, expected: Any) -> None:
    """Check that two graphs are the same up to the names of nodes.

    Ops, attrs, requested devices, inputs in their order, and control edges count; names, and the order in which nodes were made, do not. Functions
    are compared by their definitions.

    Args:
        actual: a graph; a tensor, node or name, or a list of these, for the part of a graph that they need; a GraphDef, or the path of a graph file.
        expected: the required one, likewise. Parts of one graph can be compared.

    Raises:
        CheckFailed: they differ; the text and, in a notebook, a picture show the difference.
        NotFoundError: there is no such file.
        InvalidArgumentError: it is none of these.
    """
    answered(actual, expected)
    first, roots_of_first = _state(actual)
    second, roots_of_second = _state(expected)
    one, other = _structure(first, roots_of_first), _structure(second, roots_of_second)
    if _are_isomorphic(one, other):
        return
    diff = compare(_named_alike(second, roots_of_second, first, roots_of_first), first)
    if diff:
        raise CheckFailed(f"Required the same graph up to names; the difference from the required one:\n{diff}", diff)
    raise CheckFailed("Required the same tensors of equal graphs, got other outputs of them")


def _state(value: Any) -> tuple[GraphState, Roots]:
    """The state that `value` stands for, and its chosen tensors as pairs of node and output."""
    listed = value if isinstance(value, list | tuple) else [value]
    if not (isinstance(value, Graph) or all(isinstance(getattr(item, "graph", None), Graph) for item in listed)):
        return state_of(value), []
    chosen = part(value)
    whole = state_of_graph(chosen.graph)
    nodes = {node.name: whole.nodes[node.name] for node in chosen.nodes}
    called = {name for node_def, _ in definitions(chosen.nodes, chosen.graph) for name in functions_of(node_def, chosen.graph)}
    functions = {name: function for name, function in whole.functions.items() if name in called}
    return msgspec.structs.replace(whole, nodes=nodes, functions=functions), [_root(root) for root in chosen.roots]


def _root(root: Node | Tensor) -> tuple[str, int]:
    return node_of(root).name, root.index if isinstance(root, Tensor) else -1


def _named_alike(state: GraphState, roots: Roots, other: GraphState, roots_of_other: Roots) -> GraphState:
    """`state` with the names of `other` for nodes at the same place, so that their difference is short.

    Nodes are at the same place if all before them is the same, or if the same slots lead to them from the roots.
    """
    names = _alike_upstream(state, other)
    partners = {new: old for old, new in names.items()}
    seen: set[tuple[str, str]] = set()
    pending = [(one, two) for (one, _), (two, _) in zip(roots, roots_of_other, strict=False)]
    while pending:
        pair = one, two = pending.pop()
        node, partner = state.nodes.get(one), other.nodes.get(two)
        if (
            pair in seen
            or node is None
            or partner is None
            or node.op != partner.op
            or names.get(one, two) != two
            or partners.get(two, one) != one
        ):
            continue
        seen.add(pair)
        names[one], partners[two] = two, one
        inputs = zip(node.node_def.input, partner.node_def.input, strict=False)
        pending += [(parse_input(a)[0], parse_input(b)[0]) for a, b in inputs]
    names |= {name: f"{name} (required)" for name in state.nodes if name not in names and name in other.nodes}
    nodes = {names.get(name, name): _renamed(node, names) for name, node in state.nodes.items()}
    return msgspec.structs.replace(state, nodes=nodes)


def _alike_upstream(state: GraphState, other: GraphState) -> dict[str, str]:
    """The nodes of `state` before which all is as before a node of `other`, and that node."""
    colors, others = _refined(_structure(state, []), _structure(other, []), upstream_only=True)
    waiting: dict[int, list[str]] = {}
    for name in reversed(other.nodes):
        waiting.setdefault(others[name], []).append(name)
    return {name: waiting[colors[name]].pop() for name in state.nodes if waiting.get(colors[name])}


def _renamed(node: NodeState, names: dict[str, str]) -> NodeState:
    inputs = [parse_input(text) for text in node.node_def.input]
    texts = tuple([input_text(names.get(name, name), output) for name, output in inputs])
    name = names.get(node.node_def.name, node.node_def.name)
    return msgspec.structs.replace(node, node_def=msgspec.structs.replace(node.node_def, name=name, input=texts))


def _structure(state: GraphState, roots: Roots) -> nx.DiGraph[Hashable]:
    """Nodes and edges as vertices of one kind, each with a label that contains no names."""
    structure: nx.DiGraph[Hashable] = nx.DiGraph()
    for name, node in state.nodes.items():
        structure.add_node(name, label=_label(node, state))
        slot = 0
        for text in node.node_def.input:
            producer, output = parse_input(text)
            is_data = not text.startswith("^")
            target = slot if is_data else -1
            edge = (producer, output, name, target)
            structure.add_node(edge, label=(output, target))
            structure.add_edge(producer, edge)
            structure.add_edge(edge, name)
            slot += is_data
    for number, (producer, index) in enumerate(roots):
        structure.add_node((_ROOT, number), label=(_ROOT, number, index))
        structure.add_edge(producer, (_ROOT, number))
    for vertex in structure:
        structure.nodes[vertex].setdefault("label", "missing")
    return structure


def _label(node: NodeState, state: GraphState) -> Hashable:
    op_def = None if node.registration is None else node.registration.op_def
    attrs: dict[str, Any] = (
        {} if op_def is None else {attr.name: attr.default_value for attr in op_def.attr if attr.default_value is not None}
    )
    attrs |= {name: value for name, value in node.attr.items() if name != _COLOCATION}
    return _definition(node.op, state), node.node_def.device, frozenset([(name, _value(value, state)) for name, value in attrs.items()])


def _value(value: Any, state: GraphState) -> Hashable:
    if isinstance(value, Func):
        return _definition(value.name, state), frozenset(value.attr.items())
    return tuple([_value(item, state) for item in value]) if isinstance(value, tuple) else value


def _definition(name: str, state: GraphState) -> Hashable:
    """A function without its name; the name of an op."""
    function = state.functions.get(name)
    if function is None:
        return name
    signature = msgspec.structs.replace(without_docs(function.signature), name="")
    return signature, function.node_def, tuple(function.ret.items()), tuple(function.control_ret.items())


def _are_isomorphic(one: nx.DiGraph[Hashable], other: nx.DiGraph[Hashable]) -> bool:
    if len(one) != len(other) or one.size() != other.size():
        return False
    first, second = _refined(one, other)
    if Counter(first.values()) != Counter(second.values()):
        return False
    if len(set(first.values())) == len(first):
        return True  # each vertex has a place of its own, and that is the same in both
    nx.set_node_attributes(one, first, "color")
    nx.set_node_attributes(other, second, "color")
    return bool(nx.vf2pp_is_isomorphic(one, other, node_label="color"))


def _refined(one: nx.DiGraph[Hashable], other: nx.DiGraph[Hashable], *, upstream_only: bool = False) -> tuple[Colors, Colors]:
    """Colors that tell vertices apart by their surroundings, as far as these differ. Equal surroundings have equal colors in both graphs."""
    kinds: dict[Hashable, int] = {}
    both = [one, other]
    colors: list[Colors] = [{vertex: kinds.setdefault(data["label"], len(kinds)) for vertex, data in graph.nodes.items()} for graph in both]
    count = 0
    while count < len(kinds):
        count, kinds = len(kinds), {}
        colors = [
            _refined_once(graph, graph_colors, kinds, upstream_only=upstream_only) for graph, graph_colors in zip(both, colors, strict=True)
        ]
    return colors[0], colors[1]


def _refined_once(graph: nx.DiGraph[Hashable], previous: Colors, kinds: dict[Hashable, int], *, upstream_only: bool) -> Colors:
    colors: Colors = {}
    for vertex in graph:
        before = tuple(sorted([previous[other] for other in graph.predecessors(vertex)]))
        after = tuple(sorted([previous[other] for other in (() if upstream_only else graph.successors(vertex))]))
        colors[vertex] = kinds.setdefault((previous[vertex], before, after), len(kinds))
    return colors
