"""Lazy imports that Ctrl-C does not interrupt.

A half-imported module would stay half imported: its registrations are in place, and the rest is missing for good.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from graphcore.support.critical_section import critical_section


def import_whole(name: str) -> ModuleType:
    """Import the module `name`; Ctrl-C is deferred to the end of the import.

    Raises:
        ImportError: there is none, or any other error of the module.
    """
    with critical_section:
        return import_module(name)
