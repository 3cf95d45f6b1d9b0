"""Source locations: file, line and, in a notebook, the cell of the user's code."""

from __future__ import annotations

import linecache
import os
import sys
import threading
from collections import Counter
from contextvars import ContextVar
from typing import Final
from weakref import WeakKeyDictionary

import msgspec


class CellRun(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of a notebook cell: `cell` is its lasting id, `label` its prompt (`In [3]`).

    `file` is Python's file name for the cell's compiled code, "" if unknown.
    """

    cell: str
    execution: int
    label: str
    file: str = ""


class RederivedRun(CellRun, frozen=True, kw_only=True):
    """A run that derives nodes again; they keep the `location` of the call they are derived from."""

    location: SourceLocation


cell_runs: Final[dict[str, CellRun]] = {}
"""The cells by Python's file names for their code; the kernel extension enters each cell."""


class SourceLocation(msgspec.Struct, frozen=True, gc=False):
    """A line of user code: 1-based `line` of `file`, within the cell run `run` if there was one."""

    file: str
    line: int
    run: CellRun | None = None

    @property
    def text(self) -> str:
        """The line itself, without its indentation; empty if it cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def holder(self) -> CellRun | None:
        """The run of the cell that holds the line; None for a line of a file.

        This is not the running cell if that called a function of an earlier cell or a module.
        """
        run = self.run
        if run is not None and run.file in ("", self.file):
            return run
        return cell_runs.get(self.file)

    @property
    def cell(self) -> str:
        """The label of the cell that holds the line; "" for a line of a file."""
        holder = self.holder
        return "" if holder is None else holder.label

    @property
    def where(self) -> str:
        """The place in words: `cell In [3], line 2`, or `train.py, line 2` outside a notebook.

        A line of another cell than the running one reads `cell In [1], line 2 (called in cell In [3])`.
        """
        cell = self.cell
        place = f"cell {cell}, line {self.line}" if cell else f"{os.path.basename(self.file)}, line {self.line}"
        if self.run is None or self.run.label == cell:
            return place
        return f"{place} (called in cell {self.run.label})"

    def __str__(self) -> str:
        text = self.text
        return f"{self.where}: {text}" if text else self.where


current_run: ContextVar[CellRun | None] = ContextVar("current_run", default=None)
"""The cell that is running now; the kernel extension sets it, the core only reads it."""


class StartedThreads:
    """The threads that cells have started: what they build belongs to the cell, also after its end.

    Python's threads begin without context variables.
    """

    def __init__(self) -> None:
        self._running: CellRun | None = None
        self._before: frozenset[threading.Thread] = frozenset()
        self._runs: WeakKeyDictionary[threading.Thread, CellRun] = WeakKeyDictionary()

    def begin(self, run: CellRun) -> None:
        """Note the threads that are there before a run of a cell."""
        self._running, self._before = run, frozenset(threading.enumerate())

    def end(self) -> None:
        """Note the threads that the run has started and that go on."""
        run = self._running
        if run is not None:
            self._runs.update({thread: run for thread in threading.enumerate() if thread not in self._before})
        self._running, self._before = None, frozenset()

    def clear(self) -> None:
        """Forget all threads."""
        self._running, self._before = None, frozenset()
        self._runs.clear()

    def run_of_this(self) -> CellRun | None:
        """The run that has started this thread, which keeps it as its current run; None if no cell has."""
        if self._running is None and not self._runs:
            return None
        thread = threading.current_thread()
        run = self._runs.get(thread)
        if run is None and self._running is not None and thread not in self._before:
            run = self._running
        if run is not None:
            current_run.set(run)
        return run


started_threads: Final = StartedThreads()
"""The threads of this process that cells have started; the kernel extension keeps it."""


def cell_run() -> CellRun | None:
    """The run of a cell that this code belongs to, None outside of cells."""
    return current_run.get() or started_threads.run_of_this()


gradient_calls: Final[Counter[SourceLocation]] = Counter()
"""The number of times that each line of the running cell has built gradients; reset by the kernel extension."""

dropped_gradients: Final[dict[str, str]] = {}
"""The outputs at which gradients arrived that the running cell dropped, as TensorFlow does, and the reasons; reset by the extension."""

_ROOT: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep
_internal: dict[str, bool] = {}
"""True for a file of this package, by its name: hashing a code object would take longer than all the rest."""
_last: Final = [SourceLocation("", 0)]
"""The location given last: a line makes several nodes, and one object does for all of them."""


def caller_location(skip: int = 1) -> SourceLocation:
    """The innermost frame outside this package.

    Args:
        skip: the number of frames around this one that are known to be inside the package.
    """
    run = current_run.get() or started_threads.run_of_this()
    if run.__class__ is RederivedRun:
        return run.location
    frame = sys._getframe(skip)
    internal = _internal
    while True:
        file = frame.f_code.co_filename
        inside = internal.get(file)
        if inside is None:
            inside = internal[file] = file.startswith(_ROOT)
        outer = frame.f_back if inside else None
        if outer is None:
            break
        frame = outer
    line, last = frame.f_lineno, _last[0]
    if last.line != line or last.file != file or last.run is not run:
        _last[0] = last = SourceLocation(file, line, run)
    return last
