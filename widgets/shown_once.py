"""One view of a graph, shown where the program runs: below a cell, or in a browser."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
import webbrowser
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphcore.support.shown import html_text
from widgets.files import as_scene, save, to_html, to_outline
from widgets.serving import has_browser

if TYPE_CHECKING:
    from graphcore.graph import Graph
    from widgets.live.graph_view import GraphView

HEIGHT: Final = 560
"""The height of a page in an output, in pixels."""
ANSWER_SECONDS: Final = 2.0
"""The seconds that an idle kernel waits for the page of a live view."""
LATE_SECONDS: Final = 0.25
"""A timer that is later than this says that the kernel was busy."""


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

        view = GraphView(graph, title=title)
        ipython.display.display(view)
        Place(view, ipython.display.DisplayHandle()).open()
        return
    ipython.display.display(page_bundle(graph, title), raw=True)


class Place:
    """The output below a live view of `gc.show`.

    It holds the still picture, which JupyterLab hides while the live one is there, and which stays in the saved notebook. Where no page has asked for the live picture
    within `ANSWER_SECONDS` it becomes a page of its own: some front ends take widgets and show nothing, or lose their messages. A page that answers later gets the
    still picture back.

    Args:
        view: the view.
        handle: the output, an `IPython.display.DisplayHandle`.
    """

    def __init__(self, view: GraphView, handle: Any) -> None:
        self._view = view
        self._handle = handle
        self._still: dict[str, Any] = {}
        self._is_page = False
        self._due = 0.0

    def open(self) -> None:
        """Show the still picture, and wait for an answer where there is an event loop."""
        self._still = self._view.still_bundle()
        self._handle.display(self._still, raw=True)
        self._view.on_msg(self._answered)
        self._wait()

    def _wait(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # nothing can wait, and nothing can answer
        self._due = time.monotonic() + ANSWER_SECONDS
        loop.call_later(ANSWER_SECONDS, self._look)

    def _look(self) -> None:
        if self._view.has_answered:
            return
        if time.monotonic() - self._due > LATE_SECONDS:
            self._wait()  # the kernel was busy: answers wait in its queue
            return
        self._is_page = True
        self._handle.update(page_bundle(self._view.graph, self._view.title), raw=True)

    def _answered(self, *_: object) -> None:
        self._view.on_msg(self._answered, remove=True)
        if self._is_page:
            self._is_page = False
            self._handle.update(self._still, raw=True)


def page_bundle(graph: Graph, title: str) -> dict[str, str]:
    """The page of a graph as MIME data: a frame that needs no network and no kernel, and an outline."""
    return {"text/html": page_within(to_html(graph, title=title), title), "text/plain": to_outline(as_scene(graph, title=title))}


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
