"""The progress of long work, passed on to what shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Watcher = Callable[[str, int, int], None]
"""Takes a title, the number of steps that are done, and all steps; at the end both are equal."""


class LongWork:
    """Passes the progress of work on to watchers."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` from now on."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Call `watcher` no more."""
        self._watchers.remove(watcher)

    @property
    def is_watched(self) -> bool:
        """True if there is a watcher."""
        return bool(self._watchers)

    def publish(self, title: str, done: int, steps: int) -> None:
        """Pass the progress on; `steps` may grow while the work goes on."""
        for watcher in list(self._watchers):
            watcher(title, done, steps)


long_work: Final = LongWork()
"""The one of this process."""
