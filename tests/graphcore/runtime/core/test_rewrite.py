"""The part of a graph needed for a run, with nodes for feeds and fetches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions.wire import load_graph_def
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError
from graphcore.graph import ImportOptions, import_graph_def
from graphcore.registry import OpRegistry

DATA = Path(__file__).parents[3] / "data"
DEVICE = "/job:a/replica:0/task:0/device:CPU:0"


def unknown(c: gc.InferenceContext) -> None:
    for i in range(c.num_outputs):
        c.set_output(i, c.unknown_shape())


def registry() -> OpRegistry:
    made = OpRegistry()
    for text in (
        "TestParams() -> (o:float)",
        "TestInput() -> (a:float, b:float)",
        "TestRelu(i:float) -> (o:float)",
        "TestMul(a:float, b:float) -> (o:float)",
        "TestVariable() -> (o:Ref(float))",
        "Placeholder[dtype:type, shape:shape = {}]() -> (output:dtype)",
        "NoOp() -> ()",
    ):
        made.register(gc.parse_op_signature(text), unknown)
    return made


def graph_of(text: str) -> gc.Graph:
    """A graph from lines such as `t1 = TestMul(W1, input:1)`."""
    graph = gc.Graph(registry())
    for line in text.strip().splitlines():
        name, op, inputs = line.replace(" = ", "(").rstrip(" )").split("(")
        attrs = {"dtype": gc.float32} if op == "Placeholder" else {}
        graph.add_node(gc.NodeDef(name.strip(), op, tuple(part.strip() for part in inputs.split(",") if part), "", attrs))
    return graph


G = """
W1 = TestParams()
W2 = TestParams()
input = TestInput()
t1 = TestMul(W1, input:1)
t2 = TestMul(W2, t1)
t3_a = TestRelu(t2)
t3_b = TestRelu(t2)
"""
CHAIN = """
a = TestParams()
b = TestRelu(a)
c = TestRelu(b)
d = TestRelu(c)
e = TestRelu(d)
f = TestRelu(e)
"""


def rewritten(text: str, feeds: Sequence[str] = (), fetches: Sequence[str] = (), targets: Sequence[str] = ()) -> gc.Graph:
    return gc.rewrite_graph_for_execution(graph_of(text), feeds, fetches, targets, DEVICE).graph


def names(graph: gc.Graph) -> set[str]:
    return {node.name for node in graph.nodes}


def edges(graph: gc.Graph) -> set[str]:
    return {str(edge).partition(" ")[2][:-1] for edge in graph.edges()}


@pytest.mark.parametrize(
    ("text", "feeds", "fetches", "targets", "left"),
    [
        pytest.param(G, [], [], ["t1"], "W1,input,t1", id="B-row1-targets1"),
        pytest.param(G, [], [], ["t2", "t3_a"], "W1,W2,input,t1,t2,t3_a", id="B-two-targets"),
        pytest.param(G, [], [], ["t3_a", "t3_b"], "W1,W2,input,t1,t2,t3_a,t3_b", id="B-all-targets"),
        pytest.param(G, ["input:1"], [], ["t2"], "W1,W2,_recv_input_1,t1,t2", id="B-row2-feed"),
        pytest.param(G, ["t1:0"], [], ["t2"], "W2,_recv_t1_0,t2", id="B-feed-in-the-middle"),
        pytest.param(G, ["t1"], [], ["t2"], "W2,_recv_t1_0,t2", id="B-feed-without-number"),
        pytest.param(G, ["W2:0", "input:1"], [], ["t1"], "W1,_recv_input_1,t1", id="B-unused-feed-is-pruned"),
        pytest.param(G, [], ["t3_a"], ["t2"], "W1,W2,input,t1,t2,t3_a,_send_t3_a_0", id="B-row3-fetch"),
        pytest.param(G, [], ["input:1", "W2"], ["t1"], "W1,W2,input,t1,_send_input_1,_send_W2_0", id="B-two-fetches"),
        pytest.param(CHAIN, ["c:0"], ["b:0", "e:0"], [], "a,b,_send_b_0,_recv_c_0,d,e,_send_e_0", id="B-row4-chain"),
    ],
)
def test_nodes_without_need_for_a_target_or_fetch_are_pruned(
    text: str, feeds: list[str], fetches: list[str], targets: list[str], left: str
) -> None:
    assert names(rewritten(text, feeds, fetches, targets)) == set(left.split(","))


ERRORS = [
    pytest.param(["c:0", "c:0"], ["b"], [], InvalidArgumentError, 'Endpoint "c:0" fed more than once.', id="B-fed-twice"),
    pytest.param(["c:0"], ["c:0"], [], InvalidArgumentError, "c:0 is both fed and fetched.", id="B-fed-and-fetched"),
    pytest.param(["c:0"], [], [], InvalidArgumentError, "Must specify at least one target to fetch or execute.", id="B-nothing-to-do"),
    pytest.param(["foo:0"], ["b"], [], NotFoundError, "FeedInputs: unable to find feed output foo:0", id="B-feed-unknown"),
    pytest.param(["a:7"], ["b"], [], InvalidArgumentError, "FeedInputs: a:7 should have output index < 1", id="B-feed-index"),
    pytest.param([], ["foo:0"], [], NotFoundError, "FetchOutputs node foo:0: not found", id="B-fetch-unknown"),
    pytest.param([], ["a:9"], [], InvalidArgumentError, "FetchOutputs a:9: output index too large, must be < 1", id="B-fetch-index"),
    pytest.param([], [], ["foo"], NotFoundError, "PruneForTargets: Some target nodes not found: foo ", id="B-target-unknown"),
    pytest.param([], [], ["x", "a", "y"], NotFoundError, "PruneForTargets: Some target nodes not found: x y ", id="B-targets-unknown"),
    pytest.param([], [], ["a:0"], NotFoundError, "PruneForTargets: Some target nodes not found: a:0 ", id="B-a-target-is-a-node"),
]


@pytest.mark.parametrize(("feeds", "fetches", "targets", "kind", "text"), ERRORS)
def test_wrong_feeds_fetches_and_targets_are_refused(
    feeds: list[str], fetches: list[str], targets: list[str], kind: type[GraphError], text: str
) -> None:
    graph = graph_of(CHAIN)
    with pytest.raises(kind) as caught:
        gc.rewrite_graph_for_execution(graph, feeds, fetches, targets, DEVICE)
    assert caught.value.message == text
    assert len(graph) == 6


def test_b_the_error_for_fetching_a_node_without_outputs_names_the_alternative() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        rewritten("n = NoOp()", fetches=["n"])
    assert "Tried to fetch data for 'n', which produces no output." in caught.value.message
    assert "'target_node_names'" in caught.value.message


def test_b_names_are_compared_as_they_are_written() -> None:
    graph = rewritten(CHAIN, feeds=["c"], fetches=["c:0", "d"])
    assert names(graph) == {"a", "b", "c", "_send_c_0", "_recv_c_0", "d", "_send_d_0"}
    assert edges(graph) >= {"c:0 -> _send_c_0:0", "_recv_c_0:0 -> d:0", "d:0 -> _send_d_0:0"}
    assert names(rewritten(CHAIN, fetches=["a", "a:0"])) == {"a", "_send_a_0", "_send_a_0_1"}


def test_b_the_ends_of_feeds_and_fetches_carry_the_names_as_given_and_the_clients_device() -> None:
    client = gc.DeviceAttributes(DEVICE, incarnation=7)
    result = gc.rewrite_graph_for_execution(graph_of(G), ["input:1", "W1"], ["t1", "t2:0"], [], client)
    recv, send = result.graph.find("_recv_input_1"), result.graph.find("_send_t1_0")
    assert recv is not None
    assert send is not None
    ends = {"send_device": DEVICE.encode(), "recv_device": DEVICE.encode(), "client_terminated": True, "send_device_incarnation": 7}
    assert recv.attrs == {"tensor_type": gc.float32, "tensor_name": b"input:1", **ends}
    assert send.attrs == {"T": gc.float32, "tensor_name": b"t1", **ends}
    assert (recv.op, send.op, recv.assigned_device, send.assigned_device) == ("_Recv", "_Send", DEVICE, DEVICE)
    assert (result.feed_types, result.fetch_types) == ((gc.float32, gc.float32), (gc.float32, gc.float32))


def test_b_survivors_without_edges_hang_on_source_and_sink() -> None:
    assert edges(rewritten(CHAIN, feeds=["c:0"], fetches=["e:0"])) == {
        "_SOURCE:-1 -> _SINK:-1",
        "_SOURCE:-1 -> _recv_c_0:-1",
        "_recv_c_0:0 -> d:0",
        "d:0 -> e:0",
        "e:0 -> _send_e_0:0",
        "_send_e_0:-1 -> _SINK:-1",
    }
    assert "t1:-1 -> _SINK:-1" in edges(rewritten(G, targets=["t1"]))


def test_b_feeding_one_output_leaves_the_others_and_the_control_edges() -> None:
    text = "x = TestInput()\np = TestMul(x:0, x:1)\nq = TestRelu(p, ^x)"
    assert edges(rewritten(text, feeds=["x:0"], targets=["q"])) == {
        "_SOURCE:-1 -> _SINK:-1",
        "_SOURCE:-1 -> x:-1",
        "_SOURCE:-1 -> _recv_x_0:-1",
        "_recv_x_0:0 -> p:0",
        "x:1 -> p:1",
        "p:0 -> q:0",
        "x:-1 -> q:-1",
        "q:-1 -> _SINK:-1",
    }


def test_b_control_edges_of_a_fed_placeholder_move_to_the_feed() -> None:
    text = "x = Placeholder()\nw = TestParams()\np = TestRelu(w, ^x)\nq = TestRelu(x)"
    graph = rewritten(text, feeds=["x"], targets=["p", "q"])
    assert names(graph) == {"_recv_x_0", "w", "p", "q"}
    assert {"_recv_x_0:-1 -> p:-1", "_recv_x_0:0 -> q:0"} <= edges(graph)
    p = graph.find("p")
    assert p is not None
    assert p.node_def.input == ("w", "^_recv_x_0")


def test_b_a_reference_is_fed_and_fetched_as_a_value() -> None:
    result = gc.rewrite_graph_for_execution(graph_of("v = TestVariable()\nr = TestRelu(v)"), ["v"], ["r"], [], DEVICE)
    assert result.feed_types == (gc.float32,)
    recv = result.graph.find("_recv_v_0")
    assert recv is not None
    assert recv.output_types == (gc.float32,)


def test_b_by_the_function_convention_feeds_are_arguments_and_fetches_are_results() -> None:
    result = gc.rewrite_graph_for_execution(graph_of(CHAIN), ["b:0", "d:0"], ["e:0", "c:0"], [], DEVICE, use_function_convention=True)
    assert names(result.graph) == {"_arg_b_0_0", "c", "_retval_c_0_1", "_arg_d_0_1", "e", "_retval_e_0_0"}
    arg, retval = result.graph.find("_arg_d_0_1"), result.graph.find("_retval_c_0_1")
    assert arg is not None
    assert retval is not None
    assert (arg.op, arg.attrs) == ("_Arg", {"T": gc.float32, "index": 1})
    assert (retval.op, retval.attrs) == ("_Retval", {"T": gc.float32, "index": 1})


def test_b_the_graph_itself_stays_as_it_is() -> None:
    graph = graph_of(G)
    version, before = graph.version, [node.node_def for node in graph.nodes]
    gc.rewrite_graph_for_execution(graph, ["t1"], ["t2"], [], DEVICE)
    gc.prune_for_targets(graph, ["t1"])
    assert (graph.version, [node.node_def for node in graph.nodes]) == (version, before)


def test_b_pruning_for_targets_leaves_what_they_need() -> None:
    assert names(gc.prune_for_targets(graph_of(G), ["t1"])) == {"W1", "input", "t1"}
    with pytest.raises(NotFoundError, match="PruneForTargets: Some target nodes not found: nowhere "):
        gc.prune_for_targets(graph_of(G), ["nowhere"])


def test_b_a_chain_of_thousands_of_nodes_is_rewritten() -> None:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [], name="x")
        y = x
        for _ in range(3000):
            y = gc.negative(y)
        result = gc.rewrite_graph_for_execution(graph, ["x:0"], [y.name], [], DEVICE)
    assert len(result.graph) == 3002


def test_b_loops_are_kept_whole() -> None:
    whole = gc.Graph()
    import_graph_def(load_graph_def(DATA / "while_v1.pb"), whole, ImportOptions(allow_unknown_ops=True))
    exits = [node.name for node in whole.nodes if node.op == "Exit"]
    merges = [node for node in whole.nodes if node.op == "Merge"]
    result = gc.rewrite_graph_for_execution(whole, [], [], exits, DEVICE).graph
    assert nx.ancestors(whole.nx, exits[0]) - {"_SOURCE"} <= names(result)
    assert merges
    for merge in merges:
        copy = result.find(merge.name)
        assert copy is not None
        assert [tensor.name for tensor in copy.inputs] == [tensor.name for tensor in merge.inputs]
        assert copy.inputs[1].node is result.find(merge.inputs[1].node.name)
        assert (merge.inputs[1].node.name, merge.name) in result.nx.edges()


def by_hand(build: Callable[[gc.Tensor], gc.Tensor], value: object) -> object:
    """Run `build` with feeds and fetches over a rendezvous."""
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [2], name="x")
        y = build(x)
    result = gc.rewrite_graph_for_execution(graph, ["x:0"], [y.name], [], DEVICE)
    with gc.Session(result.graph) as session:
        session.rendezvous.send(gc.create_key(DEVICE, 0, DEVICE, "x:0"), None, value)
        session.run(f"_send_{y.node.name}_0")
        return session.rendezvous.recv(gc.create_key(DEVICE, 0, DEVICE, y.name), timeout=10).value


def test_ex_values_from_a_client_are_computed_and_sent_back() -> None:
    got = by_hand(lambda x: gc.square(x) + 1.0, np.array([2.0, 3.0], np.float32))
    assert np.asarray(got).tolist() == [5.0, 10.0]


def test_ex_a_received_value_of_the_wrong_type_is_an_internal_error() -> None:
    with pytest.raises(gc.errors.InternalError, match="expected to receive float, got float64"):
        by_hand(gc.square, np.array([2.0, 3.0]))
