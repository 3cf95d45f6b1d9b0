"""The base of live views: an anywidget with the viewer, which never raises into the user's cell."""

from __future__ import annotations

import os
import uuid
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import anywidget
import msgspec
import traitlets
from traitlets.log import get_logger

from graphcore.source import current_run
from graphcore.support.shown import shown
from widgets import messages
from widgets.language import spoken
from widgets.messages import EngineMessage, FailureMessage, GoodbyeMessage, Message, ToFrontMessage
from widgets.render.messages import plain
from widgets.requests import EngineRequest, FromViewer

STATIC: Final = Path(__file__).resolve().parent.parent / "static"
_KERNEL: Final = uuid.uuid4().hex


class LiveView(anywidget.AnyWidget):
    """A widget that shows the viewer. Failures are logged and shown in the viewer's status line.

    Args:
        title: the title of the picture.

    Attributes:
        home: the notebook and the kernel process of the view, by which a page distinguishes it from views of former kernels; the id of its
            model, by which it finds the notebook around it; and the cell that made it, which a page runs again after the kernel's end.
        kind: the kind of content, a graph or a function.
        language: the language of words; a page that is open is drawn anew when it changes.
        has_answered: True once a page has sent a request.
        panel: the model id of the widget that opened the view's panel; "" between cells.
    """

    _esm = (STATIC / "viewer.js").read_text("utf-8")
    title = traitlets.Unicode().tag(sync=True)
    home = traitlets.Dict().tag(sync=True)
    kind = traitlets.Unicode("graph").tag(sync=True)
    panel = traitlets.Unicode().tag(sync=True)
    language = traitlets.Unicode().tag(sync=True)

    def __init__(self, title: str, kind: str) -> None:
        super().__init__(title=shown(title), kind=kind, language=spoken())
        run = current_run.get()
        self.home = {
            "notebook": os.environ.get("JPY_SESSION_NAME", ""),
            "kernel": _KERNEL,
            "model": self.model_id,
            "cell": "" if run is None else run.cell,
        }
        self._is_closed = False
        self.has_answered = False
        self.on_msg(self._on_request)

    def fail(self, text: str, *, request: str = "") -> None:
        """Show a failure in the viewer's status line, with the type of the request that failed."""
        self._try_to_send(FailureMessage(request=request, text=text))

    def come_forward(self) -> None:
        """Bring the view's panel to the front. Without a panel nothing happens."""
        self._send_message(ToFrontMessage())

    def close(self) -> None:
        """Remove the view from all pages."""
        if self.comm is not None:
            self._try_to_send(GoodbyeMessage())
        self._is_closed = True
        super().close()

    def _answer(self, request: Any) -> None:
        """Answer a request of the page; overridden by each kind of view."""
        get_logger().debug("Graphloupe's view has no answer to %r", request)

    def _send_message(self, message: Message, buffers: list[bytes] | None = None) -> None:
        if not self._is_closed:
            self.send(plain(message), buffers)

    def _try_to_send(self, message: Message) -> None:
        try:
            self._send_message(message)
        except Exception as error:  # noqa: BLE001 - where even this fails only the log is left
            get_logger().warning("Graphloupe cannot reach its view: %s", error)

    def _failed(self, request: str, error: Exception) -> None:
        # The application's logger writes to the server's log; a warning on stderr would appear in the user's cell.
        get_logger().warning("Graphloupe's view failed at '%s'", request, exc_info=error)
        self.fail(str(error) or type(error).__name__, request=request)

    def _on_request(self, _widget: object, content: object, _buffers: object) -> None:
        self.has_answered = True
        kind = str(content.get("type", "")) if isinstance(content, dict) else ""
        try:
            request = msgspec.convert(content, FromViewer)
            if isinstance(request, EngineRequest):
                self._send_message(EngineMessage(engine=request.engine), [packed_engine(request.engine)])
            else:
                self._answer(request)
        except Exception as error:  # noqa: BLE001 - no request of a page may break the kernel
            self._failed(kind[:40], error)


@lru_cache
def packed_engine(engine: messages.Engine) -> bytes:
    """The gzipped script of an engine.

    Raises:
        OSError: it is missing.
    """
    return (STATIC / f"{engine}.js.gz").read_bytes()
