"""Partitions of graphs by device, joined by sends and receives."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path

import msgspec
import pytest

import graphcore as gc
from graphcore.definitions.wire import schema
from graphcore.definitions.wire.files import graph_def_to_bytes
from tests.graphcore.placement.partition_graphs import (
    INCARNATION,
    A,
    B,
    control_constant,
    graph_of,
    node,
    partitions,
    plain,
    recv,
    registry,
    same,
    send,
    with_op,
)

GPU = "/job:a/replica:0/task:0/device:GPU:0"
INPUTS = ("A1 = FloatInput()", "B1 = FloatInput()")
LOOP = (
    "A1 = BoolInput()",
    'A2 = Enter[T=bool, frame_name="foo"](A1)',
    "A3 = Merge[N=2, T=bool](A2, A5)",
    "A4 = LoopCond(A3)",
    "B1 = Identity[T=bool](A3)",
    "A5 = NextIteration[T=bool](B1)",
)
TWICE = "XTimesTwo(x:float) -> (y:float) { y0 = Combine(x, x) return y = y0:o:0 }"


def test_a_value_is_sent_to_the_partition_of_its_consumer() -> None:
    found = partitions(graph_of(*INPUTS, "B2 = Combine(A1, B1)"))
    assert list(found) == [A, B]
    assert same(found[A], "A1 = FloatInput()", send("A1/_0", "A1", "edge_1_A1"))
    assert same(found[B], "B1 = FloatInput()", recv("A1/_1", "edge_1_A1"), "B2 = Combine(A1/_1, B1)")


def test_the_nodes_of_a_partition_carry_its_device() -> None:
    found = partitions(graph_of(*INPUTS, "B2 = Combine(A1, B1) @ A1"))
    for device, graph_def in found.items():
        assert {node.device for node in graph_def.node} == {device}


def test_a_control_edge_is_an_empty_constant_on_its_way() -> None:
    found = partitions(graph_of(*INPUTS, "B2 = Combine(B1, B1) @ A1"))
    assert same(found[A], "A1 = FloatInput()", control_constant("A1/ctrl/_0", "A1"), send("A1/_1", "A1/ctrl/_0", "edge_3_A1"))
    received = (recv("A1/_2", "edge_3_A1"), "A1/_3 = Identity[T=float](A1/_2)", "B2 = Combine(B1, B1) @ A1/_3")
    assert same(found[B], "B1 = FloatInput()", *received)


def test_a_value_is_sent_once_to_a_partition() -> None:
    found = partitions(graph_of(*INPUTS, "B2 = Combine(A1, B1)", "B3 = Combine(A1, A1)"))
    assert same(found[A], "A1 = FloatInput()", send("A1/_0", "A1", "edge_1_A1"))
    received = (recv("A1/_1", "edge_1_A1"), "B2 = Combine(A1/_1, B1)", "B3 = Combine(A1/_1, A1/_1)")
    assert same(found[B], "B1 = FloatInput()", *received)


def test_a_control_edge_is_sent_once_to_a_partition() -> None:
    found = partitions(graph_of(*INPUTS, "B2 = Combine(B1, B1) @ A1", "B3 = FloatInput() @ A1"))
    assert len(with_op(found[A], "_Send")) == len(with_op(found[B], "_Recv")) == 1
    assert next(node for node in found[B].node if node.name == "B3").input == ("^A1/_3",)


def test_value_and_control_of_one_node_are_sent_separately() -> None:
    found = partitions(graph_of(*INPUTS, "B2 = Combine(A1, B1)", "B3 = FloatInput() @ A1"))
    assert len(with_op(found[A], "_Send")) == len(with_op(found[B], "_Recv")) == 2


def test_each_output_and_each_partition_has_its_own_transfer() -> None:
    place = {"A": A, "B": B, "C": A.replace("cpu:0", "cpu:2")}
    found = partitions(graph_of("A1 = Two()", "B1 = Combine(A1, A1:1)", "C1 = Combine(A1:1, A1:1)", place=place))
    names = [node.attr["tensor_name"] for node in with_op(found[A], "_Send")]
    assert len(names) == len(set(names)) == 3
    assert [node.input for node in with_op(found[A], "_Send")] == [("A1",), ("A1:1",), ("A1:1",)]


def test_the_default_key_and_device_are_the_assigned_device() -> None:
    graph = graph_of(*INPUTS, "B2 = Combine(A1, B1)")
    assert list(gc.partition_graph(graph)) == [A, B]
    found = gc.partition_graph(graph, lambda _: "all")
    assert list(found) == ["all"]
    assert [node.device for node in found["all"].node] == [A, B, B]
    assert not with_op(found["all"], "_Send")


def test_a_location_is_the_device_of_a_node_without_one() -> None:
    graph = graph_of(*INPUTS, place={"A": "", "B": ""})
    found = gc.partition_graph(graph, lambda node: A if node.name == "A1" else B)
    assert [(key, graph_def.node[0].device) for key, graph_def in found.items()] == [(A, A), (B, B)]


def test_nodes_are_created_in_the_order_constant_send_receive_identity() -> None:
    numbers = count()
    made: list[str] = []

    def new_name(prefix: str) -> str:
        made.append(prefix)
        return f"{prefix}#{next(numbers)}"

    graph = graph_of(*INPUTS, "B2 = Combine(A1, B1) @ A1")
    found = gc.partition_graph(graph, new_name=new_name)
    assert made == ["A1", "A1", "A1/ctrl", "A1", "A1", "A1"]
    assert [node.op for node in found[A].node] == ["FloatInput", "_Send", "Const", "_Send"]
    assert [node.name for node in found[B].node] == ["B1", "B2", "A1#1", "A1#4", "A1#5"]


def test_generated_names_avoid_those_of_nodes() -> None:
    found = partitions(graph_of(*INPUTS, "A1/_0 = FloatInput()", "B2 = Combine(A1, B1)"))
    names = [node.name for graph_def in found.values() for node in graph_def.node]
    assert len(names) == len(set(names))
    assert with_op(found[A], "_Send")[0].name == "A1/_1"


def test_sends_and_receives_name_source_and_target() -> None:
    found = partitions(graph_of(*INPUTS, "B2 = Combine(A1, B1)"))
    for transfer in (*with_op(found[A], "_Send"), *with_op(found[B], "_Recv")):
        assert (transfer.attr["_src"], transfer.attr["_dst"]) == (b"A1", b"B2")


def test_the_name_of_a_sent_value_can_be_given() -> None:
    found = partitions(graph_of(*INPUTS, "B2 = Combine(A1, B1)"), tensor_name=lambda edge: f"{edge.src.name}->{edge.dst.name}")
    assert same(found[A], "A1 = FloatInput()", send("A1/_0", "A1", "A1->B2"))


def test_partitions_have_the_versions_of_the_graph() -> None:
    graph = graph_of(*INPUTS)
    graph.versions = gc.definitions.VersionDef(producer=21, min_consumer=3)
    for graph_def in partitions(graph).values():
        assert (graph_def.versions.producer, graph_def.versions.min_consumer) == (21, 3)


def test_a_partition_has_the_functions_that_it_reaches() -> None:
    library = gc.FunctionLibraryDefinition(registry())
    four = "XTimesFour(x:float) -> (y:float) { two = XTimesTwo(x) y0 = XTimesTwo(two:y:0) return y = y0:y:0 }"
    for text in (TWICE, four):
        library.add_function_def(gc.parse_function(text, library.look_up_op_def))
    found = partitions(graph_of("A1 = FloatInput()", "A2 = XTimesTwo(A1)", "B2 = XTimesFour(A1)", library=library))
    names = {device: {function.name for function in graph_def.library.function} for device, graph_def in found.items()}
    assert names == {A: {"XTimesTwo"}, B: {"XTimesTwo", "XTimesFour"}}


def test_a_missing_input_is_an_error() -> None:
    graph = graph_of(*INPUTS, "B2 = Combine(A1, A1)")
    graph.remove_node(graph.get_operation_by_name("A1"))
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"^Incomplete graph, missing 2 inputs for B2"):
        partitions(graph)


@pytest.mark.parametrize("device", ["", "nonsense", "/job:"])
def test_a_malformed_device_is_an_error(device: str) -> None:
    graph = graph_of(*INPUTS, place={"A": device, "B": B})
    with pytest.raises(gc.errors.InternalError, match=f"^Malformed assigned device '{device}'"):
        partitions(graph)


def test_partitioning_leaves_the_graph_alone() -> None:
    graph = graph_of(*LOOP)
    before = (graph.version, graph.as_graph_def(), [node.assigned_device for node in graph.nodes])
    partitions(graph)
    assert before == (graph.version, graph.as_graph_def(), [node.assigned_device for node in graph.nodes])


# ---- references --------------------------------------------------------------------------------------------------------


def test_the_value_of_a_reference_is_received_after_the_other_inputs() -> None:
    found = partitions(graph_of("A1 = Variable()", "A2 = FloatInput()", "B1 = FloatInput()", "B2 = Combine(A1, A2) @ B1"))
    received = {node.name: node for node in with_op(found[B], "_Recv")}
    of_variable = next(node for node in received.values() if node.attr["_src"] == b"A1")
    other = next(node for node in received.values() if node.attr["_src"] == b"A2")
    assert set(of_variable.input) == {f"^{other.name}", "^B1"}
    assert other.input == ()
    assert of_variable.attr["tensor_type"] is gc.float32


def test_the_value_of_a_reference_is_sent_for_each_use() -> None:
    found = partitions(graph_of("A1 = Variable()", "B1 = Identity[T=float](A1)", "B2 = Identity[T=float](A1)"))
    assert len(with_op(found[A], "_Send")) == len(with_op(found[B], "_Recv")) == 2


# ---- loops -------------------------------------------------------------------------------------------------------------


def test_a_loop_across_devices_has_a_control_loop_in_each_partition() -> None:
    for graph_def in partitions(graph_of(*LOOP)).values():
        added = [node for node in graph_def.node if node.name.startswith("_cloop")]
        assert sorted(node.op for node in added) == ["Enter", "Merge", "NextIteration", "Switch"]


def test_the_receives_of_a_loop_wait_for_its_control_loop() -> None:
    found = partitions(graph_of(*LOOP))
    for graph_def in found.values():
        (merge,) = [node.name for node in with_op(graph_def, "Merge") if node.name.startswith("_cloop")]
        received = with_op(graph_def, "_Recv")
        assert received
        assert all(node.input == (f"^{merge}",) for node in received)
        others = [node for node in graph_def.node if node.op != "_Recv" and not node.name.startswith("_cloop")]
        assert not any(f"^{merge}" in node.input for node in others)


def test_a_control_loop_begins_with_an_empty_constant() -> None:
    for graph_def in partitions(graph_of(*LOOP)).values():
        nodes = {node.name: node for node in graph_def.node}
        (enter,) = [node for node in with_op(graph_def, "Enter") if node.name.startswith("_cloop")]
        constant = nodes[enter.input[0]]
        (text,) = plain([constant])
        assert text == node(control_constant(constant.name))
        assert (enter.attr["frame_name"], enter.attr["parallel_iterations"]) == (b"foo", 10)


def test_a_control_loop_overlaps_as_many_iterations_as_its_loop() -> None:
    texts = [text.replace("]", ", parallel_iterations=3]") if "Enter" in text else text for text in LOOP]
    for graph_def in partitions(graph_of(*texts)).values():
        assert {node.attr["parallel_iterations"] for node in with_op(graph_def, "Enter")} == {3}


def test_a_loop_on_one_device_has_no_control_loop() -> None:
    found = partitions(graph_of(*[text.replace("B1", "A6") for text in LOOP], "B1 = FloatInput() @ A1"))
    assert not [node.name for graph_def in found.values() for node in graph_def.node if "_cloop" in node.name]


def test_a_loop_across_devices_without_a_condition_is_an_error() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match=r"^A cross-device loop must have a pivot predicate: foo"):
        partitions(graph_of(*[text for text in LOOP if "LoopCond" not in text]))


def test_the_control_loops_of_nested_loops_are_chained() -> None:
    inner = (
        'A6 = Enter[T=bool, frame_name="bar"](A3)',
        "A7 = Merge[N=2, T=bool](A6, A9)",
        "A8 = LoopCond(A7)",
        "B2 = Identity[T=bool](A7)",
        "A9 = NextIteration[T=bool](B2)",
    )
    for graph_def in partitions(graph_of(*LOOP, *inner)).values():
        nodes = {node.name: node for node in graph_def.node}
        enters = {node.attr["frame_name"]: node for node in with_op(graph_def, "Enter") if node.name.startswith("_cloop")}
        assert set(enters) == {b"foo", b"bar"}
        (outer_merge,) = [node.name for node in with_op(graph_def, "Merge") if enters[b"foo"].name in node.input]
        assert enters[b"bar"].input == (outer_merge,)
        assert nodes[enters[b"foo"].input[0]].op == "Const"


def test_control_flow_goes_to_the_devices_of_its_values() -> None:
    texts = (
        "A1 = FloatInput()",
        "A2 = BoolInput()",
        "B3 = Switch[T=float](A1, A2)",
        "B4 = Identity[T=float](B3:1)",
        'A5 = Enter[T=float, frame_name="f"](A1)',
        "B6 = Identity[T=float](A5)",
    )
    found = partitions(graph_of(*texts))
    where = {node.name: device for device, graph_def in found.items() for node in graph_def.node}
    assert (where["B3"], where["A5"]) == (A, B)


def test_an_enter_of_a_reference_stays() -> None:
    reference = ("A6 = Variable()", 'A7 = RefEnter[T=float, frame_name="foo"](A6)', "B8 = Identity[T=float](A7)")
    found = partitions(graph_of(*LOOP, *reference))
    assert "A7" in [node.name for node in found[A].node]


# ---- memory, types -----------------------------------------------------------------------------------------------------


def test_values_cross_between_host_and_device_memory_within_a_partition() -> None:
    def on_host(node: gc.Node, slot: int, *, is_output: bool) -> bool:
        return node.name == "A2" and not is_output

    graph = graph_of("A1 = FloatInput()", "A2 = Identity[T=float](A1)", place={"A": GPU})
    ends = (GPU, GPU)
    sent, received = send("A1/_0", "A1", "edge_1_A1", ends), recv("A1/_1", "edge_1_A1", ends, "A1/_0", "_HostRecv")
    found = partitions(graph, host_memory=on_host)[GPU]
    assert same(found, "A1 = FloatInput()", sent, received, "A2 = Identity[T=float](A1/_1)")


def test_a_cpu_has_one_memory() -> None:
    def on_host(_node: gc.Node, _slot: int, *, is_output: bool) -> bool:
        return is_output

    found = partitions(graph_of("A1 = FloatInput()", "A2 = Identity[T=float](A1)"), host_memory=on_host)
    assert not with_op(found[A], "_HostSend") + with_op(found[A], "_Send")


def test_int32_is_in_host_memory() -> None:
    found = partitions(graph_of("A1 = Whole()", "A2 = FloatInput()", "B1 = Sized(A2, A1)", place={"A": GPU, "B": B}))
    assert [node.op for node in found[GPU].node] == ["Whole", "FloatInput", "_Send", "_HostSend"]
    assert not with_op(found[B], "_HostRecv")


def test_a_value_is_received_separately_in_host_and_device_memory() -> None:
    def on_host(node: gc.Node, slot: int, *, is_output: bool) -> bool:
        return not is_output and slot == 1

    graph = graph_of("A1 = FloatInput()", "B1 = Combine(A1, A1)", place={"A": A, "B": GPU})
    found = partitions(graph, host_memory=on_host)[GPU]
    assert sorted(node.op for node in found.node) == ["Combine", "_HostRecv", "_Recv"]


def test_values_are_cast_on_both_sides_between_devices() -> None:
    found = partitions(graph_of(*INPUTS, "B2 = Combine(A1, B1)", "B3 = FloatInput() @ B2"), should_cast=lambda _: gc.half)
    cast = "A1/_0 = Cast[DstT=half, SrcT=float, Truncate=false](A1)"
    assert same(found[A], "A1 = FloatInput()", cast, send("A1/_1", "A1/_0", "edge_1_A1", dtype="half"))
    back = "A1/_3 = Cast[DstT=float, SrcT=half, Truncate=false](A1/_2)"
    received = (recv("A1/_2", "edge_1_A1", dtype="half"), back, "B2 = Combine(A1/_3, B1)", "B3 = FloatInput() @ B2")
    assert same(found[B], "B1 = FloatInput()", *received)


def test_a_cast_in_host_memory_is_a_host_cast() -> None:
    graph = graph_of("A1 = Whole()", "B1 = Identity[T=int32](A1)", place={"A": GPU, "B": GPU.replace("GPU:0", "GPU:1")})
    found = list(partitions(graph, should_cast=lambda _: gc.int64).values())
    assert [node.op for node in found[0].node] == ["Whole", "_HostCast", "_HostSend"]
    assert sorted(node.op for node in found[1].node) == ["Identity", "_HostCast", "_HostRecv"]


def test_bfloat16_is_cut_off() -> None:
    found = partitions(graph_of(*INPUTS, "B2 = Combine(A1, B1)"), should_cast=lambda _: gc.bfloat16)
    assert [with_op(graph_def, "Cast")[0].attr["Truncate"] for graph_def in found.values()] == [True, False]


# ---- incarnations ------------------------------------------------------------------------------------------------------


def transfer(name: str, device: str, incarnation: int | None) -> gc.NodeDef:
    made = node(recv(name, "e"))
    attr = {**made.attr, "send_device": device.encode()}
    if incarnation is None:
        del attr["send_device_incarnation"]
    else:
        attr["send_device_incarnation"] = incarnation
    return msgspec.structs.replace(made, attr=attr)


@pytest.mark.parametrize(
    ("device", "incarnation", "expected"), [(A, 0, INCARNATION), (A, None, INCARNATION), (A, 7, 7), ("", 0, 0), ("", None, None)]
)
def test_an_incarnation_is_filled_in_where_there_is_none(device: str, incarnation: int | None, expected: int | None) -> None:
    graph_def = gc.GraphDef(node=(transfer("r", device, incarnation),))
    (found,) = gc.set_incarnation(graph_def, lambda _: INCARNATION).node
    assert found.attr.get("send_device_incarnation") == expected


def test_incarnations_are_filled_in_within_functions() -> None:
    inner = gc.definitions.FunctionDef(signature=gc.OpDef(name="F"), node_def=(transfer("r", A, 0),))
    graph_def = gc.GraphDef(library=gc.definitions.FunctionDefLibrary(function=(inner,)))
    (function,) = gc.set_incarnation(graph_def, lambda _: INCARNATION).library.function
    assert function.node_def[0].attr["send_device_incarnation"] == INCARNATION


def test_transfers_that_were_in_the_graph_get_incarnations() -> None:
    graph = graph_of(recv("A1", "e").replace(str(INCARNATION), "0"))
    assert partitions(graph)[A].node[0].attr["send_device_incarnation"] == INCARNATION


# ---- start times -------------------------------------------------------------------------------------------------------


def timed(name: str, time: int, *inputs: str, op: str = "FloatInput") -> gc.NodeDef:
    return gc.NodeDef(name, op, inputs, "", {"_start_time": time})


def test_ready_nodes_go_by_start_time() -> None:
    nodes = [timed(f"p{number}", number + 1) for number in range(20)]
    shuffled = random.Random(3).sample(nodes, len(nodes))
    order = gc.topological_sort_nodes_with_time_priority(gc.GraphDef(node=tuple(shuffled)))
    assert order == [(node, number + 1) for number, node in enumerate(nodes)]


def test_a_consumer_starts_after_its_producers() -> None:
    nodes = (timed("late", 1, "early", "^other"), timed("early", 5), timed("other", 7), timed("free", 6))
    order = gc.topological_sort_nodes_with_time_priority(gc.GraphDef(node=nodes))
    assert [(node.name, time) for node, time in order] == [("early", 5), ("free", 6), ("other", 7), ("late", 8)]


def test_a_merge_does_not_wait_for_the_next_iteration() -> None:
    nodes = (
        timed("enter", 1, op="Enter"),
        timed("merge", 2, "enter", "next", op="Merge"),
        timed("next", 3, "merge", op="NextIteration"),
    )
    order = gc.topological_sort_nodes_with_time_priority(gc.GraphDef(node=nodes))
    assert [node.name for node, _ in order] == ["enter", "merge", "next"]


def test_a_node_without_start_time_cannot_be_ordered() -> None:
    with pytest.raises(gc.errors.InvalidArgumentError, match="No attr named '_start_time' in NodeDef 'x'"):
        gc.topological_sort_nodes_with_time_priority(gc.GraphDef(node=(gc.NodeDef("x", "NoOp"),)))


def test_transfers_start_with_the_nodes_that_they_join() -> None:
    times = {"A1": 4, "B1": 1, "B2": 9, "B3": 6}
    graph = graph_of(*INPUTS, "B2 = Combine(A1, B1)", "B3 = Combine(A1, A1) @ A1")
    found = partitions(graph, start_times=lambda node: times[node.name])
    starts = {node.name: node.attr["_start_time"] for graph_def in found.values() for node in graph_def.node}
    assert {name: starts[name] for name in times} == times
    assert [starts[node.name] for node in found[A].node] == [4, 4, 4, 4]
    assert [(node.op, starts[node.name]) for node in found[B].node if node.name not in times] == [
        ("_Recv", 6),
        ("_Recv", 6),
        ("Identity", 6),
    ]


# ---- stack traces ------------------------------------------------------------------------------------------------------


def test_the_stack_trace_of_a_node_goes_to_its_partition() -> None:
    graph = gc.Graph(registry())
    with graph.as_default():
        first = graph.apply_op("FloatInput", name="A1")
        second = graph.apply_op("Combine", [first.outputs[0], first.outputs[0]], name="B1")
    first.assigned_device, second.assigned_device = A, B
    found = partitions(graph, stack_traces=True)
    traces = {device: schema.GraphDef.FromString(graph_def_to_bytes(graph_def)).debug_info for device, graph_def in found.items()}
    lines = {name: trace.file_line_cols[0].line for info in traces.values() for name, trace in info.traces.items()}
    assert set(traces[A].traces) == {"A1", "A1/_0"}
    assert set(traces[B].traces) == {"B1", "A1/_1"}
    assert [Path(file).name for file in traces[A].files] == [Path(__file__).name]
    assert lines["A1"] == lines["A1/_0"] == lines["B1"] - 1
