"""Directed graphs of networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.object_reader.plain import PlainNode, attr_of, plain_graph

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph

_OPS: Final = ("op", "op_type", "type", "kind")
_SCOPES: Final = ("scope", "module", "group", "cluster", "subgraph")
_MAX_NAME: Final = 500


def read_networkx(graph: Any) -> ForeignGraph:
    """A directed graph, its ops and scopes by attributes of its nodes.

    `op`, `op_type`, `type` or `kind` give the op; `scope`, `module`, `group`, `cluster` or `subgraph` the scope.

    Raises:
        InvalidArgumentError: the graph is undirected.
    """
    if not graph.is_directed():
        raise InvalidArgumentError(
            f"Required a directed graph, got an undirected networkx.{type(graph).__name__}: its edges say nothing on the order of nodes. "
            "`graph.to_directed()` makes two edges of each; `networkx.DiGraph` with the edges one way makes a graph to show"
        )
    names = _names(graph)
    nodes: dict[str, PlainNode] = {}
    for key, data in graph.nodes(data=True):
        op = next((str(data[word]) for word in _OPS if isinstance(data.get(word), str) and data[word]), "Node")
        scope = next((data[word] for word in _SCOPES if isinstance(data.get(word), str)), "")
        scopes = tuple([part for part in scope.replace(".", "/").split("/") if part])
        attrs = {str(word)[:100]: attr_of(value) for word, value in data.items() if word not in _OPS[:2]}
        nodes[names[key]] = PlainNode(f"networkx.{op}", attrs, scopes)
    for source, target, data in graph.edges(data=True):
        node = nodes[names[target]]
        node.sources.append(names[source])
        node.labels.append(", ".join([f"{word}={attr_of(value)}" for word, value in data.items()])[:200])
    facts = {str(word): str(attr_of(value)) for word, value in list(graph.graph.items())[:50]}
    return plain_graph(f"networkx {type(graph).__name__}", nodes, producer="networkx", name=str(graph.name or ""), facts=facts)


def _names(graph: Any) -> dict[Any, str]:
    """A name for each node: the text of its key, with a number where others have the same."""
    names: dict[Any, str] = {}
    taken: dict[str, int] = {}
    for key in graph.nodes:
        base = (key if isinstance(key, str) else str(attr_of(key) if not isinstance(key, tuple) else key))[:_MAX_NAME]
        name = base
        while name in taken:
            taken[base] += 1
            name = f"{base}_{taken[base]}"
        taken[name] = 0
        names[key] = name
    return names
