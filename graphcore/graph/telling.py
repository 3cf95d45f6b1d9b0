"""Counting what happens to a graph, and telling those who follow it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from graphcore.graph.changes import Change, ChangeKind, Subscriber
from graphcore.graph.journal import Journal
from graphcore.graph.node import Node
from graphcore.graph.single_change import SingleChange


class ChangeTeller:
    """The part of a `Graph` that publishes its changes.

    Attributes:
        version: grows with every change.
        journal: what a transaction or single change under way notes, None if there is none.
    """

    def __init__(self) -> None:
        self.version = 0
        self.journal: Journal | None = None
        self._subscribers: list[Subscriber] = []
        self._last_version = 0

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Have `subscriber` called after each change with its record, by the thread that makes it. Returns what ends it."""
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    def publish(self, kind: ChangeKind, node: Node) -> None:
        """Count a change and tell the subscribers, within a transaction when that has ended well."""
        # A number that a failed transaction took is not used again: plans are kept by it.
        self.version = self._last_version = self._last_version + 1
        if self._subscribers:
            self._announce(kind, node)

    def outdate(self) -> None:
        """Count a change that concerns no node by itself: what was made of this graph before is looked at again."""
        self.version = self._last_version = self._last_version + 1

    def _announce(self, kind: ChangeKind, node: Node) -> None:
        change = Change(kind, node.name, self.version)
        if self.journal is None:
            self.tell(change)
        else:
            self.journal.changes.append(change)

    def untold_changes(self) -> list[Change]:
        """The changes of the transaction or single change under way, of which the subscribers will be told."""
        return [] if self.journal is None else list(self.journal.changes)

    def tell(self, change: Change) -> None:
        """Call the subscribers."""
        _tell(iter(tuple(self._subscribers)), change)

    def note(self, node: Node) -> None:
        """Called before an existing node changes: a transaction keeps what it was."""
        if self.journal is not None:
            self.journal.note(node)

    def note_inferred(self, node: Node) -> None:
        """Called before something else is inferred for an existing node, if nothing but that changes."""
        if self.journal is not None:
            self.journal.note_inferred(node)

    def when_done(self, completion: Callable[[], object]) -> None:
        """Do this, which may be done twice, as soon as nothing can take back the single change under way; now if there is none."""
        if isinstance(self.journal, SingleChange):
            self.journal.completions.append(completion)
        else:
            completion()

    def if_undone(self, undo: Callable[[], object]) -> None:
        """Do this, which may be done twice, if the single change under way is taken back; a transaction keeps all tables itself."""
        if isinstance(self.journal, SingleChange):
            self.journal.undoing.append(undo)


def _tell(waiting: Iterator[Subscriber], change: Change) -> None:
    try:
        for subscriber in waiting:
            subscriber(change)
    except BaseException:  # one that failed, or Ctrl-C, is no reason for others not to know
        _tell(waiting, change)
        raise
