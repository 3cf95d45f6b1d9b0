"""The picture that is saved with an output: JupyterLab's MIME renderer opens it without a kernel."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from graphcore.graph import Graph
from widgets.messages import SceneMessage
from widgets.render.messages import plain
from widgets.render.page_data import graph_data, pack
from widgets.render.static_display import to_static_bundle
from widgets.scene.state import SceneState
from widgets.scene.types import Scene

SCENE_MIME_TYPE: Final = "application/vnd.graphloupe.scene+json"

MAX_SAVED_NODES: Final = 5000
"""The pictures of larger graphs are saved as they are shown: nothing in them opens."""


class SavedPicture(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of the MIME type.

    Attributes:
        message: the picture.
        model: the id of the live view's model, "" without one.
        graph_gzip_base64: the graph behind the picture, "" if nothing in it opens.
    """

    message: SceneMessage
    model: str = ""
    graph_gzip_base64: str = ""


def packed_graph(graph: Graph, state: SceneState) -> str:
    """The data that opens a picture of the graph, "" for a graph of more than `MAX_SAVED_NODES` nodes."""
    if len(graph) > MAX_SAVED_NODES:
        return ""
    return base64.b64encode(pack(graph_data(graph, state.copy()))).decode("ascii")


def to_saved_bundle(picture: SavedPicture, summaries: Sequence[Scene] = ()) -> dict[str, Any]:
    """The picture as MIME data: interactive, as HTML without script, and as a text outline.

    Args:
        summaries: the scene of the picture, followed by scenes of fewer boxes for HTML.
    """
    return {SCENE_MIME_TYPE: plain(picture), **to_static_bundle(*(summaries or [picture.message.scene]), lens=picture.message.lens)}
