"""Removal of dead nodes, identities and list converters; effects and wanted nodes stay."""

from __future__ import annotations

import gc as collector
import weakref

import pytest

import graphcore as gc
from graphcore.inference.shape_fns.common_shape_fns import unknown_shape
from graphcore.passes import remove_dead_nodes, remove_identity_nodes, remove_list_array_converter
from tests.graphcore.passes.function_examples import arg, lines


def identities() -> gc.Graph:
    graph = gc.Graph()
    a = graph.apply_op("Square", [arg(graph, "x")], name="a").outputs[0]
    x1 = graph.apply_op("Identity", [a], name="x1").outputs[0]
    x2 = graph.apply_op("Identity", [x1], name="x2").outputs[0]
    x3 = graph.apply_op("Identity", [x2], name="x3")
    o = arg(graph, "o", 1, gc.int32)
    with graph.control_dependencies([x3]):
        graph.apply_op("RandomUniform", [o], {"dtype": gc.float32}, name="keep_me")
    return graph


def test_f10_example_1_identities_go_and_who_waits_for_them_waits_for_what_they_take() -> None:
    graph = identities()
    assert remove_identity_nodes(graph)
    assert [node.name for node in graph.nodes] == ["x", "a", "o", "keep_me"]
    keep = graph.get_operation_by_name("keep_me")
    assert [node.name for node in keep.control_inputs] == ["a"]
    assert keep.node_def.input == ("o", "^a")
    assert not remove_identity_nodes(graph)


def test_f10_example_1_of_a_fresh_graph_nothing_is_dead() -> None:
    graph = identities()
    before = lines(graph)
    assert not remove_dead_nodes(graph)
    assert lines(graph) == before


@pytest.mark.parametrize("why", ["control input", "reference", "switch", "recv"])
def test_f10_some_identities_are_kept(why: str) -> None:
    registry = gc.OpRegistry()
    for op in ("Identity", "NoOp", "_Arg", "VariableV2", "Neg", "_Recv"):
        registry.register(gc.op_registry.look_up(op))
    registry.register(gc.parse_op_signature("Switch[T:type](data:T, pred:bool) -> (output_false:T, output_true:T)"), unknown_shape)
    graph = gc.Graph(registry)
    source = arg(graph, "x")
    first = [graph.apply_op("NoOp")] if why == "control input" else []
    if why == "reference":
        source = graph.apply_op("VariableV2", attrs={"dtype": gc.float32, "shape": gc.Shape([])}).outputs[0]
    if why == "switch":
        source = graph.apply_op("Switch", [source, arg(graph, "p", 1, gc.bool_)]).outputs[0]
    if why == "recv":
        attrs = {
            "tensor_name": "t",
            "send_device": "/cpu:0",
            "recv_device": "/cpu:1",
            "send_device_incarnation": 1,
            "tensor_type": gc.float32,
        }
        source = graph.apply_op("_Recv", attrs=attrs).outputs[0]
    with graph.control_dependencies(first):
        kept = graph.apply_op("Identity", [source])
    graph.apply_op("Neg", [kept.outputs[0]])
    assert not remove_identity_nodes(graph)


def test_f10_an_identity_at_the_end_goes_and_what_it_names_stays() -> None:
    graph = gc.Graph()
    y = graph.apply_op("Neg", [arg(graph, "x")], name="y").outputs[0]
    graph.apply_op("Identity", [y], name="end")
    assert remove_identity_nodes(graph)
    assert not remove_dead_nodes(graph)
    assert [node.name for node in graph.nodes] == ["x", "y"]


def converters(wait: bool) -> gc.Graph:
    graph = gc.Graph()
    dim = graph.apply_op("Const", attrs={"dtype": gc.int32, "value": gc.TensorValue(0, gc.int32)}, name="zero").outputs[0]
    s = graph.apply_op("Split", [dim, arg(graph, "i")], {"num_split": 4}, name="s").outputs
    first = [graph.apply_op("NoOp", name="first")] if wait else []
    with graph.control_dependencies(first):
        a = graph.apply_op("_ArrayToList", [s], {"out_types": [gc.float32] * 4}, name="a").outputs
    left = graph.apply_op("Mul", [a[0], a[1]], name="l").outputs[0]
    right = graph.apply_op("Mul", [a[2], a[3]], name="r").outputs[0]
    x = graph.apply_op("_ListToArray", [[left, right]], {"T": gc.float32, "N": 2}, name="x")
    graph.apply_op("AddN", [list(x.outputs)], name="o")
    if wait:
        with graph.control_dependencies([x]):
            graph.apply_op("NoOp", name="last")
    return graph


