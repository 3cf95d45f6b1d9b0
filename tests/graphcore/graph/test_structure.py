"""C: ids, edges, inputs, control edges, attrs on write, copies, names of a graph."""

from __future__ import annotations

import networkx as nx
import pytest

import graphcore as gc
from graphcore.attrs import Func
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.graph import Edge
from tests.graphcore.graph.example_graphs import LOOP, everything, has_edge, import_into, inputs_of, is_well, node, ranks_fit, registry


@pytest.fixture
def graph() -> gc.Graph:
    return gc.Graph(registry())


def add(graph: gc.Graph, text: str) -> gc.Node:
    return graph.add_node(node(text))


def fails(text: str, action: object, *args: object, **options: object) -> None:
    """`action` raises INVALID_ARGUMENT with exactly this text."""
    assert callable(action)
    with pytest.raises(InvalidArgumentError) as caught:
        action(*args, **options)
    assert caught.value.message == text


# ---- ids -------------------------------------------------------------------------------------------------------------


def test_c_node_ids_are_never_reused_and_those_of_removed_nodes_give_none(graph: gc.Graph) -> None:
    a, b, c = (add(graph, f"{name}=OneOutput") for name in "ABC")
    assert [each.id for each in (a, b, c)] == [2, 3, 4]
    assert graph.num_node_ids == 5
    graph.remove_node(b)
    assert graph.find_node_id(3) is None
    d = add(graph, "D=OneOutput")
    assert (d.id, graph.num_node_ids) == (5, 6)
    assert [graph.find_node_id(i) for i in range(-1, 7)] == [None, graph.source_node, graph.sink_node, a, None, c, d, None]


def test_c_edge_ids_count_up_the_same_way(graph: gc.Graph) -> None:
    a = add(graph, "A=OneOutput")
    b = add(graph, "B=OneInput(A)")
    edge = b.input_edge(0)
    assert (edge.id, graph.find_edge_id(1)) == (1, edge)
    highest = graph.num_edge_ids
    graph.remove_edge(edge)
    assert graph.find_edge_id(1) is None
    assert graph.add_edge(a, 0, b, 0).id >= highest


def test_c_nodes_are_visited_by_id(graph: gc.Graph) -> None:
    names = [add(graph, f"{name}=OneOutput").name for name in "zma"]
    assert [each.name for each in graph.nodes] == [each.name for each in graph.op_nodes()] == names


def test_c_a_node_is_just_one_of_source_sink_and_op(graph: gc.Graph) -> None:
    a = add(graph, "A=OneOutput")
    kinds = [(each.is_source, each.is_sink, each.is_op) for each in (graph.source_node, graph.sink_node, a)]
    assert kinds == [(True, False, False), (False, True, False), (False, False, True)]


def test_c_new_names_are_distinct_and_begin_with_the_prefix(graph: gc.Graph) -> None:
    add(graph, "p/_0=OneOutput")
    names = [graph.new_name("p") for _ in range(5)]
    assert len({*names, "p/_0"}) == 6
    assert all(name.startswith("p") for name in names)


# ---- inputs and edges ------------------------------------------------------------------------------------------------


def test_c_inputs_fail_when_out_of_range_or_missing_and_work_again(graph: gc.Graph) -> None:
    a = add(graph, "A=OneOutput")
    b = add(graph, "B=TestMul(A, A)")
    assert (b.input_node(0), b.input_edge(1).dst_input) == (a, 1)
    assert [edge.dst_input for edge in b.input_edges()] == [0, 1]
    fails("Invalid input_edge index: 2, Node B only has 2 inputs.", b.input_edge, 2)
    fails("Invalid input_edge index: -1, Node B only has 2 inputs.", b.input_node, -1)
    graph.remove_edge(b.input_edge(0))
    with pytest.raises(NotFoundError) as caught:
        b.input_node(0)
    assert caught.value.message == "Could not find input edge 0 for B"
    fails("Missing edge input number: 0", b.input_edges)
    assert b.error is not None
    assert "Input 0 of node B is fed by nothing" in b.input_errors[0]
    graph.add_edge(a, 0, b, 0)
    assert [edge.src for edge in b.input_edges()] == [a, a]
    assert is_well(b)


