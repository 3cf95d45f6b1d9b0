"""A3 to A8: versions, input maps, returned tensors, unique names, control inputs, functions."""

from __future__ import annotations

from typing import Any

import pytest

import graphcore as gc
from graphcore.definitions import PRODUCER_VERSION, FunctionDef, FunctionDefLibrary, GradientDef, GraphDef, NodeDef, VersionDef
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.graph import ImportResults, ShapeRefiner, TensorId, import_graph_def
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

USER = ("new_input=TestInput", "t1=TestMul(new_input:0, new_input:1)")


@pytest.fixture
def graph() -> gc.Graph:
    return gc.Graph(registry())


def refused(graph: gc.Graph, *nodes: Any, **options: Any) -> str:
    """The text of an INVALID_ARGUMENT error of an import that leaves the graph unchanged."""
    before = everything(graph)
    with pytest.raises(InvalidArgumentError) as caught:
        import_into(graph, *nodes, **options)
    assert everything(graph) == before
    return caught.value.message


# ---- A3 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("versions", "text"),
    [
        (VersionDef(-1), "GraphDef producer version -1 below min producer"),
        (VersionDef(-1), "Please regenerate your graph."),
        (
            VersionDef(0, PRODUCER_VERSION + 1),
            f"GraphDef min consumer version {PRODUCER_VERSION + 1} above current version {PRODUCER_VERSION}",
        ),
        (VersionDef(0, 0, (PRODUCER_VERSION,)), f"GraphDef disallows consumer version {PRODUCER_VERSION}"),
    ],
    ids=["A3-producer", "A3-regenerate", "A3-min-consumer", "A3-bad-consumer"],
)
def test_graphs_that_must_not_be_read_here_are_refused(graph: gc.Graph, versions: VersionDef, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        import_graph_def(graph_def("A=TestParams", versions=versions), graph)
    assert text in caught.value.message
    assert len(graph) == 0


@pytest.mark.parametrize(("newer", "mentioned"), [(21, False), (22, True)], ids=["A3-21-above", "A3-22-above"])
def test_a_graph_of_a_much_newer_producer_that_fails_says_so(graph: gc.Graph, newer: int, mentioned: bool) -> None:
    versions = VersionDef(PRODUCER_VERSION + newer)
    with pytest.raises(NotFoundError) as caught:
        import_graph_def(graph_def("A=SomeUnknownOp", versions=versions), graph)
    assert ("forward compatibility guarantee" in caught.value.message) is mentioned
    assert "Op type not registered 'SomeUnknownOp'" in caught.value.message
    import_graph_def(graph_def("A=TestParams", versions=versions), graph)


def test_a3_an_import_merges_the_versions(graph: gc.Graph) -> None:
    import_graph_def(graph_def(versions=VersionDef(15, 5, (2, 3))), graph)
    assert graph.versions == VersionDef(15, 5, (2, 3))
    refiner = ShapeRefiner(PRODUCER_VERSION)
    import_graph_def(graph_def(versions=VersionDef(10, 8, (1, 3))), graph, refiner=refiner)
    assert graph.versions == VersionDef(10, 8, (1, 2, 3))
    assert refiner.graph_def_version == 10
    import_graph_def(graph_def(versions=VersionDef(20, 7)), graph, refiner=refiner)
    assert graph.versions == VersionDef(10, 8, (1, 2, 3))
    assert refiner.graph_def_version == 10


def test_a3_shape_inference_sees_the_version_of_the_graph(graph: gc.Graph) -> None:
    older = graph_def("A=RequiresCurrentGraphVersion", versions=VersionDef(PRODUCER_VERSION - 1))
    refiner = ShapeRefiner(PRODUCER_VERSION)
    for given in (None, refiner):
        with pytest.raises(InvalidArgumentError, match="Wrong graph version for shape"):
            import_graph_def(older, graph, refiner=given)
    assert refiner.graph_def_version == graph.refiner.graph_def_version == PRODUCER_VERSION
    import_graph_def(graph_def("A=RequiresCurrentGraphVersion"), graph)


# ---- A4 --------------------------------------------------------------------------------------------------------------


def test_a4_mapped_inputs_are_fed_from_what_is_there(graph: gc.Graph) -> None:
    import_into(graph, "input=TestInput")
    import_into(graph, *USER, input_map={"new_input:0": "input:1", "new_input:1": TensorId("input", 0)})
    assert inputs_of(graph, "t1") == ["input:1", "input:0"]
    assert has_edge(graph, "input", 1, "t1", 0)
    assert has_edge(graph, "input", 0, "t1", 1)
    assert graph.find("new_input") is not None


def test_a4_keys_and_values_may_be_short_names_tensors_and_nodes(graph: gc.Graph) -> None:
    import_into(graph, "input=TestInput")
    existing = graph.get_operation_by_name("input")
    import_into(
        graph,
        *USER,
        "t2=TestParams(^new_input)",
        input_map={"new_input": existing.outputs[1], "new_input:1": existing, "^new_input": existing},
    )
    assert inputs_of(graph, "t1") == ["input:1", "input:0"]
    assert inputs_of(graph, "t2") == ["^input"]


def test_a4_a_tensor_of_another_graph_is_refused(graph: gc.Graph) -> None:
    other = gc.Graph(registry())
    import_into(other, "input=TestInput")
    import_into(graph, "input=TestInput")
    assert "belongs to another graph" in refused(graph, *USER, input_map={"new_input:0": other.get_tensor_by_name("input")})


def test_a4_other_inputs_get_the_prefix(graph: gc.Graph) -> None:
    import_into(graph, "input=TestInput")
    more = (*USER, "t2=TestMul(t1:0, t1:0)")
    import_into(graph, *more, prefix="import", input_map={"new_input:0": "input:1", "new_input:1": "input:0"})
    assert inputs_of(graph, "import/t1") == ["input:1", "input:0"]
    assert inputs_of(graph, "import/t2") == ["import/t1:0", "import/t1:0"]


def test_a4_control_inputs_mapped_to_one_node_become_one(graph: gc.Graph) -> None:
    import_into(graph, "W1=TestParams")
    import_into(
        graph,
        "W2=TestParams",
        "W3=TestParams",
        "input=TestInput",
        "t2=TwoOutputs(input, ^W2, ^W3)",
        input_map={"^W2": "^W1", "^W3": "^W1"},
    )
    assert inputs_of(graph, "t2") == ["input", "^W1"]
    edges = graph.get_operation_by_name("t2").in_edges()
    assert [(edge.src.name, edge.is_control_edge) for edge in edges] == [("input", False), ("W1", True)]


def test_a4_a_control_input_mapped_to_the_source_is_none(graph: gc.Graph) -> None:
    import_into(graph, "W2=TestParams", "t=TestParams(^W2)", input_map={"^W2": "^_SOURCE"})
    assert inputs_of(graph, "t") == []


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        ({"^W2": "W1:0"}, "input_map entry ^W2->W1:0 between control edge and non-control edge"),
        ({"W2": "^W1"}, "input_map entry W2:0->^W1 between control edge and non-control edge"),
        ({"^W2": "^DNE"}, "node 'DNE' in input_map does not exist in graph (input_map entry: ^W2->^DNE)"),
        ({"new_input:1": "DNE:2"}, "node 'DNE' in input_map does not exist in graph (input_map entry: new_input:1->DNE:2)"),
        ({"new_input:0": "input1:3"}, "Node 't1': Connecting to invalid output 3 of source node input1 which has 2 outputs"),
        ({"new_input:0": "_SOURCE:0"}, "Node 't1': Connecting to invalid output 0 of source node _SOURCE which has 0 outputs"),
    ],
    ids=lambda value: f"A4-{value}" if isinstance(value, str) else "",
)
def test_an_input_map_that_cannot_be_is_refused_even_if_unused(graph: gc.Graph, mapping: dict[str, str], text: str) -> None:
    import_into(graph, "W1=TestParams", "input1=TestInput")
    assert refused(graph, *USER, input_map=mapping) == text


