"""Callables: prepared runs that are called with values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from graphcore.errors import InvalidArgumentError
from graphcore.runtime.session.planner import Planner
from graphcore.runtime.session.prepared import Prepared
from graphcore.runtime.session.runner import Runner

RELEASED = "Attempted to run callable after handle was released"


class _Session(Protocol):
    """The session of a callable, which lives as long as it."""

    planner: Planner
    runner: Runner


class SessionCallable:
    """A function of feed values, made by `Session.make_callable`.

    It is prepared again when a node that it depends on changes.
    """

    __slots__ = ("_connections", "_feeds", "_fetches", "_is_released", "_prepared", "_session")

    def __init__(self, session: _Session, fetches: Any, feeds: Sequence[Any], connections: tuple[tuple[str, str], ...] = ()) -> None:
        self._session = session
        self._fetches = fetches
        self._feeds = tuple(feeds)
        self._connections = connections
        self._is_released = False
        self._prepared: Prepared | None = session.planner.prepare(fetches, self._feeds, self, connections)

    def __repr__(self) -> str:
        if self._prepared is None or self._is_released:
            return "<SessionCallable released>"
        return f"<SessionCallable ({', '.join([tensor.name for tensor in self._prepared.feeds])})>"

    def __call__(self, *values: Any) -> Any:
        """The fetches, in their structure.

        Raises:
            InvalidArgumentError: it was released, or a value does not fit, or their number is wrong.
        """
        prepared = self._prepared
        if prepared is None or self._is_released:
            raise InvalidArgumentError(RELEASED)
        if len(values) != len(self._feeds):
            raise InvalidArgumentError(f"Required {len(self._feeds)} values, one a feed, got {len(values)}")
        session = self._session
        if prepared.version != session.planner.graph.version:
            prepared = self._prepare_again()
        return prepared.finish(
            session.runner.execute(prepared, [feed(value) for feed, value in zip(prepared.feeders, values, strict=True)])
        )

    def _prepare_again(self) -> Prepared:
        prepared = self._prepared = self._session.planner.prepare(self._fetches, self._feeds, self, self._connections)
        if self._is_released:  # released by another thread meanwhile: this call still completes, and leaves nothing behind
            self.release()
        return prepared

    def release(self) -> None:
        """Release it; later calls are errors. Calls in progress complete."""
        self._is_released = True
        self._prepared = None
        self._session.planner.forget(self)
