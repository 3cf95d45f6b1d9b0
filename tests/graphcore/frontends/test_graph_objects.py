"""Graphs of networkx, collections of Dask, and DOT text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array
import graphviz
import networkx as nx
import pytest
from dask.delayed import delayed

import graphcore as gc
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.frontends.foreign import ForeignGraph
from graphcore.frontends.sources import open_source
from widgets import to_outline

DOT = r"""// a comment
digraph "G x" {
    rankdir=LR; node [shape=box]
    a -> b:port:n -> c [label="next"]
    subgraph cluster_one { label="First part"; d [label=<<b>bold</b> D>]; e }
    a -> {d e}
    "x \"y" -> a
}
"""


def _edges(source: ForeignGraph) -> set[tuple[str, str]]:
    return {(ref[0], node.name) for node in source.main.nodes for ref in node.inputs if ref is not None}


def _node(source: ForeignGraph, name: str) -> Any:
    return next(node for node in source.main.nodes if node.name == name)


def test_nodes_edges_and_attributes_of_networkx_are_kept() -> None:
    graph = nx.DiGraph([("a", "b"), ("b", "c"), ("a", "c")])
    graph.add_node("b", op="clean", size=3, scope="first.second")
    source = open_source(graph)
    assert _edges(source) == set(graph.edges)
    node = _node(source, "b")
    assert node.op == "networkx.clean"
    assert node.attrs["size"] == 3
    assert [call.path for call in node.modules] == ["first", "second"]


def test_an_undirected_graph_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Required a directed graph, got an undirected networkx\.Graph.*to_directed"):
        gc.from_source(nx.Graph([(1, 2)]))
    with pytest.raises(InvalidArgumentError, match="Required a directed graph"):
        gc.from_source("graph { a -- b }")


def test_a_cycle_is_drawn_but_for_the_edge_that_closes_it() -> None:
    source = open_source(nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]))
    assert _edges(source) == {("a", "b"), ("b", "c")}
    assert _node(source, "a").attrs["from a later node"] == ["c"]
    assert "cycles" in source.notes[0]


def test_a_collection_of_dask_is_shown_without_computing_it() -> None:
    calls = []

    def step(value: int) -> int:
        calls.append(value)
        return value

    lazy = delayed(step)
    source = open_source(lazy(lazy(1)))
    assert {node.op for node in source.main.nodes} == {"dask.step"}
    assert len(_edges(source)) == 1
    assert not calls


def test_layers_of_dask_are_scopes_with_the_tasks_of_the_graph() -> None:
    array = dask.array.ones((4, 4), chunks=2).sum() + 1
    source = open_source(array)
    assert len(source.main.nodes) == len(dict(array.__dask_graph__()))
    assert {call.path for node in source.main.nodes for call in node.modules} >= {"sum", "add"}
    assert "sum/ (4 nodes)" in to_outline(gc.from_source(array))


def test_dot_text_has_chains_subgraphs_ports_and_quoted_names() -> None:
    source = open_source(DOT)
    assert _edges(source) == {("a", "b"), ("b", "c"), ("a", "d"), ("a", "e"), ('x "y', "a")}
    assert _node(source, "d").doc == "bold D"
    assert _node(source, "a").attrs["shape"] == "box"
    assert [call.path for call in _node(source, "e").modules] == ["First part"]
    assert _node(source, "c").input_names == ("next",)
    assert source.facts["rankdir"] == "LR"


@pytest.mark.parametrize("name", ["x.dot", "x.gv"])
def test_a_file_of_dot_text_opens(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(DOT)
    assert len(open_source(path).main.nodes) == 6
    assert len(list(gc.load(path).op_nodes())) == 6


def test_drawings_of_graphviz_are_read() -> None:
    drawing = graphviz.Digraph()
    drawing.edge("a", "b")
    assert _edges(open_source(drawing)) == {("a", "b")}
    assert _edges(open_source(graphviz.Source("digraph { a -> b }"))) == {("a", "b")}


@pytest.mark.parametrize(
    "text", ["digraph {\n a -> }", "digraph {\n a [x=", "digraph {\n <b", "digraph {\n" + "subgraph {" * 500, 'digraph {\n "a']
)
def test_a_damaged_text_is_an_error(text: str) -> None:
    with pytest.raises(GraphError, match="DOT text"):
        gc.from_source(text)
