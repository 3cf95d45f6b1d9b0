"""Values known before any run: constants and what follows from constants alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from graphcore.attrs import Array, TensorValue
from graphcore.dtypes import DType
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph.node import Node, Tensor
from graphcore.kernel_context import KernelContext

MAX_CACHED_ELEMENTS: Final = 2048
MAX_INFERRED_ELEMENTS: Final = 1 << 20
"""What has more says nothing about a shape, and a small file may claim a great many."""
_NEVER_CONSTANT: Final = frozenset(
    {"Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "NoOp"}
    | {"PartitionedCall", "SymbolicGradient"}
)
_REFUSALS: Final = (GraphError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError)
"""What a kernel may raise that is given values with which it cannot work."""
_FROM_SHAPE: Final = frozenset({"Shape", "Rank", "Size", "ShapeN"})


def constant_value(tensor: Tensor) -> Array | None:
    """The value that `tensor` has in every run, None if it has none that is known.

    Works without recursion, so a chain of any length is fine.
    """
    node = tensor.node
    if node.op == "Const":
        return _const_array(node)
    pending = [node]
    while pending:
        current = pending[-1]
        if current.constants is not None:
            pending.pop()
            continue
        waiting = _unvisited_inputs(current)
        if waiting is None:
            current.constants = {}
            pending.pop()
        elif waiting:
            pending.extend(waiting)
        else:
            pending.pop()
            current.constants = _evaluate(current)
    constants = node.constants or {}
    value = constants.get(tensor.index)
    if value is not None and value.size > MAX_CACHED_ELEMENTS:
        node.constants = None
    return value


def inferred_value(tensor: Tensor) -> Array | None:
    """constant_value for shape functions: None also for what is too large to be a shape, an axis or the like."""
    return None if tensor.shape.num_elements > MAX_INFERRED_ELEMENTS else constant_value(tensor)


def _const_array(node: Node) -> Array | None:
    value = node.node_def.attr.get("value")
    return value.array if isinstance(value, TensorValue) else None


def _unvisited_inputs(node: Node) -> list[Node] | None:
    """The inputs to look at first; None if the node can never be constant."""
    if node.op in _FROM_SHAPE and _shape_constants(node) is not None:
        return []
    if not _may_be_constant(node):
        return None
    return [tensor.node for tensor in node.inputs if tensor.node.op != "Const" and tensor.node.constants is None]


def _may_be_constant(node: Node) -> bool:
    if node.op in _NEVER_CONSTANT or node.op_def.is_stateful or node.registration.kernel is None or node.error is not None:
        return False
    if not node.inputs or any(dtype.is_ref or dtype.as_numpy is None for dtype in node.input_types):
        return False
    return all(tensor.shape.num_elements <= MAX_INFERRED_ELEMENTS for tensor in (*node.inputs, *node.outputs))


def _evaluate(node: Node) -> dict[int, Array | None]:
    from_shape = _shape_constants(node) if node.op in _FROM_SHAPE else None
    if from_shape is not None:
        return from_shape
    values: list[Array] = []
    for tensor in node.inputs:
        value = _const_array(tensor.node) if tensor.node.op == "Const" else (tensor.node.constants or {}).get(tensor.index)
        if value is None:
            return {}
        values.append(value)
    factory = node.registration.kernel
    if factory is None:
        return {}
    context = KernelContext(
        xp=np,
        attrs=node.node_def.attr,
        node_name=node.name,
        op=node.op,
        input_types=node.input_types,
        output_types=node.output_types,
        constants=tuple(values),
        source=node.source,
    )
    try:
        with np.errstate(all="ignore"):
            result = factory(context)(*values)
    except _REFUSALS:  # a run will say so, if it comes to that: here nothing is known
        return {}
    results = list(result) if isinstance(result, tuple | list) else [result]
    return {i: _as_declared(tensor, np.asarray(item)) for i, (tensor, item) in enumerate(zip(node.outputs, results, strict=False))}


def _as_declared(tensor: Tensor, value: Array) -> Array | None:
    """`value` if it is what shape functions may rely on: of the declared type, of a rank that is known."""
    fits = value.dtype == tensor.dtype.as_numpy and tensor.shape.rank == value.ndim
    return value if fits else None


def _shape_constants(node: Node) -> dict[int, Array | None] | None:
    """The outputs of Shape, ShapeN, Rank, Size where the static shape tells them."""
    results: dict[int, Array | None] = {}
    for i, tensor in enumerate(node.inputs):
        shape = tensor.shape
        dtype = _numpy(node.output_types[min(i, len(node.output_types) - 1)])
        if node.op == "Rank" and shape.rank is not None:
            results[i] = np.asarray(shape.rank, dtype)
        elif not shape.is_fully_defined:
            return None
        elif node.op == "Size":
            results[i] = _numbers(shape.num_elements, dtype)
        else:
            results[i] = _numbers(shape.as_list(), dtype)
    return results


def _numbers(value: int | list[int | None], dtype: np.dtype[np.generic]) -> Array:
    try:
        return np.asarray(value, dtype)
    except OverflowError:
        raise InvalidArgumentError(f"Value is out of {dtype.name} range: {value}") from None


def _numpy(dtype: DType) -> np.dtype[np.generic]:
    return np.dtype(np.int32) if dtype.as_numpy is None else dtype.as_numpy
