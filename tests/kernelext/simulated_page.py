"""A page with views, simulated: side panels, displays, messages of views, and the kernel's clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kernelext import open_view
from kernelext import views as views_module
from tests.support.live_page import LivePage
from widgets.live.graph_view import GraphView


class Panel:
    """A side panel as far as the extension uses it."""

    def __init__(self, view: GraphView, title: str, neighbour: Panel | None) -> None:
        self.view = view
        self.title = title
        self.ref = neighbour
        self.closed = False

    def close(self) -> None:
        self.closed = True


class Page:
    """A simulated page: side panels, displays, messages of views; and the kernel's clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.panels: list[Panel] = []
        self.displays: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self.later: list[Callable[[], None]] = []
        page = self

        def open_side_panel(view: GraphView, title: str, neighbour: Panel | None = None) -> Panel:
            page.panels.append(Panel(view, title, neighbour))
            return page.panels[-1]

        shown: dict[GraphView, LivePage] = {}

        def send(view: GraphView, content: dict[str, Any], buffers: list[bytes] | None = None) -> None:
            if view not in shown:
                shown[view] = LivePage(lambda request: view._handle_custom_msg(request, []), page.sent)
            shown[view].receive(content, buffers)

        monkeypatch.setattr(open_view, "open_side_panel", open_side_panel)
        monkeypatch.setattr(views_module, "call_later", lambda _seconds, callback: page.later.append(callback))
        monkeypatch.setattr(views_module, "ANSWER_SECONDS", 0.0)
        monkeypatch.setattr(views_module, "QUIET_SECONDS", 0.0)
        monkeypatch.setattr(GraphView, "send", send)

    def publish(self, data: dict[str, Any], **options: Any) -> None:
        self.displays.append({"data": data, **options})

    def says(self, kind: str, view: GraphView | None = None) -> None:
        """Send a message from the page to the kernel."""
        (view or self.panels[-1].view)._handle_custom_msg({"type": kind}, [])

    def scenes(self) -> list[dict[str, Any]]:
        return [message["scene"] for message in self.sent if message["type"] == "scene"]

    def stills(self) -> list[str]:
        """The HTML of static pictures, updates included."""
        htmls = [display["data"].get("text/html", "") for display in self.displays]
        return [html for html in htmls if "<figure" in html]

    def finish_stills(self) -> None:
        """Wait until the static pictures are drawn."""
        for thread in threading.enumerate():
            if thread.name == "graphloupe-stills":
                thread.join()

    def live_in_cells(self) -> int:
        return sum("application/vnd.jupyter.widget-view+json" in display["data"] for display in self.displays)

    def wait(self) -> None:
        """Advance the clock and run what is due."""
        while self.later:
            self.later.pop(0)()
