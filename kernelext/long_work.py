"""The progress of long calls, such as the search for a placement, below the cell that waits for them."""

from __future__ import annotations

import time
from typing import Final

from graphcore.support.watched import long_work
from kernelext.cell_picture import CellPicture
from kernelext.progress import Progress

SECONDS_UNSHOWN: Final = 0.5
"""Work that ends sooner shows no progress."""


class LongWorkDisplay(CellPicture["WorkProgress"]):
    """Draws the progress of work that lasts."""

    watched = long_work
    work = "drawing progress"

    def take(self, title: str, done: int, steps: int) -> None:
        """Draw how far work is."""
        if self._shown is None:
            self._shown = WorkProgress(title)
        self._shown.take(done, steps)
        if done == steps:
            self._end()


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