def test_a4_two_nodes_of_one_name_that_a_map_could_mean_cannot_come_about(graph: gc.Graph) -> None:
    import_into(graph, "dup=TestInput")
    with pytest.raises(InvalidArgumentError, match="Node name 'dup' already exists in the Graph"):
        graph.add_node(node("dup=TestInput"))


def test_a4_keys_that_name_nothing_and_are_not_used_are_told(graph: gc.Graph) -> None:
    import_into(graph, "W1=TestParams", "input=TestInput")
    results = ImportResults()
    mapping = {"W1:0": "W1", "new_input:0": "input:0", "new_input:1": "input:1", "new_input:3": "input:1", "t1:0": "W1", "^DNE": "^W1"}
    import_into(graph, *USER, input_map=mapping, results=results)
    assert [str(key) for key in results.missing_unused_input_map_keys] == ["^DNE", "W1:0", "new_input:3"]


def test_a4_an_input_that_only_the_map_names_is_fine(graph: gc.Graph) -> None:
    import_into(graph, "input=TestInput")
    import_into(graph, "t1=TestMul(elsewhere:5, elsewhere)", input_map={"elsewhere:5": "input:0", "elsewhere:0": "input:1"})
    assert inputs_of(graph, "t1") == ["input:0", "input:1"]


