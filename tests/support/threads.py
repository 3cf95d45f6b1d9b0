"""Detection of leaked threads. Idle threads of the kernel pool do not count, busy ones do."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from types import FrameType
from typing import Final

from graphcore.support.thread_pool import Pool, kernel_pool

SETTLING: Final = 30.0
"""Seconds for threads of a pool to complete their computation, which nothing can stop."""
_POLL: Final = 0.005


class LiveThreads:
    """The threads alive at creation, for comparison with those alive later.

    Attributes:
        before: the thread objects, since names and numbers are reused.
    """

    def __init__(self) -> None:
        self.before = frozenset(threading.enumerate())

    def new(self) -> list[threading.Thread]:
        """The new threads, those of pools included."""
        return [thread for thread in threading.enumerate() if thread not in self.before]

    def check_none_is_left(self, within: float = 0.0) -> None:
        """Check that no new thread is alive, except idle ones of the kernel pool.

        Args:
            within: seconds for threads other than those of pools to end; none by default.

        Raises:
            AssertionError: one is left; it is named, with its current position.
        """
        begun = time.monotonic()
        while True:
            computing = threads_that_compute()
            left = [thread for thread in self.new() if not _is_of_pool(thread)]
            if not left and not computing:
                return
            waited = time.monotonic() - begun
            assert waited < (within if left else SETTLING), told([*left, *computing], waited)
            time.sleep(_POLL)

    def check_all_ended(self, within: float = SETTLING) -> None:
        """Check that no new thread is alive, not even an idle one of a pool.

        Args:
            within: seconds for them to end.

        Raises:
            AssertionError: one is left; it is named, with its current position.
        """
        begun = time.monotonic()
        while left := self.new():
            waited = time.monotonic() - begun
            assert waited < within, told(left, waited)
            time.sleep(_POLL)


def wait_for_pool() -> None:
    """Wait until no thread of a pool is busy.

    Raises:
        AssertionError: one does not end; it is named, with its current position.
    """
    LiveThreads().check_none_is_left(SETTLING)


def threads_that_compute() -> list[threading.Thread]:
    """The busy threads of pools, including idle ones with work waiting for them."""
    waits = bool(kernel_pool._waiting)
    return [thread for thread in threading.enumerate() if _is_of_pool(thread) and (waits or not _is_idle(_frame(thread)))]


def told(left: list[threading.Thread], seconds: float) -> str:
    """The error text for leaked threads."""
    return f"required no thread to be left, got after {seconds:.2f} s: {'; '.join(map(_place, left))}"


def _is_of_pool(thread: threading.Thread) -> bool:
    """True iff a pool started it, by its code, or by its name while it starts and ends."""
    frame = _frame(thread)
    while frame is not None and frame.f_code is not Pool._work.__code__:
        frame = frame.f_back
    return frame is not None or thread.name == "graphcore-kernels"


def _is_idle(frame: FrameType | None) -> bool:
    """True iff a thread of a pool waits for work, without a task or a call under way."""
    return frame is not None and frame.f_code is Pool._work.__code__ and frame.f_locals.get("task") is None


def _frame(thread: threading.Thread) -> FrameType | None:
    """The frame of a thread; None while it starts or ends, and for the current one."""
    return None if thread is threading.current_thread() else sys._current_frames().get(thread.ident or 0)


def _place(thread: threading.Thread) -> str:
    frame = _frame(thread)
    calls = [] if frame is None else traceback.extract_stack(frame)[-4:]
    where = " > ".join(f"{call.name} ({call.filename.rpartition('/')[2]}:{call.lineno})" for call in calls)
    return f"'{thread.name}' in {where or 'nothing: it starts or ends'}"