def test_c_inputs_fail_when_their_node_is_removed_and_work_when_it_is_back(graph: gc.Graph) -> None:
    a = add(graph, "A=OneOutput")
    b = add(graph, "B=TestMul(A, A)")
    graph.remove_node(a)
    with pytest.raises(NotFoundError, match="Could not find input edge 1 for B"):
        b.input_edge(1)
    again = add(graph, "A=OneOutput")
    assert [edge.src for edge in b.input_edges()] == [again, again]
    assert b.error is None
    assert ranks_fit(graph)


def test_c_a_node_that_came_back_does_not_take_inputs_that_were_fed_from_elsewhere_meanwhile(graph: gc.Graph) -> None:
    a, c = add(graph, "A=OneOutput"), add(graph, "C=OneOutput")
    b = add(graph, "B=TwoOutputs(A)")
    graph.remove_node(a)
    graph.update_edge(c, 0, b, 0)
    add(graph, "A=OneOutput")
    assert b.input_node(0) is c


@pytest.mark.parametrize("update", [False, True], ids=["add_edge", "update_edge"])
def test_c_a_node_may_be_fed_by_itself_and_is_marked(graph: gc.Graph, update: bool) -> None:
    a = add(graph, "A=OneOutput")
    b = add(graph, "B=OneInputTwoOutputs(A)")
    if update:
        graph.update_edge(b, 0, b, 0)
    else:
        graph.remove_edge(b.input_edge(0))
        graph.add_edge(b, 0, b, 0)
    assert b.input_node(0) is b
    assert "cycle" in str(b.error)
    assert inputs_of(graph, "B") == ["B"]
    graph.update_edge(a, 0, b, 0)
    assert b.error is None
    assert inputs_of(graph, "B") == ["A"]


def test_c_an_edge_is_added_only_where_it_fits(graph: gc.Graph) -> None:
    a, i = add(graph, "A=OneOutput"), add(graph, "I=TestInput")
    b = add(graph, "B=TestMul(A, A)")
    c = add(graph, "C=TwoOutputs(B)")
    before = everything(graph)
    fails("Input 0 of node B is fed from A:0 already; update_edge feeds it from elsewhere", graph.add_edge, i, 0, b, 0)
    fails("Node 'A' (type: 'OneOutput', num of outputs: 1) does not have output 1", graph.add_edge, a, 1, b, 0)
    fails("Node 'B' (type: 'TestMul', num of inputs: 2) does not have input 2", graph.add_edge, a, 0, b, 2)
    assert everything(graph) == before
    graph.remove_edge(b.input_edge(0))
    with pytest.raises(InvalidArgumentError, match="cycle"):
        graph.add_edge(c, 1, b, 0)
    with pytest.raises(InvalidArgumentError, match="is not in the graph"):
        graph.remove_edge(Edge(7, a, 0, b, 0))


def test_c_an_edge_prints_its_ends_and_missing_ones_with_their_port(graph: gc.Graph) -> None:
    a = add(graph, "A=TestInput")
    b = add(graph, "B=TestMul(A, A:1)")
    first, second = b.input_edges()
    assert str(first) == "[id=1 A:0 -> B:0]"
    assert str(second) == "[id=2 A:1 -> B:1]"
    graph.remove_node(a)
    assert str(second) == "[id=2 <NULL>:1 -> B:1]"
    graph.remove_node(b)
    assert str(second) == "[id=2 <NULL>:1 -> <NULL>:1]"


def test_c_update_edge_replaces_what_feeds_an_input(graph: gc.Graph) -> None:
    a, c = add(graph, "A=OneOutput"), add(graph, "C=OneOutput")
    b = add(graph, "B=OneInputTwoOutputs(C:0)")
    d = add(graph, "D=OneInput(B:1)")
    graph.update_edge(a, 0, b, 0)
    assert (b.input_node(0), inputs_of(graph, "B")) == (a, ["A"])
    assert not has_edge(graph, "C", 0, "B", 0)
    before = everything(graph)
    fails("Node 'A' (type: 'OneOutput', num of outputs: 1) does not have output 1", graph.update_edge, a, 1, d, 0)
    fails("Node 'A' (type: 'OneOutput', num of inputs: 0) does not have input 0", graph.update_edge, c, 0, a, 0)
    assert everything(graph) == before


