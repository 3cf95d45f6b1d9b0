"""Counts the changes of a graph and publishes them to subscribers."""

from __future__ import annotations

from collections.abc import Callable

from graphcore.graph.editing.changes import Change, ChangeKind, Subscriber
from graphcore.graph.model.node import Node


class ChangePublisher:
    """Publishes the changes of a graph to its subscribers.

    Attributes:
        version: increases with every change.
        unpublished: the pending notifications of the current edit or transaction; None if there is none.
    """

    def __init__(self) -> None:
        self.version = 0
        self.unpublished: list[Change] | None = None
        self._subscribers: list[Subscriber] = []
        self._last_version = 0

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
        if self.unpublished is None:
            self.notify([change])
        else:
            self.unpublished.append(change)

    def unpublished_changes(self) -> list[Change]:
        """The changes of the running transaction, which will be published to subscribers."""
        return [] if self.unpublished is None else list(self.unpublished)

    def notify(self, changes: list[Change]) -> None:
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
