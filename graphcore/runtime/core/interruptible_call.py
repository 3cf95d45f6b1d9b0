"""Calls in separate threads that Ctrl-C or a time limit can abandon.

NumPy checks for signals only when a call returns. If the caller waits for another thread instead, it is interrupted at once, and the call
ends at its next line of Python, or is abandoned if it runs none.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Final

from graphcore.support.critical_section import critical_section

_RETRY_SECONDS: Final = 1.0
"""Seconds after which a call that has not ended is interrupted once more."""


class AbandonedCallError(BaseException):
    """Raised within an abandoned call."""


class InterruptibleCall:
    """A call in a separate thread.

    Args:
        function: the function to call, within a copy of the caller's context variables.
        arguments, named: its arguments.
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
            target=self._work, args=(call, function, *arguments), kwargs=named, name="graphcore-call", daemon=True
        )
        try:
            critical_section.start(self._thread)
        except BaseException:  # Ctrl-C during the wait for the thread to begin: the call is given up
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Cancel the call; if it is running, stop it as `abandon` does."""
        with self._lock:
            if not self._has_begun:
                self._is_over = True
        self.abandon()

    def _work(self, *arguments: Any, **named: Any) -> None:
        try:
            self._call(*arguments, **named)
        except AbandonedCallError:  # it came after the call had ended
            self._is_over = True
        self._done.set()

    def _call(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        with self._lock:
            self._has_begun = True
            if self._is_over:
                return
        try:
            self._result = call(*arguments, **named)
        except BaseException as error:  # noqa: BLE001 - the waiter gets it
            self._error = error
        with self._lock:
            self._is_over = True

    def wait(self, seconds: float) -> bool:
        """Wait for at most `seconds`. True if the call has ended."""
        return critical_section.wait(self._done, seconds)

    def result(self) -> Any:
        """Wait for the result of the call.

        Raises:
            BaseException: an error of the call, or of the wait (Ctrl-C), after which the call is abandoned.
        """
        try:
            critical_section.wait(self._done)
        except BaseException:
            self.abandon()
            raise
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result

    def abandon(self) -> None:
        """Stop the call at its next line of Python."""
        if self._raise_within():
            critical_section.start(threading.Thread(target=self._raise_until_over, name="graphcore-call-end", daemon=True))

    def _raise_until_over(self) -> None:
        """Raise the error until the call is over: in a finalizer, Python would discard it."""
        while not self._done.wait(_RETRY_SECONDS) and self._raise_within():
            pass

    def _raise_within(self) -> bool:
        """Raise AbandonedCallError in the call if it is still running."""
        with self._lock:
            if not self._is_over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(AbandonedCallError))
            return not self._is_over


def call_interruptibly(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call `function(*arguments, **named)` in a separate thread; Ctrl-C ends the wait at once.

    Raises:
        BaseException: an error of the call, or of the wait.
    """
    return InterruptibleCall(function, *arguments, **named).result()
