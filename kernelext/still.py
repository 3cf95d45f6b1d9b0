"""Still pictures: what a saved notebook shows without a kernel. They are drawn beside the user's work, latest first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from IPython.display import DisplayHandle

from kernelext.guard import Guard

FINISH_SECONDS: Final = 5.0

Draw = Callable[[], dict[str, str]]


class Still:
    """The place below one cell where a picture is kept."""

    def __init__(self) -> None:
        self._handle = DisplayHandle()
        self._shown: dict[str, str] = {}

    def open(self, bundle: dict[str, str]) -> None:
        """Take a place in the cell that runs now."""
        self._shown = bundle
        self._handle.display(bundle, raw=True)

    def update(self, bundle: dict[str, str]) -> None:
        """Show another picture in the same place."""
        if bundle == self._shown:
            return
        self._shown = bundle
        self._handle.update(bundle, raw=True)


class StillPainter:
    """Draws on a thread of its own, so that a cell never waits for a picture. Of several for one place only the latest is drawn.

    Args:
        guard: keeps failures away from everything else.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._lock = threading.Lock()
        self._waiting: dict[Still, Draw] = {}
        self._thread: threading.Thread | None = None

    def paint(self, still: Still, draw: Draw) -> None:
        """Have `draw` give the picture for `still`, soon."""
        with self._lock:
            self._waiting[still] = draw
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="graphloupe-stills", daemon=True)
                self._thread.start()

    def paint_now(self, still: Still, draw: Draw) -> None:
        """Draw before returning: nobody looks on, and the program may end right after this cell."""
        with self._lock:
            self._waiting.pop(still, None)
        self._draw(still, draw)

    def finish(self) -> None:
        """Wait until everything is drawn."""
        thread = self._thread
        if thread is not None:
            thread.join(FINISH_SECONDS)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                still, draw = self._waiting.popitem()
            self._draw(still, draw)

    def _draw(self, still: Still, draw: Draw) -> None:
        with self._guard("drawing a still picture"):
            still.update(draw())
