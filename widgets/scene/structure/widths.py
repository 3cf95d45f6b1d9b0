"""Widths: tensors of unknown size that must have the same one."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from networkx.utils import UnionFind

from widgets.scene.structure.items import Dims, Items
from widgets.scene.structure.serving import is_plumbing

if TYPE_CHECKING:
    from graphcore.graph import Node, Tensor

_WIDE: Final = frozenset({"addition", "bias", "normalization", "softmax"})
"""Layers whose results are as wide as what they take, but for parameters, beside elementwise ops."""
_FLAT: Final = _WIDE | {"concatenation", "product"}
"""Layers whose results cover the same area as what they take."""
_WINDOWS: Final = frozenset({"convolution", "depthwise convolution", "pooling"})
"""Layers whose results cover about the same area as what they take, unless they have strides."""


class Widths:
    """The sizes of tensors, where equal unknown sizes are distinguished from others.

    The filters of variables are often of unknown shape. A sum still says that both its operands are equally wide.

    Args:
        serving: the names of nodes that are parameters, constants or plumbing.
    """

    def __init__(self, items: Items, serving: Collection[str]) -> None:
        self._items = items
        self._serving = serving
        self._classes: tuple[UnionFind[str], UnionFind[str]] | None = None
        self._numbers: dict[tuple[int, str], int] = {}

    def known(self, tensor: Tensor | None) -> Dims:
        """The dimensions of a tensor; for an unknown last one, negative numbers for its area and width."""
        dims = None if tensor is None else tensor.shape.dims
        if tensor is None or (dims is not None and (not dims or dims[-1] is not None)):
            return dims
        if self._classes is None:
            self._classes = self._classified()
        keys = [(place, same[tensor.node.name]) for place, same in enumerate(self._classes)]
        return tuple([-1 - self._numbers.setdefault(key, len(self._numbers)) for key in keys])

    def _classified(self) -> tuple[UnionFind[str], UnionFind[str]]:
        """The nodes with tensors of the same area, and those of the same width."""
        areas: UnionFind[str] = UnionFind()
        widths: UnionFind[str] = UnionFind()
        for nodes in self._items.members:
            for node in nodes:
                traits = node.registration.traits
                same = traits.elementwise or is_plumbing(node)
                if same or traits.layer in _WIDE:
                    widths.union(node.name, *self._sources(node))
                if same or traits.layer in _FLAT or (traits.layer in _WINDOWS and set(_strides(node)) == {1}):
                    areas.union(node.name, *self._sources(node))
        return areas, widths

    def _sources(self, node: Node) -> list[str]:
        return [tensor.node.name for tensor in node.inputs if tensor.node.name not in self._serving]


def _strides(node: Node) -> list[int]:
    strides = node.attr.get("strides")
    return list(strides) if isinstance(strides, list | tuple) else []
