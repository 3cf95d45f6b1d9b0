"""Shape functions called without a context give the same results as with one."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.errors import GraphError
from graphcore.graph import ShapeRefiner
from graphcore.inference import handle_to_shape
from graphcore.registry import op_registry
from tests.graphcore.inference.knowledge import Partial
from tests.graphcore.inference.shape_fns.test_shapes_agree_with_kernels import BY_OP, REGISTRY
from tests.graphcore.inference.surroundings import SPECIAL, build
from tests.support.op_checks import checked_for

DIRECT = [entry.op_def.name for entry in op_registry if entry.direct_shape is not None and entry.op_def.name not in SPECIAL]


def _refined(graph: gc.Graph, node: gc.Node) -> list[gc.Shape]:
    """The shapes from a refiner, which makes a context for every node."""
    refiner = ShapeRefiner(graph)
    for other in graph.op_nodes():
        refiner.add_node(other)
    context = refiner.get_context(node)
    assert context is not None
    return [handle_to_shape(context.output(index)) for index in range(context.num_outputs)]


def test_most_elementwise_ops_are_inferred_without_a_context() -> None:
    assert {"AddV2", "Mul", "Tanh", "Relu", "Neg", "Greater"} <= set(DIRECT)


@checked_for(DIRECT)
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def a_node_has_the_same_shapes_with_and_without_a_context(name: str, data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(BY_OP[name]))
    with gc.Graph(REGISTRY).as_default() as graph:
        node = build(case, Partial(data.draw)).node
        assert [tensor.shape for tensor in node.outputs] == _refined(graph, node)


@given(st.lists(st.sampled_from([None, 1, 2, 3]), max_size=3), st.lists(st.sampled_from([None, 1, 2, 3]), max_size=3))
def test_dimensions_keep_their_identity_and_misfits_their_text(left: list[int | None], right: list[int | None]) -> None:
    with gc.Graph().as_default() as graph:
        x, y = gc.placeholder(gc.float32, left), gc.placeholder(gc.float32, right)
        if any({1, None}.isdisjoint(pair) and len(set(pair)) > 1 for pair in zip(reversed(left), reversed(right), strict=False)):
            with pytest.raises(GraphError, match=r"for 'sum' \(op: 'AddV2'\) with input shapes: "):
                graph.apply_op("AddV2", [x, y], name="sum")
            assert len(graph) == 2
            return
        node = graph.apply_op("AddV2", [x, y], name="sum")
        refiner = ShapeRefiner(graph)
        for other in graph.op_nodes():
            refiner.add_node(other)
        context = refiner.get_context(node)
        assert context is not None
        for mine, theirs in zip(node.output_handles[0].dims or (), context.output(0).dims or (), strict=True):
            inherited = [mine in (tensor.node.output_handles[0].dims or ()) for tensor in node.inputs]
            assert inherited == [theirs in (shape.dims or ()) for shape in context.inputs]
