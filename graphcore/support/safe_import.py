"""Imports when something is first asked for, which Ctrl-C does not break off in the middle.

A module that is left half imported stays so: what it has told others of itself is there, and what it has not is missing for good.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from graphcore.support.critical_section import critical_section


def import_whole(name: str) -> ModuleType:
    """The module `name`; Ctrl-C waits for the end of the import.

    Raises:
        ImportError: there is none, or what else the module raises.
    """
    with critical_section:
        return import_module(name)
