"""Calls in a thread of their own, so that who waits for one can be called away: by Ctrl-C, or because its time is over.

NumPy looks up from its work only when a call returns. Who has waited in another thread is free at once, and what was called
is stopped at its next line of Python, or left to end by itself where it has none.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Final

from graphcore.support.critical_section import critical_section

_AGAIN: Final = 1.0
"""Seconds after which a call that has not ended is told once more."""


class LeftError(BaseException):
    """Raised within a call that nobody waits for any more."""


class Aside:
    """A call under way in a thread of its own.

    Args:
        function: what to call, within a copy of the caller's context variables.
        arguments, named: what to call it with.
    """

    __slots__ = ("_done", "_error", "_has_begun", "_is_over", "_lock", "_result", "_thread")

    def __init__(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._is_over = self._has_begun = False
        self._result: Any = None
        self._error: BaseException | None = None
        call = copy_context().run
        self._thread = threading.Thread(
            target=self._work, args=(call, function, *arguments), kwargs=named, name="graphcore-aside", daemon=True
        )
        try:
            critical_section.start(self._thread)
        except BaseException:  # Ctrl-C while it waits for the thread to begin: nobody will know of the call
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Do not make the call; if it is under way already, stop it as `leave` does."""
        with self._lock:
            if not self._has_begun:
                self._is_over = True
        self.leave()

    def _work(self, *arguments: Any, **named: Any) -> None:
        try:
            self._call(*arguments, **named)
        except LeftError:  # it came after the call had ended
            self._is_over = True
        self._done.set()

    def _call(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        with self._lock:
            self._has_begun = True
            if self._is_over:
                return
        try:
            self._result = call(*arguments, **named)
        except BaseException as error:  # noqa: BLE001 - who waits gets it
            self._error = error
        with self._lock:
            self._is_over = True

    def wait(self, seconds: float) -> bool:
        """Wait so long at most. True if the call has ended."""
        return critical_section.wait(self._done, seconds)

    def result(self) -> Any:
        """Wait for what the call gives.

        Raises:
            BaseException: what the call raised, or what (Ctrl-C) ended the wait; the call is left then.
        """
        try:
            critical_section.wait(self._done)
        except BaseException:
            self.leave()
            raise
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result

    def leave(self) -> None:
        """Stop the call at its next line of Python."""
        if self._raise_within():
            critical_section.start(threading.Thread(target=self._insist, name="graphcore-aside-end", daemon=True))

    def _insist(self) -> None:
        """What is raised within a finaliser is lost, by Python's rules: then it is raised again."""
        while not self._done.wait(_AGAIN) and self._raise_within():
            pass

    def _raise_within(self) -> bool:
        """Raise LeftError in the call, if it goes on."""
        with self._lock:
            if not self._is_over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(LeftError))
            return not self._is_over


def call_aside(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """`function(*arguments, **named)` in a thread of its own; Ctrl-C ends the wait at once.

    Raises:
        BaseException: what the call raised, or what ended the wait.
    """
    return Aside(function, *arguments, **named).result()
