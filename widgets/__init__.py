"""Views of graphs: scenes, renderers, and the live view."""

from widgets.files import save, to_dot, to_html, to_mermaid, to_outline, to_svg
from widgets.live.function_view import FunctionView
from widgets.live.graph_view import GraphView
from widgets.scene import Scene, SceneState, build_scene, lens, remove_lens

__all__ = [
    "FunctionView",
    "GraphView",
    "Scene",
    "SceneState",
    "build_scene",
    "lens",
    "remove_lens",
    "save",
    "to_dot",
    "to_html",
    "to_mermaid",
    "to_outline",
    "to_svg",
]
