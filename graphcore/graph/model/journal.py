"""The journal of a graph: it counts changes, tells subscribers, and leads back to an earlier state.

Transactions, snapshots, the undo of cells and the way back after an error or Ctrl-C in a transaction all work through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from operator import attrgetter
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from graphcore.graph.model.changes import Change, ChangeKind, Subscriber
from graphcore.graph.model.edges import EdgeStore
from graphcore.graph.model.node import Node
from graphcore.graph.model.node_store import NodeStore
from graphcore.support.critical_section import critical_contextmanager, critical_section

_P = ParamSpec("_P")
_T = TypeVar("_T")

_NODE_STATE: Final = (
    "op",
    "_definition",
    "registration",
    "op_def",
    "input_types",
    "output_types",
    "inputs",
    "control_inputs",
    "_outputs",
    "output_handles",
    "handle_data",
    "constants",
    "requested_values",
    "like",
    "rank",
    "assigned_device",
    "source",
    "error",
    "input_errors",
)
"""The attributes of a node that changes replace."""
node_state: Final = attrgetter(*_NODE_STATE)


def restore_nodes(states: dict[Node, tuple[Any, ...]]) -> None:
    """Give nodes back what `node_state` read."""
    for node, state in states.items():
        for name, value in zip(_NODE_STATE, state, strict=True):
            setattr(node, name, value)


class Part(Protocol):
    """Something beside the nodes and edges of a graph that changes with them, such as its names."""

    def state(self) -> Any:
        """A snapshot for `restore`."""

    def restore(self, state: Any) -> None:
        """Return to a snapshot."""


class Attributes:
    """A part: attributes of an object, whose values are replaced and never changed."""

    def __init__(self, owner: object, *names: str) -> None:
        self._owner = owner
        self._names = names

    def state(self) -> tuple[Any, ...]:
        """The values."""
        return tuple([getattr(self._owner, name) for name in self._names])

    def restore(self, state: tuple[Any, ...]) -> None:
        """Give the attributes these values."""
        for name, value in zip(self._names, state, strict=True):
            setattr(self._owner, name, value)


class Table:
    """A part: a dict, copied whole, since the order of its entries is a part of the state."""

    def __init__(self, table: MutableMapping[str, Any]) -> None:
        self._table = table

    def state(self) -> dict[str, Any]:
        """A copy."""
        return dict(self._table)

    def restore(self, state: dict[str, Any]) -> None:
        """Fill the dict again."""
        self._table.clear()
        self._table.update(state)


class Lists:
    """A part: a dict of lists, which keep their identity."""

    def __init__(self, lists: MutableMapping[str, list[Any]]) -> None:
        self._lists = lists

    def state(self) -> dict[str, tuple[list[Any], list[Any]]]:
        """The lists, each with a copy."""
        return {name: (items, list(items)) for name, items in self._lists.items()}

    def restore(self, state: dict[str, tuple[list[Any], list[Any]]]) -> None:
        """Fill dict and lists again."""
        self._lists.clear()
        for name, (items, content) in state.items():
            items[:] = content
            self._lists[name] = items


class Journal:
    """The changes of one graph.

    Args:
        nodes, edges: the graph's.
        parts: gives its other parts, in the order in which they are restored.

    Attributes:
        version: increases with every change.
    """

    def __init__(self, nodes: NodeStore, edges: EdgeStore, parts: Callable[[], Sequence[Part]]) -> None:
        self.version = 0
        self._nodes = nodes
        self._edges = edges
        self._parts = parts
        self._before: _Before | None = None
        self._unpublished: list[Change] | None = None
        self._subscribers: list[Subscriber] = []
        self._last_version = 0

    # ---- telling ---------------------------------------------------------------------------------------------------

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """See `Graph.subscribe`."""
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    def publish(self, kind: ChangeKind, node: Node) -> None:
        """Count a change, and notify the subscribers at the end of the current edit or transaction."""
        # Versions taken by failed transactions are not reused: plans are cached by them.
        self.version = self._last_version = self._last_version + 1
        if self._subscribers:
            self._announce(kind, node)

    def outdate(self) -> None:
        """Count a change of no particular node, which invalidates results derived from the graph."""
        self.version = self._last_version = self._last_version + 1

    def _announce(self, kind: ChangeKind, node: Node) -> None:
        change = Change(kind, node.name, self.version)
        if self._unpublished is None:
            self._notify([change])
        else:
            self._unpublished.append(change)

    def unpublished_changes(self) -> list[Change]:
        """The changes of the running transaction, which will be published to subscribers."""
        return [] if self._unpublished is None else list(self._unpublished)

    def _notify(self, changes: list[Change]) -> None:
        """Call each subscriber with each change.

        Raises:
            Exception: the first error of a subscriber, after all were notified.
        """
        failure: Exception | None = None
        for change in changes:
            for subscriber in tuple(self._subscribers):
                try:
                    subscriber(change)
                except Exception as error:  # noqa: BLE001 - the subscriber's own, which is raised below
                    failure = failure or error
        if failure is not None:
            raise failure

    # ---- changing and going back -----------------------------------------------------------------------------------

    def note(self, node: Node) -> None:
        """Save the state of an existing node before it changes, for transactions."""
        if self._before is not None:
            self._before.note(node)

    def atomically(self, change: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call `change` atomically: Ctrl-C is deferred to the end, when subscribers are notified."""
        with self._edges.lock, critical_section:
            if self._unpublished is not None:
                return change(*args, **kwargs)
            unpublished = self._unpublished = []
            try:
                return change(*args, **kwargs)
            finally:
                self._unpublished = None
                self._notify(unpublished)

    @critical_contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block atomically: after an error the graph is unchanged, and subscribers were not notified.

        This covers nodes and their ids, edges, all parts, and the version. Subscribers are notified when the outermost block has succeeded.
        Other threads wait meanwhile. Ctrl-C within the block raises there, like any error.
        """
        lock = self._edges.lock
        critical_section.acquire(lock)
        try:
            before = self._begin()
            try:
                yield
            except BaseException:
                self._roll_back(before)
                raise
            self._commit(before)
        finally:
            lock.release()

    def _begin(self) -> _Before:
        first_new_id = self._nodes.next_id
        parts, edges = self.parts_state(), self._edges.begin(first_new_id)
        before = self._before = _Before(self._before, self._unpublished, self.version, first_new_id, parts, edges)
        self._unpublished = []
        return before

    def _roll_back(self, before: _Before) -> None:
        self._edges.restore(before.edges)
        restore_nodes(before.nodes)
        self.version = before.version
        self.restore_parts(before.parts)
        self._before, self._unpublished = before.outer, before.unpublished

    def _commit(self, before: _Before) -> None:
        """Keep the changes: an outer transaction takes over the saved state; the outermost notifies."""
        self._edges.keep(before.edges)
        changes = self.unpublished_changes()
        self._before, self._unpublished = before.outer, before.unpublished
        if before.outer is not None:
            for node, state in before.nodes.items():
                if node.id < before.outer.first_new_id:
                    before.outer.nodes.setdefault(node, state)
        if self._unpublished is None:
            self._notify(changes)
        else:
            self._unpublished += changes

    def parts_state(self) -> list[Any]:
        """The state of all parts beside nodes and edges."""
        return [part.state() for part in self._parts()]

    def restore_parts(self, states: list[Any]) -> None:
        """Return to what `parts_state` gave."""
        for part, state in zip(self._parts(), states, strict=True):
            part.restore(state)


class _Before:
    """The state of a graph at the beginning of a transaction; each node is saved before its first change."""

    __slots__ = ("edges", "first_new_id", "nodes", "outer", "parts", "unpublished", "version")

    def __init__(
        self,
        outer: _Before | None,
        unpublished: list[Change] | None,
        version: int,
        first_new_id: int,
        parts: list[Any],
        edges: tuple[Any, ...],
    ) -> None:
        self.outer = outer
        self.unpublished = unpublished
        self.version = version
        self.first_new_id = first_new_id
        self.parts = parts
        self.edges = edges
        self.nodes: dict[Node, tuple[Any, ...]] = {}

    def note(self, node: Node) -> None:
        """Save the state of `node`, once; new nodes are not saved."""
        if node.id < self.first_new_id and node not in self.nodes:
            self.nodes[node] = node_state(node)
