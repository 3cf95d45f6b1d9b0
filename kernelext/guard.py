"""Keeps failures of the extension out of the user's cell: they are logged, and shown as a status."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from traitlets.log import get_logger

FailureListener = Callable[[str], None]


class Guard:
    """Swallows exceptions of the extension's own code and logs each place once.

    Args:
        on_failure: a callback with one line of text for each failure, including those not logged again.
    """

    def __init__(self, on_failure: FailureListener | None = None) -> None:
        self._on_failure = on_failure
        self._logged: set[tuple[type[BaseException], str]] = set()

    @contextmanager
    def __call__(self, doing: str) -> Iterator[None]:
        """Guard a block; `doing` describes it in words."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - keeping every failure away from the user's cell is what a guard is for
            self.report(doing, error)

    def report(self, doing: str, error: Exception) -> None:
        """Log a failure, unless one from the same place was logged, and call the listener."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        key = (type(error), place)
        if key not in self._logged:
            self._logged.add(key)
            # The kernel application's logger writes to the server's log; a warning on stderr would appear in the user's cell.
            get_logger().error("Graphloupe failed while %s", doing, exc_info=error)
        if self._on_failure is None:
            return
        try:
            self._on_failure(f"{doing}: {type(error).__name__}: {error}")
        except Exception as second:  # noqa: BLE001 - the listener may be what is broken
            get_logger().error("Graphloupe could not show a failure", exc_info=second)
