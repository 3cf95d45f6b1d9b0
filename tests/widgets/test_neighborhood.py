"""Neighborhoods, ways between nodes, and filters by op, device and cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from tests.support.live_page import LivePage
from tests.widgets.conftest import RunCell
from widgets import GraphView


@pytest.fixture
def diamond(graph: gc.Graph) -> gc.Graph:
    x = gc.placeholder(gc.float32, [None, 4], name="x")
    with gc.device("/device:CPU:0"):
        left = gc.tanh(x, name="left")
    right = gc.relu(x, name="right")
    gc.square(gc.add(left, right, name="sum"), name="y")
    with gc.control_dependencies([left]):
        gc.no_op(name="waits")
    gc.placeholder(gc.float32, [2], name="alone")
    return graph


@pytest.fixture
def view(diamond: gc.Graph) -> Iterator[Any]:
    view: Any = GraphView(diamond)
    view.page = LivePage.in_place_of(view)
    view.page.ask(type="ready")
    yield view
    view.close()


def dimmed_but(view: Any) -> set[str]:
    """The boxes that the latest highlight leaves."""
    return set([message for message in view.page.sent if message["type"] == "highlight"][-1]["boxes"])


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (0, {"left"}),
        (1, {"x", "left", "sum", "waits"}),
        (2, {"x", "left", "right", "sum", "y", "waits"}),
        (9, {"x", "left", "right", "sum", "y", "waits"}),
    ],
)
def test_a_neighborhood_follows_edges_of_both_kinds_and_directions(view: Any, steps: int, expected: set[str]) -> None:
    assert set(view.neighborhood("left", steps)) == expected
    assert dimmed_but(view) == expected


def test_a_path_has_all_ways_between_two_nodes_in_either_order(view: Any) -> None:
    ways = ["x", "left", "right", "sum"]
    assert view.path("x", "sum") == ways
    assert view.path("sum", "x") == ways
    assert dimmed_but(view) == set(ways)
    assert view.path("x", "alone") == []
    assert dimmed_but(view) == set()


def test_filters_are_by_op_device_and_cell(run_cell: RunCell) -> None:
    run_cell("one", "x = gc.placeholder(gc.float32, [4], name='x')\nwith gc.device('/device:CPU:0'):\n    a = gc.tanh(x, name='a')")
    run_cell("two", "b = gc.tanh(a, name='b')")
    view = GraphView(gc.get_default_graph())
    assert view.filter(op="tanh") == ["a", "b"]
    assert view.filter(device="cpu") == ["a"]
    assert view.filter(op="Tanh", cell="2") == ["b"]
    assert view.filter(cell="1") == ["x", "a"]
    assert view.filter(cell="In [2]") == ["b"]
    assert view.filter(cell="3") == []
    view.close()


def test_the_viewer_may_filter_by_a_cell(run_cell: RunCell) -> None:
    run_cell("one", "with gc.name_scope('layer'):\n    x = gc.placeholder(gc.float32, [4], name='x')\n    a = gc.tanh(x, name='a')")
    run_cell("two", "b = gc.tanh(a, name='b')")
    view: Any = GraphView(gc.get_default_graph())
    view.choices.collapse("*")
    page = LivePage.in_place_of(view)
    page.ask(type="ready")
    for query, boxes, text in (("cell:1", ["layer/"], "2 nodes for cell:1, in 1 box"), ("cell:2", ["b"], "1 node for cell:2, in 1 box")):
        assert page.ask_one(type="filter", query=query) == {"type": "highlight", "boxes": boxes, "text": text}
    view.close()


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda view: view.neighborhood("nowhere"), "There is no node 'nowhere' in the graph"),
        (lambda view: view.neighborhood("x", -1), "required a number of steps >= 0"),
        (lambda view: view.path("x", "nowhere"), "There is no node 'nowhere' in the graph"),
        (lambda view: view.filter(), "required an op, a device, or a cell"),
    ],
)
def test_wrong_questions_are_refused(view: Any, ask: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        ask(view)


def test_the_viewer_may_filter_by_a_query(view: Any) -> None:
    assert view.page.ask_one(type="filter", query="op:tanh") == {
        "type": "highlight",
        "boxes": ["left"],
        "text": "1 node for op:tanh, in 1 box",
    }


@given(edges=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20), start=st.integers(0, 11), steps=st.integers(0, 4))
@settings(max_examples=50, deadline=None)
def test_a_neighborhood_is_what_breadth_first_search_reaches(edges: list[tuple[int, int]], start: int, steps: int) -> None:
    sources: dict[int, list[int]] = {node: [] for node in range(12)}
    for a, b in edges:
        if a < b:
            sources[b].append(a)
    graph = gc.Graph()
    with graph.as_default():
        made: list[gc.Tensor] = []
        for node in range(12):
            inputs = [made[each] for each in sources[node]]
            made.append(_node(inputs, node))
    view = GraphView(graph)
    reference: nx.Graph[int] = nx.Graph()
    reference.add_nodes_from(range(12))
    reference.add_edges_from((a, b) for b, before in sources.items() for a in before)
    expected = set(nx.ego_graph(reference, start, radius=steps))
    assert set(view.neighborhood(f"n{start}", steps)) == {f"n{node}" for node in expected}
    view.close()


def _node(inputs: list[gc.Tensor], number: int) -> gc.Tensor:
    return gc.add_n(inputs, name=f"n{number}") if inputs else gc.placeholder(gc.float32, [2], name=f"n{number}")
