"""Critical sections: what Ctrl-C may not come into the middle of. It comes at their end.

Ctrl-C is the signal SIGINT. Python calls its handler in the main thread, between any two bytecodes there, and the handler raises
KeyboardInterrupt. While a section is under way, a handler of this module only notes that it was called; the end of the outermost section
calls the handler that was there before. So an edit of a graph is one section, and need not be able to undo itself wherever it may be.

The handler is put in place by the first section and stays, since putting it there for each node would take as long as a tenth of making
the node. Outside of sections it calls the one that it found. Others may replace it, as a Jupyter kernel does for each cell: so each section
looks whether it is there, and if not, puts another one before the one that is. Where SIGINT is ignored, kills the process, or is
handled outside of Python, nothing is put there. What takes Ctrl-C over only from Python's own handler (`asyncio.run`) leaves it as it is
afterwards: Ctrl-C raises KeyboardInterrupt there, as it did before Python 3.11. Threads other than the main thread never see Ctrl-C, and
sections do nothing there.

Sections are short: what runs code of the user, or takes long, is not one but consists of many. One that hangs all the same (a shape
function of the user that does not end) is left when Ctrl-C is pressed once more, a second or more after.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from _signal import getsignal  # type: ignore[import-not-found]  # the one in `signal` makes an enum of it, which takes 2 us
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import wraps
from threading import get_ident
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, Generic, ParamSpec, TypeVar

PATIENCE: Final = 1.0
"""Seconds after which a second Ctrl-C ends a section that does not end."""
_POLL: Final = 0.05
_SIGINT: Final = int(signal.SIGINT)
_main: Final = threading.main_thread().ident
_P = ParamSpec("_P")
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])


class _Deferring:
    """A handler of SIGINT that waits for the end of the section under way, and then calls `before`."""

    __slots__ = ("before",)

    def __init__(self, before: Callable[[int, FrameType | None], Any]) -> None:
        self.before = before

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if critical_section.defers(self, frame):
            return
        critical_section.deferred = None
        self.before(number, frame)


class CriticalSection:
    """The section that the main thread is in; `with critical_section:` begins one, also within another.

    Attributes:
        depth: how many `with` blocks the main thread is in.
        deferred: the handler to call at the end, None if Ctrl-C has not come.
    """

    __slots__ = ("_covered", "_since", "deferred", "depth")

    def __init__(self) -> None:
        self.depth = 0
        self.deferred: _Deferring | None = None
        self._since = 0.0
        self._covered: set[CodeType] = set()

    def __enter__(self) -> None:
        if get_ident() == _main:
            self.begin()
            self.depth += 1

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None) -> None:
        if get_ident() == _main:
            self.depth -= 1
            if self.deferred is not None:
                self.end()

    def defers(self, handler: _Deferring, frame: FrameType | None) -> bool:
        """True iff Ctrl-C, which has come in `frame`, is to wait for the end of the section under way."""
        if not self.depth and not self._covers(frame):
            return False
        now = time.monotonic()
        if self.deferred is None:
            self._since = now
        elif now - self._since >= PATIENCE:
            return False
        self.deferred = handler
        return True

    def cover(self, function: _F) -> _F:
        """Make all of `function` a section, from its very beginning: a decorator for `__exit__`, and for what is to be quick.

        It calls `begin` first and, if Ctrl-C is `deferred`, `end` last.
        """
        self._covered.add(function.__code__)
        return function

    def begin(self) -> None:
        """Put the handler in place."""
        handler = getsignal(_SIGINT)
        if type(handler) is not _Deferring and callable(handler):
            _install(handler)

    def end(self) -> None:
        """Have Ctrl-C come now, unless another section is around the one that ends."""
        if get_ident() == _main and not self.depth and not self._covers(sys._getframe(2)):
            self._deliver()

    def _covers(self, frame: FrameType | None) -> bool:
        """True iff a covered function is under way."""
        while frame is not None and frame.f_code not in self._covered:
            frame = frame.f_back
        return frame is not None

    def acquire(self, lock: Any) -> None:
        """Acquire `lock`, for which the section may wait. Ctrl-C ends the wait, with the lock not acquired."""
        while not lock.acquire(timeout=_POLL):
            self._look()

    def wait(self, event: threading.Event, seconds: float = math.inf) -> bool:
        """Wait until `event` is set, so many seconds at most. True iff it is.

        Ctrl-C ends the wait. In `event.wait()` itself it may come where it leaves the lock of the event locked for ever.
        """
        until = time.monotonic() + seconds
        with self:
            while not event.wait(min(_POLL, max(0.0, until - time.monotonic()))):
                self._look()
                if time.monotonic() >= until:
                    return False
            return True

    def start(self, thread: threading.Thread) -> None:
        """Start `thread`, and wait until it has begun. Ctrl-C comes after that."""
        with self:
            thread.start()

    def _look(self) -> None:
        """Have Ctrl-C come now, if it has come in this thread."""
        if self.deferred is not None and get_ident() == _main:
            self._deliver()

    def _deliver(self) -> None:
        handler, self.deferred = self.deferred, None
        if handler is not None:
            handler.before(_SIGINT, None)


critical_section: Final = CriticalSection()
"""Use it as `with critical_section:`."""


def _install(handler: Callable[[int, FrameType | None], Any]) -> None:
    with suppress(ValueError):  # in another thread, or in an interpreter beside the main one, where there is no Ctrl-C
        signal.signal(signal.SIGINT, _Deferring(handler))


class _Managed(AbstractContextManager[_T], Generic[_T]):
    """A context manager that Ctrl-C finds entered or left, never in between."""

    __slots__ = ("_inner",)

    def __init__(self, inner: AbstractContextManager[_T]) -> None:
        self._inner = inner

    def __enter__(self) -> _T:
        is_entered = False
        try:
            with critical_section:
                entered = self._inner.__enter__()
                is_entered = True
        except BaseException:
            if is_entered:
                self.__exit__(*sys.exc_info())
            raise
        return entered

    @critical_section.cover
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> bool | None:
        critical_section.begin()
        try:
            return self._inner.__exit__(kind, error, traceback)
        finally:
            if critical_section.deferred is not None:
                critical_section.end()


def critical_contextmanager(function: Callable[_P, Iterator[_T]]) -> Callable[_P, AbstractContextManager[_T]]:
    """As `contextlib.contextmanager`: what comes before the `yield` is a critical section, and so is what comes after. The block is none."""
    make = contextmanager(function)

    @wraps(function)
    def managed(*args: _P.args, **kwargs: _P.kwargs) -> AbstractContextManager[_T]:
        return _Managed(make(*args, **kwargs))

    return managed