@pytest.mark.parametrize(
    ("mapping", "left"),
    [({"new_input:0": "input:0", "new_input:1": "input:1"}, ["t1"]), ({"new_input:0": "input:0"}, ["new_input", "t1"])],
    ids=["A4-fully", "A4-partly"],
)
def test_nodes_that_are_fully_mapped_may_be_left_out(graph: gc.Graph, mapping: dict[str, str], left: list[str]) -> None:
    import_into(graph, "input=TestInput")
    import_into(graph, *USER, input_map=mapping, skip_mapped_nodes=True)
    assert [each.name for each in graph.nodes[1:]] == left


def test_a4_a_control_input_on_a_node_that_is_left_out_is_refused_or_mapped(graph: gc.Graph) -> None:
    import_into(graph, "input=TestInput")
    mapping = {"new_input:0": "input:0", "new_input:1": "input:1"}
    more = (*USER, "t2=TestParams(^new_input)")
    assert "is left out" in refused(graph, *more, input_map=mapping, skip_mapped_nodes=True)
    import_into(graph, *more, input_map={**mapping, "^new_input": "^input"}, skip_mapped_nodes=True)
    assert inputs_of(graph, "t2") == ["^input"]


def test_a4_results_must_be_empty(graph: gc.Graph) -> None:
    results = ImportResults()
    import_into(graph, *USER, return_tensors=["t1"], results=results)
    with pytest.raises(InvalidArgumentError) as caught:
        import_into(graph, "A=TestParams", results=results)
    assert caught.value.message == "All fields in results argument to ImportGraphDef() must be empty."


# ---- A5 --------------------------------------------------------------------------------------------------------------


def returned(graph: gc.Graph, *nodes: str, **options: Any) -> ImportResults:
    results = ImportResults()
    import_into(graph, *nodes, results=results, **options)
    return results


def test_a5_tensors_and_nodes_come_in_the_order_asked_for(graph: gc.Graph) -> None:
    results = returned(graph, *USER, return_tensors=["new_input:1", "new_input", "t1:0"], return_nodes=["t1", "new_input"])
    assert [tensor.name for tensor in results.return_tensors] == ["new_input:1", "new_input:0", "t1:0"]
    assert results.return_tensors[0] is graph.get_tensor_by_name("new_input:1")
    assert [each.name for each in results.return_nodes] == ["t1", "new_input"]
    results = returned(graph, *USER, prefix="import", return_tensors=["t1"], return_nodes=["t1"])
    assert (results.return_tensors[0].name, results.return_nodes[0].name) == ("import/t1:0", "import/t1")