def test_c_update_edge_closes_loops_from_next_iteration_to_merge_and_no_other_cycle(graph: gc.Graph) -> None:
    add(graph, "W=OneOutput")
    add(graph, "enter=Enter(W)")
    merge = add(graph, "merge=Merge(enter, enter)")
    body = add(graph, "body=Identity(merge)")
    following = add(graph, "next=NextIteration(body)")
    with pytest.raises(InvalidArgumentError, match="cycle"):
        graph.update_edge(body, 0, merge, 1)
    graph.update_edge(following, 0, merge, 1)
    assert inputs_of(graph, "merge") == ["enter", "next"]
    assert merge.error is None
    assert ranks_fit(graph)
    assert add(graph, "exit=Exit(body)").error is None


# ---- control edges ---------------------------------------------------------------------------------------------------


def test_c_a_control_edge_is_an_input_too_beside_data_edges_and_just_once(graph: gc.Graph) -> None:
    a = add(graph, "A=OneOutput")
    b = add(graph, "B=OneInputTwoOutputs(A:0)")
    c = add(graph, "C=NoOp")
    edge = graph.add_control_edge(c, a)
    assert edge is not None
    assert (edge.src, edge.src_output, edge.dst, edge.dst_input) == (c, -1, a, -1)
    assert edge.is_control_edge
    assert inputs_of(graph, "A") == ["^C"]
    assert graph.add_control_edge(a, b) is not None
    assert inputs_of(graph, "B") == ["A:0", "^A"]
    assert graph.add_control_edge(a, b) is None
    assert inputs_of(graph, "B") == ["A:0", "^A"]
    double = graph.add_control_edge(a, b, allow_duplicates=True)
    assert double is not None
    assert inputs_of(graph, "B") == ["A:0", "^A"]
    assert sorted((e.src_output, e.dst_input) for e in b.in_edges()) == [(-1, -1), (-1, -1), (0, 0)]
    assert len({e.id for e in b.in_edges()}) == 3
    assert ranks_fit(graph)


def test_c_a_duplicate_alone_is_no_input_but_orders(graph: gc.Graph) -> None:
    a, c = add(graph, "A=OneOutput"), add(graph, "C=NoOp")
    assert graph.add_control_edge(c, a, allow_duplicates=True) is not None
    assert inputs_of(graph, "A") == []
    assert a.control_inputs == [c]


def test_c_edges_of_the_source_and_to_the_sink_are_not_written_to_inputs(graph: gc.Graph) -> None:
    add(graph, "A=OneOutput")
    b = add(graph, "B=OneInputTwoOutputs(A)")
    assert graph.add_control_edge(graph.source_node, b) is not None
    assert graph.add_control_edge(graph.source_node, b) is None
    add(graph, "D=OneInput(B)")
    assert graph.add_control_edge(b, graph.sink_node) is not None
    assert has_edge(graph, "_SOURCE", -1, "B", -1)
    assert has_edge(graph, "B", -1, "_SINK", -1)
    assert (inputs_of(graph, "B"), b.control_inputs) == (["A"], [])
    assert graph.remove_control_edge(graph.source_node, b)
    assert not has_edge(graph, "_SOURCE", -1, "B", -1)


def test_c_removing_a_control_edge_removes_edge_and_input(graph: gc.Graph) -> None:
    a, c = add(graph, "A=OneOutput"), add(graph, "C=NoOp")
    b = add(graph, "B=OneInputTwoOutputs(A:0)")
    edge = graph.add_control_edge(c, b)
    assert graph.add_control_edge(a, b) is not None
    assert edge is not None
    graph.remove_edge(edge)
    assert inputs_of(graph, "B") == ["A:0", "^A"]
    assert graph.remove_control_edge(a, b)
    assert not graph.remove_control_edge(a, b)
    assert (inputs_of(graph, "B"), b.control_inputs) == (["A:0"], [])
    assert [str(e) for e in b.in_edges()] == [str(b.input_edge(0))]


# ---- cycles ----------------------------------------------------------------------------------------------------------


def test_a_cycle_that_older_nodes_close_is_seen_too(graph: gc.Graph) -> None:
    x = add(graph, "x=OneOutput")
    first, second, third = (add(graph, f"n{i}=Identity({source})") for i, source in enumerate(["x", "n0", "x"]))
    graph.update_edge(third, 0, first, 0)
    assert ranks_fit(graph)
    before = everything(graph)
    with pytest.raises(InvalidArgumentError, match="'n2' would take 'n1' as an input, which itself depends on 'n2': a cycle"):
        graph.update_edge(second, 0, third, 0)
    with pytest.raises(InvalidArgumentError, match="cycle"):
        graph.add_control_edge(second, third)
    assert everything(graph) == before
    graph.update_edge(x, 0, first, 0)
    graph.update_edge(second, 0, third, 0)
    assert ranks_fit(graph)


