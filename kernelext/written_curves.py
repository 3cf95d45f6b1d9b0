"""The scalars that a cell writes to event files, as live curves below it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from graphcore.support.watched import written_scalars
from kernelext.cell_picture import CellPicture
from kernelext.progress import Progress


class WrittenCurves(CellPicture["WrittenProgress"]):
    """Draws the scalars that `gc.summary.FileWriter` writes.

    A loop over a `Progress` draws them in its own picture; otherwise a picture of the cell's own appears with the first scalar.
    """

    watched = written_scalars
    work = "drawing written scalars"

    def take(self, folder: str, values: Mapping[str, float], step: int | None) -> None:
        """Draw scalars."""
        running = Progress.running[-1] if Progress.running else None
        if running is not None:
            running.record(**values)
            return
        if self._shown is None:
            self._shown = WrittenProgress()
        self._shown.take(folder, values, step)


class WrittenProgress(Progress):
    """The scalars of one cell, by tag; those of a second folder have its name in front."""

    def __init__(self) -> None:
        super().__init__(0, "summaries")
        self._folders: list[str] = []

    def take(self, folder: str, values: Mapping[str, float], step: int | None) -> None:
        """Add scalars; without a step they are one step farther than the last."""
        if not self._folders:
            self._begin()
        if folder not in self._folders:
            self._folders.append(folder)
        start = "" if folder == self._folders[0] else f"{PurePath(folder).name}/"
        for tag, value in values.items():
            points = self.series.setdefault(start + tag, [])
            at = step if step is not None else points[-1][0] + 1 if points else 0
            points.append((at, value))
            self.done = self.steps = max(self.done, at)
        self._draw_if_due()

    def end(self) -> None:
        """Draw for the last time."""
        self._end()

    def _bar(self) -> str:
        return ""

    def _count(self) -> str:
        return f"step {self.done}"
