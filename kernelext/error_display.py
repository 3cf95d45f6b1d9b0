"""Compact display of graph errors, failed checks and interrupted runs in a cell: error, node, line."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from graphcore.difference import GraphDiff
from graphcore.errors import GraphError
from graphcore.source import SourceLocation, cell_runs, current_run
from graphcore.testing import CheckFailed
from kernelext.guard import Guard

_BOLD: Final = "\x1b[1m"
_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"
_OWN: Final = [str(Path(__file__).resolve().parents[1] / package) + os.sep for package in ("graphcore", "widgets", "kernelext")]
_NOT_USERS: Final = (*_OWN, sysconfig.get_path("stdlib") + os.sep, "<frozen", "<string>", "<graphcore plan")
_OURS: Final = (GraphError, CheckFailed)
_MOST_LINES: Final = 5
_MORE: Final = f"{_DIM}%tb shows the full traceback.{_PLAIN}"


class ErrorDisplay:
    """Displays graph errors, failed checks, and Ctrl-C within graphcore. IPython displays other exceptions.

    Args:
        shell: the IPython shell.
        guard: keeps failures of the display away from the user; the full traceback is shown instead.
        picture: returns the HTML of a difference of graphs, None if there is none.
    """

    def __init__(self, shell: InteractiveShell, guard: Guard, picture: Callable[[GraphDiff], str | None] = lambda _diff: None) -> None:
        self._shell = shell
        self._guard = guard
        self._picture = picture
        self._before: tuple[tuple[type[BaseException], ...], Any] | None = None
        self._ours: Any = None

    def start(self) -> None:
        """Install the handler; an earlier custom handler still gets its own exceptions."""
        self._before = (self._shell.custom_exceptions, self._shell.CustomTB)
        self._shell.set_custom_exc((*_OURS, KeyboardInterrupt, *self._shell.custom_exceptions), self._handle)
        self._ours = self._shell.CustomTB

    def stop(self) -> None:
        """Restore the earlier handler, unless it was replaced in the meantime."""
        if self._before is not None and self._shell.CustomTB is self._ours:
            self._shell.custom_exceptions, self._shell.CustomTB = self._before
        self._before = None

    def _handle(
        self,
        shell: InteractiveShell,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
        tb_offset: int | None = None,
    ) -> Any:
        theirs, handler = self._before or ((), None)
        if not isinstance(error, _OURS) and issubclass(kind, theirs):
            return handler(kind, error, trace, tb_offset) if handler is not None else None
        if not isinstance(error, _OURS) and not goes_through_graphcore(trace):
            shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)
            return None
        remember(kind, error, trace)
        lines: list[str] = []
        with self._guard("writing an error message"):
            lines += _lines(error, trace)
        if isinstance(error, CheckFailed) and error.diff is not None:
            with self._guard("drawing a difference"):
                picture = self._picture(error.diff)
                if picture is not None:
                    display({"text/plain": "", "text/html": picture}, raw=True)
        if lines:
            shell._showtraceback(kind, error, lines)  # the way in which a kernel sends an error with a custom text
        else:
            shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        return lines


def _lines(error: BaseException, trace: TracebackType | None) -> list[str]:
    if isinstance(error, GraphError):
        return error_lines(error, trace)
    return check_lines(error, trace) if isinstance(error, CheckFailed) else interrupt_lines(error, trace)


def remember(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Store the exception for `%tb` and `%debug`."""
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error


def error_lines(error: GraphError, trace: TracebackType | None) -> list[str]:
    """The message, place, and lines of user code of `error`, as lines for a terminal."""
    lines = [f"{_BOLD}{type(error).__name__}{_PLAIN}: {error.message}"]
    facts = [("op", error.op), ("node", error.node), ("attr", error.attr), ("input", error.input)]
    lines += [f"{_DIM}{name:>8}{_PLAIN}  {value}" for name, value in facts if value]
    calls = user_lines(trace)
    if error.source is not None and not any(_same_place(error.source, call) for call in calls):
        lines += _place("made in", error.source)
    lines += _call_path(calls)
    for chain in error.chains:
        lines.append(f"{_DIM}{'where':>8}{_PLAIN}  {_BOLD}{chain.statement}{_PLAIN}")
        lines += [f"{'':>8}  {line}" for line in chain.lines()]
    if error.__cause__ is not None:
        lines += _because(error.__cause__)
    return [*lines, _MORE]


def check_lines(error: CheckFailed, trace: TracebackType | None) -> list[str]:
    """The message of a failed check and the line of the check, as lines for a terminal."""
    return [f"{_BOLD}{type(error).__name__}{_PLAIN}: {error.message}", *_call_path(user_lines(trace)), _MORE]


def interrupt_lines(error: BaseException, trace: TracebackType | None) -> list[str]:
    """The notes of an interruption and the lines of user code that led there, as lines for a terminal."""
    head, *rest = "\n".join(getattr(error, "__notes__", ())).splitlines() or [""]
    lines = [f"{_BOLD}{type(error).__name__}{_PLAIN}" + (f": {head}" if head else "")]
    return [*lines, *(f"{'':>8}  {line.strip()}" for line in rest), *_call_path(user_lines(trace)), _MORE]


def goes_through_graphcore(trace: TracebackType | None) -> bool:
    """True iff an exception passed through this project's code."""
    return any(frame.f_code.co_filename.startswith(tuple(_OWN)) for frame, _ in traceback.walk_tb(trace))


def user_lines(trace: TracebackType | None) -> list[SourceLocation]:
    """The last lines of user code on the path to the error, outermost first."""
    run = current_run.get()
    files = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace) if line]
    # A cell that is known by its file needs no "called in": the lines before name the caller.
    found = [SourceLocation(file, line, None if file in cell_runs else run) for file, line in files if _is_users(file)]
    return found[-_MOST_LINES:]


def _is_users(file: str) -> bool:
    return "site-packages" not in file and not file.startswith(_NOT_USERS)


def _call_path(calls: list[SourceLocation]) -> list[str]:
    places = [_place("here" if index == len(calls) - 1 else "called in", call) for index, call in enumerate(calls)]
    return [line for place in places for line in place]


def _because(cause: BaseException) -> list[str]:
    """The cause of an error; for a graph error its message only, since node and line are shown already."""
    text = cause.message if isinstance(cause, GraphError) else str(cause)
    first, *rest = text.splitlines() or [""]
    return [f"{_DIM}because{_PLAIN}   {type(cause).__name__}: {first}", *(f"{'':>8}  {line}" for line in rest)]


def _same_place(a: SourceLocation, b: SourceLocation) -> bool:
    return (a.file, a.line) == (b.file, b.line)


def _place(word: str, location: SourceLocation) -> list[str]:
    text = location.text
    lines = [f"{_DIM}{word:>8}{_PLAIN}  {location.where}"]
    return [*lines, f"{'':>8}  {_BOLD}{text}{_PLAIN}"] if text else lines
