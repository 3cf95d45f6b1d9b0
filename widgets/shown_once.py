"""One view of a graph, shown where the program runs: below a cell, or in a browser."""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphcore.support.shown import html_text
from widgets.files import save, to_html
from widgets.serving import has_browser

if TYPE_CHECKING:
    from graphcore.graph import Graph

HEIGHT: Final = 560
"""The height of a page in an output, in pixels."""


def show_once(graph: Graph, title: str, ipython: Any) -> None:
    """Show a graph.

    Args:
        graph: the graph.
        title: its title.
        ipython: the module `IPython` if it is loaded.
    """
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        folder = Path(tempfile.mkdtemp(prefix="graphloupe-"))
        page = save(graph, folder / f"{_file_name(title)}.html", title=title)
        sys.stdout.write(f"{page}\n")
        if has_browser():
            webbrowser.open(page.as_uri())
        return
    if widgets_work(shell):
        from widgets.live.graph_view import GraphView  # noqa: PLC0415 - it loads ipywidgets, which only this needs

        ipython.display.display(GraphView(graph, title=title))
        return
    text = page_within(to_html(graph, title=title), title)
    ipython.display.display({"text/html": text, "text/plain": f"{title}: {graph!r}"}, raw=True)


def page_within(page: str, title: str) -> str:
    """A page as a part of an output: a frame that holds it and has access to nothing else."""
    style = f"width:100%;height:{HEIGHT}px;border:1px solid #8884;border-radius:4px"
    return f'<iframe title="{html_text(title)}" sandbox="allow-scripts allow-downloads" style="{style}" srcdoc="{escape(page)}"></iframe>'


def widgets_work(shell: Any) -> bool:
    """True iff the front end of the running cell shows widgets without set-up, as JupyterLab does.

    Those name the cell. Colab, which does too, asks for widgets of others to be allowed first.
    """
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    metadata = parent.get("metadata", {}) if isinstance(parent, dict) else {}
    return bool(isinstance(metadata, dict) and metadata.get("cellId") and "colab" not in metadata)


def _file_name(title: str) -> str:
    name = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in title[:80])
    return name.strip(".") or "graph"
