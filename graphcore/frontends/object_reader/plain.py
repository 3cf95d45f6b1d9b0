"""Graphs of labelled nodes and edges, which have no ports, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from graphcore.frontends.foreign import ForeignFunction, ForeignGraph, ForeignNode, ModuleCall, Port

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphcore.frontends.foreign import Attr

_MAX_TEXT: Final = 500
_BROKEN: Final = "An edge that closes a cycle is an attr of its target, `from a later node`."


@dataclass(slots=True)
class PlainNode:
    """A node.

    Attributes:
        op: its op with the domain.
        attrs: its attrs.
        scopes: the names of the scopes around it, outermost first.
        sources: the nodes from which edges come, in order.
        labels: words on these edges, "" for none.
    """

    op: str
    attrs: dict[str, Attr] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    sources: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    doc: str = ""


def plain_graph(
    kind: str, nodes: Mapping[str, PlainNode], *, producer: str = "", name: str = "", facts: Mapping[str, str] | None = None
) -> ForeignGraph:
    """The nodes as a graph, each with one output. Edges that close cycles are written on their targets."""
    late = _closing(nodes)
    foreign_nodes = []
    for label, node in nodes.items():
        edges = [(source, words) for source, words in zip(node.sources, node.labels, strict=True) if (source, label) not in late]
        attrs = dict(node.attrs)
        back = [source for source in node.sources if (source, label) in late]
        if back:
            attrs["from a later node"] = [source[:_MAX_TEXT] for source in back[:50]]
        foreign_nodes.append(
            ForeignNode(
                label,
                node.op,
                tuple([(source, 0) for source, _ in edges]),
                (Port(),),
                tuple([words for _, words in edges]),
                attrs,
                modules=tuple([ModuleCall(scope) for scope in node.scopes]),
                doc=node.doc,
            )
        )
    notes = [f"The graph has cycles. {_BROKEN}"] if late else []
    return ForeignGraph(kind, ForeignFunction(name or "main", nodes=foreign_nodes), producer, name, facts=dict(facts or {}), notes=notes)


def _closing(nodes: Mapping[str, PlainNode]) -> set[tuple[str, str]]:
    """The edges that close a cycle, found by following edges from the first node on."""
    following: dict[str, list[str]] = {label: [] for label in nodes}
    for label, node in nodes.items():
        for source in node.sources:
            following[source].append(label)
    late: set[tuple[str, str]] = set()
    done: set[str] = set()
    open_nodes: set[str] = set()
    for root in nodes:
        if root in done or root in open_nodes:
            continue
        stack = [(root, iter(following[root]))]
        open_nodes.add(root)
        while stack:
            label, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                stack.pop()
                open_nodes.discard(label)
                done.add(label)
            elif target in open_nodes:
                late.add((label, target))
            elif target not in done:
                open_nodes.add(target)
                stack.append((target, iter(following[target])))
    return late


def attr_of(value: object, depth: int = 0) -> Attr:
    """A value as an attr; an object of another class as a short text, without what it holds."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value[:_MAX_TEXT]
    if isinstance(value, list | tuple) and depth < 3:
        return [attr_of(item, depth + 1) for item in value[:100]]
    if value is None:
        return "None"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{type(value).__name__} of shape {list(shape)}"[:_MAX_TEXT]
    return callable_name(value) or f"<{type(value).__qualname__}>"


def callable_name(value: object) -> str:
    """The name of a function or class, "" for others."""
    name = getattr(value, "__name__", None)
    return name[:_MAX_TEXT] if callable(value) and isinstance(name, str) else ""
