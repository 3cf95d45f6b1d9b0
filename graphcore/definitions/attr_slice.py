"""A view of the attrs of a node, which reads single attrs and checks their kind."""

from __future__ import annotations

from collections.abc import Iterator

from graphcore.attrs import Attrs, AttrValue
from graphcore.definitions.attr_equality import attrs_equal
from graphcore.definitions.attr_value_util import check_attr_kind
from graphcore.definitions.node_def_util import attach_def, summarize_attrs, summarize_node_def
from graphcore.definitions.types import NodeDef
from graphcore.definitions.value_text import summarize_attr_value
from graphcore.errors import GraphError, InvalidArgumentError, NotFoundError


class AttrSlice:
    """The attrs of a node, or attrs without a node.

    Args:
        of: a NodeDef or a mapping of attrs.
    """

    __slots__ = ("_attrs", "_node_def")

    def __init__(self, of: NodeDef | Attrs | None = None) -> None:
        self._node_def = of if isinstance(of, NodeDef) else None
        self._attrs: Attrs = of.attr if isinstance(of, NodeDef) else of or {}

    def __len__(self) -> int:
        return len(self._attrs)

    def __iter__(self) -> Iterator[tuple[str, AttrValue]]:
        return iter(self._attrs.items())

    def __contains__(self, name: str) -> bool:
        return name in self._attrs

    def get(self, name: str) -> AttrValue | None:
        """The attr `name`, None if there is none."""
        return self._attrs.get(name)

    def find(self, name: str, kind: str | None = None) -> AttrValue:
        """The attr `name`.

        Args:
            name: the attr.
            kind: the kind it must have (`int`, `list(type)`); any by default.

        Raises:
            NotFoundError: there is none.
            InvalidArgumentError: it is of another kind.
        """
        value = self._attrs.get(name)
        if value is None:
            raise self._attached(NotFoundError(f"No attr named '{name}' in NodeDef:", attr=name), name)
        if kind is not None:
            try:
                check_attr_kind(value, kind)
            except InvalidArgumentError as error:
                raise self._attached(InvalidArgumentError(f"{error.message}\n\t for attr '{name}'", attr=name), name) from None
        return value

    def _attached(self, error: GraphError, name: str) -> GraphError:
        # Internal attrs are often missing for good reason, and callers handle the error.
        return error if self._node_def is None or name.startswith("_") else attach_def(error, self._node_def)

    def equal_attrs(self, other: AttrSlice) -> bool:
        """True iff both hold the same attrs with equal values; defaults are ignored."""
        return attrs_equal(self._attrs, other._attrs)

    def summarize_node(self) -> str:
        """The node's summary, or the attrs in brackets if there is no node."""
        return f"[{summarize_attrs(self._attrs)}]" if self._node_def is None else summarize_node_def(self._node_def)

    def debug_string(self) -> str:
        """`a=1, b="x"`, sorted by name."""
        return ", ".join(f"{name}={summarize_attr_value(self._attrs[name])}" for name in sorted(self._attrs))


def get_node_attr(of: NodeDef | Attrs, name: str, kind: str | None = None) -> AttrValue:
    """The attr `name` of a node.

    Raises:
        NotFoundError: there is none.
        InvalidArgumentError: it is not of `kind`.
    """
    return AttrSlice(of).find(name, kind)
