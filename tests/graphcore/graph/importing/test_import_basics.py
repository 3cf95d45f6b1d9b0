"""A1, A2: names, inputs and types of imported nodes, and results."""

from __future__ import annotations

import gc as collector
from typing import Any

import pytest

import graphcore as gc
from graphcore.definitions import GraphDef, NodeDef
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError, UnimplementedError
from graphcore.graph import ImportOptions, ImportResults, import_graph_def
from tests.graphcore.graph.example_graphs import (
    LOOP,
    everything,
    graph_def,
    has_edge,
    import_into,
    inputs_of,
    node,
    ranks_fit,
    registry,
)

STRUCTURE = (
    "A=TestParams",
    "X=TestParams",
    node("B=TwoOutputs(A)", _class=[b"loc:@A"]),
    "C=TwoOutputs(B:1, ^X)",
    "D=TestMul(B:0, C:0)",
)


@pytest.fixture
def graph() -> gc.Graph:
    return gc.Graph(registry())


def refused(graph: gc.Graph, *nodes: str | NodeDef, **options: Any) -> GraphError:
    """The error of an import that must fail without changing the graph."""
    before = everything(graph)
    with pytest.raises(GraphError) as caught:
        import_into(graph, *nodes, **options)
    assert everything(graph) == before
    return caught.value


@pytest.mark.parametrize("name", ["a:b", "_abc", "/a", "a b", "", "a#b", "a\\b"], ids=lambda name: f"A1-{name!r}")
def test_names_that_are_no_names_are_refused(graph: gc.Graph, name: str) -> None:
    error = refused(graph, NodeDef(name, "TestParams"))
    assert isinstance(error, InvalidArgumentError)
    assert error.message == f"Node '{name}': Node name contains invalid characters"


@pytest.mark.parametrize("name", ["a-bc_", "0123", ".a", "a/b.c"], ids=lambda name: f"A1-{name}")
def test_names_of_letters_digits_and_a_few_signs_are_taken(graph: gc.Graph, name: str) -> None:
    import_into(graph, NodeDef(name, "TestParams"))
    assert graph.find(name) is not None


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (["W1=TestParams", "t1=TestMul(W999, W1)"], "Node 't1': Unknown input node 'W999'"),
        (["W1=TestParams", "t1=TestMul(W999:1, W1)"], "Node 't1': Unknown input node 'W999:1'"),
        (["W1=TestParams", "t1=TestParams(^W999)"], "Node 't1': Unknown input node '^W999'"),
        (["W1=TestParams", "t1=TestMul(W1:1, W1)"], "Connecting to invalid output 1 of source node W1"),
        (["A=TestParams", "B=TestMul(A:1, A)"], "Node 'B': Connecting to invalid output 1 of source node A which has 1 outputs"),
        (
            ["W1=TestParams", "W2=TestParams", "t2=TestMul(W1, ^W2, W1)"],
            "Node 't2': Control dependencies must come after regular dependencies",
        ),
        (["input=TestInput", "int=TestInt(input)"], "Input 0 of node int was passed float from input:0 incompatible with expected int32."),
        (["A=TestParams", "B=TestMul(A)"], "do not match 1 inputs specified"),
        (["A=TestParams", "B=TwoOutputs(A, A)"], "do not match 2 inputs specified"),
        (["A=TestParams", "A=TestParams"], "Node 'A' is not unique"),
        (["A="], "Node 'A' does not specify an operation"),
        ([node("A=Source")], "NodeDef missing attr 'out_types' from Op<name=Source"),
        ([node("A=TestParams", bad=1)], "NodeDef mentions attr 'bad' not in Op<"),
    ],
    ids=lambda value: f"A1-{value}" if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_refused_with_the_reason(graph: gc.Graph, nodes: list[Any], text: str) -> None:
    error = refused(graph, *nodes)
    assert isinstance(error, InvalidArgumentError)
    assert text in error.message


@pytest.mark.parametrize(
    "nodes",
    [
        ["W1=TestParams", "t1=TestMul(W1, t2)", "t2=TestMul(W1, t1)"],
        ["W1=TestParams", "t1=TestMul(W1, t1)"],
        ["t1=TestParams(^t2)", "t2=TestParams(^t1)"],
        ["merge=Merge(next, next)", "next=NextIteration(merge)"],
        ["W1=TestParams", "enter=Enter(W1)", "merge=Merge(enter, id)", "id=Identity(merge)"],
        ["W1=TestParams", "enter=Enter(W1)", "merge=Merge(enter, ^next)", "next=NextIteration(merge)"],
    ],
    ids=["two", "self", "control", "no-entry", "not-NextIteration", "control-around-a-loop"],
)
def test_a1_a_cycle_is_refused_and_named(graph: gc.Graph, nodes: list[str]) -> None:
    error = refused(graph, *nodes)
    assert "cycle" in error.message
    assert " -> " in error.message


