"""A page that shows a live view, by the code of its worker, without a browser."""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Callable
from typing import Any, Final

import msgspec

from widgets.live.live_view import LiveView
from widgets.messages import PictureMessage
from widgets.port import Port
from widgets.render.engine import engine
from widgets.requests import FromViewer

Json = dict[str, Any]
BY_WORKER: Final = frozenset(
    ["collapse", "crowded", "expand", "filter", "find", "inspect", "lens", "renderer", "restore", "reveal", "try_device", "want_health"]
)
"""The requests that the worker answers."""
REPORTED: Final = frozenset(["lens", "renderer"])
"""Those of them that the kernel gets as well."""
PLACED: Final = frozenset(["explanation", "names", "steps", "timelines", "what_if"])
"""The messages of the kernel that get places in the page."""


class LivePage:
    """The messages that a viewer gets when a kernel sends some, as `shell/live_host.ts` hands them on.

    Args:
        kernel: takes requests for the kernel.
        sent: gets the messages that the viewer gets.

    Attributes:
        sent: these messages.
    """

    def __init__(self, kernel: Callable[[Json], None], sent: list[Json] | None = None) -> None:
        self._kernel = kernel
        self._key = uuid.uuid4().hex
        self._openings: object = None
        self.sent: list[Json] = [] if sent is None else sent

    @classmethod
    def of(cls, graph: Any, **options: Any) -> tuple[Port, LivePage]:
        """A picture of a graph, and a page that shows it."""
        page = cls(lambda request: port.answer(msgspec.convert(request, FromViewer)))
        port = Port(graph, page.receive_message, **options)
        return port, page

    @classmethod
    def in_place_of(cls, view: LiveView, sent: list[Json] | None = None) -> LivePage:
        """A page that shows a view, which sends nothing elsewhere."""
        page = cls(lambda request: view._handle_custom_msg(request, []), sent)
        view.send = page.receive
        return page

    def receive_message(self, message: PictureMessage, buffers: list[bytes]) -> None:
        """Take a message of a kernel."""
        self.receive(msgspec.to_builtins(message), buffers)

    def receive(self, content: Json, buffers: list[bytes] | None = None) -> None:
        """Take a message of a kernel, as plain data."""
        if content["type"] == "change" and buffers:
            if content["choices"] is not None:
                self._openings = content["choices"]["openings"]
            change = gzip.decompress(buffers[0]).decode()
            self._tell(json.loads(engine.ask("change", self._key, change, json.dumps(content))))
        elif content["type"] in PLACED:
            answer = json.loads(engine.ask("place", self._key, json.dumps(content)))
            if answer is not None:
                self.sent.append(answer)
        else:
            self.sent.append(content)

    def ask(self, **request: Any) -> list[Json]:
        """The messages that answer a request of the viewer."""
        before = len(self.sent)
        if request["type"] in BY_WORKER:
            for answer in json.loads(engine.ask("ask", self._key, json.dumps(request))):
                self._tell(answer)
        if request["type"] not in BY_WORKER or request["type"] in REPORTED:
            self._kernel(request)
        return self.sent[before:]

    def ask_one(self, **request: Any) -> Json:
        """The one message that answers a request of the viewer."""
        (answer,) = self.ask(**request)
        return answer

    def _tell(self, message: Json) -> None:
        if message["type"] == "ask":
            self._kernel(message["request"])
            return
        self.sent.append(message)
        if message["type"] == "scene" and message["openings"] != self._openings:
            self._openings = message["openings"]
            self._kernel({"type": "openings", "openings": message["openings"]})
        if message["type"] == "inspection" and message["inspection"]["waits"]:
            inspection = message["inspection"]
            self._kernel({"type": "explain", "id": inspection["id"], "name": inspection["name"]})
