"""The sizes of arrays in a run, from shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from graphcore.attrs import Func
from graphcore.dtypes import resource, variant
from graphcore.errors import UnimplementedError
from graphcore.graph import Graph, constant_value
from graphcore.graph.model.node import Node, Tensor


def tensor_bytes(tensor: Tensor) -> int | None:
    """The bytes of `tensor`, None if its shape is unknown."""
    dtype = tensor.dtype.base.as_numpy
    count = tensor.shape.num_elements
    return None if count < 0 or dtype is None else count * dtype.itemsize


class PeakMemory(msgspec.Struct, frozen=True):
    """The peak memory of a run's arrays.

    Args:
        bytes: the peak; None if unknown.
        is_bound: True for an upper bound.
        reason: the reason for a bound or an unknown peak, else "".
    """

    bytes: int | None
    is_bound: bool = False
    reason: str = ""


def taken_by(tensor: Tensor) -> int:
    """The bytes of an array for `tensor`; handles take none.

    Raises:
        UnimplementedError: its shape is known only at run time.
    """
    if tensor.dtype is resource or tensor.shape.rank == 0:
        return 0
    size = tensor_bytes(tensor)
    if size is None and (constant := constant_value(tensor)) is not None:
        return int(constant.nbytes)
    if size is None:
        raise UnimplementedError(f"the shape of '{tensor.name}' (op {tensor.node.op}) is known only when it runs")
    return size


def calls_functions(node: Node) -> bool:
    """True iff `node` runs functions."""
    values = [value for attr in node.node_def.attr.values() for value in (attr if isinstance(attr, tuple) else (attr,))]
    return node.registration.is_function or any(isinstance(value, Func) for value in values)


def check_stores_nothing(node: Node) -> None:
    """Check that a node neither stores arrays nor takes stored ones.

    Raises:
        UnimplementedError: it does.
    """
    dtypes = [*node.input_types, *node.output_types]
    if node.registration.traits.stores or any(dtype.base is variant for dtype in dtypes):
        raise UnimplementedError(f"'{node.name}' (op {node.op}) puts values by, and its shapes do not tell how many and for how long")


Within = Callable[[Node], PeakMemory]
"""Predicts the memory that the functions called by a node hold while it runs."""


def nothing_within(node: Node) -> PeakMemory:
    """The default for the memory of functions, for nodes without functions.

    Raises:
        UnimplementedError: the node runs functions, or stores values.
    """
    check_stores_nothing(node)
    if calls_functions(node):
        raise UnimplementedError(f"'{node.name}' (op {node.op}) runs functions, and its shapes do not tell what they hold")
    return PeakMemory(0)


class Sizes:
    """The sizes of arrays in a run.

    Args:
        graph: a copy with the shapes of the feeds; None to use the shapes of the program.
        within: the memory of functions.
    """

    def __init__(self, graph: Graph | None = None, within: Within = nothing_within) -> None:
        self._graph = graph
        self._within = within

    def of(self, tensor: Tensor) -> int:
        """The bytes of an array for `tensor`.

        Raises:
            UnimplementedError: its shape is known only at run time.
        """
        return taken_by(self._with_shapes(tensor.node).outputs[tensor.index])

    def within(self, node: Node) -> PeakMemory:
        """The bytes held by the functions of `node` while it runs.

        Raises:
            UnimplementedError: unknown.
        """
        return self._within(self._with_shapes(node))

    def _with_shapes(self, node: Node) -> Node:
        return (None if self._graph is None else self._graph.find(node.name)) or node


OWN_SIZES: Final = Sizes()
