"""Runs as graphs know them: what a graph keeps of its sessions, whose package is above it."""

from __future__ import annotations

from typing import Protocol


class RecordedRun(Protocol):
    """A recorded run, `gc.Trace`."""

    def node_runs(self) -> dict[str, int]:
        """The number of runs of each node outside of functions, by name."""

    def call_runs(self) -> dict[str, int]:
        """The number of runs of each called function, by its call."""


class RecordingOptions(Protocol):
    """The options of recorded runs, `gc.RunOptions`."""

    @property
    def trace(self) -> bool:
        """True for the nodes of runs in order."""

    @property
    def values(self) -> bool | str | tuple[str, ...]:
        """True, or patterns of names, for the values of nodes too."""

    @property
    def trace_level(self) -> int:
        """TF1's option for a trace."""

    @property
    def timeout_in_ms(self) -> int:
        """The time limit, 0 for none."""
