"""E: orders, walks and cycles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.graph import Edge, by_name
from tests.graphcore.graph.example_graphs import LOOP, import_into, node, registry


@pytest.fixture
def graph() -> gc.Graph:
    return gc.Graph(registry())


def names(nodes: list[gc.Node]) -> list[str]:
    return [each.name for each in nodes]


def diamond(graph: gc.Graph) -> None:
    """Two paths from the parameters to the last product, as in TensorFlow's example."""
    import_into(
        graph,
        "W1=TestParams",
        "W2=TestParams",
        "input=TestInput",
        "t1=TestMul(W1, input:1)",
        "t2=TestMul(W1, input:1)",
        "t3=TestMul(W2, t1)",
        "last=TestMul(t2, t3)",
    )


def test_e_reverse_post_order_has_producers_first_and_post_order_is_its_reverse(graph: gc.Graph) -> None:
    diamond(graph)
    order = gc.reverse_post_order(graph)
    assert order[0] is graph.source_node
    assert len(order) == graph.num_nodes
    places = {each: i for i, each in enumerate(order)}
    assert all(places[edge.src] < places[edge.dst] for edge in graph.edges())
    assert gc.post_order(graph) == order[::-1]


@pytest.mark.parametrize("between", [0, 1, 5])
def test_e_sorted_by_name_the_order_does_not_depend_on_how_the_graph_was_made(between: int) -> None:
    orders = []
    for first, second in (("t2", "t3"), ("t3", "t2")):
        graph = gc.Graph(registry())
        import_into(graph, "w1=TestParams", "input=TestInput(^w1)", f"{first}=TestMul(w1, input:1)")
        import_into(graph, *[f"internal{i}=TestParams" for i in range(between)])
        graph.add_node(node(f"{second}=TestMul(w1, input:1)"))
        orders.append(names(gc.reverse_post_order(graph, by_name)))
    assert orders[0] == orders[1]
    assert orders[0].index("t2") < orders[0].index("t3")


def test_e_a_filter_leaves_edges_aside(graph: gc.Graph) -> None:
    import_into(graph, "n0=TestParams", "n1=Merge(n0, n3)", "n2=Identity(n1)", "n3=NextIteration(n2, ^n0)")
    back, last = graph.get_operation_by_name("n1"), graph.get_operation_by_name("n3")
    graph.add_control_edge(last, graph.sink_node)

    def forward(edge: Edge) -> bool:
        return (edge.src, edge.dst) != (last, back)

    assert names(gc.post_order(graph, edge_filter=forward)) == ["_SINK", "n3", "n2", "n1", "n0", "_SOURCE"]
    assert names(gc.reverse_post_order(graph, edge_filter=forward)) == ["_SOURCE", "n0", "n1", "n2", "n3", "_SINK"]


def test_e_walks_enter_before_and_leave_after_what_follows(graph: gc.Graph) -> None:
    import_into(graph, "a=TestParams", "b=Identity(a)", "c=Identity(b)")
    entered: list[str] = []
    left: list[str] = []
    gc.dfs(graph, lambda each: entered.append(each.name), lambda each: left.append(each.name))
    assert entered == ["_SOURCE", "a", "b", "c", "_SINK"]
    assert left == entered[::-1]
    seen: list[str] = []
    gc.reverse_dfs(graph, lambda each: seen.append(each.name))
    assert seen == ["_SINK", "c", "b", "a", "_SOURCE"]


def test_e_walks_may_start_anywhere(graph: gc.Graph) -> None:
    diamond(graph)
    below: list[str] = []
    gc.dfs_from(graph, [graph.get_operation_by_name("t1")], lambda each: below.append(each.name))
    assert below == ["t1", "t3", "last", "_SINK"]
    above: list[str] = []
    gc.reverse_dfs_from(graph, [graph.get_operation_by_name("t3")], lambda each: above.append(each.name), key=by_name)
    assert above == ["t3", "t1", "input", "_SOURCE", "W1", "W2"]


def test_e_topological_order_takes_the_least_that_may_come_next(graph: gc.Graph) -> None:
    import_into(graph, "z=TestParams", "y=TestParams", "a=Identity(y)")
    assert names(gc.topological_order(graph)) == ["z", "y", "a"]
    assert names(gc.topological_order(graph, by_name)) == ["y", "a", "z"]


def test_e_loops_are_no_cycles(graph: gc.Graph) -> None:
    import_into(graph, "W1=TestParams", *LOOP)
    order = names(gc.topological_order(graph))
    assert order.index("merge") < order.index("switch") < order.index("next")
    assert gc.find_cycle(graph) == []
    gc.validate_graph_has_no_cycle(graph)
    assert len(gc.reverse_post_order(graph)) == graph.num_nodes


def test_v_a_cycle_is_refused_and_found(graph: gc.Graph) -> None:
    import_into(graph, "a=TestParams", "b=TwoOutputs(a)", "c=Identity(b)")
    b = graph.get_operation_by_name("b")
    graph.remove_edge(b.input_edge(0))
    graph.add_edge(b, 1, b, 0)
    with pytest.raises(InvalidArgumentError, match="Graph is invalid, contains a cycle with 2 nodes, including: b, c"):
        gc.validate_graph_has_no_cycle(graph)
    assert gc.find_cycle(graph) == [b]
    with pytest.raises(InvalidArgumentError, match="contains a cycle"):
        gc.topological_order(graph)


def test_e_a_long_chain_is_walked_without_recursion(graph: gc.Graph) -> None:
    import_into(graph, "n0=TestParams", *[f"n{i}=Identity(n{i - 1})" for i in range(1, 20_000)])
    assert names(gc.reverse_post_order(graph))[1:4] == ["n0", "n1", "n2"]
    assert len(gc.topological_order(graph)) == 20_000


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_orders_hold_for_any_graph_made_in_any_order(inputs: list[tuple[int, int]], chance: st.DrawFn) -> None:
    nodes = ["n0=TestParams"]
    nodes += [f"n{i + 1}=TestMul(n{min(a, i)}, n{min(b, i)})" for i, (a, b) in enumerate(inputs)]
    chance.shuffle(nodes)  # type: ignore[attr-defined]  # hypothesis returns a random.Random
    graph = gc.Graph(registry())
    import_into(graph, *nodes)
    for order in (gc.reverse_post_order(graph), gc.reverse_post_order(graph, by_name), gc.topological_order(graph, by_name)):
        places = {each: i for i, each in enumerate(order)}
        assert all(places[edge.src] < places[edge.dst] for edge in graph.edges() if edge.src.is_op and edge.dst.is_op)
        assert len(set(order)) == len(order) >= len(graph)
