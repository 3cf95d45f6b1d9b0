"""Regular expressions of RE2, which TensorFlow uses: a match takes time in proportion to the text."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False  # they are raised


class PatternError(ValueError):
    """A pattern that RE2 refuses."""


@lru_cache(maxsize=32)
def compiled(pattern: bytes) -> Any:
    """The pattern, for texts in UTF-8.

    Raises:
        PatternError: RE2 refuses it; the message is RE2's.
    """
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        (reason,) = error.args
        raise PatternError(reason.decode(errors="backslashreplace") if isinstance(reason, bytes) else str(reason)) from None


def replaced(pattern: Any, text: bytes, pieces: list[bytes | int], *, everywhere: bool) -> bytes:
    """The text with matches replaced, as RE2's Replace and GlobalReplace do.

    Args:
        pattern: a compiled pattern.
        text: the text.
        pieces: the replacement: texts, and numbers of groups.
        everywhere: replace all matches, not only the first.
    """
    out: list[bytes] = []
    at, last = 0, -1
    while at <= len(text):
        match = pattern.search(text, at)
        if match is None:
            break
        start, end = match.span()
        out.append(text[at:start])
        if start == end == last:  # an empty match directly after another one
            at = start + _width(text, start)
            out.append(text[start:at])
            continue
        out += [piece if isinstance(piece, bytes) else match[piece] or b"" for piece in pieces]
        at = last = end
        if not everywhere:
            break
    return b"".join([*out, text[at:]])


def _width(text: bytes, at: int) -> int:
    """The bytes of the character at a position, 1 for what is no UTF-8."""
    for width in range(1, 5):
        try:
            text[at : at + width].decode()
        except UnicodeDecodeError:
            continue
        return width
    return 1
