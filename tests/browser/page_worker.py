"""The worker of a page without the page: it builds scenes from a graph's data."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import msgspec
from playwright.sync_api import Page

from graphcore import Graph
from widgets.messages import ChangeMessage, Choices
from widgets.render.engine import STATIC
from widgets.render.page_data import KeptRows, LiveData, graph_data, pack, pack_change
from widgets.render.page_data.types import GraphChange
from widgets.scene import Scene, SceneState
from widgets.scene.types import Openings

START = """async ([script, start]) => {
  window.worker?.terminate();
  const url = URL.createObjectURL(new Blob([script], {type: 'text/javascript'}));
  window.worker = new Worker(url);
  window.worker.postMessage(start);
}"""
ASK = """request => new Promise((done, failed) => {
  window.worker.onmessage = ({data}) => done(data);
  window.worker.onerror = ({message}) => failed(new Error(message));
  window.worker.postMessage(request);
})"""


APPLY = """([data, message]) => new Promise((done, failed) => {
  window.worker.onmessage = ({data}) => done(data);
  window.worker.onerror = ({message}) => failed(new Error(message));
  const bytes = Uint8Array.from(atob(data), letter => letter.charCodeAt(0));
  window.worker.postMessage({change: new DataView(bytes.buffer), message});
})"""


class _Worker:
    def __init__(self, page: Page) -> None:
        self._page = page

    def _start(self, message: object) -> None:
        script = gzip.decompress((STATIC / "page.js.gz").read_bytes()).decode()
        self._page.evaluate(START, [script, message])

    def ask(self, **request: object) -> dict[str, Any]:
        """The worker's answer to a request."""
        answer: dict[str, Any] = self._page.evaluate(ASK, request)
        return answer

    def scene(self, **request: object) -> tuple[Scene, Openings]:
        """The scene that answers a request, and what is open in it."""
        answer = self.ask(**request)
        assert answer["type"] == "scene", answer
        return msgspec.convert(answer["scene"], Scene), msgspec.convert(answer["openings"], Openings)


class PageWorker(_Worker):
    """Asks the worker of a page about one graph.

    Args:
        page: any page; nothing of it is used but its worker.
        graph: the graph.
        state: the limits and openings to begin with.
    """

    def __init__(self, page: Page, graph: Graph, state: SceneState) -> None:
        super().__init__(page)
        own = state.copy()
        data = base64.b64encode(pack(graph_data(graph, own))).decode("ascii")
        self._start({"data": data, "most": 10**9, "beginning": _beginning(own)})


class LiveWorker(_Worker):
    """Sends the worker of a page what has changed in a graph, and asks about it.

    Args:
        page: any page; nothing of it is used but its worker.
        graph: the graph.
        state: the limits and openings to begin with.

    Attributes:
        live: the data of the graph.
    """

    def __init__(self, page: Page, graph: Graph, state: SceneState) -> None:
        super().__init__(page)
        self.live = LiveData(graph, KeptRows(graph), state)
        self._choices: Choices | None = Choices(openings=state.openings(), lens=state.lens, renderer=state.renderer)
        self._start({"type": "look"})
        self.send(self.live.whole())

    def update(self) -> None:
        """Send what has changed."""
        assert self.send(self.live.change())["type"] == "scene"

    def send(self, change: GraphChange) -> dict[str, Any]:
        """Send a change. Returns the answer: the scene, or the request for the whole graph if it does not fit."""
        data = base64.b64encode(pack_change(change)).decode("ascii")
        message = ChangeMessage(title="graph", choices=self._choices)
        self._choices = None
        answer: dict[str, Any] = self._page.evaluate(APPLY, [data, msgspec.to_builtins(message)])
        return answer


def _beginning(state: SceneState) -> dict[str, object]:
    return {"title": "graph", "lens": state.lens, "renderer": state.renderer, "openings": msgspec.to_builtins(state.openings())}
