"""Ownership of nodes by cells, and replacement by cells that run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphcore.errors import GraphError
from graphcore.graph.model.node import Node
from graphcore.source import CellRun


@dataclass(frozen=True)
class Failure:
    """The node at which a cell failed, with the error, and the number of runs of the graph until then."""

    node: Node
    error: GraphError
    run_count: int


class CellOwnership:
    """Nodes by the cell that made them.

    Attributes:
        failures: the nodes at which cells have failed, by cell, until the node is made again, or a run succeeds.
        refusals: the errors of cells that failed at a node which is not in the graph, by cell.
        failed: cells whose last run failed; their nodes are incomplete.
        last_runs: the number of the last execution of each cell.
        circle: the node of the running cell that would have taken its own result as an input, and the name of that result.
        deleted: cells that were deleted from the notebook, and whose nodes are still there.
    """

    __slots__ = ("_first_runs", "_owned", "_stale", "circle", "deleted", "failed", "failures", "last_runs", "refusals", "running")

    def __init__(self) -> None:
        self._first_runs: dict[str, int] = {}
        self._owned: dict[str, dict[str, Node]] = {}
        self._stale: dict[str, Node] = {}
        self.failed: set[str] = set()
        self.failures: dict[str, Failure] = {}
        self.refusals: dict[str, GraphError] = {}
        self.deleted: frozenset[str] = frozenset()
        self.last_runs: dict[str, int] = {}
        self.circle: tuple[Node, str] | None = None
        self.running: CellRun | None = None

    def state(self) -> tuple[Any, ...]:
        """A snapshot for `restore`."""
        owned = {cell: dict(nodes) for cell, nodes in self._owned.items()}
        return owned, dict(self._stale), set(self.failed), dict(self.failures), dict(self.refusals), self.running, self.deleted

    def restore(self, state: tuple[Any, ...]) -> None:
        """Return to the snapshot `state`."""
        self._owned, self._stale, self.failed, self.failures, self.refusals, self.running, self.deleted = state

    def begin(self, run: CellRun) -> list[str]:
        """Start a run. Returns the names of the nodes that it may replace."""
        self.running = run
        self.circle = None
        self.deleted -= {run.cell}
        self._forget_faults(run.cell)
        self._first_runs.setdefault(run.cell, len(self._first_runs))
        self.last_runs[run.cell] = run.execution
        self._stale = dict(self._owned.get(run.cell, {}))
        return list(self._stale)

    def end(self, run: CellRun, *, failed: bool) -> list[Node]:
        """End a run. Returns the nodes of earlier runs that it did not make again."""
        left = list(self._stale.values())
        self._stale = {}
        self.running = None
        self.failed = self.failed | {run.cell} if failed else self.failed - {run.cell}
        return left

    def begin_again(self, nodes: dict[str, Node]) -> dict[str, Node]:
        """Allow a rebuilt derivation to replace `nodes`. Returns a token for `end_again`."""
        before, self._stale = self._stale, nodes
        return before

    def end_again(self, before: dict[str, Node]) -> list[Node]:
        """End the rebuild of a derivation. Returns the nodes that it did not make again."""
        left, self._stale = list(self._stale.values()), before
        return left

    def comes_before(self, node: Node, run: CellRun | None) -> bool:
        """True iff the cell of `node` first ran before the cell of `run`, and so is above it."""
        made_in = None if node.source is None else node.source.run
        if made_in is None or run is None or made_in.cell == run.cell:
            return False
        first = self._first_runs
        return first.get(made_in.cell, len(first)) < first.get(run.cell, len(first))

    @property
    def unmade(self) -> list[Node]:
        """The nodes of an earlier run of the running cell that were not made again yet."""
        return list(self._stale.values())

    def may_replace(self, node: Node) -> bool:
        """True iff an earlier run of the running cell made `node`, and this run has not yet."""
        return self._stale.get(node.name) is node

    def own(self, node: Node) -> None:
        """Make `node` the property of the cell in its source."""
        self._stale.pop(node.name, None)
        self._forget_failure_at(node)
        if node.source is not None and node.source.run is not None:
            self._owned.setdefault(node.source.run.cell, {})[node.name] = node

    def disown(self, node: Node) -> None:
        """Remove the owner of `node`, which is removed or gets another one."""
        source = node.source
        self._forget_failure_at(node)
        if source is None or source.run is None:
            return
        owned = self._owned.get(source.run.cell, {})
        owned.pop(node.name, None)
        if not owned:
            self._owned.pop(source.run.cell, None)

    def nodes_of(self, cell: str) -> list[Node]:
        """The nodes of a cell, in order."""
        return list(self._owned.get(cell, {}).values())

    def delete(self, cell: str) -> bool:
        """Note that a cell was deleted. True iff it has nodes, which stay."""
        self._forget_faults(cell)
        has_nodes = bool(self._owned.get(cell)) and cell not in self.deleted
        self.deleted |= {cell} if has_nodes else set()
        return has_nodes

    def is_without_cell(self, node: Node) -> bool:
        """True iff the cell that made `node` was deleted."""
        return bool(self.deleted) and node.source is not None and node.source.run is not None and node.source.run.cell in self.deleted

    @property
    def runs(self) -> tuple[object, ...]:
        """The last runs of the cells that have nodes, and the deleted ones, for comparison of two moments."""
        return (*[(cell, self.last_runs.get(cell)) for cell in self._owned], self.deleted)

    @property
    def faults(self) -> tuple[object, ...]:
        """The places at which cells have failed, for comparison of two moments."""
        return (frozenset(self.failed), *self.failures.values(), *map(id, self.refusals.values()))

    def fail_at(self, node: Node, error: GraphError, cell: str) -> None:
        """Note the node at which a run of `cell` failed."""
        self.failures[cell] = Failure(node, error, node.graph.run_count)

    def forget_failed_runs(self, run_count: int) -> None:
        """Forget the nodes at which runs failed before this number of runs: a later one has succeeded."""
        for cell, failure in list(self.failures.items()):
            if failure.node.error is None and failure.run_count < run_count:
                del self.failures[cell]

    def failure_at(self, node: Node) -> GraphError | None:
        """The error with which a cell failed at `node`."""
        return next((failure.error for failure in self.failures.values() if failure.node is node), None)

    def _forget_faults(self, cell: str) -> None:
        self.failures.pop(cell, None)
        self.refusals.pop(cell, None)

    def _forget_failure_at(self, node: Node) -> None:
        for cell in [cell for cell, failure in self.failures.items() if failure.node is node]:
            del self.failures[cell]

    def is_partial(self, node: Node) -> bool:
        """True iff the last run of the cell that made `node` failed."""
        return node.source is not None and node.source.run is not None and node.source.run.cell in self.failed