def test_a5_a_mapped_tensor_is_given_as_what_it_is_mapped_to(graph: gc.Graph) -> None:
    import_into(graph, "input=TestInput")
    mapping = {"new_input:1": "input:0", "new_input:0": "_SOURCE:0"}
    wanted = ["new_input:0", "new_input:1"]
    results = returned(graph, "new_input=TestInput", prefix="import", input_map=mapping, return_tensors=wanted, return_nodes=["new_input"])
    assert [tensor.name for tensor in results.return_tensors] == ["_SOURCE:0", "input:0"]
    assert [each.name for each in results.return_nodes] == ["import/new_input"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"return_tensors": ["new_input"]}, "results argument to ImportGraphDef() must be non-null if opts.return_tensors is non-empty"),
        ({"return_nodes": ["new_input"]}, "results argument to ImportGraphDef() must be non-null if opts.return_nodes is non-empty"),
    ],
    ids=["A5-tensors", "A5-nodes"],
)
def test_returning_needs_results(graph: gc.Graph, options: dict[str, Any], text: str) -> None:
    assert refused(graph, *USER, **options) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"return_tensors": ["new_input:0"]}, "Requested return tensor 'new_input:0' not found in graph def"),
        ({"return_nodes": ["new_input"]}, "Requested return node 'new_input' not found in graph def"),
        ({"return_tensors": ["W1:2"]}, "Invalid return output 2 of node 'W1', which has 2 output(s)"),
        (
            {"return_nodes": ["W1"], "skip_mapped_nodes": True},
            "Requesting return_nodes with skip_mapped_nodes set is not currently supported",
        ),
    ],
    ids=["A5-no-tensor", "A5-no-node", "A5-no-output", "A5-skip"],
)
def test_what_cannot_be_returned_is_refused(graph: gc.Graph, options: dict[str, Any], text: str) -> None:
    assert refused(graph, "W1=TestInput", results=ImportResults(), **options) == text


# ---- A6 --------------------------------------------------------------------------------------------------------------

PAIR = ("A=TestInput", "B=TwoOutputs(A)")


def test_a6_a_taken_name_becomes_the_first_free_one_with_a_number(graph: gc.Graph) -> None:
    for suffix, text in (("", "A"), ("_1", "A_1:0"), ("_2", "A_2:0")):
        results = returned(graph, *PAIR, uniquify_names=True, return_nodes=["A", "B"], return_tensors=["A:1"])
        assert [each.name for each in results.return_nodes] == [f"A{suffix}", f"B{suffix}"]
        assert results.return_tensors[0].name == f"A{suffix}:1"
        assert inputs_of(graph, f"B{suffix}") == [text]


def test_a6_control_inputs_and_ports_of_renamed_nodes_are_renamed(graph: gc.Graph) -> None:
    import_into(graph, "A=TestInput")
    import_into(graph, "A=TestInput", "C=TwoOutputs(A:1, ^A)", uniquify_names=True)
    assert inputs_of(graph, "C") == ["A_1:1", "^A_1"]


def test_a6_a_name_that_is_another_of_the_file_is_not_given(graph: gc.Graph) -> None:
    import_into(graph, "A=TestParams")
    import_into(graph, "A=TestParams", "A_1=TestParams", "A_2/x=TestParams", uniquify_names=True)
    assert [each.name for each in graph.nodes] == ["A", "A_3", "A_1", "A_2/x"]


def test_a6_a_prefix_is_made_unique_instead(graph: gc.Graph) -> None:
    import_into(graph, "A=TestInput", "A_1=TestParams", "A_2=TestParams")
    results = returned(graph, *PAIR, prefix="A", uniquify_prefix=True, uniquify_names=True, return_nodes=["A", "B"])
    assert [each.name for each in results.return_nodes] == ["A_3/A", "A_3/B"]
    assert inputs_of(graph, "A_3/B") == ["A_3/A"]
    results = returned(graph, *PAIR, prefix="A", uniquify_prefix=True, return_nodes=["A", "B"])
    assert [each.name for each in results.return_nodes] == ["A_4/A", "A_4/B"]


