"""Nodes of unregistered ops can be held, shown and exported."""

from __future__ import annotations

import pytest

import graphcore as gc
from graphcore.attrs import Func
from graphcore.errors import InvalidArgumentError
from graphcore.graph import ImportOptions, ImportResults, import_graph_def
from tests.graphcore.graph.example_graphs import graph_def, import_into, node, registry


@pytest.fixture
def graph() -> gc.Graph:
    return gc.Graph(registry())


STRANGE = (
    "W=TestParams",
    node("s=Strange(W, ^W)", "/gpu:0", T=gc.float32, what=[1, 2], f=Func("g")),
    "t=TestMul(s:1, s)",
    "u=StrangeToo(s:3, t)",
    node("v=TestInt(u:2)"),
    node("w=Shaped", _output_shapes=[gc.Shape([2]), gc.Shape(None)]),
    "m=Merge(W, next)",
    "next=NextIteration(back)",
    "back=Strange(m)",
)


def test_unknown_ops_may_be_imported_as_opaque_nodes(graph: gc.Graph) -> None:
    import_into(graph, *STRANGE, allow_unknown_ops=True)
    strange, too = graph.get_operation_by_name("s"), graph.get_operation_by_name("u")
    assert strange.is_opaque
    assert not graph.get_operation_by_name("t").is_opaque
    assert [dtype.text for dtype in strange.output_types] == ["float", "float", "INVALID", "INVALID"]
    assert [dtype.text for dtype in too.input_types] == ["INVALID", "float"]
    assert [dtype.text for dtype in too.output_types] == ["INVALID", "INVALID", "int32"]
    assert [str(tensor.shape) for tensor in strange.outputs] == ["?"] * 4
    assert [str(tensor.shape) for tensor in graph.get_operation_by_name("w").outputs] == ["[2]", "?"]
    assert all(each.error is None for each in graph.nodes)


def test_opaque_nodes_are_exported_unchanged(graph: gc.Graph) -> None:
    import_into(graph, *STRANGE, allow_unknown_ops=True)
    assert {each.name: each for each in graph.as_graph_def().node} == {each.name: each for each in graph_def(*STRANGE).node}
    again = gc.Graph(registry())
    import_graph_def(graph.as_graph_def(), again, ImportOptions(allow_unknown_ops=True))
    assert again.as_graph_def() == graph.as_graph_def()


def test_an_output_of_an_opaque_node_that_is_asked_for_is_there(graph: gc.Graph) -> None:
    results = ImportResults()
    import_into(graph, "s=Strange", allow_unknown_ops=True, return_tensors=["s:2"], results=results)
    assert results.return_tensors[0].name == "s:2"


def test_an_opaque_node_cannot_be_run(graph: gc.Graph) -> None:
    import_into(graph, "s=Strange", "n=Identity(s:1)", allow_unknown_ops=True)
    with pytest.raises(InvalidArgumentError, match=r"Op 'Strange' of node 's' .*can be seen but not run"):
        gc.Session(graph).run("n")
