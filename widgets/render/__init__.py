"""Renderers: one scene as DOT, Mermaid, SVG, a text outline, or HTML."""

from widgets.render.dot import to_dot
from widgets.render.geometry import Geometry
from widgets.render.html import to_page
from widgets.render.layout import EngineError, LayoutEngine, engine, lay_out
from widgets.render.mermaid import to_mermaid
from widgets.render.outline import to_outline
from widgets.render.static_display import to_static_bundle, to_static_html
from widgets.render.svg import to_svg

__all__ = [
    "EngineError",
    "Geometry",
    "LayoutEngine",
    "engine",
    "lay_out",
    "to_dot",
    "to_mermaid",
    "to_outline",
    "to_page",
    "to_static_bundle",
    "to_static_html",
    "to_svg",
]
