"""Pictures: the data of graphs for the viewer, and scenes as DOT, Mermaid, SVG, outline or HTML."""

from widgets.render.engine import EngineError
from widgets.render.html import to_page
from widgets.render.outline import to_outline
from widgets.render.static_display import to_static_bundle, to_static_html
from widgets.render.stills import to_dot, to_mermaid, to_svg

__all__ = [
    "EngineError",
    "to_dot",
    "to_mermaid",
    "to_outline",
    "to_page",
    "to_static_bundle",
    "to_static_html",
    "to_svg",
]
