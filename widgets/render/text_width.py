"""Text widths in the pictures' sans-serif font, from a table of Helvetica's widths."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from graphcore.support.shown import shown

_REGULAR: Final = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 584 584 584 556 "
    "1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 "
    "333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584"
)
_BOLD: Final = (
    "278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 333 333 584 584 584 611 "
    "975 722 722 722 722 667 611 778 722 278 556 722 611 833 722 778 667 778 722 667 611 722 667 944 667 667 611 333 278 333 584 556 "
    "333 556 611 556 611 556 333 611 611 278 278 556 278 889 611 611 611 611 389 556 333 611 556 778 556 556 500 389 280 389 584"
)
_WIDTHS: Final = {
    bold: {chr(32 + place): int(width) for place, width in enumerate(table.split())} for bold, table in ((False, _REGULAR), (True, _BOLD))
}
_SPACES: Final = re.compile(r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
MAX_LETTERS: Final = 2000


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width of one line in pixels at a font size in pixels."""
    widths = _WIDTHS[bold]
    total = sum(widths.get(letter) or _other_width(letter) for letter in text)
    return total * size / 1000


def one_line(text: str) -> str:
    """The shown text as one line: runs of white space are single spaces."""
    return shown(_SPACES.sub(" ", text).strip(" "))


def ellipsize(text: str, size: float, limit: float, *, bold: bool = False, middle: bool = False) -> str:
    """The longest prefix (with `middle`: prefix and suffix) within `limit` pixels, with … for the rest."""
    line = one_line(text[:MAX_LETTERS])
    if text_width(line, size, bold=bold) <= limit:
        return line
    low, high = 0, len(line)
    while low < high:
        kept = (low + high + 1) // 2
        if text_width(_shortened(line, kept, middle=middle), size, bold=bold) <= limit:
            low = kept
        else:
            high = kept - 1
    return _shortened(line, low, middle=middle)


def _shortened(line: str, kept: int, *, middle: bool) -> str:
    head = (kept + 1) // 2 if middle else kept
    tail = kept - head
    return line[:head] + "…" + (line[-tail:] if tail else "")


def _other_width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 1000 if unicodedata.east_asian_width(letter) in {"W", "F"} else 600
