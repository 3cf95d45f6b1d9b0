"""Runs of ONNX models by the kernels of onnxruntime, compared with its own sessions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import graphcore as gc
from graphcore.frontends.record import foreign_of
from tests.graphcore.frontends.test_onnx_runs import LIGHT, X, branching, calling

onnxruntime: Any = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.frameworks
VALUES = gc.RunOptions(values=True)


def session_of(model: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def with_all_outputs(model: Any) -> Any:
    """A model that gives the values of all nodes of its graph."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    results = {output.name for output in whole.graph.output}
    names = [name for node in whole.graph.node for name in node.output if name and name not in results]
    whole.graph.output.extend([onnx.ValueInfoProto(name=name) for name in names])
    return whole


@pytest.mark.parametrize("make", [branching, calling])
def test_branches_loops_and_functions_give_what_a_session_gives(make: Any) -> None:
    model = make()
    model.ir_version = 10
    for ours, theirs in zip(gc.Session(gc.from_source(model)).run(None, {"x": X}), session_of(model).run(None, {"x": X}), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("name", ["light_squeezenet", "light_shufflenet", "light_resnet50"])
def test_all_values_of_a_network_are_those_of_a_session(name: str) -> None:
    path = LIGHT / f"{name}.onnx"
    graph, whole = gc.load(path), with_all_outputs(onnx.load(path))
    record = foreign_of(graph)
    assert record is not None
    feeds = {
        node.name: np.random.default_rng(0).random([size or 1 for size in node.outputs[0].shape.as_list()], np.float32)
        for node in graph.op_nodes()
        if node.op == "onnx.Input"
    }
    ports = {f"{name}:{place}": port.name for name, node in record.nodes.items() for place, port in enumerate(node.outputs) if port.name}
    names = {record.nodes[name].outputs[0].name: value for name, value in feeds.items()}
    theirs = dict(zip([output.name for output in whole.graph.output], session_of(whole).run(None, names), strict=True))
    ours = dict(zip(ports.values(), gc.Session(graph).run(list(ports), feeds), strict=True))
    assert set(theirs) <= set(ours)
    masks = {
        output for node in whole.graph.node if node.op_type == "Dropout" for output in node.output[1:]
    }  # of another type in old versions
    for port in theirs.keys() - masks:
        np.testing.assert_allclose(ours[port], theirs[port], rtol=1e-5, atol=1e-6)


def test_an_op_of_microsofts_domain_runs_and_is_recorded() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    nodes = [helper.make_node("FastGelu", ["x"], ["h"], domain="com.microsoft"), helper.make_node("Log", ["h"], ["y"])]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    graph = gc.from_source(helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=opsets))
    gc.Session(graph).run(None, {"x": np.array([0.0, 1.0, -1.0], np.float32)}, options=VALUES)
    trace = graph.trace
    assert isinstance(trace, gc.Trace)
    assert trace.values is not None
    assert trace.values.first_bad is not None
    assert trace.values.first_bad.tensor.node == "Log"


def test_what_onnxruntime_refuses_the_evaluator_runs() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    nodes = [helper.make_node("Add", ["x", "x"], ["h"]), helper.make_node("Cast", ["h"], ["y"], to=TensorProto.FLOAT)]
    graph = gc.from_source(helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 18)]))
    ml_dtypes: Any = pytest.importorskip("ml_dtypes")
    (result,) = gc.Session(graph).run(None, {"x": np.array([1.5, -2.0], ml_dtypes.bfloat16)})
    np.testing.assert_array_equal(result, np.array([3.0, -4.0], np.float32))
