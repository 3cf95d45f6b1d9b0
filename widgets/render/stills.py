"""Scenes as pictures and as text for other tools, by the viewer's own code in the engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Final, Literal, NamedTuple

import msgspec

from graphcore.errors import FailedPreconditionError
from graphcore.support.shown import one_line
from widgets.language import spoken
from widgets.render.engine import EngineError, EngineTimeoutError, engine
from widgets.render.outline import to_outline
from widgets.scene.types import Scene

_ROW: Final = 15
_LETTER: Final = 7.3
"""Pixels of a line of a picture made of text, and of a letter in it."""


class Size(NamedTuple):
    """Width and height in pixels."""

    width: float
    height: float


def to_svg(scene: Scene, *, lens: str = "") -> str:
    """The picture of a scene as SVG text: one self-contained file without script. Where none can be drawn it is the outline and the reason.

    Args:
        lens: the lens; "devices" draws hulls around nodes that must be on one device.
    """
    try:
        return pictures([scene], lens=lens)[0]
    except EngineError as error:
        return _outline_svg(scene, str(error))


def to_dot(scene: Scene) -> str:
    """The scene as DOT: nodes `n<index>`, clusters for open scopes, tooltips with full names.

    Labels are never HTML-like, and no text of the graph becomes an attribute that a viewer would interpret (URL, image, font).

    Raises:
        FailedPreconditionError: V8 does not start.
    """
    return _text("dot", scene)


def to_mermaid(scene: Scene) -> str:
    """The scene as a Mermaid flowchart: nodes `n<index>`, subgraphs `g<index>` in the scene's order.

    Raises:
        FailedPreconditionError: V8 does not start.
    """
    return _text("mermaid", scene)


def pictures(scenes: Sequence[Scene], *, page: Size | None = None, lens: str = "", adapts: bool = False) -> list[str]:
    """The picture that fits into a page, and the whole one unless it is the same, as SVG texts.

    Args:
        scenes: one scene, and further ones of fewer boxes. If none fits, the last one is drawn without labels of edges.
        page: the size, in pixels, for which direction and folding are chosen; None for data that flows down, unfolded.
        lens: as for `to_svg`.
        adapts: use dark colors in dark pages.

    Raises:
        EngineError: there is no engine, or it cannot lay out any of the scenes.
    """
    asked = _json(scenes)
    options = {"page": page and page._asdict(), "lens": lens, "adapts": adapts, "language": spoken()}
    try:
        answer = engine.ask("pictures", asked, json.dumps({**options, "fast": False}))
    except EngineTimeoutError:
        answer = engine.ask("pictures", asked, json.dumps({**options, "fast": True}))
    pictures: list[str] = json.loads(answer)
    if not pictures:
        raise EngineError(f"{len(scenes[-1].nodes):,} boxes are too many to be laid out")
    return pictures


def _text(kind: Literal["dot", "mermaid"], scene: Scene) -> str:
    try:
        return engine.ask(kind, _json(scene))
    except EngineError as error:
        raise FailedPreconditionError(f"Cannot write {kind}: {error}") from error


def _json(data: Scene | Sequence[Scene]) -> str:
    try:
        return msgspec.json.encode(data).decode()
    except UnicodeEncodeError:  # a name with half of a pair: unlike msgspec, json writes it as an escape
        return json.dumps(msgspec.to_builtins(data))


def _outline_svg(scene: Scene, reason: str) -> str:
    lines = [one_line(f"drawn as text: {reason}"), "", *to_outline(scene).splitlines()]
    width, height = 20 + _LETTER * max(map(len, lines)), 20 + _ROW * len(lines)
    rows = "".join(
        f'<text x="10" y="{_ROW * number + 8}" style="white-space:pre">{escape(line)}</text>\n' for number, line in enumerate(lines, 1)
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" role="img"'
    return f'{head} font-family="monospace" font-size="12">\n<title>{escape(one_line(scene.title))}</title>\n{rows}</svg>\n'
