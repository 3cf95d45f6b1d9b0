"""Capabilities of the page that sent a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

from IPython.core.interactiveshell import InteractiveShell

from kernelext.side_panel import has_side_panels

FrontEnd = Literal["lab", "inline", "none"]


def request_metadata(shell: InteractiveShell) -> dict[str, Any]:
    """The metadata of the request being served; empty outside a kernel."""
    get_parent = getattr(shell, "get_parent", None)
    parent = get_parent() if get_parent is not None else None
    metadata = parent.get("metadata") if isinstance(parent, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def requested_cell(shell: InteractiveShell) -> str:
    """The lasting id of the running cell, "" if the front end names none (a console, nbclient)."""
    metadata = request_metadata(shell)
    colab = metadata.get("colab")
    return str(metadata.get("cellId") or (colab.get("cell_id") if isinstance(colab, dict) else "") or "")


def front_end(shell: InteractiveShell) -> FrontEnd:
    """The place for views: `lab` may dock them, `inline` shows them in the cell, `none` has no viewer.

    Requests of JupyterLab and Notebook 7 look the same, so `lab` is a guess that the view confirms by answering.
    """
    cell = requested_cell(shell)
    if not cell:
        return "none"
    elsewhere = cell.startswith("vscode") or "colab" in request_metadata(shell)
    return "inline" if elsewhere or not has_side_panels() else "lab"


def call_later(seconds: float, callback: Callable[[], None]) -> None:
    """Call back from the kernel's event loop when idle; never without a loop (in a script, a test)."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    loop.call_later(seconds, callback)
