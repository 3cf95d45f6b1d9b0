"""Imports when something is first asked for, which Ctrl-C cannot break off in the middle.

A module that is left half imported stays so: what it has told others of itself is there, and what it has not is missing for good.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from types import ModuleType


class _Import(threading.Thread):
    """An import in another thread than that which Ctrl-C interrupts."""

    def __init__(self, name: str) -> None:
        super().__init__(name="graphcore-import", daemon=True)
        self._module = name
        self.found: ModuleType | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Import it."""
        try:
            self.found = import_module(self._module)
        except BaseException as error:  # noqa: BLE001 - who waits gets it
            self.error = error


def import_whole(name: str) -> ModuleType:
    """The module `name`. Ctrl-C ends the wait for it, and the import goes on to its end.

    Raises:
        ImportError: there is none, or what else the module raises.
    """
    found = sys.modules.get(name)
    # Ctrl-C comes in the main thread only. While this package is being imported itself, others would wait for that to end.
    if found is not None or threading.current_thread() is not threading.main_thread() or _is_being_imported(__package__ or ""):
        return import_module(name)
    importing = _Import(name)
    importing.start()
    importing.join()
    if importing.error is not None:
        raise importing.error
    assert importing.found is not None
    return importing.found


def _is_being_imported(name: str) -> bool:
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False) is True
