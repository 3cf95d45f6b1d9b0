"""An error as HTML: static, safe, and legible in light and dark pages."""

from __future__ import annotations

import re
from typing import Final

from graphcore.source import SourceLocation
from graphcore.support.shown import html_text
from kernelext.errors.told import Told
from widgets.render.static_display import to_pre

_MONO: Final = "font-family:var(--jp-code-font-family,monospace)"
_QUIET: Final = "color:var(--jp-ui-font-color2,gray)"
_CARD: Final = "border-left:3px solid var(--jp-error-color1,#d32f2f);padding:2px 0 2px 12px;margin:4px 0;max-width:860px"
_HEAD: Final = "margin:0 0 6px;white-space:pre-wrap;overflow-wrap:anywhere"
_DO: Final = "margin:8px 0;padding:6px 10px;border:1px solid var(--jp-success-color1,#388e3c);border-radius:4px;overflow-wrap:anywhere;max-width:760px"
_CELL: Final = "text-align:left;vertical-align:top"
_CODE: Final = re.compile("`([^`]+)`")


def to_card(error: Told, picture: str = "") -> str:
    """The display of an error.

    Args:
        error: its content.
        picture: the HTML of the neighbourhood, "" for none.
    """
    head, *details = error.message.splitlines() or [""]
    more = "".join([f"<br><span style='{_QUIET}'>{with_code(line.strip())}</span>" for line in details])
    rows = [_row(word, with_code(text)) for word, text in error.facts]
    rows += [_row(word, _place(location)) for word, location in error.places]
    rows += [_row("because", with_code(error.because))] if error.because else []
    rows += [_row(with_code(statement), "<br>".join(map(with_code, written))) for statement, written in error.origins]
    return "".join(
        [
            f"<div class='graphloupe-error' style='{_CARD}'>",
            f"<p style='{_HEAD}'><b style='color:var(--jp-error-color1,#d32f2f)'>{error.kind}</b> {with_code(head)}{more}</p>",
            to_pre(html_text(error.layout)) if error.layout else "",
            f"<table style='margin:0'>{''.join(rows)}</table>" if rows else "",
            f"<p style='{_DO}'><b>To do</b>&ensp;{with_code(error.suggestion)}</p>" if error.suggestion else "",
            picture,
            _fold("Where the numbers come from", error.chains),
            _fold("Traceback", error.traceback),
            "</div>",
        ]
    )


def _row(word: str, html: str) -> str:
    return f"<tr><td style='{_CELL};{_QUIET}'>{word}</td><td style='{_CELL};overflow-wrap:anywhere'>{html}</td></tr>"


def _place(location: SourceLocation) -> str:
    code = f"<br><code style='{_MONO};white-space:pre-wrap'>{html_text(location.text)}</code>" if location.text else ""
    return f"{html_text(location.where)}{code}"


def with_code(text: str) -> str:
    """Escaped text; what stands in backticks is code."""
    return _CODE.sub(lambda match: f"<code style='{_MONO}'>{match[1]}</code>", html_text(text))


def _fold(summary: str, text: str) -> str:
    return f"<details><summary style='{_QUIET};cursor:pointer'>{summary}</summary>{to_pre(html_text(text))}</details>" if text else ""
