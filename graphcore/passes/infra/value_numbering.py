"""Value numbering: finds the nodes that compute the same from the same inputs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

from graphcore.definitions.attr_equality import attr_value_hash, attrs_equal
from graphcore.graph import Node

T = TypeVar("T")


class ValueNumbering(Generic[T]):
    """The computations visited so far, each with the values that represent its outputs.

    Two computations are equal if their ops, attrs, inputs and control inputs are; the inputs of a commutative op may be in any order.
    """

    __slots__ = ("_by_attrs", "_by_inputs")

    def __init__(self) -> None:
        self._by_inputs: dict[Hashable, tuple[Node, T]] = {}
        self._by_attrs: dict[Hashable, list[tuple[Node, T]]] = {}

    def first(self, node: Node, inputs: Iterable[Any], item: T, controls: Hashable = ()) -> T:
        """The item of the first node that computes the same as `node`.

        Args:
            node: a node without state.
            inputs: an identity of each input: equal for the same value, and ordered.
            item: the representative of the outputs of `node`, if it is the first such computation.
            controls: the identities of its control inputs.
        """
        order = tuple(sorted(inputs)) if node.op_def.is_commutative else tuple(inputs)
        key = (node.op, order, controls)
        first = self._by_inputs.setdefault(key, (node, item))
        if first[0] is node:
            return item
        # Hashing attrs is slow, and rarely needed: most nodes have inputs that no other node of their op has.
        self._by_attrs.setdefault((key, _hash_of_attrs(first[0])), [first])
        alike = self._by_attrs.setdefault((key, _hash_of_attrs(node)), [])
        for other, first_item in alike:
            if attrs_equal(other.attr, node.attr):
                return first_item
        alike.append((node, item))
        return item


def _hash_of_attrs(node: Node) -> Hashable:
    return frozenset([(name, attr_value_hash(value)) for name, value in node.attr.items()])
