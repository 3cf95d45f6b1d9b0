"""The progress of long calls, such as the search for a placement, below the cell that waits for them."""

from __future__ import annotations

import time
from typing import Final

from IPython.core.interactiveshell import InteractiveShell

from graphcore.support.long_work import long_work
from kernelext.guard import Guard
from kernelext.progress import Progress

SECONDS_UNSHOWN: Final = 0.5
"""Work that ends sooner shows no progress."""
_EVENT: Final = "post_run_cell"


class LongWorkDisplay:
    """Draws the progress of work that lasts.

    Args:
        shell: the IPython shell.
        guard: keeps failures away from the cell.
    """

    def __init__(self, shell: InteractiveShell, guard: Guard) -> None:
        self._shell = shell
        self._guard = guard
        self._shown: WorkProgress | None = None

    def start(self) -> None:
        """Watch the work."""
        long_work.watch(self._take)
        self._shell.events.register(_EVENT, self._end)

    def stop(self) -> None:
        """Watch no more."""
        long_work.unwatch(self._take)
        self._shell.events.unregister(_EVENT, self._end)

    def _take(self, title: str, done: int, steps: int) -> None:
        with self._guard("drawing progress"):
            if self._shown is None:
                self._shown = WorkProgress(title)
            self._shown.take(done, steps)
            if done == steps:
                self._end()

    def _end(self, *_: object) -> None:
        shown, self._shown = self._shown, None
        if shown is not None:
            with self._guard("drawing progress"):
                shown.end()


class WorkProgress(Progress):
    """The progress of one call."""

    def __init__(self, title: str) -> None:
        super().__init__(0, title)
        self._started = time.monotonic()

    def take(self, done: int, steps: int) -> None:
        """Count steps, and draw them once the work has lasted."""
        self.done, self.steps = done, steps
        if self._handle is not None:
            self._draw_if_due()
        elif time.monotonic() - self._started >= SECONDS_UNSHOWN:
            self._show()

    def end(self) -> None:
        """Draw for the last time."""
        self._end()
