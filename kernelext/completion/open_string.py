"""The string that the cursor is in, and the brackets around it."""

from __future__ import annotations

import re
from typing import Final

import msgspec

_OPENING: Final = {")": "(", "]": "[", "}": "{"}
_CALLEE: Final = re.compile(r"(?P<object>[A-Za-z_]\w*)?(?:\([^()]*\))?(?P<path>(?:\.\w+(?:\([^()]*\))?)*)\s*$")
_NAME: Final = re.compile(r"\w+")
_KEYWORD: Final = re.compile(r"(?:^|[(,])\s*(?P<keyword>[A-Za-z_]\w*)\s*[=:]\s*$")
_PREFIX: Final = re.compile(r"[a-zA-Z]*$")
_MOST: Final = 4_000
"""The characters before the cursor that are read."""


class Bracket(msgspec.Struct):
    """An open bracket.

    Attributes:
        kind: `(`, `[` or `{`.
        before: the text before it, back to the bracket around it.
        item: the text from the last comma within it to the string.
        place: the number of commas within it.
    """

    kind: str
    before: str
    item: str = ""
    place: int = 0

    @property
    def object(self) -> str:
        """The first name of what is called or indexed: `graph` of `graph.find(`, "" if there is none."""
        match = _CALLEE.search(self.before)
        return "" if match is None else match["object"] or ""

    @property
    def callee(self) -> str:
        """The last name of what is called or indexed: `find` of `graph.find(`, "" if there is none."""
        match = _CALLEE.search(self.before)
        if match is None:
            return ""
        names = _NAME.findall(re.sub(r"\([^()]*\)", "", match["path"]))
        return names[-1] if names else match["object"] or ""

    @property
    def keyword(self) -> str:
        """The name in `name=` or `name:` before the string or the bracket within; "" if there is none."""
        match = _KEYWORD.search(self.item)
        return "" if match is None else match["keyword"]

    @property
    def is_key(self) -> bool:
        """True iff a string here is a key of a dict."""
        return self.kind == "{" and ":" not in self.item


class OpenString(msgspec.Struct):
    """A string literal that the cursor is in.

    Attributes:
        typed: its text so far.
        brackets: the open brackets around it, the innermost last.
        statement: the text before the outermost bracket, or before the string.
    """

    typed: str
    brackets: list[Bracket]
    statement: str


def open_string(text: str) -> OpenString | None:
    """The open string at the end of Python code; None if the code ends elsewhere."""
    text = text[-_MOST:]
    levels = [_Level("", 0, 0)]
    place = 0
    while place < len(text):
        letter = text[place]
        if letter in "'\"":
            quote = letter * 3 if text.startswith(letter * 3, place) else letter
            end = _end_of_string(text, place, quote)
            if end < 0:
                return _found(text, place, len(quote), levels)
            place = end
            continue
        if letter == "#":
            end = text.find("\n", place)
            if end < 0:
                return None
            place = end
            continue
        _read(letter, place, levels)
        place += 1
    return None


class _Level(msgspec.Struct):
    """An open bracket or the outermost level: its place, the beginning of its item, the items before."""

    kind: str
    opened: int
    start: int
    items: int = 0


def _read(letter: str, place: int, levels: list[_Level]) -> None:
    if letter in "([{":
        levels.append(_Level(letter, place, place + 1))
    elif letter in _OPENING:
        if levels[-1].kind == _OPENING[letter]:
            levels.pop()
    elif letter == ",":
        levels[-1].start = place + 1
        levels[-1].items += 1
    elif letter in "\n;" and len(levels) == 1:
        levels[-1].start = place + 1


def _end_of_string(text: str, place: int, quote: str) -> int:
    """The place after the string that begins at `place`, -1 if it is open. A string in simple quotes ends at the end of its line."""
    at = place + len(quote)
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text.startswith(quote, at):
            return at + len(quote)
        elif text[at] == "\n" and len(quote) == 1:
            return at
        else:
            at += 1
    return -1


def _found(text: str, place: int, quotes: int, levels: list[_Level]) -> OpenString | None:
    prefix = _PREFIX.search(text[:place])
    letters = "" if prefix is None else prefix[0]
    if {*letters.lower()} & {"b", "f"}:
        return None
    ends = [*[level.opened for level in levels[1:]], place - len(letters)]
    items = [text[level.start : end] for level, end in zip(levels, ends, strict=True)]
    brackets = [
        Bracket(level.kind, before, item, level.items) for level, before, item in zip(levels[1:], items[:-1], items[1:], strict=True)
    ]
    return OpenString(text[place + quotes :], brackets, items[0])
