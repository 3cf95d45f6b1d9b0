"""Redefinition of functions by cells that run again; users of the old definition get the new one."""

from __future__ import annotations

from collections import Counter
from contextvars import ContextVar
from typing import Any, Final, Protocol, Self
from weakref import WeakValueDictionary

from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import Graph
from graphcore.source import CellRun, cell_run

Place = tuple[str, str, int]
"""Cell, name, and how many of that name the same run of the cell defined before."""


class Traced(Protocol):
    """The protocol of functions traced from Python that are called in a body being traced."""

    @property
    def signature(self) -> object:
        """The name, the captured tensors, and the types of the arguments."""

    def is_current(self, library: FunctionLibraryDefinition) -> bool:
        """True iff tracing again would give the same result."""

    def trace_again(self, graph: Graph) -> Self:
        """The function now defined by its cell, for the same types."""


tracing: Final[ContextVar[list[Any] | None]] = ContextVar("tracing", default=None)
"""The traced functions that the body under construction calls."""

_latest: Final[WeakValueDictionary[Place, object]] = WeakValueDictionary()
_counts: Final[Counter[str]] = Counter()
_counted_run: CellRun | None = None


def enter_definition(name: str) -> Place | None:
    """The key of the definition of `name` in the running cell; None outside of cells.

    Outside of cells nothing is redefined.
    """
    global _counted_run  # noqa: PLW0603 - the count restarts with each run of a cell
    run = cell_run()
    if type(run) is not CellRun:
        return None
    if run is not _counted_run:
        _counts.clear()
        _counted_run = run
    place = run.cell, name, _counts[name]
    _counts[name] += 1
    return place


def set_latest_definition(place: Place | None, definition: object) -> None:
    """Record the current definition at `place`."""
    if place is not None:
        _latest[place] = definition


def latest_definition(place: Place | None) -> object:
    """The last definition at `place`, None if it was discarded."""
    return None if place is None else _latest.get(place)
