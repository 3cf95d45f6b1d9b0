"""The names that the API gives to nodes and scopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from tests.support.cells import run_as_cell


@pytest.fixture(autouse=True)
def graph() -> Any:
    with gc.Graph().as_default() as made:
        yield made


def test_names_are_unique_ignoring_case_and_keep_their_spelling() -> None:
    assert [gc.constant(1, name=name).name for name in ("Foo", "foo", "FOO", "Foo")] == ["Foo:0", "foo_1:0", "FOO_2:0", "Foo_3:0"]
    assert gc.Variable([1.0], name="W").name == "W:0"
    assert gc.Variable([1.0], name="w").name == "w_1:0"


def test_scopes_are_unique_ignoring_case() -> None:
    found = []
    for name in ("Conv", "conv", "CONV/"):
        with gc.name_scope(name):
            found.append(gc.constant(1.0, name="c").name)
    assert found == ["Conv/c:0", "conv_1/c:0", "CONV/c_1:0"]


def test_a_name_that_is_alike_is_free_again_once_its_node_is_gone(graph: gc.Graph) -> None:
    first, second = gc.constant(1, name="Foo"), gc.constant(1, name="foo_1")
    graph.remove_node(first.node)
    assert gc.constant(1, name="foo").name == "foo:0"
    assert gc.constant(1, name="FOO_1").name == "FOO_1_1:0"
    graph.remove_node(second.node)
    assert gc.constant(1, name="Foo_1").name == "Foo_1:0"


def test_the_nodes_of_files_keep_their_names_although_they_are_alike(graph: gc.Graph) -> None:
    nodes = tuple(gc.NodeDef(name, "NoOp") for name in ("a", "A"))
    gc.import_graph_def(gc.GraphDef(node=nodes), prefix="")
    assert [node.name for node in graph.nodes] == ["a", "A"]
    assert gc.no_op("a").name == "a_1"
    graph.remove_node(graph.get_operation_by_name("a"))
    assert gc.no_op("A").name == "A_2"


def test_a_cell_that_runs_again_may_spell_its_names_in_another_case(graph: gc.Graph) -> None:
    run_as_cell(lambda: gc.constant(1, name="Foo"), 1)
    assert run_as_cell(lambda: gc.constant(1, name="foo"), 2).name == "foo:0"
    assert [node.name for node in graph.nodes] == ["foo"]
    assert run_as_cell(lambda: gc.constant(1, name="foo"), 3).name == "foo:0"


@pytest.mark.parametrize(
    "make",
    [
        lambda: gc.constant(1, name="_y"),
        lambda: gc.placeholder(gc.float32, name="_y"),
        lambda: gc.identity(1, name="_y"),
        lambda: gc.Variable(1.0, name="_y"),
        lambda: gc.get_variable("_y", [1]),
        lambda: gc.no_op("_y"),
        lambda: gc.cond(gc.constant(True), lambda: 1, lambda: 2, name="_y"),
        lambda: gc.while_loop(lambda i: i < 3, lambda i: i + 1, [0], name="_y"),
        lambda: gc.reduce_sum(gc.zeros([2]), name="_y"),
    ],
)
def test_a_name_that_begins_with_an_underscore_is_refused_at_the_top(make: Callable[[], Any], graph: gc.Graph) -> None:
    with pytest.raises(InvalidArgumentError, match="'_y'"):
        make()


def test_a_name_within_a_scope_may_begin_with_an_underscore() -> None:
    with gc.name_scope("a"):
        assert gc.constant(1, name="_y").name == "a/_y:0"
