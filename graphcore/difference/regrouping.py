"""Nodes that became other nodes: fused, split, left out and inserted ones."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Way = Literal["became", "left out", "inserted"]
WAYS: Final = ("became", "left out", "inserted")


class Regrouping(msgspec.Struct, frozen=True):
    """Nodes of the earlier state and those of the later one that do the same.

    Attributes:
        before, after: their names, in the order of the flow of data. Those that are left out have nothing after, inserted ones nothing before.
        by: the attr of the later node that does the work of the last earlier ones, "" if there is none.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    by: str = ""

    @property
    def way(self) -> Way:
        """The way in which the earlier nodes became the later ones."""
        if not self.after:
            return "left out"
        return "became" if self.before else "inserted"


class Correspondence(msgspec.Struct, frozen=True):
    """The correspondence of two states whose ops have other names, beyond single nodes.

    Attributes:
        before, after: the frameworks of both, as their ops name them.
        computing: the computing nodes of both states, counted.
        matched: those that are paired.
        groups: the nodes that became others.
        followed: weights that are paired since the nodes that take them are, by their earlier names.
        followers_before, followers_after: unmatched nodes that only hold or prepare weights.
    """

    before: str
    after: str
    computing: tuple[int, int]
    matched: int
    groups: tuple[Regrouping, ...]
    followed: frozenset[str]
    followers_before: frozenset[str]
    followers_after: frozenset[str]

    @property
    def is_between_frameworks(self) -> bool:
        """True iff the ops are of two frameworks."""
        return self.before != self.after
