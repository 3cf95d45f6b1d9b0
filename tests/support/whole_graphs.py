"""Consistency checks of all of a graph's data on its nodes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import graphcore as gc
from graphcore.graph.model.changes import Change


class Mirror:
    """A subscriber's model of a graph, made from notifications alone.

    Attributes:
        names: the nodes added and not removed since.
        versions: those of the changes, in the order of notification.
    """

    def __init__(self, graph: gc.Graph) -> None:
        self.names = {node.name for node in graph.nodes}
        self.versions: list[int] = []
        graph.subscribe(self._take)

    def _take(self, change: Change) -> None:
        self.versions.append(change.version)
        if change.kind == "added":
            self.names.add(change.node)
        elif change.kind == "removed":
            self.names.discard(change.node)


def check_whole(graph: gc.Graph, mirror: Mirror | None = None) -> None:
    """Check that every node is there once, under its name and id, with its edges, in all tables.

    Raises:
        AssertionError: a table disagrees.
    """
    nodes = graph.nodes
    names = [node.name for node in nodes]
    assert len(set(names)) == len(names)
    assert [graph.find(name) for name in names] == nodes
    assert [graph.find_node_id(node.id) for node in nodes] == nodes
    assert sorted({node.id for node in nodes}) == sorted([node.id for node in nodes])
    assert len(graph.node_store.by_id) == len(nodes)
    assert all(node.id < graph.num_node_ids for node in nodes)
    assert {name for name in names if graph.names.unique(name) == name} <= graph.names.state()[2]  # free for the running cell
    assert [node.name for node in graph.as_graph_def().node] == names
    _check_edges(graph)
    _check_anchors(graph)
    if mirror is not None:
        assert mirror.names == set(names)
        assert mirror.versions == sorted(mirror.versions)
        assert not mirror.versions or graph.version >= mirror.versions[-1]


def _check_edges(graph: gc.Graph) -> None:
    view = graph.nx
    assert set(view) == {"_SOURCE", "_SINK", *[node.name for node in graph.nodes]}
    assert all(data["node"] is graph.find(name) for name, data in view.nodes(data=True) if graph.find(name) is not None)
    wanted = {(t.node.name, node.name, (t.index, slot)) for node in graph.nodes for slot, t in enumerate(node.inputs) if t in graph}
    wanted |= {(control.name, node.name, (-1, -1)) for node in graph.nodes for control in node.control_inputs if control in graph}
    found = {(u, v, key) for u, v, key in view.edges(keys=True) if u != "_SOURCE" and v != "_SINK"}
    assert found == wanted
    assert {(u, v) for u in view for v in view.succ[u]} == {(u, v) for v in view for u in view.pred[v]}
    assert all(view.succ[u][v] is view.pred[v][u] or view.succ[u][v] == view.pred[v][u] for u in view for v in view.succ[u])
    assert all(view.succ[u][v] for u in view for v in view.succ[u])
    ids = [data["id"] for _, _, data in view.edges(data=True)]
    assert len(set(ids)) == len(ids)


def _check_anchors(graph: gc.Graph) -> None:
    view = graph.nx
    for node in graph.nodes:
        assert ("_SOURCE" in view.pred[node.name]) is (not set(view.pred[node.name]) - {"_SOURCE"})
        assert ("_SINK" in view.succ[node.name]) is (not set(view.succ[node.name]) - {"_SINK"})


@contextmanager
def impatient_threads() -> Iterator[None]:
    """Switch threads as often as possible within the block."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def in_threads(*works: Callable[[], object]) -> None:
    """Run functions concurrently, one a thread; the first error is raised after all have ended."""
    with impatient_threads(), ThreadPoolExecutor(len(works)) as pool:
        ended = [pool.submit(work) for work in works]
    for one in ended:
        one.result()
