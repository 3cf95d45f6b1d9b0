"""Probe nodes that observe values: array shapes, and handles of variables, arrays and lists."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphcore as gc
from graphcore.graph import Node
from graphcore.inference import InferenceContext
from graphcore.inference.shape_fns.common_shape_fns import unchanged_shape
from graphcore.kernel_context import KernelContext, RefVariable
from graphcore.opset.numerics.accumulator_values import Accumulator
from graphcore.opset.numerics.queue_values import Queue
from graphcore.opset.numerics.table_values import Table
from graphcore.opset.numerics.tensor_array_values import TensorArray
from graphcore.opset.numerics.tensor_list_values import TensorList
from graphcore.registry import Kernel, OpRegistration, OpRegistry
from graphcore.text import parse_op_signature

SEEN: dict[str, list[Any]] = {}
"""The values seen by the probes of the last run, by their names."""


def _kernel(k: KernelContext) -> Kernel:
    seen = SEEN.setdefault(k.node_name, [])

    def look(value: Any) -> Any:
        seen.append(value)
        return value

    return look


def _entry(signature: str) -> OpRegistration:
    entry = OpRegistration(parse_op_signature(signature), _unchanged)
    entry.kernel = _kernel
    return entry


def _unchanged(c: InferenceContext) -> None:
    unchanged_shape(c)


def registry() -> OpRegistry:
    """All ops, and the probes."""
    found = OpRegistry()
    for entry in gc.op_registry:
        found.register(entry)
    found.register(_entry("Probe[T:type](x:T) -> (y:T)"))
    found.register(_entry("RefProbe[T:type](x:Ref(T)) -> (y:Ref(T))"))
    return found


def probe(tensor: Any) -> Any:
    """A tensor with a probe."""
    name = "RefProbe" if tensor.dtype.is_ref else "Probe"
    return gc.get_default_graph().apply_op(name, [tensor]).outputs[0]


def probes(graph: gc.Graph) -> list[Node]:
    """All probes of a graph."""
    return [node for node in graph.nodes if node.op in {"Probe", "RefProbe"}]


def shape_of(tensor: gc.Tensor, value: Any) -> tuple[int, ...]:
    """The shape of a value as a tensor: of a reference variable's value, or a scalar for a handle."""
    if isinstance(value, RefVariable):
        return value.read().shape if tensor.dtype.is_ref else ()
    if isinstance(value, Accumulator):
        return (2,)  # TensorFlow infers this shape for the scalar handle too
    return tuple(value.shape)


def held(value: Any) -> tuple[gc.DType, list[gc.Shape]] | None:
    """The element type and shapes behind a handle, None for any other value."""
    if isinstance(value, RefVariable):
        return value.dtype, [value.shape, *([] if value.value is None else [gc.Shape(value.value.shape)])]
    if isinstance(value, TensorArray):
        return value.dtype, [value.element_shape, *[gc.Shape(place.shape) for place in value.places if place.shape is not None]]
    if isinstance(value, Queue):
        return value.spec.dtypes[0], [gc.Shape(value.spec.shapes[0])]
    if isinstance(value, Table):
        return value.spec.key_dtype, [gc.Shape(value.spec.key_shape)]
    lists = [value] if isinstance(value, TensorList) else []
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        lists = [each for each in value.flat if isinstance(each, TensorList)]
    if not lists:
        return None
    items = [gc.Shape(item.shape) for each in lists for item in each.items if item is not None]
    return lists[0].element_dtype, [*[each.element_shape for each in lists], *items]
