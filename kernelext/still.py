"""Static pictures, which a saved notebook shows without a kernel. Drawn in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from IPython.display import DisplayHandle

from kernelext.guard import Guard

FINISH_SECONDS: Final = 5.0

Draw = Callable[[], dict[str, Any]]


class Still:
    """The place of a picture below one cell."""

    def __init__(self) -> None:
        self._handle = DisplayHandle()
        self._shown: dict[str, Any] = {}

    def open(self, bundle: dict[str, Any]) -> None:
        """Reserve a place in the running cell."""
        self._shown = bundle
        self._handle.display(bundle, raw=True)

    def update(self, bundle: dict[str, Any]) -> None:
        """Replace the picture."""
        if bundle == self._shown:
            return
        self._shown = bundle
        self._handle.update(bundle, raw=True)


class StillPainter:
    """Draws on a background thread, so that cells never wait. Of several pictures for one place only the latest is drawn.

    Args:
        guard: contains failures.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._lock = threading.Lock()
        self._waiting: dict[Still, Draw] = {}
        self._thread: threading.Thread | None = None

    def paint(self, still: Still, draw: Draw) -> None:
        """Schedule `draw` to make the picture for `still`."""
        with self._lock:
            self._waiting[still] = draw
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="graphloupe-stills", daemon=True)
                self._thread.start()

    def paint_now(self, still: Still, draw: Draw) -> None:
        """Draw at once: without a viewer, the program may end right after this cell."""
        with self._lock:
            self._waiting.pop(still, None)
        self._draw(still, draw)

    def finish(self) -> None:
        """Wait until all pictures are drawn."""
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
