"""Computes nodes while the graph is rewritten: those whose values no run can change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from graphcore import dtypes
from graphcore.attrs import Array, Func, TensorValue
from graphcore.dtypes import DType
from graphcore.errors import GraphError, InvalidArgumentError, ResourceExhaustedError
from graphcore.graph import Node, Tensor
from graphcore.graph.model.control_flow_ops import CONTROL_FLOW
from graphcore.graph.shapes.kernels import kernel_context
from graphcore.shapes import Shape

SCOPED_ALLOCATOR_ATTR: Final = "_scoped_allocator"
# They have a kernel, but what they give is not for a pass to say: it is fed, sent, or kept by a session under a handle.
_LEFT_TO_THE_RUN: Final = CONTROL_FLOW | frozenset(
    {"Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "FakeParam", "_Arg", "_DeviceArg", "_Retval", "_DeviceRetval"}
    | {"_Send", "_HostSend", "Send", "_Recv", "_HostRecv", "Recv"}
    | {"GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor", "DeleteSessionTensor"}
)
SHAPE_OPS: Final = frozenset({"Shape", "ShapeN", "Size", "Rank"})
_INT32_MAX: Final = 2**31 - 1


def may_be_evaluated(node: Node) -> bool:
    """True iff the node gives the same for the same inputs in every run, and has a kernel that needs nothing but its inputs."""
    registration = node.registration
    if node.op in _LEFT_TO_THE_RUN or node.op_def.is_stateful or node.error is not None:
        return False
    if registration.kernel is None or registration.is_function or SCOPED_ALLOCATOR_ATTR in node.node_def.attr:
        return False
    if any(dtype.is_ref or dtype.as_numpy is None for dtype in (*node.input_types, *node.output_types)):
        return False
    return not any(isinstance(value, Func) for value in node.node_def.attr.values())


def values_from_shapes(node: Node, shapes: Sequence[Shape]) -> list[Array] | None:
    """The outputs of a Shape, ShapeN, Size or Rank node where the shapes of its inputs tell them, None otherwise."""
    if node.op not in SHAPE_OPS or not shapes:
        return None
    dtype = node.output_types[0]
    if node.op == "Rank":
        return None if shapes[0].rank is None else [np.asarray(shapes[0].rank, np.int32)]
    if not all(shape.is_fully_defined for shape in shapes):
        return None
    numbers: list[list[int]] = [[size for size in shape.dims or () if size is not None] for shape in shapes]
    if node.op == "Size":
        numbers = [[shape.num_elements] for shape in shapes]
    if dtype is dtypes.int32 and any(number > _INT32_MAX for each in numbers for number in each):
        return None
    values: list[Array] = [np.asarray(each, dtype.as_numpy) for each in numbers]
    return [value[0:1].reshape(()) for value in values] if node.op == "Size" else values


def evaluate(wanted: Sequence[Tensor], known: Mapping[Node, Sequence[Array]], *, ignore_failures: bool) -> dict[Tensor, Array]:
    """Compute tensors.

    Args:
        wanted: what is computed.
        known: nodes whose outputs are known.
        ignore_failures: leave out what cannot be computed.

    Raises:
        GraphError: a node refuses its inputs; `node` says which.
    """
    order = _needed(wanted, known)
    left = Counter([tensor for node in order if node not in known for tensor in node.inputs])
    left.update(wanted)
    values: dict[Tensor, Array] = {}
    for node in order:
        values.update(_computed(node, values, known.get(node), ignore_failures=ignore_failures))
        if node in known:
            continue
        for tensor in node.inputs:
            left[tensor] -= 1
            if not left[tensor]:
                values.pop(tensor, None)  # intermediate values would otherwise add up
    return values


def size_in_bytes(value: Array) -> int:
    """What a value takes; of strings, what they hold."""
    if value.dtype != object:
        return value.nbytes
    return value.nbytes + sum(len(item) for item in value.reshape(-1).tolist() if isinstance(item, bytes))


def _needed(wanted: Sequence[Tensor], known: Mapping[Node, Sequence[Array]]) -> list[Node]:
    """The nodes that are to be computed, each after what it takes."""
    order: list[Node] = []
    seen: set[Node] = set()
    pending = [(tensor.node, False) for tensor in reversed(wanted)]
    while pending:
        node, leaving = pending.pop()
        if leaving:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            pending.append((node, True))
            if node not in known:
                pending += [(tensor.node, False) for tensor in node.inputs]
    return order


def _computed(node: Node, values: Mapping[Tensor, Array], known: Sequence[Array] | None, *, ignore_failures: bool) -> dict[Tensor, Array]:
    if known is not None:
        return dict(zip(node.outputs, known, strict=True))
    if any(tensor not in values for tensor in node.inputs):
        return {}
    try:
        results = _run(node, [values[tensor] for tensor in node.inputs])
    except Exception as error:  # noqa: BLE001 - whatever a kernel raises is told with its node
        if ignore_failures:
            return {}
        explained = _explained(error, node)
        raise explained from (None if explained is error else error)
    return {tensor: _as_declared(tensor, result) for tensor, result in zip(node.outputs, results, strict=True)}


def _run(node: Node, inputs: list[Array]) -> Sequence[Any]:
    if node.op == "Const":
        value = node.node_def.attr["value"]
        assert isinstance(value, TensorValue)
        return [value.array]
    factory = node.registration.kernel
    assert factory is not None
    with np.errstate(all="ignore"):
        result = factory(kernel_context(node, tuple(inputs)))(*inputs)
    if not node.outputs:
        return []
    return result if isinstance(result, tuple | list) else [result]


def _as_declared(tensor: Tensor, value: Any) -> Array:
    dtype: DType = tensor.dtype
    array: Array = np.asarray(value)
    return array if array.dtype == dtype.as_numpy else array.astype(dtype.as_numpy)


def _explained(error: Exception, node: Node) -> GraphError:
    if isinstance(error, GraphError):
        return error.with_node(node.name, op=node.op, source=node.source)
    kind: type[GraphError] = ResourceExhaustedError if isinstance(error, MemoryError) else InvalidArgumentError
    text = f"{str(error) or type(error).__name__}\n\t [[{{{{node {node.name}}}}}]] = {node.op}"
    return kind.at(node, text)
