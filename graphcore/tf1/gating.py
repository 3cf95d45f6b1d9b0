"""`tf.tuple`: tensors that wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.graph import Graph, get_default_graph
from graphcore.tf1.framework import group
from graphcore.tf1.indexed_slices import IndexedSlices


def tuple(tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] | None = None) -> list[Any]:  # noqa: A001 - TF1's name
    """The tensors, each available only when all are computed and `control_inputs` have run."""
    graph = get_default_graph()
    with graph.name_scope(name or "tuple"):
        gate = group(*[tensor.values if isinstance(tensor, IndexedSlices) else tensor for tensor in tensors], *(control_inputs or ()))
        with graph.control_dependencies([gate]):
            return [_gated(graph, tensor) for tensor in tensors]


def _gated(graph: Graph, value: Any) -> Any:
    if isinstance(value, IndexedSlices):
        return IndexedSlices(_gated(graph, value.values), value.indices, value.dense_shape)
    return None if value is None else graph.apply_op("Identity", [value], None, "control_dependency").outputs[0]
