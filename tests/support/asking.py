"""The answers of a viewer about a graph: its inspector and its search."""

from __future__ import annotations

import msgspec

from graphcore import Graph
from tests.support.live_page import LivePage
from widgets.inspection import Inspection
from widgets.messages import SearchMessage
from widgets.scene import SceneState


def inspect(graph: Graph, state: SceneState, box_id: str) -> Inspection | None:
    """The inspection of a box, with the kernel's explanations; None if there is no such box or node."""
    port, page = LivePage.of(graph, state=state.copy())
    port.send()
    answers = [answer for answer in page.ask(type="inspect", id=box_id) if answer["type"] == "inspection"]
    return msgspec.convert(answers[-1]["inspection"], Inspection) if answers else None


def find(graph: Graph, query: str, *, state: SceneState | None = None, limit: int = 50) -> SearchMessage:
    """The nodes that match a query, those of open calls too."""
    port, page = LivePage.of(graph, state=(state or SceneState()).copy())
    port.send()
    return msgspec.convert(page.ask_one(type="find", query=query, limit=limit), SearchMessage)