def test_a6_without_that_names_get_their_number_inside_the_prefix(graph: gc.Graph) -> None:
    import_into(graph, "A=TestInput")
    import_into(graph, *PAIR, prefix="A", uniquify_names=True)
    assert inputs_of(graph, "A/B") == ["A/A"]
    import_into(graph, *PAIR, prefix="A", uniquify_names=True)
    assert inputs_of(graph, "A/B_1") == ["A/A_1:0"]


def test_a6_a_scope_of_existing_nodes_counts_as_taken(graph: gc.Graph) -> None:
    import_into(graph, "foo/abc=TestParams")
    assert refused(graph, "foo=TestParams") == "Node name 'foo' already exists in the Graph"
    import_into(graph, "foo=TestParams", uniquify_names=True)
    assert graph.find("foo_1") is not None
    import_into(graph, "a=TestParams", prefix="foo", uniquify_prefix=True)
    assert graph.find("foo_2/a") is not None


def test_a6_colocation_follows_renames_forward_and_to_the_node_itself(graph: gc.Graph) -> None:
    import_into(graph, "A=TestInput", "B=TwoOutputs(A)")
    import_into(
        graph,
        node("A=TestInput", _class=[b"loc:@B", b"other"]),
        node("B=TwoOutputs(A)", _class=[b"loc:@B", b"loc:@A"]),
        uniquify_names=True,
    )
    assert graph.get_operation_by_name("A_1").get_attr("_class") == (b"loc:@B_1", b"other")
    assert graph.get_operation_by_name("B_1").get_attr("_class") == (b"loc:@B_1", b"loc:@A_1")


def test_a6_the_input_around_a_loop_is_renamed_too(graph: gc.Graph) -> None:
    import_into(graph, "W1=TestParams", *LOOP)
    import_into(graph, "W1=TestParams", *LOOP, uniquify_names=True)
    assert inputs_of(graph, "merge_1") == ["enter_1:0", "next_1:0"]
    assert has_edge(graph, "next_1", 0, "merge_1", 1)
    assert ranks_fit(graph)


def test_a6_names_given_by_an_import_are_taken_for_what_is_built_later(graph: gc.Graph) -> None:
    import_into(graph, "A=TestParams")
    assert graph.unique_name("A") == "A_1"


# ---- A7 --------------------------------------------------------------------------------------------------------------


def test_a7_nodes_without_an_input_of_their_import_wait(graph: gc.Graph) -> None:
    import_into(graph, "W1=TestParams", "W2=TestParams", "input=TestInput")
    import_into(
        graph,
        "W2=TestParams",
        "input=TestInput",
        "t1=TestMul(W2, input:1)",
        "t2=TestMul(mapped, mapped, ^W1)",
        "t3=TestParams(^t1)",
        prefix="import",
        control_dependencies=["W1", graph.get_operation_by_name("W2")],
        input_map={"mapped": "input:0", "^W1": "^W1"},
    )
    assert inputs_of(graph, "import/W2") == ["^W1", "^W2"]
    assert inputs_of(graph, "import/t1") == ["import/W2", "import/input:1"]
    assert inputs_of(graph, "import/t2") == ["input:0", "input:0", "^W1", "^W2"]
    assert inputs_of(graph, "import/t3") == ["^import/t1"]
    assert [has_edge(graph, name, -1, "import/W2", -1) for name in ("W1", "W2")] == [True, True]


def test_a7_in_a_loop_only_the_merge_waits(graph: gc.Graph) -> None:
    import_into(graph, "W1=TestParams", "input=TestInput")
    import_into(
        graph,
        "merge=Merge(new_input:0, next:0)",
        "t1=TestMul(merge:0, merge:0)",
        "next=NextIteration(t1:0)",
        control_dependencies=["W1"],
        input_map={"new_input:0": "input:0"},
    )
    assert inputs_of(graph, "merge") == ["input:0", "next:0", "^W1"]
    assert [inputs_of(graph, name) for name in ("t1", "next")] == [["merge:0", "merge:0"], ["t1:0"]]
    assert ranks_fit(graph)


