"""Widths: tensors of unknown size that must have the same one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from widgets.scene.structure.items import Dims, Items
from widgets.scene.structure.serving import is_plumbing

if TYPE_CHECKING:
    from graphcore.graph import Node, Tensor

_WIDE: Final = frozenset({"addition", "bias", "normalization", "softmax"})
"""Layers whose results are as wide as what they take, but for parameters, beside elementwise ops."""
_FLAT: Final = _WIDE | {"concatenation", "product"}
"""Layers whose results cover the same area as what they take."""
_WINDOWS: Final = frozenset({"convolution", "depthwise convolution", "pooling"})
"""Layers whose results cover the same area as what they take if they are padded and have no strides."""


class _Sets:
    """Disjoint sets of names, joined step by step."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def find(self, name: str) -> str:
        """The representative of the set of `name`."""
        parents = self._parents
        while (parent := parents.setdefault(name, name)) != name:
            parents[name] = name = parents[parent]
        return name

    def join(self, name: str, others: Iterable[str]) -> None:
        """Join the sets of `name` and of others."""
        for other in others:
            self._parents[self.find(other)] = self.find(name)


class Widths:
    """The sizes of tensors, where equal unknown sizes are distinguished from others.

    The filters of variables are often of unknown shape. A sum still says that both its operands are equally wide.

    Args:
        serving: the names of nodes that are parameters, constants or plumbing.
    """

    def __init__(self, items: Items, serving: Collection[str]) -> None:
        self._items = items
        self._serving = serving
        self._classes: tuple[_Sets, _Sets, dict[str, int]] | None = None
        self._numbers: dict[tuple[int, str], int] = {}

    def known(self, tensor: Tensor | None) -> Dims:
        """The dimensions of a tensor, or its area as a negative number and its width if sizes are unknown.

        The first size, that of the batch, may be unknown. The width is negative too, unless a tensor of the same width has a known one.
        """
        dims = None if tensor is None else tensor.shape.dims
        if tensor is None or (dims is not None and None not in dims[1:]):
            return dims
        if self._classes is None:
            self._classes = self._classified()
        areas, widths, sizes = self._classes
        area, width = areas.find(tensor.node.name), widths.find(tensor.node.name)
        return self._number((0, area)), sizes.get(width) or self._number((1, width))

    def _number(self, key: tuple[int, str]) -> int:
        return -1 - self._numbers.setdefault(key, len(self._numbers))

    def _classified(self) -> tuple[_Sets, _Sets, dict[str, int]]:
        """The nodes with tensors of the same area, those of the same width, and the known widths."""
        areas, widths = _Sets(), _Sets()
        nodes = [node for nodes in self._items.members for node in nodes]
        for node in nodes:
            traits = node.registration.traits
            same = traits.elementwise or is_plumbing(node)
            if same or traits.layer in _WIDE:
                widths.join(node.name, self._sources(node))
            if same or traits.layer in _FLAT or (traits.layer in _WINDOWS and set(_strides(node)) == {1} and is_padded(node)):
                areas.join(node.name, self._sources(node))
        sizes: dict[str, int] = {}
        for node in nodes:
            dims = node.outputs[0].shape.dims if node.outputs and node.name not in self._serving else None
            if dims and dims[-1] is not None:
                width = widths.find(node.name)
                sizes[width] = max(sizes.get(width, 0), dims[-1])
        return areas, widths, sizes

    def _sources(self, node: Node) -> list[str]:
        return [tensor.node.name for tensor in node.inputs if tensor.node.name not in self._serving]


def _strides(node: Node) -> list[int]:
    strides = node.attr.get("strides")
    return list(strides) if isinstance(strides, list | tuple) else []


def is_padded(node: Node) -> bool:
    """True unless windows end where the tensor ends, which makes the result smaller."""
    return node.attr.get("padding") not in (b"VALID", "VALID")