def test_a_node_that_comes_back_below_its_own_consumer_does_not_feed_it(graph: gc.Graph) -> None:
    x = add(graph, "x=OneOutput")
    a = add(graph, "a=Identity(x)")
    b = add(graph, "b=Identity(a)")
    graph.remove_node(a)
    again = add(graph, "a=Identity(b)")
    assert again.input_node(0) is b
    with pytest.raises(NotFoundError):
        b.input_node(0)
    assert b.error is not None
    graph.update_edge(x, 0, b, 0)
    assert b.error is None


# ---- attrs, definitions, copies --------------------------------------------------------------------------------------


def test_c_attrs_are_copied_on_write(graph: gc.Graph) -> None:
    original = add(graph, "A=OneOutput")
    copied = graph.copy().get_operation_by_name("A")
    assert copied.node_def == original.node_def
    original.add_attr("_new", 7)
    assert original.get_attr("_new") == 7
    assert copied.attrs == {}
    original.clear_attr("_new")
    assert original.attrs == {}


def test_an_attr_that_is_set_changes_shapes_downstream_and_is_checked(graph: gc.Graph) -> None:
    vector = graph.add_node(node("v=Vector", size=2))
    copied = add(graph, "i=Identity(v)")
    graph.set_attr(vector, "size", 5)
    assert str(copied.outputs[0].shape) == "[5]"
    before = everything(graph)
    for name, value in (("size", "five"), ("size", None), ("unknown", 1)):
        with pytest.raises(InvalidArgumentError):
            graph.set_attr(vector, name, value)
    with pytest.raises(InvalidArgumentError, match=r"Attr 'T' of node 'i' .* decides the types that its edges carry"):
        graph.set_attr(copied, "T", gc.int32)
    assert everything(graph) == before


def test_c_valid_nodes(graph: gc.Graph) -> None:
    a = add(graph, "A=OneOutput")
    assert graph.is_valid_node(a)
    assert graph.is_valid_node(graph.source_node)
    fails("Node is null", graph.is_valid_node, None)
    other = gc.Graph(registry())
    alien, far = (add(other, f"{name}=OneOutput") for name in "XY")
    fails("Node with id 2 is different from the passed in node. Does it belong to a different graph?", graph.is_valid_node, alien)
    fails("node id 3 is >= than number of nodes in graph 3", graph.is_valid_node, far)
    graph.remove_node(a)
    fails("Node with id 2 is different from the passed in node. Does it belong to a different graph?", graph.is_valid_node, a)


def test_c_the_name_index_has_source_and_sink(graph: gc.Graph) -> None:
    a = add(graph, "A=OneOutput")
    assert graph.build_node_name_index() == {"_SOURCE": graph.source_node, "_SINK": graph.sink_node, "A": a}


def test_c_clear_leaves_two_nodes(graph: gc.Graph) -> None:
    import_into(graph, "W1=TestParams", *LOOP)
    graph.clear()
    assert (graph.num_nodes, graph.num_edges, graph.num_op_nodes) == (2, 1, 0)
    assert graph.num_node_ids == 12
    import_into(graph, "W1=TestParams", *LOOP)
    assert ranks_fit(graph)


def test_source_and_sink_stay(graph: gc.Graph) -> None:
    fails("'_SOURCE' cannot be removed: every graph has it", graph.remove_node, graph.source_node)
    fails("Node name '_SINK' already exists in the Graph", graph.add_node, node("_SINK=OneOutput"))
    assert graph.unique_name("_SINK") == "_SINK_1"


