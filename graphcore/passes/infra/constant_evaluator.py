"""Computes nodes while the graph is rewritten: those whose values no run can change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from graphcore.attrs import Array, Func, TensorValue
from graphcore.dtypes import DType
from graphcore.errors import GraphError, InvalidArgumentError, ResourceExhaustedError
from graphcore.graph import Node, Tensor
from graphcore.graph.shapes.kernels import kernel_context
from graphcore.plumbing import ARG, CONST, CONTROL_FLOW, FAKE_PARAM, FEEDABLE, RECV, RETVAL, SEND
from graphcore.shapes import Shape

SCOPED_ALLOCATOR_ATTR: Final = "_scoped_allocator"
# They have a kernel, but what they give is not for a pass to say: it is fed or sent.
_LEFT_TO_THE_RUN: Final = CONTROL_FLOW | FEEDABLE | ARG | RETVAL | SEND | RECV | {FAKE_PARAM}
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
    """The outputs of a node where the shapes of its inputs tell them, None otherwise."""
    tell = node.registration.traits.numbers_from_shapes
    numbers = None if tell is None or not shapes else tell(shapes)
    if numbers is None:
        return None
    dtype = node.output_types[0].as_numpy
    values: list[Array] = [np.asarray(number, np.int64) for number in numbers]
    if dtype == np.int32 and any(value.size and value.max() > _INT32_MAX for value in values):
        return None
    return [value.astype(dtype) for value in values]


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
    if node.op == CONST:
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
