"""Events of this process that displays may watch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, ParamSpec

_P = ParamSpec("_P")


class Watched(Generic[_P]):
    """Passes events on to watchers as they happen."""

    def __init__(self) -> None:
        self._watchers: list[Callable[_P, None]] = []

    def watch(self, watcher: Callable[_P, None]) -> None:
        """Call `watcher` from now on."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Callable[_P, None]) -> None:
        """Call `watcher` no more."""
        self._watchers.remove(watcher)

    @property
    def is_watched(self) -> bool:
        """True if there is a watcher."""
        return bool(self._watchers)

    def publish(self, *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Pass an event on."""
        for watcher in list(self._watchers):
            watcher(*args, **kwargs)


written_scalars: Final[Watched[[str, Mapping[str, float], int | None]]] = Watched()
"""Scalars are written to an event file: its folder, the scalars by tag, and their step."""
long_work: Final[Watched[[str, int, int, str]]] = Watched()
"""Long work goes on: its title, the number of steps that are done, all steps, and the place where it is, "" for none.

All steps may grow, and are 0 while their number is unknown. At the end both numbers are equal."""
