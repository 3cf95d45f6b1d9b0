"""The static picture: HTML which shows without kernel, trust, network or widget state.

An `<img>` with the SVG in its address is kept where scripts, styles and inline SVG are removed.
"""

from __future__ import annotations

import base64
from typing import Final

from graphcore.support.shown import html_text
from widgets.render.geometry import Geometry
from widgets.render.layout import fitting_scale, lay_out
from widgets.render.looks import Size
from widgets.render.outline import to_outline
from widgets.render.svg import to_svg
from widgets.render.text_width import one_line
from widgets.scene.types import Scene
from widgets.scene.words import counted

ENOUGH: Final = 0.95
"""The fitting scale from which on a picture is taken as it is, a little too large: folding does the same."""
PAGE: Final = Size(820, 1100)
"""The size, in pixels, that a picture between cells should have at most."""

THEMES: Final = (
    "<style>[data-jp-theme-light=true] :is(.graphloupe-still,.graphloupe-progress) img{color-scheme:light}"
    "[data-jp-theme-light=false] :is(.graphloupe-still,.graphloupe-progress) img{color-scheme:dark}</style>"
)
"""Jupyter's themes, and exported notebooks in them, do not declare their color scheme."""


def to_static_bundle(scene: Scene, *summaries: Scene, lens: str = "") -> dict[str, str]:
    """The picture as MIME data: HTML without script, and a text outline.

    Args:
        summaries: scenes of fewer boxes, one of which is drawn if `scene` is too large for the space between cells.
        lens: as for `to_svg`.
    """
    return {"text/html": to_static_html(scene, *summaries, lens=lens), "text/plain": to_outline(scene)}


def to_pre(escaped: str) -> str:
    """Preformatted text. It names its font, since exported notebooks give `pre` a proportional one."""
    return f'<pre style="font-family:monospace">{escaped}</pre>'


def to_static_html(scene: Scene, *summaries: Scene, lens: str = "") -> str:
    """An `<img>` at its natural size, with alt text and a collapsible text outline. No script, no external resources.

    In a narrower place the picture scrolls: a smaller one could not be read. If a summary is drawn, a click shows the whole picture.

    Args:
        summaries: scenes of fewer boxes, one of which is drawn if `scene` is too large for the space between cells.
        lens: as for `to_svg`.
    """
    if not scene.nodes:
        return f'<figure class="graphloupe-still"><figcaption>{html_text(scene.title)}: nothing to show yet</figcaption></figure>'
    alt = html_text(one_line(f"{scene.title}: {scene.summary}"))
    pictures = [_image(drawn, places, alt, lens) for drawn, places in _fitting([scene, *summaries])]
    whole = [_details(f"The whole picture: {counted(len(scene.nodes), 'box', 'boxes')}", picture) for picture in pictures[1:]]
    outline = _details(f"Outline of {alt}", to_pre(html_text(to_outline(scene))))
    return f'<figure class="graphloupe-still">{THEMES}{pictures[0]}<figcaption>{"".join(whole)}{outline}</figcaption></figure>'


def _image(scene: Scene, places: Geometry, alt: str, lens: str) -> str:
    address = base64.b64encode(to_svg(scene, places, adapts=True, lens=lens).encode("utf-8")).decode("ascii")
    return f'<div style="overflow-x:auto"><img src="data:image/svg+xml;base64,{address}" alt="{alt}" style="max-width:none"></div>'


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>{content}</details>"


def _fitting(scenes: list[Scene]) -> list[tuple[Scene, Geometry]]:
    """The picture that fits into a page at its natural size, and the first one unless it is the same.

    If none fits, that is the last one without labels of edges.
    """
    first = places = lay_out(scenes[0], panel=PAGE)
    scene = scenes[0]
    for other in scenes[1:]:
        if fitting_scale(places, PAGE) >= ENOUGH:
            break
        scene, places = other, lay_out(other, panel=PAGE)
    if places.width > PAGE.width / ENOUGH:
        places = lay_out(scene, panel=PAGE, labels=False)
    return [(scene, places)] if places is first else [(scene, places), (scenes[0], first)]
