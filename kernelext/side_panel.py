"""The side panel of the notebook in JupyterLab."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Final

from IPython.core.error import UsageError

from widgets.live.live_view import LiveView

_PACKAGE: Final = "sidecar"
_WIDGET_VIEW: Final = "application/vnd.jupyter.widget-view+json"


def has_side_panels() -> bool:
    """True iff the optional package that opens side panels is installed (useful in JupyterLab only)."""
    return importlib.util.find_spec(_PACKAGE) is not None


def open_side_panel(view: LiveView, title: str, neighbour: Any = None) -> Any:
    """Open a panel beside the notebook that shows `view`; closing the returned widget closes the panel.

    A sidecar opens when its model reaches the page, independent of the cell's output.

    Args:
        view: the content.
        title: the title of its tab.
        neighbour: an open panel; the new one becomes a tab beside it. Without one, it takes half of the notebook's width.

    Raises:
        UsageError: the package that opens such panels is not installed.
    """
    if not has_side_panels():
        raise UsageError(f"%graph dock needs the package {_PACKAGE}: pip install {_PACKAGE}. %graph inline does without.")
    data = {_WIDGET_VIEW: {"version_major": 2, "version_minor": 0, "model_id": view.model_id}, "text/plain": title}
    panel = importlib.import_module(_PACKAGE).Sidecar(
        title=title, anchor="split-right" if neighbour is None else "tab-after", ref=neighbour
    )
    # Set before the view is in it: the page looks for the panel when it shows the view.
    view.panel = panel.model_id
    panel.outputs = [{"output_type": "display_data", "data": data, "metadata": {}}]
    return panel


def stand_alone(panel: Any) -> None:
    """Detach a panel from its neighbour, which closes; a reloaded page would look for it in vain."""
    panel.anchor, panel.ref = "split-right", None
