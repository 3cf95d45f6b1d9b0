"""An error as lines for a terminal."""

from __future__ import annotations

import re
from typing import Final

from graphcore.source import SourceLocation
from graphcore.support.shown import shown
from kernelext.errors.told import Told

_BOLD: Final = "\x1b[1m"
_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"
_STYLE: Final = re.compile(r"\x1b\[\d*m")
_STYLED: Final = re.compile(r"(\x1b\[[012]m)")
_MORE: Final = f"{_DIM}%tb shows the full traceback.{_PLAIN}"


def error_lines(error: Told, *, plain: bool = False) -> list[str]:
    """Message, facts, lines of code and suggestion, under 20 lines for most errors.

    Args:
        error: the content.
        plain: without bold and faint text, for a terminal without colors.
    """
    lines = [_shown(line) for line in _error_lines(error)]
    return [_STYLE.sub("", line) for line in lines] if plain else lines


def _error_lines(error: Told) -> list[str]:
    head, *details = error.message.splitlines() or [""]
    lines = [f"{_BOLD}{error.kind}{_PLAIN}" + (f": {head}" if head else ""), *[f"{'':>8}  {line.strip()}" for line in details]]
    lines += error.layout.splitlines()
    for word, text in error.facts:
        lines += _row(word, text)
    for word, place in error.places:
        lines += _place(word, place)
    for statement, written in error.origins:
        lines += [*_row("where", f"{_BOLD}{statement}{_PLAIN}"), *[f"{'':>8}  {line}" for line in written]]
    lines += _row("because", error.because) if error.because else []
    lines += _row("to do", error.suggestion) if error.suggestion else []
    return [*lines, _MORE]


def short_lines(error: Told) -> list[str]:
    """The first line of the message, for a page that shows all else above."""
    head = error.message.partition("\n")[0]
    return [_shown(f"{_BOLD}{error.kind}{_PLAIN}" + (f": {head}" if head else ""))]


def _shown(line: str) -> str:
    """The line with its bold and faint text, and everything else that has no look as escapes."""
    return "".join([part if _STYLE.fullmatch(part) else shown(part) for part in _STYLED.split(line)])


def _row(word: str, text: str) -> list[str]:
    first, *rest = text.splitlines() or [""]
    return [f"{_DIM}{word:>8}{_PLAIN}  {first}", *[f"{'':>8}  {line}" for line in rest]]


def _place(word: str, location: SourceLocation) -> list[str]:
    text = location.text
    return [*_row(word, location.where), *([f"{'':>8}  {_BOLD}{text}{_PLAIN}"] if text else [])]
