"""The worker of a standalone page without the page: it builds scenes from a graph's data."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import msgspec
from playwright.sync_api import Page

from graphcore import Graph
from widgets.render.engine import STATIC
from widgets.render.page_data import graph_data, pack
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


class PageWorker:
    """Asks the worker of a page about one graph.

    Args:
        page: any page; nothing of it is used but its worker.
        graph: the graph.
        state: the limits and openings to begin with.
    """

    def __init__(self, page: Page, graph: Graph, state: SceneState) -> None:
        self._page = page
        own = state.copy()
        beginning = {"title": "graph", "lens": own.lens, "renderer": own.renderer, "openings": msgspec.to_builtins(own.openings())}
        data = base64.b64encode(pack(graph_data(graph, own))).decode("ascii")
        script = gzip.decompress((STATIC / "page.js.gz").read_bytes()).decode()
        page.evaluate(START, [script, {"data": data, "most": 10**9, "beginning": beginning}])

    def ask(self, **request: object) -> dict[str, Any]:
        """The worker's answer to a request."""
        answer: dict[str, Any] = self._page.evaluate(ASK, request)
        return answer

    def scene(self, **request: object) -> tuple[Scene, Openings]:
        """The scene that answers a request, and what is open in it."""
        answer = self.ask(**request)
        assert answer["type"] == "scene", answer
        return msgspec.convert(answer["scene"], Scene), msgspec.convert(answer["openings"], Openings)
