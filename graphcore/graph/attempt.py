"""Changing a graph altogether or not at all: what a transaction and a single change have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from graphcore.graph.journal import NodeJournal

if TYPE_CHECKING:
    from graphcore.graph.graph import Graph


class Attempt(ABC):
    """What a graph was when a change began.

    Ctrl-C may come at any time: making this changes nothing yet, and whatever else it does can be done once more.

    Attributes:
        outer: what a transaction around this one notes, None if there is none.
        journal: what this one notes of nodes.
        is_kept: True from where all went well: what is left to do is done then, whatever comes.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.outer = graph.journal
        self.journal = NodeJournal(graph.num_node_ids)
        self.is_kept = False
        self._told = 0

    @abstractmethod
    def begin(self) -> None:
        """Note from now on what changes."""

    @abstractmethod
    def keep(self) -> None:
        """All went well."""

    @abstractmethod
    def complete(self) -> None:
        """Do what is left to do when all went well."""

    @abstractmethod
    def restore(self) -> None:
        """Bring everything back."""

    def end(self) -> None:
        """Something ended the attempt: bring everything back, or complete what `keep` has begun."""
        try:
            self._end()
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        if self.is_kept:
            self.complete()
        else:
            self.restore()

    def tell(self) -> None:
        """Tell the subscribers of the changes that they have not been told of."""
        while self._told < len(self.journal.changes):
            try:
                self.graph.tell(self.journal.changes[self._told])
            except Exception:  # of a subscriber, which will not do better the next time
                self._told += 1
                raise
            self._told += 1
