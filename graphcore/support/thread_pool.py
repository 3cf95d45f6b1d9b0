"""A thread pool for kernels. Threads start on demand and end after idling."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Final

from graphcore.support.critical_section import critical_section
from graphcore.support.forking import call_in_child, new_lock

IDLE_SECONDS: Final = 1.0


def core_count() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Task:
    """A call under way in another thread."""

    __slots__ = ("_arguments", "_context", "_done", "_error", "_kernel", "_result")

    def __init__(self, kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._kernel = kernel
        self._arguments = arguments
        self._context: Context = copy_context()  # NumPy keeps its floating-point error handling in the context
        self._done = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the call."""
        try:
            self._result = self._context.run(self._kernel, *self._arguments)
        except BaseException as error:  # noqa: BLE001 - raised again by `result`
            self._error = error
        self._arguments = ()
        self._done.set()

    def give_up(self) -> None:
        """Cancel the call if it has not begun."""
        self._kernel, self._arguments = _nothing, ()

    def result(self) -> Any:
        """Wait for the result of the call.

        Raises:
            BaseException: the error the call raised.
        """
        critical_section.wait(self._done)
        if self._error is not None:
            raise self._error
        return self._result


def _nothing() -> None:
    """Replacement of a cancelled call."""


class Pool:
    """A pool of at most `size` threads.

    Ctrl-C may interrupt the submitter before it has recorded that a thread began. Therefore threads count themselves.

    Args:
        size: the largest number of threads.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._waiting: set[Task] = set()  # a task is listed here for as long as the thread that takes it counts as idle
        self._lock = new_lock()
        self._threads: set[threading.Thread] = set()
        self._idle = 0

    def forget(self) -> None:
        """Forget threads and calls, in the child of a fork, which has none of its parent's threads."""
        self._tasks = queue.SimpleQueue()
        self._waiting.clear()
        self._threads.clear()
        self._idle = 0

    def submit(self, kernel: Callable[..., Any], *arguments: Any) -> Task:
        """Call `kernel(*arguments)` in another thread."""
        task = Task(kernel, arguments)
        try:
            with self._lock:
                self._waiting.add(task)
                self._tasks.put(task)
                if self._idle < len(self._waiting) and len(self._threads) < self._size:
                    self._start()
        except BaseException:
            task.give_up()
            self._waiting.discard(task)
            raise
        return task

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name="graphcore-kernels", daemon=True)
        try:
            self._threads.add(thread)
            critical_section.start(thread)
        except BaseException:
            if thread.ident is None:  # it has not begun; if it begins later, it counts itself
                self._threads.discard(thread)
            raise

    def _work(self) -> None:
        thread = threading.current_thread()
        with self._lock:
            self._threads.add(thread)
            if len(self._threads) > self._size:
                self._threads.discard(thread)
                return
        while True:
            with self._lock:
                self._idle += 1
            try:
                task = self._tasks.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                task = None
            with self._lock:
                self._idle -= 1
                if task is not None:
                    self._waiting.discard(task)
                if task is None and self._tasks.empty():
                    self._threads.discard(thread)
                    return
            if task is not None:
                task.run()
            del task


kernel_pool: Final = Pool(core_count())
call_in_child(kernel_pool.forget)