def test_a7_a_node_that_is_not_there_is_refused(graph: gc.Graph) -> None:
    assert refused(graph, "A=TestParams", control_dependencies=["W1"]) == "node 'W1' in control_dependencies does not exist in graph"


# ---- A8 --------------------------------------------------------------------------------------------------------------


def function(name: str, body: str = "TestParams") -> FunctionDef:
    from_nodes = (node(f"y={body}(x)" if body != "TestParams" else "y=TestParams"),)
    output = "z:0" if body == "Inner" else "o:0"
    signature = gc.OpDef(name=name, input_arg=(gc.ArgDef(name="x", type=gc.float32),), output_arg=(gc.ArgDef(name="z", type=gc.float32),))
    return FunctionDef(signature=signature, node_def=from_nodes, ret={"z": f"y:{output}"})


LIBRARY = FunctionDefLibrary((function("Outer", "Inner"), function("Inner")), (GradientDef("Outer", "OuterGrad"),))


def test_a8_functions_and_gradients_come_with_the_graph_and_leave_with_it(graph: gc.Graph) -> None:
    import_graph_def(graph_def("W=TestParams", "call=Outer(W)", library=LIBRARY), graph)
    called = graph.get_operation_by_name("call")
    assert called.registration.is_function
    assert (called.output_types, str(called.outputs[0].shape)) == ((gc.float32,), "?")
    assert graph.library.list_function_names() == ["Outer", "Inner"]
    assert graph.library.find_gradient("Outer") == "OuterGrad"
    assert graph.as_graph_def().library == LIBRARY
    again = gc.Graph(registry())
    import_graph_def(graph.as_graph_def(), again)
    assert again.as_graph_def() == graph.as_graph_def()


def test_a8_a_function_may_be_applied_once_it_is_there(graph: gc.Graph) -> None:
    graph.add_function_library(LIBRARY)
    graph.add_node(node("W=TestParams"))
    assert graph.apply_op("Inner", [graph.get_tensor_by_name("W")], name="c").outputs[0].dtype is gc.float32
    assert graph.add_node(node("d=Outer(c)")).registration.is_function


def test_a8_a_failed_import_leaves_no_function_behind(graph: gc.Graph) -> None:
    with pytest.raises(InvalidArgumentError):
        import_graph_def(graph_def("t=TestMul(W, W)", library=LIBRARY), graph)
    assert graph.library.num_functions == 0


def test_a8_a_conflict_of_functions_fails_the_import(graph: gc.Graph) -> None:
    graph.add_function_library(LIBRARY)
    before = everything(graph)
    other = FunctionDefLibrary((function("Inner", "Outer"),))
    with pytest.raises(InvalidArgumentError) as caught:
        import_graph_def(graph_def("A=TestParams", library=other), graph)
    assert "Cannot add function 'Inner' because a different function with the same name already exists." in caught.value.message
    assert everything(graph) == before


def test_a_bare_graph_def_is_made_of_version_0(graph: gc.Graph) -> None:
    import_graph_def(GraphDef(node=(node("A=TestParams"),)), graph)
    assert graph.versions.producer == graph.refiner.graph_def_version == 0


# ---- internal names --------------------------------------------------------------------------------------------------


def test_n3_internal_names_are_imported_on_request(graph: gc.Graph) -> None:
    nodes = (NodeDef("_recv_x_0", "TestParams"), node("t=TestMul(_recv_x_0, _recv_x_0)"))
    assert refused(graph, *nodes) == "Node '_recv_x_0': Node name contains invalid characters"
    import_into(graph, *nodes, allow_internal_ops=True)
    assert inputs_of(graph, "t") == ["_recv_x_0", "_recv_x_0"]
    assert refused(graph, NodeDef("a>_b", "TestParams"), allow_internal_ops=True).endswith("contains invalid characters")
    assert refused(graph, NodeDef("_SOURCE", "TestParams"), allow_internal_ops=True) == "Node name '_SOURCE' already exists in the Graph"
