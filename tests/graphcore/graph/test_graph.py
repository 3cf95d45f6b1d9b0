"""The graph: structure, edges, and atomic changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions import NodeDef
from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError, NotFoundError


@pytest.fixture
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as graph:
        yield graph


def test_an_empty_graph_has_source_and_sink_with_one_control_edge(graph: gc.Graph) -> None:
    assert list(graph.nx.nodes) == ["_SOURCE", "_SINK"]
    assert list(graph.nx.edges(keys=True)) == [("_SOURCE", "_SINK", (-1, -1))]
    assert (graph.source_node.id, graph.sink_node.id, graph.num_nodes) == (0, 1, 2)


def test_nodes_without_inputs_hang_on_source_and_without_consumers_on_sink(graph: gc.Graph) -> None:
    a = gc.constant(1.0, name="a")
    gc.negative(a, name="b")
    assert set(graph.nx.edges()) == {("_SOURCE", "_SINK"), ("_SOURCE", "a"), ("a", "b"), ("b", "_SINK")}
    gc.negative(a, name="c")
    assert ("c", "_SINK") in graph.nx.edges()


def test_the_networkx_view_is_live_and_read_only(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    view = graph.nx
    y = gc.add(x, x, name="y")
    assert sorted(key for _, _, key in graph.nx.edges("x", keys=True)) == [(0, 0), (0, 1)]
    assert nx.has_path(view, "x", "y")
    assert view.nodes["y"]["node"] is y.node
    with pytest.raises(nx.NetworkXError):
        view.add_node("z")


def test_ids_are_never_reused(graph: gc.Graph) -> None:
    nodes = [gc.constant(float(i), name=f"n{i}").node for i in range(3)]
    assert graph.num_node_ids == 5
    graph.remove_node(nodes[1])
    new = gc.constant(9.0, name="n9").node
    assert (new.id, graph.num_node_ids) == (5, 6)


def test_names_are_made_unique_within_their_scope(graph: gc.Graph) -> None:
    names = [gc.constant(1.0, name="c").name for _ in range(3)]
    assert names == ["c:0", "c_1:0", "c_2:0"]
    with gc.name_scope("s") as scope:
        assert scope == "s/"
        assert gc.constant(1.0, name="c").name == "s/c:0"
    with gc.name_scope("s") as scope:
        assert scope == "s_1/"


def test_control_dependencies_become_control_edges_after_the_data_inputs(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    first = gc.no_op("first")
    with gc.control_dependencies([first]):
        y = gc.negative(x, name="y")
    assert y.node.node_def.input == ("x", "^first")
    assert y.node.control_inputs == [first]
    assert graph.nx.has_edge("first", "y", (-1, -1))


def test_add_node_takes_a_node_def_and_infers_types_and_shapes(graph: gc.Graph) -> None:
    gc.placeholder(gc.float32, [None, 3], name="x")
    node = graph.add_node(NodeDef("y", "Neg", ("x",), "", {"T": gc.float32}))
    assert node.outputs[0].dtype is gc.float32
    assert str(node.outputs[0].shape) == "[?,3]"


@pytest.mark.parametrize(
    ("node_def", "text"),
    [
        (NodeDef("a:b", "Neg", ("x",), "", {"T": gc.float32}), "Node 'a:b': Node name contains invalid characters"),
        (NodeDef("y", "Neg", ("W999",), "", {"T": gc.float32}), "Node 'y': Unknown input node 'W999'"),
        (NodeDef("y", "Neg", ("x:1",), "", {"T": gc.float32}), "Connecting to invalid output 1 of source node x"),
        (NodeDef("y", "Neg", ("^x", "x"), "", {"T": gc.float32}), "Node 'y': Control dependencies must come after regular dependencies"),
        (
            NodeDef("y", "Neg", ("x",), "", {"T": gc.float64}),
            "Input 0 of node y was passed float from x:0 incompatible with expected double.",
        ),
        (NodeDef("x", "Neg", ("x",), "", {"T": gc.float32}), "Node name 'x' already exists in the Graph"),
    ],
)
def test_a_refused_node_says_why_and_leaves_the_graph_as_it_was(graph: gc.Graph, node_def: NodeDef, text: str) -> None:
    gc.placeholder(gc.float32, [2], name="x")
    before = (graph.version, graph.as_graph_def(), list(graph.nx.edges(keys=True)))
    with pytest.raises(InvalidArgumentError) as caught:
        graph.add_node(node_def)
    assert text in str(caught.value)
    assert (graph.version, graph.as_graph_def(), list(graph.nx.edges(keys=True))) == before


def test_an_unknown_op_names_itself(graph: gc.Graph) -> None:
    with pytest.raises(NotFoundError, match="Op type not registered 'Foo'"):
        gc.apply_op("Foo", [1.0])


def test_wrong_dtypes_name_op_node_expected_and_got(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    n = gc.placeholder(gc.int32, [2], name="n")
    with pytest.raises(InvalidArgumentError) as caught:
        gc.add(x, n, name="sum")
    error = caught.value
    assert (error.op, error.node) == ("AddV2", "sum")
    assert "AddV2 takes inputs of one dtype, but 'x' is float and 'y' is int32; convert with gc.cast" in error.message
    assert error.input == "y"
    assert "Inconsistent values for attr 'T' DT_FLOAT vs. DT_INT32" in error.__notes__[0]
    assert error.source is not None
    assert error.source.text == 'gc.add(x, n, name="sum")'


def test_shapes_that_clash_are_refused_when_the_node_is_made(graph: gc.Graph) -> None:
    a = gc.placeholder(gc.float32, [2, 3], name="a")
    b = gc.placeholder(gc.float32, [4, 5], name="b")
    with pytest.raises(InvalidArgumentError, match="Dimensions must be equal, but are 3 and 4 for 'c'"):
        gc.matmul(a, b, name="c")
    assert graph.find("c") is None


def test_update_edge_feeds_from_elsewhere_and_infers_again(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    z = gc.placeholder(gc.float32, [5], name="z")
    y = gc.negative(x, name="y")
    w = gc.exp(y, name="w")
    graph.update_edge(z.node, 0, y.node, 0)
    assert y.node.node_def.input == ("z",)
    assert str(w.shape) == "[5]"
    with pytest.raises(InvalidArgumentError, match="does not have output 1"):
        graph.update_edge(z.node, 1, y.node, 0)
    with pytest.raises(InvalidArgumentError, match="cycle"):
        graph.update_edge(w.node, 0, y.node, 0)


def test_control_edges_are_added_once_and_removed(graph: gc.Graph) -> None:
    a, b = gc.constant(1.0, name="a").node, gc.constant(2.0, name="b").node
    assert graph.add_control_edge(a, b)
    assert not graph.add_control_edge(a, b)
    assert b.node_def.input == ("^a",)
    with pytest.raises(InvalidArgumentError, match="cycle"):
        graph.add_control_edge(b, a)
    assert graph.remove_control_edge(a, b)
    assert not b.node_def.input


def test_every_change_is_published_with_a_growing_version(graph: gc.Graph) -> None:
    seen: list[tuple[str, str]] = []
    unsubscribe = graph.subscribe(lambda change: seen.append((change.kind, change.node)))
    x = gc.placeholder(gc.float32, [2], name="x")
    graph.remove_node(x.node)
    unsubscribe()
    gc.constant(1.0)
    assert seen == [("added", "x"), ("removed", "x")]


def test_a_tensor_of_another_graph_is_refused_by_name(graph: gc.Graph) -> None:
    with gc.Graph().as_default():
        foreign = gc.constant(1.0, name="foreign")
    with pytest.raises(InvalidArgumentError, match=r"'foreign:0' \(op Const\) belongs to another graph"):
        gc.negative(foreign)


def test_a_tensor_that_was_removed_is_refused_with_the_reason(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    graph.remove_node(x.node)
    with pytest.raises(InvalidArgumentError, match=r"'x:0' \(op Placeholder\) is no longer in the graph: it was removed or lowered"):
        gc.Session().run(x, {x: [1.0, 2.0]})


def test_a_string_that_utf_8_cannot_encode_is_refused(graph: gc.Graph) -> None:
    for make in (lambda: gc.constant(["a", "b\ud800"]), lambda: graph.apply_op("Assert", [True, []], {"T": [], "_note": "b\ud800"})):
        with pytest.raises(InvalidArgumentError, match=r"Required text that UTF-8 can encode, or bytes; got .* at 1"):
            make()
    assert len(graph.nodes) == 0


def test_look_up_by_name_suggests_what_is_near(graph: gc.Graph) -> None:
    gc.constant(1.0, name="weights")
    assert graph.get_tensor_by_name("weights:0").name == "weights:0"
    with pytest.raises(NotFoundError, match="there is 'weights'"):
        graph.get_operation_by_name("weight")


def test_a_finalized_graph_takes_no_nodes(graph: gc.Graph) -> None:
    graph.finalize()
    with pytest.raises(FailedPreconditionError, match="has been finalized"):
        gc.constant(1.0)


def test_a_long_chain_meets_no_limit(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.float32, [2], name="x")
    y = x
    for _ in range(5000):
        y = gc.negative(y)
    graph.set_shape(x, [2])
    x.set_shape([2])
    assert str(y.shape) == "[2]"
    graph.update_edge(gc.placeholder(gc.float32, [7]).node, 0, graph.nodes[1], 0)
    assert str(y.shape) == "[7]"


def test_a_tensor_is_no_condition(graph: gc.Graph) -> None:
    x = gc.placeholder(gc.bool_, [], name="x")
    with pytest.raises(InvalidArgumentError, match="'x:0' has no value until a Session runs it, so `if`"):
        assert x


ASKS: dict[str, Callable[[Any], object]] = {
    "np.array": np.array,
    "np.asarray": np.asarray,
    "array of several": lambda x: np.array([x, x]),
    "numpy()": lambda x: x.numpy(),
    "float": float,
    "int": int,
    "complex": complex,
}


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("kind", ["tensor", "variable", "resource"])
def test_reading_a_value_of_a_tensor_raises_and_names_the_session(graph: gc.Graph, ask: str, kind: str) -> None:
    w = gc.placeholder(gc.float32, [], name="w") if kind == "tensor" else gc.Variable(1.0, name="w", use_resource=kind == "resource")
    before = len(graph)
    with pytest.raises(InvalidArgumentError, match="The tensor 'w:0' has no value until a Session runs it, so it is no ") as caught:
        ASKS[ask](w)
    assert (caught.value.node, len(graph)) == ("w", before)


def test_a_tensor_is_not_iterated_over(graph: gc.Graph) -> None:
    with pytest.raises(InvalidArgumentError, match="has no value until a Session runs it, so it cannot be iterated over"):
        list(gc.placeholder(gc.float32, [3], name="x"))


def test_default_graphs_nest_and_complain_when_left_out_of_order() -> None:
    outer = gc.get_default_graph()
    first, second = gc.Graph(), gc.Graph()
    with first.as_default():
        assert gc.get_default_graph() is first
        with second.as_default():
            assert gc.get_default_graph() is second
        with pytest.raises(FailedPreconditionError, match="inside a"):
            gc.reset_default_graph()
    assert gc.get_default_graph() is outer


@pytest.mark.parametrize("name", ["a b", "é", "a:0", "^a", "-a", "/"])
def test_a_node_cannot_be_called_just_anything(name: str) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        for build in (
            lambda: gc.ops.tanh(x, name=name),
            lambda: gc.constant(1.0, name=name),
            lambda: gc.ops.concat_v2([x, x], 0, name=name),
        ):
            with pytest.raises(InvalidArgumentError, match="contains invalid characters"):
                build()
    assert [node.name for node in graph.nodes] == ["x"]


@pytest.mark.parametrize(
    "build",
    [
        lambda x: gc.ops.mat_mul(x, [1.0, 2.0]),
        lambda x: gc.ops.concat_v2([x, x], 5),
        lambda x: gc.ops.add_v2(x, [1.0, 2.0, 3.0]),
        lambda x: gc.ops.clip_by_value(x, 0.0, "high"),
    ],
)
def test_an_op_that_is_refused_leaves_no_constants_of_its_values_behind(build: Callable[[gc.Tensor], object]) -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
        with pytest.raises(GraphError):
            build(x)
        assert [node.name for node in graph.nodes] == ["x"]
        well = gc.ops.add_v2(x, [1.0, 2.0])
    assert [tensor.name for tensor in well.node.inputs] == ["x:0", "Const:0"]
