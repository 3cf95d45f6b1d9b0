"""Texts as they are shown: characters without a look of their own are escapes."""

from __future__ import annotations

import re
from html import escape
from typing import Final

# Control characters but for line feed and tab; letters that turn the direction of others, are invisible, or end a line; halves of pairs;
# what is no character. The viewer has the same in `widgets/js/src/scene/shown.ts`.
_UNSHOWN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e007f]"
)

_SPACES: Final = re.compile(r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")


def shown(text: str) -> str:
    r"""The text with escapes such as `\x1b`, `\u202e` and `\ud800`.

    The result can be encoded, is valid in XML, and reads in the order of its letters. Line feeds and tabs stay.
    """
    return _UNSHOWN.sub(_escape, text)


def one_line(text: str) -> str:
    """The shown text as one line: runs of white space are single spaces."""
    return shown(_SPACES.sub(" ", text).strip(" "))


def html_text(text: str) -> str:
    """The shown text, escaped for HTML and its quoted attributes."""
    return escape(shown(text), quote=True)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
