"""Partially known values, and the view of a node for the rules that compute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from graphcore.attrs import Array, AttrValue
from graphcore.inference.handles import DimensionHandle, ShapeHandle

Item = DimensionHandle | int
"""A dimension of some tensor (whose size may be unknown), or a plain number."""
MAX_ITEMS: Final = 256
"""The longest vector that has a partial value; longer ones are hardly shapes."""


class NodeLike(Protocol):
    """The protocol of nodes in this package: op, attrs, and input tensors."""

    @property
    def op(self) -> str:
        """The op type."""
        ...

    @property
    def registration(self) -> Any:
        """The registration of the op, with its traits."""
        ...

    @property
    def attr(self) -> Mapping[str, AttrValue]:
        """The attrs."""
        ...

    @property
    def inputs(self) -> Sequence[Any]:
        """The input tensors, each with `node` and `index`."""
        ...


GetShape = Callable[[Any, int], ShapeHandle]
"""The static shape of output `index` of a node."""
GetConstant = Callable[[Any, int], Array | None]
"""The constant value of output `index` of a node, None if it has none."""


class PartialValue(msgspec.Struct, frozen=True, eq=False):
    """A number or a vector of numbers, some of which may be unknown."""

    items: tuple[Item, ...]
    is_scalar: bool = False


GetPartial = Callable[[Any, int], PartialValue | None]
"""The partly known value of output `index` of a node, None if nothing is known."""


class ValueView:
    """The view of one output of a node for its rule.

    It offers the attrs, and shapes, constants and values of inputs by slot.
    """

    __slots__ = ("_constant", "_found", "_shape", "index", "node")

    def __init__(
        self,
        node: Any,
        index: int,
        values: Mapping[tuple[int, int], PartialValue | None],
        get_shape: GetShape,
        get_constant: GetConstant,
    ) -> None:
        self.node = node
        self.index = index
        self._found = values
        self._shape = get_shape
        self._constant = get_constant

    @property
    def attrs(self) -> Mapping[str, AttrValue]:
        """The node's attrs."""
        attrs: Mapping[str, AttrValue] = self.node.attr
        return attrs

    def shape(self, slot: int) -> ShapeHandle:
        """The static shape of an input."""
        tensor = self.node.inputs[slot]
        return self._shape(tensor.node, tensor.index)

    def own_shape(self) -> ShapeHandle:
        """The static shape of the output itself."""
        return self._shape(self.node, self.index)

    def constant(self, slot: int) -> Array | None:
        """The constant value of an input as an array of any size, None if it has none."""
        tensor = self.node.inputs[slot]
        return self._constant(tensor.node, tensor.index)

    def value(self, slot: int) -> PartialValue | None:
        """The partial value of an input."""
        tensor = self.node.inputs[slot]
        return self._found.get((id(tensor.node), tensor.index))

    def int_attr(self, name: str) -> int:
        """An int or bool attr, 0 if it is missing."""
        value = self.attrs.get(name, 0)
        return value if isinstance(value, int) else 0


class Rule(msgspec.Struct, frozen=True):
    """A rule that computes the value of an output from partially known values.

    Args:
        apply: returns the partial value of the output, None if nothing is known.
        reads_values: False if the shapes of the inputs suffice.
        reads_rank: True if it returns the rank of its input.
        combines: True if every element of the output depends on every element of the input.
    """

    apply: Callable[[ValueView], PartialValue | None]
    reads_values: bool = True
    reads_rank: bool = False
    combines: bool = False
