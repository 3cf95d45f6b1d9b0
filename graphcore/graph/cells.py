"""Which cell made which node, and what a cell that runs again may replace."""

from __future__ import annotations

from typing import Any

from graphcore.graph.node import Node
from graphcore.source import CellRun


class CellBook:
    """Nodes by the cell that made them.

    Attributes:
        failed: cells whose last run ended with an error; what they made is partial.
    """

    __slots__ = ("_owned", "_stale", "failed", "running")

    def __init__(self) -> None:
        self._owned: dict[str, dict[str, Node]] = {}
        self._stale: dict[str, Node] = {}
        self.failed: set[str] = set()
        self.running: CellRun | None = None

    def state(self) -> tuple[Any, ...]:
        """What `restore` needs to bring the book back to what it is now."""
        return {cell: dict(nodes) for cell, nodes in self._owned.items()}, dict(self._stale), set(self.failed), self.running

    def restore(self, state: tuple[Any, ...]) -> None:
        """Be again what the book was at `state`."""
        self._owned, self._stale, self.failed, self.running = state

    def begin(self, run: CellRun) -> list[str]:
        """Start a run; returns the names of the nodes that it may replace."""
        self.running = run
        self._stale = dict(self._owned.get(run.cell, {}))
        return list(self._stale)

    def end(self, run: CellRun, *, failed: bool) -> list[Node]:
        """End a run; returns the nodes of earlier runs that it did not make again."""
        left = list(self._stale.values())
        self._stale = {}
        self.running = None
        self.failed = self.failed | {run.cell} if failed else self.failed - {run.cell}
        return left

    def may_replace(self, node: Node) -> bool:
        """True iff an earlier run of the running cell made `node` and this run has not yet."""
        return self._stale.get(node.name) is node

    def own(self, node: Node) -> None:
        """`node` was made (again) by the cell in its source."""
        if node.source is None or node.source.run is None:
            return
        self._owned.setdefault(node.source.run.cell, {})[node.name] = node
        self._stale.pop(node.name, None)

    def disown(self, node: Node) -> None:
        """`node` is gone, or is about to be another cell's."""
        source = node.source
        if source is None or source.run is None:
            return
        owned = self._owned.get(source.run.cell, {})
        owned.pop(node.name, None)
        if not owned:
            self._owned.pop(source.run.cell, None)

    def nodes_of(self, cell: str) -> list[Node]:
        """What a cell has made, in order."""
        return list(self._owned.get(cell, {}).values())

    def is_partial(self, node: Node) -> bool:
        """True iff the last run of the cell that made `node` failed."""
        return node.source is not None and node.source.run is not None and node.source.run.cell in self.failed
