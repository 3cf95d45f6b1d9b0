"""Constant values: constants, and nodes that depend on constants only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from graphcore.attrs import Array
from graphcore.errors import GraphError
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.shapes.constant_costs import is_cheap
from graphcore.graph.shapes.evaluation import const_array, evaluate_node, may_be_evaluated, values_from_shapes
from graphcore.plumbing import ARG, CONST
from graphcore.shapes import Shape
from graphcore.support.budget import BudgetUsedUpError, within_one_budget
from graphcore.support.deadline import check_time

Values = dict[int, Array | None]
"""Values of a node's outputs by index."""
FORGOTTEN: Final[Values] = {}
"""The mark of values that were too large to keep. Results computed from them were kept, and must go when they change."""


class NotEvaluated(dict[int, Array | None]):
    """The mark of a node whose values are not computed before a run, for the reason `reason`. It has no values."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


MAX_CACHED_ELEMENTS: Final = 2048
MAX_INFERRED_ELEMENTS: Final = 1 << 20
"""The most elements of a value that may determine a shape; a small file may claim many more."""
_REFUSALS: Final = (GraphError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError)
"""The errors of kernels for values that they refuse."""


class ValueSource(Protocol):
    """The protocol of shape look-ups and caches for evaluation."""

    def shape_of(self, tensor: Tensor) -> Shape:
        """The known shape of `tensor`."""

    def known(self, node: Node) -> Values | None:
        """The cached values of the outputs of `node`, None if they were not computed."""

    def keep(self, node: Node, values: Values) -> None:
        """Cache the values of the outputs of `node`."""

    def forget_large(self, node: Node) -> None:
        """Discard the values of `node`, which are too large."""


class _OnNodes:
    """A cache on the nodes of a graph, cleared when they change."""

    __slots__ = ()

    def shape_of(self, tensor: Tensor) -> Shape:
        return tensor.shape

    def known(self, node: Node) -> Values | None:
        return None if node.constants is FORGOTTEN else node.constants

    def keep(self, node: Node, values: Values) -> None:
        node.graph.journal.note(node)  # they may depend on changes that are rolled back
        node.constants = values

    def forget_large(self, node: Node) -> None:
        node.graph.journal.note(node)
        node.constants = FORGOTTEN


class ValueCache:
    """A cache beside the graph.

    Args:
        shape_of: returns the known shape of a tensor.
        argument: returns the value of an argument of the function being inferred.
    """

    __slots__ = ("_argument", "_found", "shape_of")

    def __init__(self, shape_of: Callable[[Tensor], Shape], argument: Callable[[Node], Array | None] | None = None) -> None:
        self.shape_of = shape_of
        self._argument = argument
        self._found: dict[Node, Values] = {}

    def __len__(self) -> int:
        return len(self._found)

    def value_of(self, tensor: Tensor) -> Array | None:
        """The constant value of `tensor`, None if unknown or too large for a shape, an axis or the like."""
        return None if self.shape_of(tensor).num_elements > MAX_INFERRED_ELEMENTS else _value_of(tensor, self)

    def forget(self) -> None:
        """Clear the cache after changes of shapes, on which values may depend."""
        self._found.clear()

    def known(self, node: Node) -> Values | None:
        """The values of `node`; an argument's are those of the call."""
        values = self._found.get(node)
        if values is None and self._argument is not None and node.op in ARG:
            values = self._found[node] = {0: self._argument(node)}
        return values

    def keep(self, node: Node, values: Values) -> None:
        """Cache the values of `node` until shapes change."""
        self._found[node] = values

    def forget_large(self, node: Node) -> None:
        """Discard the values of `node`, since they are large."""
        self._found.pop(node, None)


_ON_NODES: Final = _OnNodes()


def constant_value(tensor: Tensor) -> Array | None:
    """The constant value of `tensor`, None if it has none that is known."""
    return _value_of(tensor, _ON_NODES)


def constant_outputs(node: Node) -> list[Array] | None:
    """The constant values of all outputs of a node; None if one is unknown, or too large to compute."""
    values: list[Array] = []
    for tensor in node.outputs:
        value = constant_value(tensor)
        if value is None or (value.size > MAX_INFERRED_ELEMENTS and node.op != CONST):
            return None
        values.append(value)
    return values


