"""`import_graph_def` without a prefix: the rules of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError, UnimplementedError


def made() -> gc.GraphDef:
    """Placeholder `x`, and `out`, twice of it."""
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [], name="x")
        gc.identity(x * 2.0, name="out")
    return graph.as_graph_def()


@pytest.fixture(autouse=True)
def graph() -> Any:
    with gc.Graph().as_default() as made:
        yield made


def placeholders(graph: gc.Graph) -> list[str]:
    return [node.name for node in graph.nodes if node.op == "Placeholder"]


def test_the_nodes_get_the_scope_import_made_unique(graph: gc.Graph) -> None:
    for _ in range(2):
        gc.import_graph_def(made())
    with gc.name_scope("a"):
        gc.import_graph_def(made())
        gc.import_graph_def(made(), name="b")
        gc.import_graph_def(made(), name="a/b/")
    assert placeholders(graph) == ["import/x", "import_1/x", "a/import/x", "a/b/x", "a/b/x_1"]


def test_with_an_empty_name_they_keep_their_names_and_clashes_get_new_ones(graph: gc.Graph) -> None:
    gc.constant(2.0, name="x")
    (out,) = gc.import_graph_def(made(), name="", return_elements=["out:0"])
    assert placeholders(graph) == ["x_1"]
    assert gc.Session().run(out, {"x_1:0": 4.0}) == 8.0


def test_the_second_and_third_argument_may_be_those_of_tensorflow() -> None:
    (out,) = gc.import_graph_def(made(), {"x:0": gc.constant(3.0)}, ["out:0"])
    assert gc.Session().run(out) == 6.0


def test_a_plain_value_in_the_map_becomes_a_constant(graph: gc.Graph) -> None:
    (out,) = gc.import_graph_def(made(), input_map={"x:0": 5.0}, return_elements=["out:0"], name="m")
    assert gc.Session().run(out) == 10.0
    assert graph.get_operation_by_name("m/_inputs/Const").op == "Const"
    with pytest.raises(InvalidArgumentError, match="where the name is ''"):
        gc.import_graph_def(made(), input_map={"x:0": 5.0}, name="")


def test_a_key_that_names_nothing_is_refused_and_nothing_is_imported(graph: gc.Graph) -> None:
    mine = gc.constant(3.0, name="mine")
    with pytest.raises(InvalidArgumentError, match=r"Attempted to map inputs that were not found in graph_def: \[imput:0\]"):
        gc.import_graph_def(made(), input_map={"imput:0": mine})
    assert [node.name for node in graph.nodes] == ["mine"]
    gc.import_graph_def(made())
    assert placeholders(graph) == ["import/x"]


def test_a_tensor_stands_for_its_node_in_place_of_a_control_input(graph: gc.Graph) -> None:
    with gc.Graph().as_default() as other, gc.control_dependencies([gc.constant(0.0, name="ready")]):
        gc.constant(1, name="y")
    z = gc.constant(1.0, name="z")
    gc.import_graph_def(other.as_graph_def(), input_map={"^ready": z}, name="imp")
    assert list(graph.get_operation_by_name("imp/y").node_def.input) == ["^z"]


def test_a_surrounding_request_is_completed_by_that_of_each_node(graph: gc.Graph) -> None:
    with gc.Graph().as_default() as other, gc.device("/gpu:1"):
        gc.constant(1, name="y")
        gc.import_graph_def(made(), name="m")
    with gc.device("/job:ps/device:CPU:0"), gc.control_dependencies([gc.no_op("first")]):
        gc.import_graph_def(other.as_graph_def(), name="")
    assert graph.get_operation_by_name("y").device == "/job:ps/device:GPU:1"
    assert graph.get_operation_by_name("y").control_inputs == []


def test_with_a_prefix_even_an_empty_one_taken_names_are_refused() -> None:
    gc.import_graph_def(made(), prefix="")
    with pytest.raises(InvalidArgumentError, match="already exists"):
        gc.import_graph_def(made(), prefix="")


def test_a_list_of_the_producers_ops_is_refused() -> None:
    with pytest.raises(UnimplementedError, match="producer_op_list"):
        gc.import_graph_def(made(), producer_op_list=[])
