"""The differences of more than two graphs, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from graphcore.difference.diff import GraphDiff
from graphcore.support.shown import html_text, shown


class DiffSteps(msgspec.Struct, frozen=True, eq=False):
    """The differences from each of some graphs to the next; true iff there is one. It prints in words.

    Attributes:
        steps: the differences, one fewer than there are graphs.
        whole: the difference from the first graph to the last.
    """

    steps: tuple[GraphDiff, ...]
    whole: GraphDiff

    def __bool__(self) -> bool:
        return any(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[GraphDiff]:
        return iter(self.steps)

    def __getitem__(self, place: int) -> GraphDiff:
        return self.steps[place]

    def __str__(self) -> str:
        numbered = [(_head(number, diff), str(diff)) for number, diff in enumerate(self.steps, 1)]
        return shown("\n".join([f"{head}: {words}".replace("\n", "\n    ") for head, words in numbered]))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html_text(str(self))}</pre>"


def _head(number: int, diff: GraphDiff) -> str:
    before, after = diff.titles
    return f"{number} ({before} → {after})" if diff.before.title or diff.after.title else f"{number}"
