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

    def take(self, title: str, done: int, steps: int, place: str) -> None:
        """Draw how far work is."""
        if self._shown is not None and self._shown.title != title:
            self._end()
        if self._shown is None:
            self._shown = WorkProgress(title)
        self._shown.take(done, steps, place)
        if done == steps:
            self._end()


class WorkProgress(Progress):
    """The progress of one call.

    Args:
        title: the work in a few words.
    """

    def __init__(self, title: str) -> None:
        super().__init__(0, title)
        self._started = time.monotonic()
        self._place = ""

    def take(self, done: int, steps: int, place: str) -> None:
        """Count steps, and draw them once the work has lasted."""
        self.done, self.steps, self._place = done, steps, place or self._place
        if self._handle is not None:
            self._draw_if_due()
        elif time.monotonic() - self._started >= SECONDS_UNSHOWN:
            self._show()

    def end(self) -> None:
        """Draw for the last time."""
        self._end()

    def _count(self) -> str:
        """The count of steps; of work whose number of steps is unknown, the place where it is."""
        if not self._place:
            return super()._count()
        spent = f"{time.monotonic() - self._started:.1f} s"
        if self.steps:
            return f"done in {spent}"
        return f"stopped at {self._place} after {spent}" if self.ended else f"{self._place}, {spent}"

    def _bar(self) -> str:
        """The bar: full at the end, without a value while that is unknown, none for work that was stopped."""
        if self.steps or not self._place:
            return super()._bar()
        return "" if self.ended else super()._bar().replace(' value="' + str(self.done) + '"', "")
