"""Removed ops are refused from their version on, and run in older graphs."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.definitions import GraphDef, NodeDef, VersionDef

OLD = VersionDef(producer=8)
ATTRS = {"variance_epsilon": 0.25, "scale_after_normalization": True}
X = np.array([[[[1.0, 5.0], [3.0, -1.0]]]], np.float32)


def normalised(x: gc.Tensor | None = None) -> gc.Tensor:
    m, v, beta, gamma = (gc.constant(np.array(pair, np.float32)) for pair in ([1.0, 2.0], [2.0, 0.75], [0.5, -1.0], [3.0, 2.0]))
    inputs = [gc.constant(X) if x is None else x, m, v, beta, gamma]
    return gc.get_default_graph().apply_op("BatchNormWithGlobalNormalization", inputs, ATTRS).outputs[0]


@pytest.mark.parametrize("op", ["BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad"])
def test_the_error_of_a_removed_op_names_its_replacement(op: str) -> None:
    with gc.Graph().as_default() as graph:
        inputs = [gc.constant(X)] + [gc.constant(np.ones(2, np.float32))] * 3 + [gc.constant(X)]
        before = graph.num_node_ids
        with pytest.raises(gc.errors.UnimplementedError) as caught:
            graph.apply_op(op, inputs, ATTRS)
        assert caught.value.message == (
            f"Op {op} is not available in GraphDef version {gc.PRODUCER_VERSION}. It has been removed in version 9. "
            "Use tf.nn.batch_normalization()."
        )
        assert graph.num_node_ids == before


def test_a_graph_that_is_older_runs_and_differentiates_the_old_normalisation() -> None:
    with gc.Graph().as_default() as graph, gc.Session() as session:
        graph.versions = OLD
        x = gc.placeholder(gc.float32, X.shape)
        y = normalised(x)
        np.testing.assert_allclose(session.run(y, {x: X}), [[[[0.5, 5.0], [4.5, -7.0]]]], rtol=1e-6)
        (dx,) = gc.gradients(y, [x])
        assert dx.node.inputs[0].node.op == "BatchNormWithGlobalNormalizationGrad"
        np.testing.assert_allclose(session.run(dx, {x: X}), np.broadcast_to([2.0, 2.0], X.shape), rtol=1e-6)


def test_an_imported_old_graph_keeps_its_version_and_runs() -> None:
    with gc.Graph().as_default() as graph:
        graph.versions = OLD
        name = normalised().name
        graph_def = graph.as_graph_def()
    assert graph_def.versions.producer == 8
    with gc.Graph().as_default() as graph, gc.Session() as session:
        gc.import_graph_def(graph_def, graph, prefix="")
        np.testing.assert_allclose(session.run(name), [[[[0.5, 5.0], [4.5, -7.0]]]], rtol=1e-6)


@pytest.mark.parametrize(("shape", "known"), [((), None), ((2, 3), (2, 3)), ((None, 3), (None, 3))])
def test_an_empty_shape_of_an_old_variable_is_unknown(shape: tuple[int | None, ...], known: object) -> None:
    with gc.Graph().as_default() as graph:
        made = graph.apply_op("Variable", [], {"shape": gc.Shape(shape), "dtype": gc.float32})
    assert made.outputs[0].shape.dims == known


def test_an_old_variable_is_the_same_variable_as_a_newer_one_of_its_shared_name() -> None:
    attrs = {"shape": gc.Shape([2]), "dtype": gc.float32, "shared_name": "weights"}
    with gc.Graph().as_default(), gc.Session() as session:
        old, new = (gc.apply_op(op, attrs=attrs) for op in ("Variable", "VariableV2"))
        session.run(gc.apply_op("Assign", [old, gc.constant([1.0, 2.0])]))
        assert session.run(gc.apply_op("AssignAdd", [new, gc.constant([1.0, 1.0])])).tolist() == [2.0, 3.0]
        assert session.run(old).tolist() == [2.0, 3.0]


def test_a_file_with_an_old_variable_runs() -> None:
    shape, dtype = gc.Shape([2]), gc.float32
    graph_def = GraphDef(
        node=(
            NodeDef("w", "Variable", attr={"shape": shape, "dtype": dtype}),
            NodeDef("value", "Const", attr={"dtype": dtype, "value": gc.TensorValue(np.array([4.0, 5.0], np.float32))}),
            NodeDef("init", "Assign", ("w", "value"), attr={"T": dtype}),
        ),
        versions=OLD,
    )
    with gc.Graph().as_default() as graph, gc.Session() as session:
        gc.import_graph_def(graph_def, graph, prefix="")
        with pytest.raises(gc.errors.FailedPreconditionError, match="uninitialized value w"):
            session.run("w:0")
        session.run("init:0")
        assert session.run("w:0").tolist() == [4.0, 5.0]
