"""`tf.train.Coordinator`: the common end of several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from graphcore.errors import InvalidArgumentError, OutOfRangeError


class Coordinator:
    """Ends several threads together: each asks `should_stop`, and any may call `request_stop`.

    Args:
        clean_stop_exception_types: exceptions that end the threads without being errors; the end of input if None.
    """

    def __init__(self, clean_stop_exception_types: Sequence[type[BaseException]] | None = None) -> None:
        self._clean = tuple(clean_stop_exception_types) if clean_stop_exception_types is not None else (OutOfRangeError,)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._threads: set[threading.Thread] = set()
        self._joined = False
        self._on_stop: list[Callable[[], None]] = []

    def request_stop(self, ex: Any = None) -> None:
        """Ask all threads to end.

        Args:
            ex: the error that is the reason, or what `sys.exc_info()` gave; `join` raises it. None if there is none.
        """
        error = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            if self._stop.is_set():
                return
            if error is not None and not isinstance(error, self._clean):
                self._error = error
            self._joined = False
            self._stop.set()
            calls, self._on_stop = self._on_stop, []
        for call in calls:
            call()

    def when_stopped(self, call: Callable[[], None]) -> None:
        """Call `call` once an end is asked for; at once if it was."""
        with self._lock:
            if not self._stop.is_set():
                self._on_stop.append(call)
                return
        call()

    def clear_stop(self) -> None:
        """Let threads run again."""
        with self._lock:
            self._joined = False
            self._error = None
            self._stop.clear()

    def should_stop(self) -> bool:
        """True once an end was asked for."""
        return self._stop.is_set()

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Ask for an end if the block raises an error, which `join` raises then."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - join raises it in another thread
            self.request_stop(ex=error)

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until an end is asked for, at most `timeout` seconds. -> True iff it was."""
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Let `join` wait for `thread` as well."""
        with self._lock:
            self._threads.add(thread)

    def join(
        self, threads: Sequence[threading.Thread] | None = None, stop_grace_period_secs: float = 120, ignore_live_threads: bool = False
    ) -> None:
        """Wait until all threads have ended. An interruption (Ctrl-C) asks for their end too.

        Args:
            threads: the threads to wait for, besides the registered ones.
            stop_grace_period_secs: the time that they have once an end was asked for.
            ignore_live_threads: let those that are still running after that time run.

        Raises:
            RuntimeError: a thread did not end in time.
            BaseException: the error that `request_stop` got.
        """
        with self._lock:
            waited = list(self._threads | set(threads or ()))
        try:
            while any(thread.is_alive() for thread in waited) and not self.wait_for_stop(0.05):
                continue
            deadline = time.monotonic() + stop_grace_period_secs
            for thread in waited:
                thread.join(max(0.0, deadline - time.monotonic()))
        except KeyboardInterrupt:
            self.request_stop()
            raise
        with self._lock:
            self._joined = True
            self._threads.clear()
            error, self._error = self._error, None
        if error is not None:
            raise error
        alive = [thread.name for thread in waited if thread.is_alive()]
        if alive and not ignore_live_threads:
            raise RuntimeError(f"Coordinator stopped with threads still running: {' '.join(alive)}")

    @property
    def joined(self) -> bool:
        """True once `join` has returned."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raise the error that `request_stop` got, if there is one."""
        with self._lock:
            error = self._error
        if error is not None:
            raise error


class LooperThread(threading.Thread):
    """A thread that calls a function again and again until a coordinator stops it.

    Args:
        coord: the coordinator.
        timer_interval_secs: the seconds between the begins of two calls; None for no pause.
        target: the function.
        args, kwargs: its arguments.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., object] | None = None,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise InvalidArgumentError(f"'coord' argument must be a Coordinator: {coord!r}")
        super().__init__(daemon=True)
        self._coord = coord
        self._interval = timer_interval_secs
        self._call = target
        self._given = tuple(args), dict(kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., object],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """Start a thread that calls `target` again and again."""
        looper = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        """Call the function until the coordinator stops it."""
        with self._coord.stop_on_exception():
            self.start_loop()
            self._repeat()
            self.stop_loop()

    def _repeat(self) -> None:
        due = time.monotonic()
        while not self._coord.should_stop():
            self.run_loop()
            if self._interval is not None:
                due += self._interval
                self._coord.wait_for_stop(max(0.0, due - time.monotonic()))

    def start_loop(self) -> None:
        """Called before the first call."""

    def stop_loop(self) -> None:
        """Called after the last call."""

    def run_loop(self) -> None:
        """Call the function once."""
        if self._call is not None:
            args, kwargs = self._given
            self._call(*args, **kwargs)
