"""Values that layers above graphs keep at a graph, each with its own type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar, cast

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph

T = TypeVar("T")


class Attached(Generic[T]):
    """A value of type T at each graph, None at first.

    The module that owns the values makes one: `last_placer: Final[Attached[Placer]] = Attached()`. A value lives as long as its graph, and may refer to it.
    """

    __slots__ = ()

    def of(self, graph: Graph) -> T | None:
        """The value at `graph`, None without one."""
        return cast("T | None", graph.attached.get(self))

    def set(self, graph: Graph, value: T | None) -> None:
        """Keep `value` at `graph`, in place of the last one."""
        graph.attached[self] = value
