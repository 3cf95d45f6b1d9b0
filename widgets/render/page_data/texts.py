"""Texts of nodes, computed once for those that have equal attrs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from graphcore.attrs import TensorValue
from widgets.render.page_data.explained import Gradients
from widgets.scene.node_facts import foreign_details
from widgets.scene.values import cell_text
from widgets.scene.words import MAX_ITEMS, attr_text, node_detail, node_kind

if TYPE_CHECKING:
    from graphcore.graph import Node
    from widgets.render.page_data.types import GradientText


_OWN: Final = {"constant", "placeholder"}


Value = TypeVar("Value", bound=Hashable)
_Described: TypeAlias = "tuple[str, str, str, GradientText | None]"


class Numbers(dict[Value, int]):
    """Numbers for values in the order in which they come: `numbers[value]`."""

    def __missing__(self, value: Value) -> int:
        number = self[value] = len(self)
        return number


class AttrTexts:
    """Kind, detail and attrs of nodes, and the text of the op's gradient.

    Args:
        with_previews: write the first values of large constants, too.

    Attributes:
        gradients: the gradients of ops.
    """

    def __init__(self, *, with_previews: bool) -> None:
        self.gradients = Gradients()
        self._with_previews = with_previews
        self._known: dict[Hashable, _Described] = {}

    def of(self, node: Node) -> _Described:
        """Kind, detail, lines of attrs, and the gradient, None if there is none."""
        attr = node.attr
        # The detail of a placeholder is its shape, which no attr need give; tensors are slow to compare.
        if node.is_opaque or node.registration.traits.role in _OWN or any(type(value) is TensorValue for value in attr.values()):
            return self._made(node)
        try:
            key = (node.op, tuple(attr.items()))
            described = self._known.get(key)
        except TypeError:  # a function with lists as attrs
            return self._made(node)
        if described is None:
            described = self._known[key] = self._made(node)
        return described

    def _made(self, node: Node) -> _Described:
        lines = [f"{name}={attr_text(value)}" for name, value in sorted(node.attr.items())]
        if node.is_opaque:
            facts = [(section, _in_a_line(name), _in_a_line(text)) for section, name, text in foreign_details(node)]
            lines += [f"{section}\t{name}={text}" if section else f"{name}={text}" for section, name, text in facts]
        value = node.attr.get("value")
        if self._with_previews and isinstance(value, TensorValue) and value.array.size > MAX_ITEMS:
            lines.append("=" + "\t".join(map(cell_text, value.array.reshape(-1)[:MAX_ITEMS])))
        return node_kind(node), node_detail(node), "\n".join(lines), self.gradients.of_node(node)


def _in_a_line(text: str) -> str:
    return " ".join(text.split())
