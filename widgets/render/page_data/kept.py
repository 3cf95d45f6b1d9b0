"""Rows that are kept while a graph changes, and made anew only for the nodes that have changed."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Final

from graphcore.graph.attached import Attached
from graphcore.placement.placer import last_placement
from widgets.render.page_data.explained import SlotNames
from widgets.render.page_data.rows import Marks, NodeRow, RowMaker
from widgets.render.page_data.steps import STEP
from widgets.render.page_data.texts import AttrTexts

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node
    from graphcore.source import SourceLocation
    from widgets.render.page_data.steps import Steps

MAX_PREVIEWED: Final = 10_000
"""A larger graph has no previews of its constants: its page would be too large."""


class RowChanges:
    """The rows that have changed since a reader has taken them."""

    def __init__(self, rows: dict[str, NodeRow]) -> None:
        self._rows = rows
        self._changed: dict[str, int] = {}

    def add(self, name: str, before: NodeRow | None) -> None:
        """Note that the row of a node has changed, and what it was."""
        self._changed.setdefault(name, -1 if before is None else before.id)

    def take(self) -> tuple[list[NodeRow], list[int]]:
        """The rows that have changed since the last call, by id, and the ids of nodes that are gone."""
        changed, self._changed = self._changed, {}
        rows = [self._rows[name] for name in changed if name in self._rows]
        gone = [before for name, before in changed.items() if before >= 0 and (name not in self._rows or self._rows[name].id != before)]
        return sorted(rows, key=lambda row: row.id), gone


class KeptRows:
    """The rows of the nodes of a graph.

    A graph publishes what happens to its nodes; what else a row shows is compared with what it was: the line that made a node, failed
    and deleted cells, the last placement, gradients, and dimensions that merges make one.

    Args:
        graph: the graph.

    Attributes:
        attrs, slots: texts of nodes, for the rows of bodies too.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._rows: dict[str, NodeRow] = {}
        self._nodes: dict[str, Node] = {}
        self._sources: dict[str, SourceLocation | None] = {}
        self._cells: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
        self._placement: object = None
        self._refiner: object = None
        self._dirty: set[str] = set()
        self._readers: weakref.WeakSet[RowChanges] = weakref.WeakSet()
        self._begin(with_previews=True)
        dirty = self._dirty
        weakref.finalize(self, graph.subscribe(lambda change: dirty.add(change.node)))

    def _begin(self, *, with_previews: bool) -> None:
        """Make all rows anew from now on."""
        self._with_previews = with_previews
        self.attrs, self.slots = AttrTexts(with_previews=with_previews), SlotNames()
        self._maker = RowMaker(self._graph, attrs=self.attrs, slots=self.slots)
        self._refiner = self._graph.refiner
        self._dirty.update(self._graph.node_store.by_name, self._rows)

    @property
    def rows(self) -> list[NodeRow]:
        """The rows, in the order of node ids."""
        return sorted(self._rows.values(), key=lambda row: row.id)

    @property
    def marks(self) -> Marks:
        """The facts about the whole graph that rows have."""
        return self._maker.marks

    def read(self) -> RowChanges:
        """The changes of the rows from now on, for one reader."""
        changes = RowChanges(self._rows)
        self._readers.add(changes)
        return changes

    def update(self) -> Steps[None]:
        """Make the rows of changed nodes anew, in steps. The graph must not change between the steps."""
        self._graph.settle()
        self._look()
        dirty, rows = self._dirty, self._rows
        readers: list[RowChanges] = []
        for count, name in enumerate(list(dirty)):
            if count % STEP == 0:
                yield
                readers = list(self._readers)
            node = self._graph.find(name)
            before = rows.pop(name, None) if node is None else rows.get(name)
            row = None if node is None else self._maker.row(node)
            if row is not None:
                rows[name] = row
            if before != row:
                for changes in readers:
                    changes.add(name, before)
            dirty.discard(name)

    def _look(self) -> None:
        """Find the nodes whose rows are no longer true."""
        graph, dirty = self._graph, self._dirty
        placement, with_previews = last_placement(graph), len(graph) <= MAX_PREVIEWED
        if with_previews != self._with_previews or graph.refiner is not self._refiner:
            self._begin(with_previews=with_previews)
        if placement is not self._placement:
            self._placement = placement
            dirty.update(graph.node_store.by_name)
        by_name = graph.node_store.by_name
        sources, nodes = self._sources, self._nodes
        for name, node in by_name.items():
            if sources.get(name) is not node.source:
                sources[name] = node.source
                dirty.add(name)
        cells = frozenset(graph.cells.failed), graph.cells.deleted
        for before, now in zip(self._cells, cells, strict=True):
            dirty.update([node.name for cell in before ^ now for node in graph.cells.nodes_of(cell)])
        self._cells = cells
        marks = self._maker.marks
        self._maker.look()
        dirty.update(_differing(marks, self._maker.marks))
        dirty.update(self._consumers({name for name in dirty if nodes.get(name) is not by_name.get(name)}))
        for name in dirty:
            if name in by_name:
                nodes[name] = by_name[name]
            else:
                nodes.pop(name, None)
                sources.pop(name, None)

    def _consumers(self, others: set[str]) -> set[str]:
        """The nodes that take outputs of nodes which are gone, replaced, or back again, or wait for them."""
        missing = self._maker.missing
        consumers = {name for other in others for name in missing.get(other, ())}
        gone = others & self._nodes.keys()
        for name, row in self._rows.items() if gone else ():
            if not gone.isdisjoint([source.name for source in row.inputs]) or not gone.isdisjoint(row.waits):
                consumers.add(name)
        return consumers


_rows: Final[Attached[KeptRows]] = Attached()


def rows_of(graph: Graph) -> KeptRows:
    """The rows that all pictures of a graph share."""
    rows = _rows.of(graph)
    if rows is None:
        rows = KeptRows(graph)
        _rows.set(graph, rows)
    return rows


def _differing(one: Marks, other: Marks) -> set[str]:
    """The nodes of which two looks at a graph say different things."""
    differing = {name for name, _ in one.records.items() ^ other.records.items()}
    differing |= one.gradients ^ other.gradients
    differing |= one.differentiated ^ other.differentiated
    differing.update([name for name, _ in one.origins.items() ^ other.origins.items()])
    differing.update([name for name, sizes in other.sizes.items() if one.sizes.get(name) != sizes])
    differing.update(one.sizes.keys() - other.sizes.keys())
    return differing
