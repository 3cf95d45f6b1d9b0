"""Numbers of a user on a graph, shown in views and stored in pages."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Literal

import msgspec

Combine = Literal["sum", "max", "mean"]
Scale = Literal["log", "linear"]


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers by node or scope, as columns of equal length.

    The name of a row is its entry in `prefixes`, "" or the open calls around it (`loop:body/`), followed by that in `names`: of a node, or of a scope, whose
    number then stands for all that is in it. A box shows its numbers combined. `bounds` are the least numbers of the tones from hot to cold; by
    default halves of the greatest on the scale `log`, or equal steps on the scale `linear`.
    """

    name: str
    title: str
    unit: str = ""
    combine: Combine = "sum"
    scale: Scale = "log"
    bounds: list[float] = []
    prefixes: list[str] = []
    places: list[int] = []
    names: list[str] = []
    values: list[float] = []

    def to_csv(self, path: str | Path | None = None) -> str:
        """The names and numbers as CSV with a row of titles, which `view.overlay` reads again.

        Args:
            path: a file to write it to.

        Returns:
            The text.

        Raises:
            OSError: the file cannot be written.
        """
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(["name", f"{self.title} [{self.unit}]" if self.unit else self.title])
        names = [self.prefixes[place] + name for place, name in zip(self.places, self.names, strict=True)]
        writer.writerows(zip(names, self.values, strict=True))
        if path is not None:
            Path(path).write_text(text.getvalue(), encoding="utf-8", newline="")
        return text.getvalue()
