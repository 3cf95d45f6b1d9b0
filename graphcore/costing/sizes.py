"""Numbers of elements as expressions in the sizes that are not known, such as `150528*batch`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from graphcore.frontends.record import foreign_of
from graphcore.graph import Graph
from graphcore.graph.model.node import Tensor
from graphcore.inference import DimensionHandle
from graphcore.inference.expressions import Expression, constant, expression_of, symbol

BATCH: Final = "batch"
"""The name of an unknown first size that a model of another framework leaves without one."""
ZERO: Final = Expression()
Sizes = tuple[Expression, ...]
_OPERATORS: Final[Mapping[type[ast.operator], Callable[[Expression, Expression], Expression]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


class BatchNames:
    """Gives sizes as expressions, with names for the unknown first sizes of inputs.

    In a graph of our own, the first unknown one is `batch` and others are called after their inputs, `labels.0`; equal sizes of other tensors are
    the same dimension. In a model of another framework, where each tensor has its own, all unknown first sizes are `batch`.
    """

    def __init__(self, graph: Graph) -> None:
        self._is_foreign = foreign_of(graph) is not None
        self._names: dict[int, str] = {}
        if self._is_foreign:
            return
        for node in graph.op_nodes():
            if node.registration.traits.role == "placeholder" and node.output_handles:
                for axis, dim in enumerate(node.output_handles[0].dims or ()):
                    if dim.value < 0 and id(dim) not in self._names:
                        self._names[id(dim)] = f"{node.name}.{axis}" if self._names or axis else BATCH

    def sizes_of(self, tensor: Tensor) -> Sizes | None:
        """The sizes of a tensor; None if one is unknown and has no name."""
        dims = tensor.node.output_handles[tensor.index].dims
        if dims is None:
            return None
        sizes = [self._named(dim, axis) for axis, dim in enumerate(dims)]
        static = [size for size in sizes if size is not None]
        return tuple(static) if len(static) == len(sizes) else None

    def _named(self, dim: DimensionHandle, axis: int) -> Expression | None:
        size = expression_of(dim)
        if size is not None:
            return _parsed(size.name) if self._is_foreign and size.name else size
        name = (BATCH if axis == 0 else "") if self._is_foreign or dim.value >= 0 else self._names.get(id(dim), "")
        return symbol(name) if name else None


@cache
def _parsed(text: str) -> Expression:
    """A size that a model writes as `4*batch`, as an expression; a name if it is anything else."""
    try:
        return _expression(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, KeyError, ZeroDivisionError, RecursionError):
        return symbol(text)


def _expression(tree: ast.expr) -> Expression:
    match tree:
        case ast.Name(id=name):
            return symbol(name)
        case ast.Constant(value=int(number)):
            return constant(number)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_expression(left), _expression(right))
        case _:
            raise ValueError("no sum of products")


def product(sizes: Sequence[Expression]) -> Expression:
    """The product of sizes, 1 for none."""
    number, named = 1, constant(1)
    for size in sizes:
        value = size.constant
        if value is None:
            named = named * size
        else:
            number *= value
    return constant(number) * named


def quotient(amount: Expression, size: Expression) -> Expression:
    """The quotient of an amount and one of its factors; 0 for an amount of nothing."""
    return ZERO if not amount.terms or not size.terms else amount // size
