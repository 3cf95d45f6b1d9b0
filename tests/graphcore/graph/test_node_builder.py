"""D: the node builder, which adds a node only if it is valid."""

from __future__ import annotations

import pytest

import graphcore as gc
from graphcore.definitions import NodeOut
from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.registry import OpRegistry
from tests.graphcore.graph.example_graphs import everything, has_edge, is_well, registry


@pytest.fixture
def ops() -> OpRegistry:
    return registry()


@pytest.fixture
def graph(ops: OpRegistry) -> gc.Graph:
    return gc.Graph(ops)


@pytest.fixture
def source(graph: gc.Graph, ops: OpRegistry) -> gc.Node:
    return gc.NodeBuilder("source", "Source", ops).attr("out_types", [gc.int32, gc.string]).finalize(graph)


def sink(ops: OpRegistry) -> gc.NodeBuilder:
    return gc.NodeBuilder("sink", "Identity", ops)


@pytest.mark.parametrize("index", [0, 1], ids=lambda index: f"D-output-{index}")
def test_an_output_that_is_there_may_be_an_input(graph: gc.Graph, ops: OpRegistry, source: gc.Node, index: int) -> None:
    node = sink(ops).input(source, index).finalize(graph)
    assert node.inputs == [source.outputs[index]]
    assert has_edge(graph, "source", index, "sink", 0)
    assert node.output_types == ((gc.int32, gc.string)[index],)


@pytest.mark.parametrize("index", [2, -1], ids=lambda index: f"D-output-{index}")
def test_one_that_is_not_fails_when_the_node_is_finalized_and_adds_nothing(
    graph: gc.Graph, ops: OpRegistry, source: gc.Node, index: int
) -> None:
    before = everything(graph)
    builder = sink(ops).input(source, index)
    with pytest.raises(InvalidArgumentError) as caught:
        builder.finalize(graph)
    assert caught.value.message == (
        f"Attempt to add output {index} of source not in range [0, 2) to node with type Identity. Node: {{{{node source}}}}"
    )
    assert everything(graph) == before


def test_d_a_null_node_fails_and_all_errors_are_told(graph: gc.Graph, ops: OpRegistry, source: gc.Node) -> None:
    builder = gc.NodeBuilder("m", "TestMul", ops).input(None).input(source, 5)
    with pytest.raises(InvalidArgumentError) as caught:
        builder.finalize(graph)
    assert caught.value.message.splitlines()[0] == "Attempt to add nullptr Node to node with type TestMul"
    assert "Attempt to add output 5 of source" in caught.value.message
    assert len(graph) == 1


def test_d_types_and_attrs_that_do_not_fit_fail_too(graph: gc.Graph, ops: OpRegistry, source: gc.Node) -> None:
    before = everything(graph)
    for builder in (
        gc.NodeBuilder("m", "TestInt", ops).input(source, 1),
        sink(ops),
        sink(ops).input(source).attr("T", gc.float32),
        sink(ops).input(source).attr("unknown", 1),
        gc.NodeBuilder("source", "TestParams", ops),
        gc.NodeBuilder("b:c", "Nowhere", ops),
    ):
        with pytest.raises(InvalidArgumentError):
            builder.finalize(graph)
    assert everything(graph) == before


def test_d_lists_tensors_controls_devices_and_attrs(graph: gc.Graph, ops: OpRegistry, source: gc.Node) -> None:
    first = gc.NodeBuilder("a", "TestInput", ops).finalize(graph)
    merged = (
        gc.NodeBuilder("m", "Merge", ops)
        .input([first, first.outputs[1]])
        .control_inputs([source, source])
        .control_input(first)
        .device("/cpu:1")
        .assigned_device("/cpu:0")
        .attr("_note", "x")
        .finalize(graph)
    )
    assert merged.node_def.input == ("a", "a:1", "^source", "^source", "^a")
    assert merged.control_inputs == [source, first]
    assert (merged.device, merged.assigned_device, merged.get_attr("N"), merged.get_attr("_note")) == ("/cpu:1", "/cpu:0", 2, b"x")


def test_d_an_input_may_come_later_and_is_marked_till_then(graph: gc.Graph, ops: OpRegistry) -> None:
    start = gc.NodeBuilder("a", "TestParams", ops).finalize(graph)
    merge = gc.NodeBuilder("m", "Merge", ops).input([start, NodeOut("n", 0, gc.float32)]).finalize(graph)
    assert "'n' is not in the graph yet" in merge.input_errors[1]
    following = gc.NodeBuilder("n", "NextIteration", ops).input(merge).finalize(graph)
    assert merge.inputs[1] is following.outputs[0]
    assert has_edge(graph, "n", 0, "m", 1)
    assert is_well(merge)


def test_d_a_node_of_another_graph_is_refused(graph: gc.Graph, ops: OpRegistry) -> None:
    alien = gc.NodeBuilder("a", "TestParams", ops).finalize(gc.Graph(ops))
    for builder in (sink(ops).input(alien), gc.NodeBuilder("n", "NoOp", ops).control_input(alien)):
        with pytest.raises(InvalidArgumentError, match="belongs to another graph"):
            builder.finalize(graph)


def test_d_a_deprecated_op_is_refused(graph: gc.Graph, ops: OpRegistry) -> None:
    builder = gc.NodeBuilder("b", "BatchNormWithGlobalNormalization", ops)
    with pytest.raises(UnimplementedError, match="is not available in GraphDef version"):
        builder.finalize(graph)
    graph.versions = gc.VersionDef(8)
    assert builder.finalize(graph).name == "b"


def test_d_output_types(source: gc.Node) -> None:
    assert [gc.get_output_type(source, i) for i in range(2)] == [gc.int32, gc.string]
    for node, index, text in ((source, 2, "output 2 of source not in range"), (source, -1, "output -1"), (None, 0, "null")):
        with pytest.raises(InvalidArgumentError, match=text):
            gc.get_output_type(node, index)


def test_d_the_global_ops_are_there_without_a_registry() -> None:
    graph = gc.Graph()
    with graph.as_default():
        x = gc.placeholder(gc.float32, [2], name="x")
    y = gc.NodeBuilder("y", "AddV2").input(x).input(x.node).finalize(graph)
    assert str(y.outputs[0].shape) == "[2]"
    assert y.source is not None
    assert y.source.file == __file__
