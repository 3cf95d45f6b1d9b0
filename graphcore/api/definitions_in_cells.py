"""Functions that cells define: a cell that runs again defines them again, and what held the old ones goes on with the new."""

from __future__ import annotations

from collections import Counter
from contextvars import ContextVar
from typing import Any, Final, Protocol, Self
from weakref import WeakValueDictionary

from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import Graph
from graphcore.source import CellRun, current_run

Place = tuple[str, str, int]
"""Cell, name, and how many of that name the same run of the cell defined before."""


class Traced(Protocol):
    """A function that was traced from Python, and is called in a body that is being traced."""

    @property
    def signature(self) -> object:
        """The name, the tensors that a call hands over, and the types that it gets."""

    def is_current(self, library: FunctionLibraryDefinition) -> bool:
        """True iff tracing again would give the same."""

    def trace_again(self, graph: Graph) -> Self:
        """The function that its cell defines now, for the same types."""


tracing: Final[ContextVar[list[Any] | None]] = ContextVar("tracing", default=None)
"""The traced functions that the body under construction calls."""

_latest: Final[WeakValueDictionary[Place, object]] = WeakValueDictionary()
_counts: Final[Counter[str]] = Counter()
_counted_run: CellRun | None = None


def enter_definition(name: str) -> Place | None:
    """The place of what the running cell defines now under `name`; None outside of cells, where nothing takes the place of anything."""
    global _counted_run  # noqa: PLW0603 - counting begins anew with each run of a cell
    run = current_run.get()
    if type(run) is not CellRun:
        return None
    if run is not _counted_run:
        _counts.clear()
        _counted_run = run
    place = run.cell, name, _counts[name]
    _counts[name] += 1
    return place


def set_latest_definition(place: Place | None, definition: object) -> None:
    """Note what is defined at `place` now."""
    if place is not None:
        _latest[place] = definition


def latest_definition(place: Place | None) -> object:
    """The last that was defined at `place`, None if it is gone."""
    return None if place is None else _latest.get(place)
