"""Views of graphs: scenes, renderers, and the live view."""

from typing import TYPE_CHECKING

from widgets.files import save, to_dot, to_html, to_mermaid, to_outline, to_svg
from widgets.render.compiled import build_scene
from widgets.scene import Scene, SceneState, lens, remove_lens
from widgets.scene.overlays import add_overlay, remove_overlay

if TYPE_CHECKING:
    from widgets.live.function_view import FunctionView
    from widgets.live.graph_view import GraphView
if not TYPE_CHECKING:
    from widgets.live.loading import live_view as __getattr__  # noqa: F401 - Python calls it for the names that are missing here

__all__ = [
    "FunctionView",
    "GraphView",
    "Scene",
    "SceneState",
    "add_overlay",
    "build_scene",
    "lens",
    "remove_lens",
    "remove_overlay",
    "save",
    "to_dot",
    "to_html",
    "to_mermaid",
    "to_outline",
    "to_svg",
]