def why_not_evaluated(tensor: Tensor) -> str:
    """The reason for which the constant value of `tensor` was not computed; "" if there is none."""
    values = tensor.node.constants
    return values.reason if isinstance(values, NotEvaluated) else ""


def inferred_value(tensor: Tensor) -> Array | None:
    """The constant value for shape functions: None also if it is too large for a shape or an axis."""
    return None if tensor.shape.num_elements > MAX_INFERRED_ELEMENTS else _value_of(tensor, _ON_NODES)


def _value_of(tensor: Tensor, source: ValueSource) -> Array | None:
    """Compute the value iteratively, so that chains may be of any length."""
    node = tensor.node
    if node.op == CONST:
        return const_array(node)
    values = source.known(node)
    if values is None:
        _compute(tensor, source)
        values = source.known(node)
    value = (values or {}).get(tensor.index)
    if value is not None and value.size > MAX_CACHED_ELEMENTS:
        source.forget_large(node)
    return value


@within_one_budget
def _compute(tensor: Tensor, source: ValueSource) -> None:
    """Compute the values of a node and of those before it, as far as they are constant."""
    pending: list[tuple[Tensor, Node | None]] = [(tensor, None)]  # each with its consumer
    while pending:
        wanted, waiter = pending[-1]
        current = wanted.node
        if waiter is not None and source.known(waiter) is not None:
            pending.pop()  # one of its inputs has no value, so the others do not matter
        elif (values := source.known(current)) is not None:
            pending.pop()
            if waiter is not None and values.get(wanted.index) is None:
                source.keep(waiter, values if isinstance(values, NotEvaluated) else {})
        elif (waiting := _unvisited_inputs(current, source)) is None:
            source.keep(current, {})
        elif waiting:
            pending.extend([(input_, current) for input_ in reversed(waiting)])
        else:
            check_time(current.name, current.op)
            source.keep(current, _evaluate(current, source))


def _unvisited_inputs(node: Node, source: ValueSource) -> list[Tensor] | None:
    """The inputs to compute first; None if the node can never be constant."""
    if _shape_constants(node, source) is not None:
        return []
    if not _may_be_constant(node, source):
        return None
    return [tensor for tensor in node.inputs if tensor.node.op != CONST and source.known(tensor.node) is None]


def _may_be_constant(node: Node, source: ValueSource) -> bool:
    if not node.inputs or not may_be_evaluated(node):
        return False
    for tensor in (*node.inputs, *node.outputs):
        if source.shape_of(tensor).num_elements > MAX_INFERRED_ELEMENTS:
            return False
    return is_cheap(node, source.shape_of)


def _evaluate(node: Node, source: ValueSource) -> Values:
    from_shape = _shape_constants(node, source)
    if from_shape is not None:
        return from_shape
    values: list[Array] = []
    for tensor in node.inputs:
        value = const_array(tensor.node) if tensor.node.op == CONST else (source.known(tensor.node) or {}).get(tensor.index)
        if value is None:
            return {}
        values.append(value)
    try:
        results = evaluate_node(node, values, source.shape_of)
    except BudgetUsedUpError as error:
        return NotEvaluated(f"`{node.name}` (op {node.op}) is not evaluated before a run: {error.message}")
    except _REFUSALS:  # a run reports the error, if it occurs there: here nothing is known
        return {}
    return {
        i: _as_declared(tensor, np.asarray(item), source.shape_of(tensor))
        for i, (tensor, item) in enumerate(zip(node.outputs, results, strict=False))
    }


def _as_declared(tensor: Tensor, value: Array, shape: Shape) -> Array | None:
    """Return `value` if shape functions may rely on it: of the declared type and a consistent rank."""
    fits = value.dtype == tensor.dtype.as_numpy and shape.rank == value.ndim
    return value if fits else None


def _shape_constants(node: Node, source: ValueSource) -> Values | None:
    if node.registration.traits.numbers_from_shapes is None:
        return None
    values = values_from_shapes(node, [source.shape_of(tensor) for tensor in node.inputs])
    return None if values is None else dict(enumerate(values))
