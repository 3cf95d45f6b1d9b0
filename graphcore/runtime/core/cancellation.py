"""Cancellation: waiting operations register callbacks, which are called once on cancellation."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

from graphcore.errors import CancelledError, InvalidArgumentError
from graphcore.support.critical_section import critical_section

Callback = Callable[[], None]


class CancellationManager:
    """A scope of cancellation.

    Args:
        parent: the manager whose cancellation cancels this one too; if it is cancelled already, so is this one.

    Thread-safe. Callbacks are called without a lock held, in the cancelling thread.
    """

    def __init__(self, parent: CancellationManager | None = None) -> None:
        self._lock = threading.RLock()  # reentrant: garbage collection may end waiting operations while it is held
        self._callbacks: dict[int, Callback] = {}
        self._children: weakref.WeakSet[CancellationManager] = weakref.WeakSet()
        self._next_token = 0
        self._canceller: int | None = None
        self._done = threading.Event()
        self._parent = parent
        if parent is not None and not parent._adopt(self):
            self._done.set()

    def __repr__(self) -> str:
        with self._lock:
            state = "cancelled" if self.is_cancelled() else "cancelling" if self.is_cancelling() else f"{len(self._callbacks)} callbacks"
        return f"<gc.CancellationManager {state}>"

    def is_cancelled(self) -> bool:
        """True after cancellation is complete."""
        return self._done.is_set()

    def is_cancelling(self) -> bool:
        """True while the callbacks are being called."""
        with self._lock:
            return self._canceller is not None and not self._done.is_set()

    def get_cancellation_token(self) -> int:
        """A new token for one callback."""
        with self._lock:
            token = self._next_token
            self._next_token += 1
            return token

    def register_callback(self, token: int, callback: Callback) -> bool:
        """Register `callback` for cancellation. False, without registration, if it is cancelled already.

        Raises:
            InvalidArgumentError: the token is unknown.
        """
        with self._lock:
            if not 0 <= token < self._next_token:
                raise InvalidArgumentError(
                    f"Required a token from get_cancellation_token(), got {token}; {self._next_token} were given out"
                )
            if self._ended():
                return False
            self._callbacks[token] = callback
            return True

    def deregister_callback(self, token: int) -> bool:
        """Remove a callback. False if cancellation came first: the callback was called, and has returned.

        Called by a callback itself, it returns False at once.
        """
        with self._lock:
            if not self._ended():
                self._callbacks.pop(token, None)
                return True
            own = self._canceller == threading.get_ident()
        if not own:
            critical_section.wait(self._done)
        return False

    def try_deregister_callback(self, token: int) -> bool:
        """Remove a callback without waiting. False if cancellation is complete or under way."""
        with self._lock:
            if self._ended():
                return False
            self._callbacks.pop(token, None)
            return True

    def start_cancel(self) -> None:
        """Call the callbacks in order of registration, then cancel the child managers. Idempotent.

        Raises:
            BaseException: the first error of a callback, after all were called.
        """
        failures: list[BaseException] = []
        with critical_section:
            with self._lock:
                if self._ended():
                    return
                waiting = [self._callbacks[token] for token in sorted(self._callbacks)]
                waiting += [child.start_cancel for child in self._children]
                self._canceller = threading.get_ident()
            for callback in waiting:
                try:
                    callback()
                except BaseException as error:  # noqa: BLE001 - the others must still be notified; the error is raised below
                    failures.append(error)
            with self._lock:
                self._callbacks.clear()
                self._done.set()
                self._canceller = None
        if failures:
            raise failures[0]

    def check(self) -> None:
        """Raise if this is cancelled.

        Raises:
            CancelledError: it is.
        """
        if self.is_cancelled() or self.is_cancelling():
            raise CancelledError("The operation was cancelled")

    def _ended(self) -> bool:
        return self._done.is_set() or self._canceller is not None

    def _adopt(self, child: CancellationManager) -> bool:
        with self._lock:
            if self._ended():
                return False
            self._children.add(child)
            return True
