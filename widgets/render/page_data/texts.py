"""Texts of nodes, computed once for those that have equal attrs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from graphcore.attrs import TensorValue
from widgets.scene.values import cell_text
from widgets.scene.words import MAX_ITEMS, attr_text, node_detail, node_kind

if TYPE_CHECKING:
    from graphcore.graph import Node
    from widgets.render.page_data.explained import Gradients


_OWN: Final = {"constant", "placeholder"}


Value = TypeVar("Value", bound=Hashable)


class Numbers(Generic[Value]):
    """Numbers for values in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[Value, int] = {}

    def of(self, value: Value) -> int:
        """The number of a value."""
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[Value]:
        """The values by number."""
        return list(self._numbers)


class AttrTexts:
    """Kind, detail and attrs of nodes as numbers of texts, and the number of the op's gradient.

    Args:
        texts: the texts of the page.
        gradients: the gradients of ops.
        with_previews: write the first values of large constants, too.
    """

    def __init__(self, texts: Numbers[str], gradients: Gradients, *, with_previews: bool) -> None:
        self._texts = texts
        self._with_previews = with_previews
        self._gradients = gradients
        self._known: dict[Hashable, tuple[int, int, int, int]] = {}

    def of(self, node: Node) -> tuple[int, int, int, int]:
        """Kind, detail, lines of attrs, and the gradient."""
        attr = node.attr
        # The detail of a placeholder is its shape, which no attr need give; tensors are slow to compare.
        if node.is_opaque or node.registration.traits.role in _OWN or any(type(value) is TensorValue for value in attr.values()):
            return self._made(node)
        try:
            key = (node.op, tuple(attr.items()))
            known = self._known.get(key)
        except TypeError:  # a function with lists as attrs
            return self._made(node)
        if known is None:
            known = self._known[key] = self._made(node)
        return known

    def _made(self, node: Node) -> tuple[int, int, int, int]:
        number = self._texts.of
        lines = [f"{name}={attr_text(value)}" for name, value in sorted(node.attr.items())]
        value = node.attr.get("value")
        if self._with_previews and isinstance(value, TensorValue) and value.array.size > MAX_ITEMS:
            lines.append("=" + "\t".join(map(cell_text, value.array.reshape(-1)[:MAX_ITEMS])))
        return number(node_kind(node)), number(node_detail(node)), number("\n".join(lines)), self._gradients.of_node(node)
