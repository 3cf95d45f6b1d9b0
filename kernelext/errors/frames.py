"""The lines of code on the way to an error: those of the user, and all of them."""

from __future__ import annotations

import linecache
import os
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType
from typing import Final

from graphcore.source import SourceLocation, cell_runs, current_run

_ROOT: Final = str(Path(__file__).resolve().parents[2]) + os.sep
_OWN: Final = tuple([_ROOT + package + os.sep for package in ("graphcore", "widgets", "kernelext")])
_NOT_USERS: Final = (*_OWN, sysconfig.get_path("stdlib") + os.sep, "<frozen", "<string>", "<graphcore plan")
_MOST_LINES: Final = 5
_MOST_FRAMES: Final = 40


def goes_through_graphcore(trace: TracebackType | None) -> bool:
    """True iff an exception passed through this project's code."""
    return any(frame.f_code.co_filename.startswith(_OWN) for frame, _ in traceback.walk_tb(trace))


def ends_in_graphcore(trace: TracebackType | None) -> bool:
    """True iff the innermost frame of an exception is this project's code."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(trace)]
    return bool(files) and files[-1].startswith(_OWN)


def user_lines(trace: TracebackType | None) -> list[SourceLocation]:
    """The last lines of user code on the path to the error, outermost first."""
    run = current_run.get()
    files = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace) if line]
    # A cell that is known by its file needs no "called in": the lines before name the caller.
    places = [SourceLocation(file, line, None if file in cell_runs else run) for file, line in files if _is_users(file)]
    return places[-_MOST_LINES:]


def folded_traceback(error: BaseException, trace: TracebackType | None) -> str:
    """All frames from the user's cell on, each with its code, and the error at the end.

    Paths begin at the packages; generated code is left out.
    """
    frames = [(frame.f_code, line or 0) for frame, line in traceback.walk_tb(trace) if not frame.f_code.co_filename.startswith("<")]
    first = next((index for index, (code, _) in enumerate(frames) if _is_users(code.co_filename)), 0)
    lines = []
    for code, line in frames[first:][-_MOST_FRAMES:]:
        file = code.co_filename
        lines.append(f"{_short(file, line)}, in {code.co_name}")
        text = linecache.getline(file, line).strip()
        lines += [f"    {text}"] if text else []
    return "\n".join([*lines, f"{type(error).__name__}: {error}"])


def _short(file: str, line: int) -> str:
    if file.startswith(_OWN):
        return f"{file.removeprefix(_ROOT)}, line {line}"
    name = file.rpartition("site-packages" + os.sep)[2] if "site-packages" in file else Path(file).name
    return SourceLocation(file, line).where if file in cell_runs else f"{name}, line {line}"


def _is_users(file: str) -> bool:
    return "site-packages" not in file and not file.startswith(_NOT_USERS)