CONVERTED = {
    "zero = Const[dtype=int32, value=Tensor<type: int32 shape: [] values: 0>]()",
    "i = _Arg[T=float, index=0]()",
    "s = Split[T=float, num_split=4](zero, i)",
    "l = Mul(Func/a/input/_{0}, Func/a/input/_{1})",
    "r = Mul(Func/a/input/_{2}, Func/a/input/_{3})",
    "o = AddN[N=2, T=float](Func/x/input/_{4}, Func/x/input/_{5})",
}


def test_f10_example_2_list_converters_become_identities_of_their_elements() -> None:
    graph = converters(wait=False)
    assert remove_list_array_converter(graph)
    assert lines(graph) == {line.format(*range(6)) for line in CONVERTED} | {
        "Func/a/input/_0 = Identity(s)",
        "Func/a/input/_1 = Identity(s:1)",
        "Func/a/input/_2 = Identity(s:2)",
        "Func/a/input/_3 = Identity(s:3)",
        "Func/x/input/_4 = Identity(l)",
        "Func/x/input/_5 = Identity(r)",
    }
    assert not remove_list_array_converter(graph)


def test_f10_list_converters_keep_their_control_edges_on_control_nodes() -> None:
    graph = converters(wait=True)
    remove_list_array_converter(graph)
    waits = " @ Func/a/input_control_node/_0"
    assert lines(graph) == {line.format(*range(1, 7)) for line in CONVERTED} | {
        "first = NoOp()",
        "Func/a/input_control_node/_0 = NoOp() @ first",
        f"Func/a/input/_1 = Identity(s){waits}",
        f"Func/a/input/_2 = Identity(s:1){waits}",
        f"Func/a/input/_3 = Identity(s:2){waits}",
        f"Func/a/input/_4 = Identity(s:3){waits}",
        "Func/x/input/_5 = Identity(l)",
        "Func/x/input/_6 = Identity(r)",
        "Func/x/output_control_node/_7 = NoOp() @ Func/x/input/_5, Func/x/input/_6",
        "last = NoOp() @ Func/x/output_control_node/_7",
    }


def test_f10_what_a_pass_left_without_consumers_is_dead_unless_it_has_state() -> None:
    graph = gc.Graph()
    shape = arg(graph, "shape", 0, gc.int32)
    random = graph.apply_op("RandomUniform", [shape], {"dtype": gc.float32}, name="random").outputs[0]
    unused = graph.apply_op("Neg", [random], name="unused").outputs[0]
    kept = graph.apply_op("_ArrayToList", [[unused, random]], {"out_types": [gc.float32] * 2}, name="list").outputs[1]
    graph.apply_op("Neg", [kept], name="y")
    remove_list_array_converter(graph)
    assert remove_dead_nodes(graph)
    assert [node.name for node in graph.nodes] == ["shape", "random", "y", "Func/list/input/_1"]


def test_f10_control_flow_nodes_are_kept_with_all_they_depend_on_though_nothing_takes_from_them() -> None:
    graph = gc.Graph()
    x, p = arg(graph, "x"), arg(graph, "p", 1, gc.bool_)
    switch = graph.apply_op("Switch", [graph.apply_op("Neg", [x], name="n").outputs[0], p], name="switch").outputs
    merge = graph.apply_op("Merge", [[graph.apply_op("Neg", [switch[0]], name="no").outputs[0], switch[1]]], name="merge")
    enter = graph.apply_op("Enter", [x], {"frame_name": "f"}, name="enter")
    unwanted = graph.apply_op("Neg", [enter.outputs[0]], name="unwanted")
    graph.edge_store.detached.update([merge.name, enter.name, unwanted.name])
    assert remove_dead_nodes(graph)
    assert {node.name for node in graph.nodes} == {"x", "p", "n", "switch", "no", "merge", "enter"}


def test_passes_keep_no_graph_alive() -> None:
    graph = identities()
    remove_identity_nodes(graph)
    remove_dead_nodes(graph)
    gone = weakref.ref(graph)
    del graph
    collector.collect()
    assert gone() is None
