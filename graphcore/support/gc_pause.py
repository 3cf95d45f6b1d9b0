"""Suspension of Python's garbage collector while many nodes are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator

from graphcore.support.critical_section import critical_contextmanager


@critical_contextmanager
def paused_collector() -> Iterator[None]:
    """Suspend garbage collection within the block, which would visit all the new nodes repeatedly."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