def test_c_shrink_type_info_keeps_what_the_mapping_names(graph: gc.Graph) -> None:
    source = graph.add_node(node("s=Source", out_types=[gc.float32, gc.int32, gc.int64, gc.string]))
    loop = graph.add_node(
        node("w=While(s, s:1, s:2, s:3, ^s)", T=[gc.float32, gc.int32, gc.int64, gc.string], cond=Func("c"), body=Func("b"))
    )
    user = graph.add_node(node("u=Identity(w:3)", T=gc.string))
    before = everything(graph)
    with pytest.raises(InvalidArgumentError, match="Output 3 of node 'w' feeds 'u' and cannot be dropped"):
        graph.shrink_type_info(loop, {1: 0})
    with pytest.raises(InvalidArgumentError, match="is no list with entries"):
        graph.shrink_type_info(loop, {7: 0})
    assert everything(graph) == before
    graph.shrink_type_info(loop, {1: 0, 3: 1}, "T")
    assert loop.get_attr("T") == (gc.int32, gc.string)
    assert inputs_of(graph, "w") == ["s:1", "s:3", "^s"]
    assert (loop.input_types, loop.output_types) == ((gc.int32, gc.string), (gc.int32, gc.string))
    assert (loop.input_edge(1).src_output, user.input_edge(0).src_output, inputs_of(graph, "u")) == (3, 1, ["w:1"])
    assert (user.error, loop.error, source.error) == (None, None, None)


def test_c_copy_graph_copies_versions_library_and_the_order_of_ids(graph: gc.Graph) -> None:
    import_into(graph, "W1=TestParams", *LOOP, "gone=TestParams", node("v=Vector", size=3), "last=Identity(v, ^W1)")
    graph.versions = gc.VersionDef(2470, 3, (7,))
    graph.remove_node(graph.get_operation_by_name("gone"))
    graph.add_control_edge(graph.get_operation_by_name("v"), graph.get_operation_by_name("W1"), allow_duplicates=True)
    graph.get_operation_by_name("v").assigned_device = "/cpu:0"
    copied = graph.copy()
    assert copied.as_graph_def() == graph.as_graph_def()
    assert copied.versions == gc.VersionDef(2470, 3, (7,))
    assert [each.id for each in copied.nodes] == list(range(2, 2 + len(graph)))
    assert set(copied.nx.edges(keys=True)) == set(graph.nx.edges(keys=True))
    assert all(each.graph is copied for each in copied.nodes)
    assert all(tensor in copied for each in copied.nodes for tensor in each.inputs)
    assert str(copied.get_tensor_by_name("last").shape) == "[3]"
    assert copied.get_operation_by_name("v").assigned_device == "/cpu:0"
    assert ranks_fit(copied)
    copied.remove_node(copied.get_operation_by_name("v"))
    assert graph.find("v") is not None


def test_c_a_copy_keeps_errors_and_what_waits(graph: gc.Graph) -> None:
    a = add(graph, "A=OneOutput")
    add(graph, "B=TwoOutputs(A)")
    graph.remove_node(a)
    copied = graph.copy()
    b = copied.get_operation_by_name("B")
    assert b.error is not None
    add(copied, "A=OneOutput")
    assert is_well(b)
    assert b.input_node(0).graph is copied


def test_c_only_an_empty_graph_is_copied_into(graph: gc.Graph) -> None:
    add(graph, "A=OneOutput")
    target = gc.Graph(registry())
    add(target, "B=OneOutput")
    with pytest.raises(GraphError, match="must be empty"):
        gc.copy_graph(graph, target)


# ---- the networkx graph ----------------------------------------------------------------------------------------------


def test_the_graph_is_what_networkx_itself_would_have_made(graph: gc.Graph) -> None:
    import_into(graph, "I=TestInput", "W1=TestParams", *LOOP, "t=TestMul(I, I:1)", "u=TestMul(I:1, I:1, ^t, ^W1)")
    made: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for each in (graph.source_node, graph.sink_node, *graph.nodes):
        made.add_node(each.name, node=each)
    for edge in graph.edges():
        made.add_edge(edge.src.name, edge.dst.name, (edge.src_output, edge.dst_input), id=edge.id)
    assert list(graph.nx.nodes(data=True)) == list(made.nodes(data=True))
    assert {u: {v: dict(keys) for v, keys in other.items()} for u, other in graph.nx.succ.items()} == {
        u: {v: dict(keys) for v, keys in other.items()} for u, other in made.succ.items()
    }
    assert {v: set(other) for v, other in graph.nx.pred.items()} == {v: set(other) for v, other in made.pred.items()}
    assert all(graph.nx.succ[u][v] == graph.nx.pred[v][u] for u, v in graph.nx.edges())
