"""String attrs of loaded graphs hold any bytes; those that are not UTF-8 raise no error of Python's."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.attrs import AttrValue
from graphcore.definitions import GraphDef, NodeDef, VersionDef, in_out_types_for_node
from graphcore.definitions.wire import graph_def_from_bytes, graph_def_to_bytes
from graphcore.errors import GraphError
from graphcore.graph import ImportOptions, import_graph_def
from graphcore.registry import OpRegistration
from tests.graphcore.graph.importing.hostile_side import value_for
from tests.support.op_checks import checked_for

pytestmark = pytest.mark.sweep

NOT_UTF8 = b"\xff\xfe"
ENTRIES = [entry for entry in gc.op_registry if any(attr.type.endswith(("string", "string)")) for attr in entry.op_def.attr)]
OF_NODES = ("_class", "_executor", "_forward_of", "_gradient_op_type", "_src", "_stands_for", "_user_specified_name", "_value_of")
"""The attrs that nodes of any op may have beside those of the op."""


def opened(*nodes: NodeDef) -> gc.Graph:
    """The graph of a file with these nodes."""
    data = graph_def_to_bytes(GraphDef(node=nodes, versions=VersionDef(producer=1000)))
    graph = gc.Graph()
    import_graph_def(graph_def_from_bytes(data), graph, ImportOptions(allow_internal_ops=True, validate_colocation_constraints=False))
    return graph


def run_and_written(graph: gc.Graph) -> None:
    """Explain the shapes, run each node with zeros for placeholders, and write the graph."""
    feeds: dict[Any, Any] = {}
    for node in graph.op_nodes():
        if node.op == "Placeholder":
            dtype = node.outputs[0].dtype
            feeds[node.outputs[0]] = np.full((), b"a", object) if dtype is gc.string else np.zeros((), dtype.as_numpy)
        for tensor in node.outputs:
            gc.explain_shape(tensor)
    with gc.Session(graph, options=gc.SessionOptions(operation_timeout_in_ms=500)) as session:
        for node in graph.op_nodes():
            with suppress(GraphError):
                session.run(node, feeds)
    graph_def_to_bytes(graph.as_graph_def())


@checked_for(ENTRIES)
def a_string_attr_that_is_not_utf8_is_taken_or_refused(entry: OpRegistration) -> None:
    op_def = entry.op_def
    for changed in op_def.attr:
        if changed.type not in ("string", "list(string)"):
            continue
        attrs: dict[str, AttrValue] = {attr.name: value_for(attr) for attr in op_def.attr}
        attrs[changed.name] = NOT_UTF8 if changed.type == "string" else (NOT_UTF8,)
        node = NodeDef("n", op_def.name, (), "", attrs)
        try:
            types = in_out_types_for_node(node, op_def)[0]
            inputs = [NodeDef(f"x{i}", "Placeholder", (), "", {"dtype": dtype.base}) for i, dtype in enumerate(types)]
            graph = opened(*inputs, NodeDef("n", op_def.name, tuple([each.name for each in inputs]), "", attrs))
        except GraphError:
            continue
        run_and_written(graph)


@pytest.mark.parametrize("value", [NOT_UTF8, (NOT_UTF8,), (b"loc:@" + NOT_UTF8,)], ids=["a text", "a list", "a group"])
@pytest.mark.parametrize("name", OF_NODES)
def test_an_attr_of_any_node_that_is_not_utf8_is_taken_or_refused(name: str, value: AttrValue) -> None:
    x = NodeDef("x", "Const", (), "", {"dtype": gc.float32, "value": gc.TensorValue(np.float32(2))})
    y = NodeDef("y", "Square", ("x",), "", {"T": gc.float32, name: value})
    v = NodeDef("v", "VarHandleOp", (), "", {"dtype": gc.float32, "shape": gc.Shape([]), name: value})
    try:
        graph = opened(x, y, v)
        gc.gradients(graph.get_tensor_by_name("y:0"), graph.get_tensor_by_name("x:0"))
    except GraphError:
        return
    run_and_written(graph)


def test_variables_with_names_that_are_not_utf8_are_other_variables_and_can_be_saved(tmp_path: Any) -> None:
    def of(name: str, shared: bytes) -> list[NodeDef]:
        handle = NodeDef(name, "VarHandleOp", (), "", {"dtype": gc.float32, "shape": gc.Shape([]), "shared_name": shared})
        value = NodeDef(f"{name}_value", "Const", (), "", {"dtype": gc.float32, "value": gc.TensorValue(np.float32(len(shared)))})
        assign = NodeDef(f"{name}_assign", "AssignVariableOp", (name, f"{name}_value"), "", {"dtype": gc.float32})
        return [handle, value, assign, NodeDef(f"{name}_read", "ReadVariableOp", (name,), "", {"dtype": gc.float32})]

    graph = opened(*of("a", b"\xff"), *of("b", b"\xfe\xfe"), *of("c", b""))
    with gc.Session(graph) as session:
        session.run(["a_assign", "b_assign", "c_assign"])
        assert session.run(["a_read:0", "b_read:0", "c_read:0"]) == [1.0, 2.0, 0.0]
        gc.save_variables(session, tmp_path / "values.npz")
        session.run("a_assign", {"a_value:0": 5.0})
        gc.restore_variables(session, tmp_path / "values.npz")
        assert session.run("a_read:0") == 1.0
