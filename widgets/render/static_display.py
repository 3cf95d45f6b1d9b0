"""The static picture: HTML which shows without kernel, trust, network or widget state.

An `<img>` with the SVG in its address is kept where scripts, styles and inline SVG are removed.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

from graphcore.support.shown import html_text, one_line
from widgets.language import word
from widgets.render.engine import EngineError
from widgets.render.outline import to_outline
from widgets.render.stills import Size, pictures
from widgets.scene.types import Scene

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

    In a narrower place the picture scrolls: a smaller one could not be read. If a summary is drawn, a click shows the whole picture. Where
    nothing can be drawn there is the outline and the reason.

    Args:
        summaries: scenes of fewer boxes, one of which is drawn if `scene` is too large for the space between cells.
        lens: as for `to_svg`.
    """
    if not scene.nodes:
        return f'<figure class="graphloupe-still"><figcaption>{html_text(word("{title}: nothing to show yet", title=scene.title))}</figcaption></figure>'
    alt = html_text(one_line(f"{scene.title}: {scene.summary}"))
    outline = to_pre(html_text(to_outline(scene)))
    try:
        picture, *whole = pictures([scene, *summaries], page=PAGE, lens=lens, adapts=True)
    except EngineError as error:
        return f'<figure class="graphloupe-still"><figcaption>{html_text(f"No picture: {error}")}{outline}</figcaption></figure>'
    more = [(word("The whole picture: {count} boxes", count=f"{len(scene.nodes):,}"), _image(svg, alt)) for svg in whole]
    return figure(picture, alt, [*more, (word("Outline of {what}", what=alt), outline)])


def figure(svg: str, alt: str, folded: Sequence[tuple[str, str]]) -> str:
    """A picture as an `<img>`, with what is folded below it.

    Args:
        svg: the picture.
        alt: the text of the picture, escaped.
        folded: summaries, escaped, and their contents as HTML.
    """
    words = "".join([_details(summary, content) for summary, content in folded])
    return f'<figure class="graphloupe-still">{THEMES}{_image(svg, alt)}<figcaption>{words}</figcaption></figure>'


def _image(svg: str, alt: str) -> str:
    address = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return f'<div style="overflow-x:auto"><img src="data:image/svg+xml;base64,{address}" alt="{alt}" style="max-width:none"></div>'


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>{content}</details>"
