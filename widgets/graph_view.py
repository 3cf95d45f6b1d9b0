"""The live view of a graph: an anywidget that sends scenes and answers what the viewer asks for."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import uuid
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, get_args

import anywidget
import msgspec
import traitlets
from traitlets.log import get_logger

from graphcore.graph import Graph
from widgets import messages
from widgets.messages import FailureMessage, FromViewer, Message, SceneMessage
from widgets.render.dot import to_dot
from widgets.render.mermaid import to_mermaid
from widgets.render.static_display import to_static_bundle, to_static_html
from widgets.render.svg import to_svg
from widgets.scene.build import build_scene
from widgets.scene.find import find
from widgets.scene.inspect import inspect
from widgets.scene.lenses import LENS_NAMES
from widgets.scene.snapshot import Snapshot, take_snapshot
from widgets.scene.state import SceneState
from widgets.scene.types import Scene
from widgets.scene.visible import scope_tree, visible_boxes

STATIC: Final = Path(__file__).resolve().parent / "static"
MIN_SECONDS_BETWEEN: Final = 0.1
"""Scenes are not sent more often than this; of several the latest is sent."""

_KERNEL: Final = uuid.uuid4().hex

_RENDERERS: Final[dict[str, messages.Renderer]] = {name: name for name in get_args(messages.Renderer)}


class GraphView(anywidget.AnyWidget):
    """A live picture of a graph. Show it like any widget; call `refresh` when the graph may have changed.

    Nothing here raises into the user's cell: what fails is logged and told in the viewer's status line.

    Args:
        graph: the graph to show.
        title: what the picture is called.
        state: what is open, the lens and the renderer to begin with.

    Attributes:
        state: what the user has chosen to see.
        drawn: the viewer's latest report of a picture on the screen, None before the first.
        home: the notebook and the kernel process that it belongs to, by which a page tells it from its forerunners.
    """

    _esm = (STATIC / "viewer.js").read_text("utf-8")
    title = traitlets.Unicode().tag(sync=True)
    home = traitlets.Dict().tag(sync=True)

    def __init__(self, graph: Graph, *, title: str = "graph", state: SceneState | None = None) -> None:
        super().__init__(title=title, home={"notebook": os.environ.get("JPY_SESSION_NAME", ""), "kernel": _KERNEL})
        self.state = state or SceneState()
        self.drawn: messages.DrawnReport | None = None
        self._graph = graph
        self._lock = threading.RLock()
        self._revision = 0
        self._last: SceneMessage | None = None
        self._key: tuple[object, ...] = ()
        self._before: Snapshot | None = None
        self._now: Snapshot | None = None
        self._seen_version = -1
        self._sent_at = 0.0
        self._next_send = 0.0
        self._waiting: asyncio.TimerHandle | None = None
        self._is_closed = False
        self.on_msg(self._heard)

    @property
    def graph(self) -> Graph:
        """The graph that is shown."""
        return self._graph

    @property
    def scene(self) -> Scene:
        """What the view shows, or is about to show, as data."""
        with self._lock:
            if self._waiting is not None:
                return build_scene(self._graph, self.state, previous=self._before, title=self.title, revision=self._revision)
            return (self._last or self._compose()).scene

    def show(self, graph: Graph) -> None:
        """Show another graph from the next `refresh` on; what is open stays open where names agree."""
        with self._lock:
            if graph is self._graph:
                return
            self._graph = graph
            self._before = self._now = None
            self._seen_version = -1

    def choose(self, *, renderer: str = "", lens: str = "") -> None:
        """Draw with another renderer (`graphviz`, `mermaid`) or look through another lens from the next `refresh` on; "" keeps it."""
        self.state.renderer = _RENDERERS.get(renderer, self.state.renderer)
        if lens in LENS_NAMES:
            self.state.lens = lens

    def refresh(self, *, sent_at: float | None = None) -> None:
        """Send the graph as it is now: once a cell, coalesced to ten a second.

        Args:
            sent_at: when the cell ended, in ms since the epoch; now if None.
        """
        try:
            with self._lock:
                self._remember()
                self._sent_at = time.time() * 1000 if sent_at is None else sent_at
                self._send_soon()
        except Exception as error:  # noqa: BLE001 - a view must never break the user's cell
            self._failed("refresh", error)

    def still_bundle(self) -> dict[str, str]:
        """The picture that stays, as MIME data."""
        return to_static_bundle(self.scene)

    def static_html(self) -> str:
        """The picture that stays, as HTML without script."""
        return to_static_html(self.scene)

    def fail(self, text: str, *, request: str = "") -> None:
        """Say in the viewer's status line that something went wrong, with what it asked for (its message's type)."""
        try:
            self._tell(FailureMessage(request=request, text=text))
        except Exception as error:  # noqa: BLE001 - where even this fails only the log is left
            get_logger().warning("Graphloupe cannot reach its view: %s", error)

    def close(self) -> None:
        """Take the view off every page."""
        with self._lock:
            self._is_closed = True
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None
        super().close()

    # ---- sending ----------------------------------------------------------------------------------------------------

    def _remember(self) -> None:
        """Note what there was at the last refresh, so that the scene can mark what is new since."""
        if self._graph.version != self._seen_version:
            self._before, self._now = self._now, take_snapshot(self._graph)
            self._seen_version = self._graph.version
        else:
            self._before = self._now

    def _send_soon(self) -> None:
        if self._waiting is not None:
            return
        delay = self._next_send - time.monotonic()
        loop = _running_loop() if delay > 0 else None
        if loop is None:
            self._send_scene()
            return
        self._waiting = loop.call_later(delay, self._send_late)

    def _send_late(self) -> None:
        try:
            with self._lock:
                self._waiting = None
                self._send_scene()
        except Exception as error:  # noqa: BLE001 - nobody up there could do anything about it
            self._failed("refresh", error)

    def _send_scene(self, focus: str = "") -> None:
        self._next_send = time.monotonic() + MIN_SECONDS_BETWEEN
        message = self._compose(focus)
        self._tell(message)

    def _compose(self, focus: str = "") -> SceneMessage:
        self._revision += 1
        scene = self._scene_now()
        mermaid = to_mermaid(scene) if self.state.renderer == "mermaid" else ""
        self._last = SceneMessage(
            scene=scene, mermaid=mermaid, focus=focus, sent_at=self._sent_at, lens=self.state.lens, renderer=self.state.renderer
        )
        self._sent_at = 0.0
        return self._last

    def _scene_now(self) -> Scene:
        """The scene; the last one under a new number while nothing it shows can have changed (a cell that trains, say)."""
        graph = self._graph
        key = (id(graph), graph.version, frozenset(graph.cells.failed), id(self._before), self.title, *self.state.choices())
        if self._last is not None and key == self._key:
            return msgspec.structs.replace(self._last.scene, revision=self._revision)
        scene = build_scene(graph, self.state, previous=self._before, title=self.title, revision=self._revision)
        self._key = key
        return scene

    def _tell(self, message: Message, buffers: list[bytes] | None = None) -> None:
        if not self._is_closed:
            self.send(msgspec.to_builtins(message), buffers)

    def _failed(self, request: str, error: Exception) -> None:
        # The application's logger writes to the server's log; a warning on stderr would land in the user's cell.
        get_logger().warning("Graphloupe's view failed at '%s'", request, exc_info=error)
        self.fail(str(error) or type(error).__name__, request=request)

    # ---- answering --------------------------------------------------------------------------------------------------

    def _heard(self, _widget: object, content: object, _buffers: object) -> None:
        kind = str(content.get("type", "")) if isinstance(content, dict) else ""
        try:
            request = msgspec.convert(content, FromViewer)
            with self._lock:
                self._answer(request)
        except Exception as error:  # noqa: BLE001 - whatever the page asks for, the kernel stays whole
            self._failed(kind[:40], error)

    def _answer(self, request: Any) -> None:
        match request:
            case messages.ReadyRequest():
                self._tell(msgspec.structs.replace(self._last or self._compose(), sent_at=0.0, focus="", lens=self.state.lens))
            case messages.EngineRequest(engine=engine):
                self._tell(messages.EngineMessage(engine=engine), [packed_engine(engine)])
            case messages.ExpandRequest(id=box_id):
                self.state.expand(box_id)
                self._send_scene()
            case messages.CollapseRequest(id=box_id):
                self.state.collapse(box_id)
                self._send_scene()
            case messages.InspectRequest(id=box_id):
                self._inspect(box_id)
            case messages.RevealRequest(name=name):
                self._reveal(name)
            case messages.SearchRequest(query=query):
                inner = visible_boxes(self._graph, self.state).inner_nodes()
                self._tell(find(self._graph, query, inner=inner))
            case messages.ExportRequest(format=kind):
                self._export(kind)
            case messages.RendererRequest(renderer=renderer):
                self.state.renderer = renderer
                self._send_scene()
            case messages.LensRequest(lens=lens):
                self.choose(lens=lens)
            case messages.DrawnReport():
                self.drawn = request
            case _:
                get_logger().debug("Graphloupe's view has no answer to %r", request)

    def _inspect(self, box_id: str) -> None:
        inspection = inspect(self._graph, self.state, box_id)
        if inspection is None:
            self._tell(FailureMessage(request="inspect", text=f"'{box_id}' is no longer in the graph"))
            return
        self._tell(messages.InspectionMessage(inspection=inspection))

    def _reveal(self, name: str) -> None:
        if not self.state.reveal(scope_tree(self._graph, self.state), name):
            self._tell(FailureMessage(request="reveal", text=f"'{name}' is no longer in the graph"))
            return
        self._send_scene(focus=name)

    def _export(self, kind: messages.ExportFormat) -> None:
        scene = self.scene
        write = {"svg": to_svg, "dot": to_dot, "mermaid": to_mermaid}[kind]
        suffix = {"svg": "svg", "dot": "dot", "mermaid": "mmd"}[kind]
        self._tell(messages.ExportMessage(format=kind, name=f"graph.{suffix}", text=write(scene)))


@lru_cache
def packed_engine(engine: messages.Engine) -> bytes:
    """The gzipped script of an engine.

    Raises:
        OSError: it is missing.
    """
    return (STATIC / f"{engine}.js.gz").read_bytes()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
