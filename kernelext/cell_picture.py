"""A picture below the running cell, made by the first event that it is about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, Generic, Protocol, TypeVar

from IPython.core.interactiveshell import InteractiveShell

from graphcore.support.watched import Watched
from kernelext.guard import Guard

_EVENT: Final = "post_run_cell"


class Picture(Protocol):
    """A drawing below a cell."""

    def end(self) -> None:
        """Draw for the last time."""


Shown = TypeVar("Shown", bound=Picture)


class CellPicture(ABC, Generic[Shown]):
    """Draws events of a cell until it ends.

    Args:
        shell: the IPython shell.
        guard: keeps failures away from the cell.
    """

    watched: Watched[Any]
    """The events."""
    work: str
    """The work in messages of the guard: `drawing progress`."""

    def __init__(self, shell: InteractiveShell, guard: Guard) -> None:
        self._shell = shell
        self._guard = guard
        self._shown: Shown | None = None

    def start(self) -> None:
        """Watch the events."""
        self.watched.watch(self._take)
        self._shell.events.register(_EVENT, self._end)

    def stop(self) -> None:
        """Watch no more."""
        self.watched.unwatch(self._take)
        self._shell.events.unregister(_EVENT, self._end)

    def _take(self, *event: Any) -> None:
        with self._guard(self.work):
            self.take(*event)

    @abstractmethod
    def take(self, *event: Any) -> None:
        """Draw an event."""

    def _end(self, *_: object) -> None:
        shown, self._shown = self._shown, None
        if shown is not None:
            with self._guard(self.work):
                shown.end()
