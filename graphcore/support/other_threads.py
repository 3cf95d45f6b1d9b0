"""Threads of the user that run beside the current one."""

from __future__ import annotations

import sys
import sysconfig
import threading
from pathlib import Path
from typing import Any, Final

from graphcore.support.gc_pause import paused_collector

_ROOT: Final = Path(__file__).parents[2]
_STANDARD: Final = (
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib")},
    *[str(_ROOT / package) for package in ("graphcore", "widgets", "kernelext")],
)
_INSTALLED: Final = ("site-packages", "dist-packages", "<frozen", "<string>", "<%graph")


def others_run() -> bool:
    """True iff another thread runs code that is of no library."""
    own = threading.get_ident()
    with paused_collector():  # in Python 3.11 a collection within this call may wait for the lock that the call holds, for ever
        frames = sys._current_frames()
    return any(_is_of_user(frame) for thread, frame in frames.items() if thread != own)


def _is_of_user(frame: Any) -> bool:
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_STANDARD) and not any(word in file for word in _INSTALLED):
            return True
        frame = frame.f_back
    return False
