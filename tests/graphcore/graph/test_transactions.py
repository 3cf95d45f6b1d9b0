"""Transactions are atomic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphcore as gc
from graphcore.definitions import FunctionDef, FunctionDefLibrary
from graphcore.errors import InvalidArgumentError
from tests.graphcore.graph.example_graphs import everything, is_well, node, ranks_fit, registry
from tests.graphcore.graph.random_edits import Edit, edits, picture, run_all
from tests.support.whole_graphs import check_whole


class StopError(Exception):
    """Ends a transaction."""


def fail(graph: gc.Graph, *actions: Callable[[], object]) -> None:
    """Make changes in a transaction that then fails."""
    with graph.transaction():
        for action in actions:
            action()
        raise StopError


@given(edits(), edits(), edits())
def test_a_transaction_that_fails_leaves_no_trace_now_or_later(before: list[Edit], within: list[Edit], after: list[Edit]) -> None:
    graph, plain = gc.Graph(registry()), gc.Graph(registry())
    run_all(graph, before)
    run_all(plain, before)
    known, version = everything(graph), graph.version
    with pytest.raises(StopError):
        fail(graph, lambda: run_all(graph, within))
    assert everything(graph) == known
    assert graph.version == version
    run_all(graph, after)
    run_all(plain, after)
    assert picture(graph) == picture(plain)
    assert ranks_fit(graph)


@given(edits(), edits(), edits(), st.booleans())
def test_transactions_nest(outer: list[Edit], inner: list[Edit], more: list[Edit], inner_fails: bool) -> None:
    graph, plain = gc.Graph(registry()), gc.Graph(registry())
    run_all(graph, outer)
    before = everything(graph)
    run_all(plain, outer)
    run_all(plain, more)

    def within() -> None:
        run_all(graph, more)
        if inner_fails:
            with pytest.raises(StopError):
                fail(graph, lambda: run_all(graph, inner))
            assert picture(graph) == picture(plain)
        else:
            with graph.transaction():
                run_all(graph, inner)

    with pytest.raises(StopError):
        fail(graph, within)
    assert everything(graph) == before


@given(edits(), edits())
def test_a_transaction_that_ends_well_is_like_none(before: list[Edit], within: list[Edit]) -> None:
    graph, plain = gc.Graph(registry()), gc.Graph(registry())
    run_all(graph, before)
    run_all(plain, [*before, *within])
    with graph.transaction(), graph.transaction():
        run_all(graph, within)
    assert picture(graph) == picture(plain)
    assert ranks_fit(graph)


def test_a_failed_transaction_restores_functions_versions_and_settings() -> None:
    graph = gc.Graph(registry())

    def settings() -> None:
        graph.add_function_library(FunctionDefLibrary((FunctionDef(signature=gc.OpDef(name="F")),)))
        graph.versions = gc.VersionDef(3)
        graph.seed = 7
        graph.finalize()
        graph.new_name("a")

    with pytest.raises(StopError):
        fail(graph, settings)
    assert (graph.library.num_functions, graph.versions.producer, graph.seed, graph.finalized) == (0, gc.PRODUCER_VERSION, None, False)
    assert graph.new_name("a") == "a/_0"


def test_lists_that_users_hold_are_restored_in_place() -> None:
    graph = gc.Graph(registry())
    graph.add_to_collection("losses", 1)
    held, collections = graph.collections["losses"], graph.collections
    with pytest.raises(StopError):
        fail(graph, lambda: graph.add_to_collection("losses", 2), lambda: graph.add_to_collection("others", 3))
    assert held == [1]
    assert graph.collections is collections
    assert collections == {"losses": held}


def test_subscribers_learn_of_a_transaction_when_it_has_ended_well_and_never_of_a_failed_one() -> None:
    graph = gc.Graph(registry())
    told: list[str] = []
    graph.subscribe(lambda change: told.append(change.node))
    with graph.transaction():
        graph.add_node(node("A=OneOutput"))
        with pytest.raises(StopError):
            fail(graph, lambda: graph.add_node(node("B=OneOutput")))
        with graph.transaction():
            graph.add_node(node("C=OneOutput"))
        assert told == []
    assert told == ["A", "C"]


def test_subscribers_that_fail_keep_no_change_from_the_others() -> None:
    def refuse(change: gc.graph.Change) -> None:
        raise StopError(change.node)

    graph = gc.Graph(registry())
    told: list[str] = []
    for subscriber in (refuse, refuse, lambda change: told.append(change.node)):
        graph.subscribe(subscriber)
    names = [f"A{number}" for number in range(6)]

    def add() -> None:
        with graph.transaction():
            for name in names:
                graph.add_node(node(f"{name}=OneOutput"))

    with pytest.raises(StopError, match="A0"):
        add()
    assert told == names
    told.clear()
    with pytest.raises(StopError, match="A5"):
        graph.clear()
    assert told == names[::-1]
    assert len(graph) == 0


def test_a_subscriber_that_takes_a_name_which_became_free_keeps_it_though_another_fails() -> None:
    def add_again(change: gc.graph.Change) -> None:
        if change.kind == "removed":
            graph.add_node(node(f"{change.node}=OneOutput"))

    def refuse(change: gc.graph.Change) -> None:
        if change.kind == "removed":
            raise StopError(change.node)

    graph = gc.Graph(registry())
    first = graph.add_node(node("A=OneOutput"))
    graph.subscribe(add_again)
    graph.subscribe(refuse)
    with pytest.raises(StopError, match="A"):
        graph.remove_node(first)
    assert graph.unique_name("A") == "A_1"
    check_whole(graph)


def test_a_run_within_a_failed_transaction_does_not_mislead_later_runs() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.constant(1.0, name="x")
        session = gc.Session(graph)
        seen: list[float] = []
        with pytest.raises(StopError):
            fail(graph, lambda: gc.add(x, 1.0, name="y"), lambda: seen.append(session.run("y:0")))
        assert seen == [2.0]
        assert graph.find("y") is None
        gc.constant(5.0, name="z")
        gc.negative(x, name="y")
        assert session.run("y:0") == -1.0


def test_any_way_out_of_a_failed_transaction_restores() -> None:
    graph = gc.Graph(registry())

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail(graph, lambda: graph.add_node(node("A=OneOutput")), interrupt)
    assert len(graph) == 0


def test_an_error_of_a_node_marked_before_is_marked_again_after() -> None:
    graph = gc.Graph(registry())
    for text in ("A=OneOutput", "B=TwoOutputs(A)"):
        graph.add_node(node(text))
    graph.remove_node(graph.get_operation_by_name("A"))
    error = graph.get_operation_by_name("B").error

    def mend() -> None:
        graph.add_node(node("A=OneOutput"))
        assert is_well(graph.get_operation_by_name("B"))

    with pytest.raises(InvalidArgumentError, match="already exists"):
        fail(graph, mend, lambda: graph.add_node(node("A=OneOutput")))
    assert graph.get_operation_by_name("B").error is error
    graph.add_node(node("A=OneOutput"))
    assert is_well(graph.get_operation_by_name("B"))


def looks(graph: gc.Graph) -> object:
    return graph.nx.number_of_edges()


def adds(graph: gc.Graph) -> object:
    return graph.apply_op("Exp", [graph.get_tensor_by_name("y:0")], name="late")


def removes(graph: gc.Graph) -> None:
    graph.remove_node(graph.get_operation_by_name("z"))


def moves(graph: gc.Graph) -> None:
    graph.update_edge(graph.get_operation_by_name("x"), 0, graph.get_operation_by_name("z"), 1)


def waits(graph: gc.Graph) -> object:
    return graph.add_control_edge(graph.get_operation_by_name("x"), graph.get_operation_by_name("z"))


def nests(graph: gc.Graph) -> None:
    with graph.transaction():
        adds(graph)
        looks(graph)
        moves(graph)


@pytest.mark.parametrize("looked_at", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        (adds,),
        (looks,),
        (adds, looks),
        (looks, adds),
        (removes,),
        (adds, removes),
        (moves, adds),
        (waits, adds, looks),
        (nests,),
        (adds, nests),
    ],
    ids=lambda changes: "-".join([change.__name__ for change in changes]),
)
def test_a_transaction_in_a_graph_that_nobody_has_looked_at_brings_back_what_was(changes: Any, looked_at: bool) -> None:
    def made() -> gc.Graph:
        graph = gc.Graph()
        x = graph.apply_op("Placeholder", [], {"dtype": gc.float32, "shape": [2]}, "x").outputs[0]
        if looked_at:
            looks(graph)
        y = graph.apply_op("Tanh", [x], name="y").outputs[0]
        graph.apply_op("AddV2", [y, y], name="z")
        return graph

    def seen(graph: gc.Graph) -> tuple[Any, ...]:
        edges = [str(edge) for edge in graph.edges()]
        adjacency = [(u, list(graph.nx.succ[u]), list(graph.nx.pred[u])) for u in graph.nx.nodes]
        return [str(node.node_def) for node in graph.nodes], edges, adjacency, graph.num_edge_ids, graph.num_node_ids

    def change_all(graph: gc.Graph, *, fail: bool) -> None:
        with graph.transaction():
            for change in changes:
                change(graph)
            if fail:
                raise RuntimeError

    graph, other = made(), made()
    with pytest.raises(RuntimeError):
        change_all(graph, fail=True)
    assert seen(graph) == seen(other)
    for each in (graph, other):
        change_all(each, fail=False)
    assert seen(graph) == seen(other)


def test_a_failed_transaction_restores_the_variables_that_get_variable_shares() -> None:
    graph = gc.get_default_graph()
    kept = gc.get_variable("w", [2], initializer=gc.zeros_initializer())

    def replace() -> None:
        for each in reversed(list(graph.nodes)):
            graph.remove_node(each)
        gc.get_variable("w", [3], initializer=gc.ones_initializer())

    with pytest.raises(StopError):
        fail(graph, replace)
    with gc.variable_scope("", reuse=True):
        assert gc.get_variable("w", [2]) is kept
