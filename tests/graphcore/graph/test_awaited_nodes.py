"""Consumers of a removed node wait for a new one of its name, as long as they are in the graph."""

from __future__ import annotations

import gc as collector
import weakref
from collections.abc import Callable, Iterator

import pytest

import graphcore as gc


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def _removed(graph: gc.Graph) -> None:
    graph.remove_node(graph.get_operation_by_name("y"))


def _fed_first(graph: gc.Graph) -> None:
    graph.update_edge(gc.placeholder(gc.float32, [2], name="other").node, 0, graph.get_operation_by_name("y"), 0)
    _removed(graph)


def _removed_after(graph: gc.Graph) -> None:
    graph.remove_node(graph.get_operation_by_name("after"))


def _shrunk_first(graph: gc.Graph) -> None:
    graph.shrink_type_info(graph.get_operation_by_name("several"), {1: 0})
    graph.remove_node(graph.get_operation_by_name("several"))


def _cleared(graph: gc.Graph) -> None:
    graph.clear()


def _in_a_transaction(graph: gc.Graph) -> None:
    with graph.transaction():
        _removed(graph)


WAYS: list[tuple[Callable[[gc.Graph], None], str]] = [
    (_removed, "y"),
    (_fed_first, "y"),
    (_in_a_transaction, "y"),
    (_removed_after, "after"),
    (_shrunk_first, "several"),
    (_cleared, "several"),
]


def _built(graph: gc.Graph) -> None:
    x, k = gc.placeholder(gc.float32, [2], name="x"), gc.constant([1.0, 2.0], name="k")
    gc.negative(x, name="y")
    with gc.control_dependencies([x]):
        gc.no_op("after")
    graph.apply_op("IdentityN", [[x, k]], name="several")


@pytest.mark.parametrize(("remove", "name"), WAYS)
def test_a_consumer_that_is_removed_while_it_waits_is_given_free(remove: Callable[[gc.Graph], None], name: str, graph: gc.Graph) -> None:
    _built(graph)
    graph.remove_node(graph.get_operation_by_name("x"))
    assert [(awaited, node.name, slot) for awaited, node, slot in graph.waiting()] == [
        ("x", "y", 0),
        ("x", "after", -1),
        ("x", "several", 0),
    ]
    consumer = weakref.ref(graph.get_operation_by_name(name))
    remove(graph)
    collector.collect()
    assert consumer() is None
    assert name not in [node.name for _, node, _ in graph.waiting()]


def test_a_cell_that_is_run_over_and_over_leaves_no_nodes_behind(graph: gc.Graph) -> None:
    gone: list[weakref.ref[gc.Node]] = []
    for _ in range(5):
        x = gc.placeholder(gc.float32, [2], name="x")
        y = gc.negative(x, name="y")
        gone += [weakref.ref(x.node), weakref.ref(y.node)]
        graph.remove_node(x.node)
        graph.remove_node(y.node)
        del x, y
    collector.collect()
    assert [ref() for ref in gone] == [None] * 10
    assert graph.waiting() == []


def test_a_consumer_that_goes_together_with_a_younger_producer_is_given_free(graph: gc.Graph) -> None:
    y = gc.negative(gc.placeholder(gc.float32, [2]), name="y").node
    graph.update_edge(gc.placeholder(gc.float32, [2], name="younger").node, 0, y, 0)
    gone = weakref.ref(y)
    del y
    graph.clear()
    collector.collect()
    assert gone() is None
    assert graph.waiting() == []


def _removed_and(graph: gc.Graph, then: Callable[[], object]) -> None:
    _removed(graph)
    then()


def test_a_removal_that_is_taken_back_goes_on_waiting(graph: gc.Graph) -> None:
    _built(graph)
    graph.remove_node(graph.get_operation_by_name("x"))
    with pytest.raises(ZeroDivisionError), graph.transaction():
        _removed_and(graph, lambda: 1 / 0)
    y = graph.get_operation_by_name("y")
    x = gc.placeholder(gc.float32, [2], name="x")
    assert y.inputs == [x]
    assert y.error is None
    assert graph.waiting() == []


def test_an_input_that_was_fed_from_elsewhere_is_not_taken_by_the_awaited_node(graph: gc.Graph) -> None:
    _built(graph)
    graph.remove_node(graph.get_operation_by_name("x"))
    y, k = graph.get_operation_by_name("y"), graph.get_operation_by_name("k")
    graph.update_edge(k, 0, y, 0)
    assert [node.name for _, node, _ in graph.waiting()] == ["after", "several"]
    x = gc.placeholder(gc.float32, [2], name="x")
    assert y.inputs == k.outputs
    assert graph.get_operation_by_name("several").inputs == [x, k.outputs[0]]


def test_an_input_that_moves_to_another_slot_goes_on_waiting_there(graph: gc.Graph) -> None:
    x, k = gc.placeholder(gc.float32, [2], name="x"), gc.constant([1.0, 2.0], name="k")
    several = graph.apply_op("IdentityN", [[k, x]], name="several")
    graph.remove_node(x.node)
    graph.shrink_type_info(several, {1: 0})
    assert [(name, node.name, slot) for name, node, slot in graph.waiting()] == [("x", "several", 0)]
    x = gc.placeholder(gc.float32, [2], name="x")
    assert several.inputs == [x]
    assert gc.Session(graph=graph).run(several.outputs[0], {x: [3, 4]}).tolist() == [3, 4]
