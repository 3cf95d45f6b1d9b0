"""The default session of each thread: the innermost one entered with `with`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Self

from graphcore.graph import Graph, default_graph
from graphcore.graph.default_session import default_sessions
from graphcore.support.critical_section import critical_contextmanager, critical_section


class _Entered(threading.local):
    """The `with` blocks of a session that each thread is in."""

    def __init__(self) -> None:
        self.blocks: list[AbstractContextManager[Any]] = []


class DefaultSession:
    """The part of a `Session` that makes it the default session."""

    graph: Graph

    def __init__(self) -> None:
        self._entered = _Entered()

    _enters_graph = True
    """False if the default graph stays what it is while this is the default session."""
    _is_nested = True
    """False if this may end to be the default session while one that was entered later still is."""

    @critical_contextmanager
    def as_default(self) -> Iterator[Self]:
        """Make this the default session, and its graph the default graph, within a `with` block."""
        with default_graph(self.graph, nested=self._is_nested) if self._enters_graph else nullcontext():
            default_sessions.set((*default_sessions.get(), self))
            try:
                yield self
            finally:
                default_sessions.set(_without(default_sessions.get(), self))

    def __enter__(self) -> Self:
        blocks = self._entered.blocks
        count = len(blocks)
        try:
            blocks.append(self.as_default())
            blocks[-1].__enter__()
        except BaseException:  # Ctrl-C
            del blocks[count:]
            raise
        return self

    @critical_section.cover
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        critical_section.begin()
        try:
            self._entered.blocks.pop().__exit__(kind, error, traceback)
        finally:
            if critical_section.deferred is not None:
                critical_section.end()


def _without(sessions: tuple[Any, ...], left: Any) -> tuple[Any, ...]:
    """The sessions without the last entry of `left`, which need not be the innermost."""
    place = next((number for number in reversed(range(len(sessions))) if sessions[number] is left), None)
    return sessions if place is None else (*sessions[:place], *sessions[place + 1 :])
