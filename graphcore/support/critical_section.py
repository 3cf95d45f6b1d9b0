"""Critical sections, which Ctrl-C does not interrupt: it is deferred to their end.

Ctrl-C is the signal SIGINT. Python calls its handler in the main thread, between any two bytecodes, and the handler raises
KeyboardInterrupt. During a section, the handler of this module only records the signal; the end of the outermost section calls the previous
handler. So an edit of a graph is one section, and need not be able to undo itself at every point.

The handler is installed by the first section and stays, since installing it for each node would take a tenth of the time of making the
node. Outside of sections it calls the handler it replaced. Others may replace it, as a Jupyter kernel does for each cell: each section
checks that it is installed, and otherwise installs another one in front of the current handler. Nothing is installed where SIGINT is
ignored, kills the process, or is handled outside of Python. Code that replaces only Python's own handler (`asyncio.run`) leaves this one in
place: Ctrl-C raises KeyboardInterrupt there, as it did before Python 3.11. Threads other than the main thread never receive Ctrl-C, and
sections do nothing there.

Ctrl-C in the main thread passes no `with` or `try`, except in one place: since Python 3.12, the jump from the end of a loop back to its head
may be outside of the blocks that contain the loop. So a loop within a block that must not be left without its clean-up is a function.

Sections are short: work that runs code of the user, or takes long, is divided into many sections. A section that hangs all the same (a
shape function of the user that does not end) is interrupted by a second Ctrl-C, a second or more after the first.
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
    """A handler of SIGINT that defers to the end of the current section and then calls `before`."""

    __slots__ = ("before",)

    def __init__(self, before: Callable[[int, FrameType | None], Any]) -> None:
        self.before = before

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if critical_section.defers(self, frame):
            return
        critical_section.deferred = None
        self.before(number, frame)


class CriticalSection:
    """The section of the main thread; `with critical_section:` enters it, also when nested.

    Attributes:
        depth: the number of `with` blocks the main thread is in.
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
        """True iff Ctrl-C, received in `frame`, must be deferred to the end of the current section."""
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
        """Decorate `function` so that all of it is a section: for `__exit__` and for fast paths.

        It calls `begin` first and, if Ctrl-C is `deferred`, `end` last.
        """
        self._covered.add(function.__code__)
        return function

    def begin(self) -> None:
        """Install the handler."""
        handler = getsignal(_SIGINT)
        if type(handler) is not _Deferring and callable(handler):
            _install(handler)

    def end(self) -> None:
        """Deliver a deferred Ctrl-C, unless an outer section is still open."""
        if get_ident() == _main and not self.depth and not self._covers(sys._getframe(2)):
            self._deliver()

    def _covers(self, frame: FrameType | None) -> bool:
        """True iff a covered function is running."""
        while frame is not None and frame.f_code not in self._covered:
            frame = frame.f_back
        return frame is not None

    def acquire(self, lock: Any) -> None:
        """Acquire `lock`, blocking. Ctrl-C ends the wait, with the lock not acquired."""
        while not lock.acquire(timeout=_POLL):
            self._look()

    def wait(self, event: threading.Event, seconds: float = math.inf) -> bool:
        """Wait until `event` is set, for at most `seconds`. True iff it is set.

        Ctrl-C ends the wait. Within `event.wait()` itself it could leave the event's lock locked for ever.
        """
        with self:
            return self._polled(event, time.monotonic() + seconds)

    def _polled(self, event: threading.Event, until: float) -> bool:
        while not event.wait(min(_POLL, max(0.0, until - time.monotonic()))):
            self._look()
            if time.monotonic() >= until:
                return False
        return True

    def start(self, thread: threading.Thread) -> None:
        """Start `thread` and wait until it runs. Ctrl-C is deferred until then."""
        with self:
            thread.start()

    def _look(self) -> None:
        """Deliver a deferred Ctrl-C if it was received in this thread."""
        if self.deferred is not None and get_ident() == _main:
            self._deliver()

    def _deliver(self) -> None:
        handler, self.deferred = self.deferred, None
        if handler is not None:
            handler.before(_SIGINT, None)


critical_section: Final = CriticalSection()
"""Use it as `with critical_section:`."""


def _install(handler: Callable[[int, FrameType | None], Any]) -> None:
    with suppress(ValueError):  # in another thread or a subinterpreter there is no Ctrl-C
        signal.signal(signal.SIGINT, _Deferring(handler))


class _Managed(AbstractContextManager[_T], Generic[_T]):
    """A context manager that Ctrl-C finds either entered or left."""

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
    """Variant of `contextlib.contextmanager` whose entry and exit are critical sections.

    The code before the `yield` is one section, the code after it another; the block is none.
    """
    make = contextmanager(function)

    @wraps(function)
    def managed(*args: _P.args, **kwargs: _P.kwargs) -> AbstractContextManager[_T]:
        return _Managed(make(*args, **kwargs))

    return managed
