"""DOT text as tokens, within limits."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError

_SKIPPED: Final = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_PREPROCESSOR: Final = re.compile(r"^#[^\n]*$", re.MULTILINE)
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*|-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)")
_MARKS: Final = ("->", "--", "{", "}", "[", "]", ";", ",", "=", ":", "+")
_MAX_TOKENS: Final = 5_000_000
_TAG: Final = re.compile(r"<[^<>]*>")


class Token(NamedTuple):
    """A token.

    Attributes:
        text: a mark, or the text of an ID without its quotes.
        is_id: True for IDs, quoted, HTML or plain.
        is_word: True for IDs without quotes, which keywords are.
        place: its place in the text.
    """

    text: str
    is_id: bool
    is_word: bool
    place: int


def tokens_of(text: str) -> list[Token]:
    """The tokens of a DOT text.

    Raises:
        InvalidArgumentError: a character stands where no token begins, or a text has no end.
        ResourceExhaustedError: there are too many.
    """
    text = _PREPROCESSOR.sub("", text)
    tokens: list[Token] = []
    place = 0
    while True:
        skipped = _SKIPPED.match(text, place)
        place = skipped.end() if skipped else place
        if place >= len(text):
            return tokens
        if len(tokens) >= _MAX_TOKENS:
            raise ResourceExhaustedError(f"The DOT text has more than {_MAX_TOKENS:,} tokens")
        mark = next((mark for mark in _MARKS if text.startswith(mark, place)), None)
        quoted = _QUOTED.match(text, place)
        name = _NAME.match(text, place)
        if quoted:
            tokens.append(Token(_unescaped(quoted[1]), True, False, place))
            place = quoted.end()
        elif name and mark not in {"--", "->"}:
            tokens.append(Token(name[0], True, True, place))
            place = name.end()
        elif text[place] == "<":
            end = _html_end(text, place)
            tokens.append(Token(_html_text(text[place + 1 : end - 1]), True, False, place))
            place = end
        elif mark:
            tokens.append(Token(mark, False, False, place))
            place += len(mark)
        else:
            raise InvalidArgumentError(f"DOT text, {line_of(text, place)}: no token begins with {text[place : place + 10]!r}")


def line_of(text: str, place: int) -> str:
    """The line of a place in words."""
    line = text.count("\n", 0, place) + 1
    return f"line {line}"


def _html_end(text: str, place: int) -> int:
    """The place behind an HTML text in angle brackets."""
    depth = 0
    for bracket in re.compile(r"[<>]").finditer(text, place):
        depth += 1 if bracket[0] == "<" else -1
        if not depth:
            return bracket.end()
    raise InvalidArgumentError(f"DOT text, {line_of(text, place)}: the HTML text has no end")


def _html_text(text: str) -> str:
    """The words of an HTML text."""
    return " ".join(_TAG.sub(" ", text).split()) or text


def _unescaped(text: str) -> str:
    r"""A quoted text with its quotes and joined lines. Labels give `\n`, `\l` and `\r` a meaning, so they stay."""
    return text.replace('\\"', '"').replace("\\\n", "")
