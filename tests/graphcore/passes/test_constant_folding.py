"""Constant folding: the constants, their names and their control inputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import graphcore as gc
from graphcore.errors import InvalidArgumentError
from graphcore.inference.shape_fns.common_shape_fns import unknown_shape
from tests.graphcore.passes.function_examples import times_library

KEY = {"send_device": "/cpu:0", "recv_device": "/cpu:1", "send_device_incarnation": 1}


def const(graph: gc.Graph, name: str, value: npt.ArrayLike, dtype: gc.DType = gc.float32) -> gc.Tensor:
    return graph.apply_op("Const", attrs={"dtype": dtype, "value": gc.TensorValue(value, dtype)}, name=name).outputs[0]


def recv(graph: gc.Graph, name: str, dtype: gc.DType = gc.float32, shape: gc.Shape | None = None) -> gc.Tensor:
    made = graph.apply_op("_Recv", attrs={**KEY, "tensor_type": dtype, "tensor_name": name}, name=name).outputs[0]
    if shape is not None:
        made.set_shape(shape)
    return made


def send(graph: gc.Graph, tensor: gc.Tensor, name: str = "") -> gc.Node:
    """A consumer that is not folded."""
    label = name or f"send_{tensor.node.name}_{tensor.index}"
    return graph.apply_op("_Send", [tensor], {**KEY, "tensor_name": label}, label)


def source(consumer: gc.Node) -> gc.Node:
    return consumer.inputs[0].node


def folded(consumer: gc.Node) -> npt.NDArray[np.generic] | None:
    """The constant that a consumer now takes, None for another producer."""
    node = source(consumer)
    value = node.node_def.attr.get("value")
    return value.array if node.op == "Const" and "__cf__" in node.name and isinstance(value, gc.TensorValue) else None


def matmuls(graph: gc.Graph) -> tuple[gc.Node, gc.Node]:
    a, b, c = (const(graph, name, value) for name, value in (("a", [[1, 0], [0, 1]]), ("b", [[1, 2], [3, 4]]), ("c", [[0, 1], [1, 0]])))
    m1 = graph.apply_op("MatMul", [a, b], name="m1").outputs[0]
    m2 = graph.apply_op("MatMul", [b, c], name="m2").outputs[0]
    return send(graph, m1, "s1"), send(graph, m2, "s2")


def test_cf_example_1_what_depends_on_constants_alone_becomes_a_constant() -> None:
    graph = gc.Graph()
    first, second = matmuls(graph)
    assert gc.fold_constants(graph)
    values = [folded(first), folded(second)]
    assert [None if value is None else value.tolist() for value in values] == [[[1, 2], [3, 4]], [[2, 1], [4, 3]]]
    assert [source(first).name, source(second).name] == ["m1/_0__cf__0", "m2/_1__cf__1"]
    assert source(first).output_types == (gc.float32,)
    assert [edge.src.name for edge in source(first).in_edges()] == ["_SOURCE"]
    assert not gc.fold_constants(graph)
    assert graph.find("m1") is not None
    gc.remove_dead_nodes(graph)
    assert sorted(node.name for node in graph.nodes) == ["m1/_0__cf__0", "m2/_1__cf__1", "s1", "s2"]


def test_cf_example_2_a_rejected_node_is_left_and_reads_what_it_read() -> None:
    graph = gc.Graph()
    first, second = matmuls(graph)
    gc.fold_constants(graph, gc.ConstantFoldingOptions(consider=lambda node: node.name != "m2"))
    assert folded(first) is not None
    assert source(second).name == "m2"
    assert [tensor.name for tensor in source(second).inputs] == ["b:0", "c:0"], "a constant is never replaced by another"


def test_cf_example_3_every_output_that_is_taken_is_replaced() -> None:
    graph = gc.Graph()
    s0, s1 = const(graph, "s0", [1], gc.int32), const(graph, "s1", [2, 2], gc.int32)
    b = graph.apply_op("BroadcastGradientArgs", [s0, s1], name="b").outputs
    first, second = send(graph, b[0]), send(graph, b[1])
    gc.fold_constants(graph)
    values = [folded(first), folded(second)]
    assert [None if value is None else value.tolist() for value in values] == [[0, 1], []]
    assert [source(first).name, source(second).name] == ["b/_0__cf__0", "b/_1__cf__1"]


def test_cf_example_4_a_constant_waits_for_all_that_was_waited_for() -> None:
    graph = gc.Graph()
    recv1, recv2 = recv(graph, "recv1"), recv(graph, "recv2")
    c0 = const(graph, "c0", 1)
    with graph.control_dependencies([recv1]):
        c1 = const(graph, "c1", 2)
    with graph.control_dependencies([recv2]):
        c2 = const(graph, "c2", 3)
    with graph.control_dependencies([c2]):
        add = graph.apply_op("Add", [c0, c1], name="add").outputs[0]
    consumer = send(graph, add)
    gc.fold_constants(graph)
    value = folded(consumer)
    assert value is not None
    assert value == 3
    edges = source(consumer).in_edges()
    assert sorted((edge.src.name, edge.is_control_edge) for edge in edges) == [("recv1", True), ("recv2", True)]
    assert source(consumer).node_def.input == ("^recv1", "^recv2")


def test_cf_example_5_shape_ops_are_replaced_where_the_shape_is_known() -> None:
    graph = gc.Graph()
    recv0, recv1 = recv(graph, "recv0", shape=gc.Shape([None, None])), recv(graph, "recv1")
    consumers = {
        f"{op}{index}": send(graph, graph.apply_op(op, [tensor], name=f"{op}{index}").outputs[0])
        for index, tensor in enumerate((recv0, recv1))
        for op in ("Shape", "Rank", "Size")
    }
    gc.fold_constants(graph)
    assert {name: folded(consumer) is not None for name, consumer in consumers.items()} == {
        "Shape0": False, "Rank0": True, "Size0": False, "Shape1": False, "Rank1": False, "Size1": False,
    }  # fmt: skip
    assert folded(consumers["Rank0"]) == 2
    assert [node.name for node in source(consumers["Rank0"]).control_inputs] == ["recv0"]


def test_cf_example_6_calls_of_functions_are_not_folded() -> None:
    graph = gc.Graph()
    graph.library.add_library(times_library())
    call = graph.apply_op("XTimesTwo", [const(graph, "c", 3)], name="call").outputs[0]
    partitioned = graph.apply_op("PartitionedCall", [[call]], {"Tout": [gc.float32], "f": gc.Func("XTimesTwo", {"T": gc.float32})}, "p")
    send(graph, partitioned.outputs[0])
    version = graph.version
    assert not gc.fold_constants(graph)
    assert graph.version == version


@pytest.mark.parametrize("out_type", [gc.int32, gc.int64])
def test_cf_all_shape_ops_of_a_known_shape_are_replaced_and_what_follows_from_them(out_type: gc.DType) -> None:
    graph = gc.Graph()
    x, y = recv(graph, "x", shape=gc.Shape([2, 3])), recv(graph, "y", shape=gc.Shape([4]))
    shapes = graph.apply_op("ShapeN", [[x, y]], {"out_type": out_type}, "n").outputs
    consumers = [send(graph, tensor) for tensor in shapes]
    consumers.append(send(graph, graph.apply_op("Shape", [x], {"out_type": out_type}, "s").outputs[0]))
    consumers.append(send(graph, graph.apply_op("Size", [x], {"out_type": out_type}, "z").outputs[0]))
    consumers.append(send(graph, graph.apply_op("Neg", [graph.apply_op("Rank", [x], name="r").outputs[0]], name="neg").outputs[0]))
    gc.fold_constants(graph)
    values = [folded(consumer) for consumer in consumers]
    assert [None if value is None else value.tolist() for value in values] == [[2, 3], [4], [2, 3], 6, -2]
    assert all(source(consumer).output_types == (out_type,) for consumer in consumers[:4])
    assert [[node.name for node in source(consumer).control_inputs] for consumer in consumers] == [
        ["x", "y"],
        ["x", "y"],
        ["x"],
        ["x"],
        ["x"],
    ]


def test_cf_a_shape_map_takes_the_place_of_what_the_graph_knows() -> None:
    graph = gc.Graph()
    shape = graph.apply_op("Shape", [recv(graph, "x", shape=gc.Shape([2]))], name="s").outputs[0]
    consumer = send(graph, shape)
    assert not gc.fold_constants(graph, gc.ConstantFoldingOptions(shape_map={}))
    assert gc.fold_constants(graph, gc.ConstantFoldingOptions(shape_map={"x": [gc.Shape([5])]}))
    assert folded(consumer) == [5]


@pytest.mark.parametrize(("op", "size", "out_type", "is_folded"), [
    ("Size", 2**31, gc.int32, False),
    ("Size", 2**31 - 1, gc.int32, True),
    ("Size", 2**31, gc.int64, True),
    ("Shape", 2**31, gc.int32, False),
    ("Shape", 2**31, gc.int64, True),
    ("ShapeN", 2**31, gc.int32, False),
])  # fmt: skip
def test_cf_a_size_too_large_for_int32_is_not_replaced(op: str, size: int, out_type: gc.DType, is_folded: bool) -> None:
    graph = gc.Graph()
    x = recv(graph, "x", shape=gc.Shape([size]))
    made = graph.apply_op(op, [[x]] if op == "ShapeN" else [x], {"out_type": out_type}).outputs[0]
    consumer = send(graph, made)
    assert gc.fold_constants(graph) == is_folded
    assert (folded(consumer) is not None) == is_folded


def _random(graph: gc.Graph) -> gc.Tensor:
    return graph.apply_op("RandomUniform", [const(graph, "n", [2], gc.int32)], {"dtype": gc.float32}).outputs[0]


def _default(graph: gc.Graph) -> gc.Tensor:
    return graph.apply_op("PlaceholderWithDefault", [const(graph, "d", [2.0])], {"shape": gc.Shape([1])}).outputs[0]


def _variable(graph: gc.Graph) -> gc.Tensor:
    variable = graph.apply_op("VariableV2", attrs={"dtype": gc.float32, "shape": gc.Shape([])}).outputs[0]
    return graph.apply_op("Identity", [variable]).outputs[0]


def _scoped(graph: gc.Graph) -> gc.Tensor:
    return graph.apply_op("Neg", [const(graph, "c", 2)], {"_scoped_allocator": [1, 2]}).outputs[0]


def _without_kernel(graph: gc.Graph) -> gc.Tensor:
    graph.registry.register(gc.parse_op_signature("Unheard(x:float) -> (y:float)"), unknown_shape)
    return graph.apply_op("Unheard", [const(graph, "c", 2)]).outputs[0]


def own_registry() -> gc.OpRegistry:
    made = gc.OpRegistry()
    for op in ("Const", "Neg", "Identity", "RandomUniform", "PlaceholderWithDefault", "Placeholder", "VariableV2", "_Send", "_Recv"):
        made.register(gc.op_registry.look_up(op))
    return made


@pytest.mark.parametrize("make", [_random, _default, _variable, _scoped, _without_kernel], ids=lambda make: make.__name__.strip("_"))
def test_cf_some_nodes_are_never_folded(make: Callable[[gc.Graph], gc.Tensor]) -> None:
    graph = gc.Graph(own_registry())
    consumer = send(graph, make(graph))
    before = source(consumer)
    assert not gc.fold_constants(graph)
    assert source(consumer) is before


@pytest.mark.parametrize(("op", "is_folded"), [("Neg", False), ("Identity", True), ("StopGradient", True)])
def test_cf_a_size_said_to_be_unknown_does_harm_unless_the_op_makes_nothing_larger(op: str, is_folded: bool) -> None:
    graph = gc.Graph()
    consumer = send(graph, graph.apply_op(op, [const(graph, "c", 2)], name="n").outputs[0])
    assert gc.fold_constants(graph, gc.ConstantFoldingOptions(shape_map={"n": [gc.Shape(None)]})) == is_folded
    assert (folded(consumer) is not None) == is_folded


def test_cf_large_values_are_left_to_the_run() -> None:
    graph = gc.Graph()
    dims = const(graph, "dims", [1000, 2], gc.int32)
    filled = graph.apply_op("Fill", [dims, const(graph, "one", 1)], name="filled").outputs[0]
    total = graph.apply_op("Sum", [filled, const(graph, "axes", [0, 1], gc.int32)], name="total").outputs[0]
    large, small = send(graph, filled), send(graph, total)
    assert not gc.fold_constants(graph, gc.ConstantFoldingOptions(max_constant_size_in_bytes=7999))
    assert gc.fold_constants(graph, gc.ConstantFoldingOptions(max_constant_size_in_bytes=8000))
    assert folded(large) is not None
    assert folded(small) == 2000


def test_cf_constants_alone_are_nothing_to_fold() -> None:
    graph = gc.Graph()
    send(graph, const(graph, "c", 1))
    assert not gc.fold_constants(graph)
    assert len(graph) == 2


def test_cf_a_value_is_fetched_once_for_all_who_take_it() -> None:
    graph = gc.Graph()
    neg = graph.apply_op("Neg", [const(graph, "c", 1)], name="neg").outputs[0]
    twice = graph.apply_op("Neg", [neg], name="twice").outputs[0]
    consumers = [send(graph, neg, "s1"), send(graph, neg, "s2"), send(graph, twice, "s3")]
    gc.fold_constants(graph)
    assert source(consumers[0]) is source(consumers[1])
    assert [source(consumer).name for consumer in consumers] == ["neg/_0__cf__0", "neg/_0__cf__0", "twice/_1__cf__1"]
    assert [tensor.name for tensor in graph.get_operation_by_name("twice").inputs] == ["neg/_0__cf__0:0"]


def test_cf_who_waits_for_a_folded_node_goes_on_waiting_for_it() -> None:
    graph = gc.Graph()
    neg = graph.apply_op("Neg", [const(graph, "c", 1)], name="neg").outputs[0]
    send(graph, neg)
    with graph.control_dependencies([neg]):
        waits = graph.apply_op("NoOp", name="waits")
    gc.fold_constants(graph)
    gc.remove_dead_nodes(graph)
    assert [node.name for node in waits.control_inputs] == ["neg"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_cf_names_do_not_depend_on_the_order_in_which_the_graph_was_built(order: tuple[int, ...]) -> None:
    graph = gc.Graph()
    for index in order:
        c = const(graph, f"c{index}", index)
        send(graph, graph.apply_op("Neg", [c], name=f"n{index}").outputs[0], f"s{index}")
    gc.fold_constants(graph)
    assert [source(graph.get_operation_by_name(f"s{index}")).name for index in range(3)] == ["n0/_0__cf__0", "n1/_1__cf__1", "n2/_2__cf__2"]


def failing(graph: gc.Graph) -> gc.Node:
    good = graph.apply_op("Neg", [const(graph, "c", 1)], name="good").outputs[0]
    zero = const(graph, "zero", 0, gc.int32)
    bad = graph.apply_op("FloorDiv", [const(graph, "one", 1, gc.int32), zero], name="bad").outputs[0]
    send(graph, graph.apply_op("Neg", [bad], name="after").outputs[0], "s_bad")
    return send(graph, good, "s_good")


def test_cf_what_cannot_be_computed_is_told_and_the_graph_stays_as_it_was() -> None:
    graph = gc.Graph()
    failing(graph)
    before = [node.node_def for node in graph.nodes]
    with pytest.raises(InvalidArgumentError) as caught:
        gc.fold_constants(graph)
    assert caught.value.node == "bad"
    assert [node.node_def for node in graph.nodes] == before


def test_cf_what_cannot_be_computed_may_be_left_to_the_run() -> None:
    graph = gc.Graph()
    consumer = failing(graph)
    assert gc.fold_constants(graph, gc.ConstantFoldingOptions(ignore_failures=True))
    assert folded(consumer) == -1
    assert source(graph.get_operation_by_name("s_bad")).name == "after"


def test_cf_the_constant_goes_to_the_device_of_the_graph_or_of_the_node() -> None:
    graph = gc.Graph()
    with graph.device("/cpu:1"):
        neg = graph.apply_op("Neg", [const(graph, "c", 1)], name="neg").outputs[0]
    consumer = send(graph, neg)
    other = graph.copy()
    gc.fold_constants(graph)
    assert source(consumer).device == "/device:CPU:1"
    gc.fold_constants(other, gc.ConstantFoldingOptions(device="/job:w/replica:0/task:0/device:GPU:0"))
    assert source(other.get_operation_by_name(consumer.name)).assigned_device == "/job:w/replica:0/task:0/device:GPU:0"


@pytest.mark.parametrize(("device", "is_folded"), [("/device:GPU:0", False), ("/device:CPU:0", True), ("", True)])
def test_cf_on_another_device_an_op_with_outputs_in_two_memories_is_not_folded(device: str, is_folded: bool) -> None:
    graph = gc.Graph()
    unique = graph.apply_op("TopKV2", [const(graph, "c", [1, 2, 3]), const(graph, "k", 2, gc.int32)], name="top").outputs
    consumer = send(graph, unique[0])
    gc.fold_constants(graph, gc.ConstantFoldingOptions(device=device))
    assert (folded(consumer) is not None) == is_folded


def test_cf_strings_are_folded_and_counted_by_what_they_hold() -> None:
    graph = gc.Graph()
    text = const(graph, "c", [b"x" * 100], gc.string)
    consumer = send(graph, graph.apply_op("Identity", [text], name="i").outputs[0])
    assert not gc.fold_constants(graph, gc.ConstantFoldingOptions(max_constant_size_in_bytes=100))
    assert gc.fold_constants(graph)
    assert folded(consumer) == [b"x" * 100]