def test_a1_the_back_edge_of_a_loop_is_the_one_cycle_that_may_be(graph: gc.Graph) -> None:
    import_into(graph, "W1=TestParams", *LOOP)
    assert has_edge(graph, "next", 0, "merge", 1)
    merge, following = graph.get_operation_by_name("merge"), graph.get_operation_by_name("next")
    assert merge.inputs[1] is following.outputs[0]
    assert inputs_of(graph, "merge") == ["enter", "next"]
    assert merge.error is None
    assert ranks_fit(graph)
    assert max(graph.edges(), key=lambda edge: edge.id if edge.src.is_op and edge.dst.is_op else -1).src is following


def test_a1_an_input_that_comes_around_a_loop_has_an_unknown_shape_for_inference(graph: gc.Graph) -> None:
    import_into(graph, "W1=TestParams", *LOOP)
    assert [str(graph.get_tensor_by_name(name).shape) for name in ("enter", "merge", "merge:1")] == ["[]", "?", "[]"]


def test_a1_nodes_may_stand_in_any_order(graph: gc.Graph) -> None:
    import_into(graph, "t2=TestMul(t1, W)", "t1=TestMul(W, W)", "W=TestParams", *LOOP, "W1=TestParams")
    order = [node.name for node in graph.nodes]
    assert order.index("W") < order.index("t1") < order.index("t2")
    assert ranks_fit(graph)


def test_a1_of_the_nodes_that_are_ready_the_first_in_the_file_gets_the_next_id(graph: gc.Graph) -> None:
    import_into(graph, "d=TestMul(c, a)", "c=TestMul(a, a)", "z=TestParams", "a=TestParams", "b=TestMul(z, z)")
    assert [node.name for node in graph.nodes] == ["z", "a", "c", "d", "b"]


def test_a1_a_chain_of_any_length_in_any_order_is_imported_without_recursion(graph: gc.Graph) -> None:
    chain = [f"n{i}=Identity(n{i - 1})" for i in range(20_000, 0, -1)]
    import_into(graph, *chain, "n0=TestParams")
    assert [node.name for node in graph.nodes[:3]] == ["n0", "n1", "n2"]
    assert ranks_fit(graph)


def test_a1_names_that_are_taken_are_refused(graph: gc.Graph) -> None:
    import_into(graph, "scope/A=TestParams")
    assert refused(graph, "A=TestParams", prefix="scope").message == "Node name 'scope/A' already exists in the Graph"
    assert refused(graph, "scope/A=TestParams").message == "Node name 'scope/A' already exists in the Graph"
    assert refused(graph, "scope=TestParams").message == "Node name 'scope' already exists in the Graph"
    assert refused(graph, "_SOURCE=TestParams").message == "Node '_SOURCE': Node name contains invalid characters"


def test_a1_a_prefix_that_makes_no_names_is_refused(graph: gc.Graph) -> None:
    error = refused(graph, "A=TestParams", prefix="!bad_prefix")
    assert error.message == "Imported node name prefix '!bad_prefix/' would lead to invalid node names"


def test_a1_an_op_that_is_not_registered_is_refused(graph: gc.Graph) -> None:
    error = refused(graph, "A=SomeUnknownOp")
    assert isinstance(error, NotFoundError)
    assert "Op type not registered 'SomeUnknownOp'" in error.message
    assert (error.node, error.op) == ("A", "SomeUnknownOp")
    assert error.source is not None


def test_a1_a_node_is_colocated_with_nodes_of_its_own_import(graph: gc.Graph) -> None:
    alone = node("A=TestParams", _class=[b"loc:@B"])
    assert refused(graph, alone).message == "Node 'A' expects to be colocated with unknown node 'B'"
    import_into(graph, alone, validate_colocation_constraints=False)
    assert graph.get_operation_by_name("A").get_attr("_class") == (b"loc:@B",)


def test_a1_output_shapes_that_cannot_be_are_refused(graph: gc.Graph) -> None:
    wrong = node("B=Vector", size=3, _output_shapes=[gc.Shape([4])])
    error = refused(graph, wrong)
    assert error.message.startswith("Node 'B' has an _output_shapes attribute inconsistent with the GraphDef for output #0")
    few = node("B=TestInput", _output_shapes=[gc.Shape([4])])
    assert "has 2 outputs but the _output_shapes attribute specifies shapes for 1 outputs" in refused(graph, few).message


def test_a1_output_shapes_add_to_what_is_inferred_and_are_not_kept(graph: gc.Graph) -> None:
    import_into(graph, node("I=TestInput", _output_shapes=[gc.Shape([4]), gc.Shape(None)]))
    imported = graph.get_operation_by_name("I")
    assert [str(tensor.shape) for tensor in imported.outputs] == ["[4]", "?"]
    assert "_output_shapes" not in imported.attrs


def test_a1_shapes_are_not_looked_at_without_validate_shape(graph: gc.Graph) -> None:
    import_into(graph, node("B=Vector", size=3, _output_shapes=[gc.Shape([4])]), validate_shape=False)
    assert str(graph.get_tensor_by_name("B").shape) == "?"


