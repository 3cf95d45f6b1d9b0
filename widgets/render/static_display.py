"""The static picture: HTML which shows without kernel, trust, network or widget state.

An `<img>` with the SVG in its address is kept where scripts, styles and inline SVG are removed.
"""

from __future__ import annotations

import base64
from html import escape

from widgets.render.geometry import Geometry
from widgets.render.outline import to_outline
from widgets.render.svg import to_svg
from widgets.render.text_width import one_line
from widgets.scene.types import Scene


def to_static_bundle(scene: Scene) -> dict[str, str]:
    """The picture as MIME data: HTML without script, and a text outline."""
    return {"text/html": to_static_html(scene), "text/plain": to_outline(scene)}


def to_pre(escaped: str) -> str:
    """Preformatted text. It names its font, since exported notebooks give `pre` a proportional one."""
    return f'<pre style="font-family:monospace">{escaped}</pre>'


def to_static_html(scene: Scene, geometry: Geometry | None = None) -> str:
    """An `<img>` with alt text and a collapsible text outline. No script, no external resources.

    Its height is limited, so that it does not push the cells of a notebook apart as the graph grows.

    Args:
        geometry: the layout; computed if None.
    """
    if not scene.nodes:
        return f'<figure class="graphloupe-still"><figcaption>{escape(scene.title)}: nothing to show yet</figcaption></figure>'
    svg = to_svg(scene, geometry).encode("utf-8")
    address = "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
    alt = escape(one_line(f"{scene.title}: {scene.summary}"), quote=True)
    outline = escape(to_outline(scene), quote=True)
    return (
        f'<figure class="graphloupe-still"><img src="{address}" alt="{alt}" style="max-width:100%;max-height:28em">'
        f"<figcaption><details><summary>Outline of {alt}</summary>{to_pre(outline)}</details></figcaption></figure>"
    )
