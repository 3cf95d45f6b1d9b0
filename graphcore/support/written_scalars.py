"""The scalars that are written to event files, passed on to what draws them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

Watcher = Callable[[str, Mapping[str, float], int | None], None]
"""Takes the folder of the event file, the scalars by tag, and their step."""


class WrittenScalars:
    """Passes scalars on to watchers as they are written."""

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

    def publish(self, folder: str, values: Mapping[str, float], step: int | None) -> None:
        """Pass scalars on."""
        for watcher in list(self._watchers):
            watcher(folder, values, step)


written_scalars: Final = WrittenScalars()
"""Those of this process."""
