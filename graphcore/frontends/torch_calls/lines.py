"""Lines of the user around an operation."""

from __future__ import annotations

import linecache
import os
import sysconfig
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Final

from graphcore.frontends.foreign import SourceFrame

torch: Any = import_module("torch")
_LIBRARY: Final = str(Path(torch.__file__).parent) + os.sep
_OWN: Final = str(Path(__file__).parent) + os.sep
_STANDARD: Final = tuple([sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")])
_INSTALLED: Final = ("site-packages", "dist-packages")
_CALLERS: Final = tuple([str(Path(__file__).with_name(name)) for name in ("tracing.py", "running.py")])
MAX_FRAMES: Final = 32


@cache
def is_library(file: str) -> bool:
    """True for files of PyTorch and of Python, and for those of this package."""
    is_standard = file.startswith(_STANDARD) and not any(word in file for word in _INSTALLED)
    return is_standard or file.startswith((_LIBRARY, _OWN, "<frozen "))


def line_of(frame: FrameType | None) -> tuple[str, int]:
    """The innermost line of the user at or outside of a frame, or of PyTorch if there is none."""
    first = "", 0
    while frame is not None and (file := frame.f_code.co_filename) not in _CALLERS:
        if not is_library(file):
            return file, frame.f_lineno
        if not first[1] and file.startswith(_LIBRARY):
            first = file, frame.f_lineno
        frame = frame.f_back
    return first


def frames_of(frame: FrameType | None) -> tuple[SourceFrame, ...]:
    """The lines around a call that are of no library, the innermost last."""
    frames: list[SourceFrame] = []
    while frame is not None and len(frames) < MAX_FRAMES and frame.f_code.co_filename not in _CALLERS:
        if not is_library(frame.f_code.co_filename):
            frames.append(source_frame(frame, frame.f_lineno))
        frame = frame.f_back
    return tuple(reversed(frames))


def source_frame(frame: FrameType, line: int) -> SourceFrame:
    """A line of the code of a frame."""
    file = frame.f_code.co_filename
    return SourceFrame(file, line, linecache.getline(file, line).strip(), frame.f_code.co_name)
