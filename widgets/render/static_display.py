"""The static picture: HTML which shows without kernel, trust, network or widget state.

An `<img>` with the SVG in its address is kept where scripts, styles and inline SVG are removed.
"""

from __future__ import annotations

import base64
from html import escape
from typing import Final

from widgets.render.geometry import Geometry
from widgets.render.layout import fitting_scale, lay_out
from widgets.render.looks import Size
from widgets.render.outline import to_outline
from widgets.render.svg import to_svg
from widgets.render.text_width import one_line
from widgets.scene.types import Scene

ENOUGH: Final = 0.95
"""The fitting scale from which on a picture is taken as it is, a little too large: folding does the same."""
PAGE: Final = Size(820, 1100)
"""The size, in pixels, that a picture between cells should have at most."""


def to_static_bundle(scene: Scene, *summaries: Scene) -> dict[str, str]:
    """The picture as MIME data: HTML without script, and a text outline.

    Args:
        summaries: scenes of fewer boxes, one of which is drawn if `scene` is too large for the space between cells.
    """
    return {"text/html": to_static_html(scene, *summaries), "text/plain": to_outline(scene)}


def to_pre(escaped: str) -> str:
    """Preformatted text. It names its font, since exported notebooks give `pre` a proportional one."""
    return f'<pre style="font-family:monospace">{escaped}</pre>'


def to_static_html(scene: Scene, *summaries: Scene) -> str:
    """An `<img>` at its natural size, with alt text and a collapsible text outline. No script, no external resources.

    In a narrower place the picture scrolls: a smaller one could not be read.

    Args:
        summaries: scenes of fewer boxes, one of which is drawn if `scene` is too large for the space between cells.
    """
    if not scene.nodes:
        return f'<figure class="graphloupe-still"><figcaption>{escape(scene.title)}: nothing to show yet</figcaption></figure>'
    drawn, places = _fitting([scene, *summaries])
    address = "data:image/svg+xml;base64," + base64.b64encode(to_svg(drawn, places).encode("utf-8")).decode("ascii")
    alt = escape(one_line(f"{scene.title}: {scene.summary}"), quote=True)
    outline = escape(to_outline(scene), quote=True)
    return (
        f'<figure class="graphloupe-still"><div style="overflow-x:auto"><img src="{address}" alt="{alt}" style="max-width:none"></div>'
        f"<figcaption><details><summary>Outline of {alt}</summary>{to_pre(outline)}</details></figcaption></figure>"
    )


def _fitting(scenes: list[Scene]) -> tuple[Scene, Geometry]:
    """The first scene that fits into a page at its natural size, else the last one."""
    places = lay_out(scenes[0], panel=PAGE)
    for scene in scenes[1:]:
        if fitting_scale(places, PAGE) >= ENOUGH:
            break
        scenes, places = [scene], lay_out(scene, panel=PAGE)
    return scenes[0], places