def test_a1_the_default_device_is_for_nodes_without_one(graph: gc.Graph) -> None:
    import_into(graph, "A=TestParams", node("B=TestParams", "/cpu:1"), default_device="/gpu:0")
    assert [each.device for each in graph.nodes] == ["/gpu:0", "/cpu:1"]


def test_a1_missing_attrs_get_the_defaults_of_the_op(graph: gc.Graph) -> None:
    import_into(graph, "A=TestDefaultAttr", node("B=TestDefaultAttr", default_int=2))
    assert [each.get_attr("default_int") for each in graph.nodes] == [31415, 2]


def test_a1_attrs_that_nodes_share_are_completed_once_and_rightly(graph: gc.Graph) -> None:
    shared: dict[str, Any] = {}
    nodes = [NodeDef(f"n{i}", "TestDefaultAttr", (), "", shared) for i in range(3)]
    import_graph_def(GraphDef(node=tuple(nodes)), graph)
    assert [each.get_attr("default_int") for each in graph.nodes] == [31415] * 3
    assert shared == {}


def test_a2_the_structure_is_that_of_the_file_with_source_and_sink(graph: gc.Graph) -> None:
    import_into(graph, *STRUCTURE)
    assert (graph.num_nodes, graph.num_edges) == (7, 9)
    for edge in [("A", 0, "B", 0), ("B", 1, "C", 0), ("B", 0, "D", 0), ("C", 0, "D", 1), ("X", -1, "C", -1)]:
        assert has_edge(graph, *edge)
    for edge in [("_SOURCE", -1, "A", -1), ("_SOURCE", -1, "X", -1), ("D", -1, "_SINK", -1), ("_SOURCE", -1, "_SINK", -1)]:
        assert has_edge(graph, *edge)
    assert graph.get_operation_by_name("B").get_attr("_class") == (b"loc:@A",)


def test_a2_importing_it_again_needs_a_prefix_which_colocation_follows(graph: gc.Graph) -> None:
    import_into(graph, *STRUCTURE)
    assert refused(graph, *STRUCTURE).message == "Node name 'A' already exists in the Graph"
    import_into(graph, *STRUCTURE, prefix="import")
    assert inputs_of(graph, "import/C") == ["import/B:1", "^import/X"]
    assert graph.get_operation_by_name("import/B").get_attr("_class") == (b"loc:@import/A",)
    assert has_edge(graph, "import/B", 0, "import/D", 0)


def test_a2_an_empty_graph_def_changes_nothing_but_versions(graph: gc.Graph) -> None:
    import_graph_def(GraphDef(), graph)
    assert (graph.num_nodes, [str(edge) for edge in graph.edges()]) == (2, ["[id=0 _SOURCE:-1 -> _SINK:-1]"])
    assert (graph.versions.producer, graph.versions.min_consumer) == (0, 0)


def test_an_exported_graph_imports_as_itself(graph: gc.Graph) -> None:
    import_into(graph, "W1=TestParams", *LOOP, *STRUCTURE)
    exported = graph.as_graph_def()
    again = gc.Graph(registry())
    import_graph_def(exported, again)
    assert again.as_graph_def() == exported


def test_a_finalized_graph_takes_no_import(graph: gc.Graph) -> None:
    graph.finalize()
    with pytest.raises(gc.errors.FailedPreconditionError, match="has been finalized"):
        import_into(graph, "A=TestParams")


def test_an_import_is_one_change_to_those_who_follow_the_graph(graph: gc.Graph) -> None:
    told: list[tuple[str, int]] = []
    graph.subscribe(lambda change: told.append((change.node, len(graph))))
    refused(graph, "A=TestParams", "B=TestInt(A)")
    assert told == []
    import_into(graph, "A=TestParams", "B=TestMul(A, A)")
    assert told == [("A", 2), ("B", 2)]


def test_a_deprecated_op_is_refused_from_its_version_on(graph: gc.Graph) -> None:
    old = "BatchNormWithGlobalNormalization"
    import_graph_def(graph_def(f"b=  {old}", versions=gc.VersionDef(8)), graph)
    with pytest.raises(UnimplementedError, match=f"{old} is not available in GraphDef version 10"):
        import_graph_def(graph_def(f"c={old}", versions=gc.VersionDef(10)), graph)
    assert graph.find("c") is None


def test_the_collector_runs_again_after_an_import_that_failed(graph: gc.Graph) -> None:
    refused(graph, "A=SomeUnknownOp")
    assert collector.isenabled()


def test_results_are_empty_after_an_import_that_failed(graph: gc.Graph) -> None:
    results = ImportResults()
    with pytest.raises(InvalidArgumentError):
        import_graph_def(graph_def("A=TestParams"), graph, ImportOptions(return_tensors=["A", "A:7"]), results=results)
    assert (results.return_tensors, len(graph)) == ([], 0)
