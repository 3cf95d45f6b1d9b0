"""The collections of a graph while replicas are built: each sees its own losses and variables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from graphcore.graph import Graph, Node
from graphcore.tf1.variables.collections import GraphKeys

_OWN: Final = (GraphKeys.LOSSES, GraphKeys.UPDATE_OPS)
_OWN_COPIES: Final = (GraphKeys.REGULARIZATION_LOSSES, GraphKeys.TRAINABLE_VARIABLES)


class Collected:
    """Collections in which each replica sees the items from before the replicas, and its own.

    A total of losses in the step would otherwise contain those of the replicas before.

    Args:
        graph: the graph.
        mirrored: True if each replica also has variables and regularizers of its own.
    """

    def __init__(self, graph: Graph, *, mirrored: bool) -> None:
        self._graph = graph
        self._before: dict[str, list[Any]] = {}
        self._added: dict[str, list[Any]] = {}
        for name in (*_OWN, *(_OWN_COPIES if mirrored else ())):
            items = graph.get_collection_ref(name)
            items[:] = [item for item in items if not self._is_to_be_made(item)]
            self._before[name], self._added[name] = list(items), []

    def _is_to_be_made(self, item: Any) -> bool:
        """True iff an item is of an earlier run of what runs now, which has not made it again yet."""
        node = item if isinstance(item, Node) else getattr(item, "op", None)
        return isinstance(node, Node) and (node not in self._graph or self._graph.cells.may_replace(node))

    @contextmanager
    def of_one_replica(self) -> Iterator[None]:
        """Show the collections of one replica, and keep what it adds."""
        yield
        for name, before in self._before.items():
            ids = {id(item) for item in before}
            items = self._graph.get_collection_ref(name)
            self._added[name] += [item for item in items if id(item) not in ids]
            items[:] = before

    def put_together(self) -> None:
        """Put what all replicas have added into the collections."""
        for name, added in self._added.items():
            self._graph.get_collection_ref(name).extend(added)
