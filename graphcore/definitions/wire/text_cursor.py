"""A cursor over the tokens of protobuf's text form, with positions for errors."""

from __future__ import annotations

import re
from typing import Final

from graphcore.definitions.wire.text_scalars import QUOTED, SKIP, is_value, unescaped

_SKIPPED: Final = re.compile(SKIP)
_QUOTED: Final = re.compile(QUOTED)
_TOKEN: Final = re.compile(rf"[A-Za-z_][-+0-9A-Za-z_]*+|(?:[-+0-9]|\.[0-9])[-+.0-9A-Za-z_]*+|{QUOTED}|[\"'][^\n]*+|.", re.DOTALL)
NAME: Final = re.compile(r"\w")
_IDENTIFIER: Final = re.compile(r"[^\W\d]")
_ANY_NAMES: Final = 3
CLOSING: Final = {"{": "}", "<": ">"}
_SHOWN: Final = 40


class TextError(ValueError):
    """The text does not encode the message: `line:column: expected ..., got ...`."""


class Cursor:
    """A text. Positions are those of tokens; white space and comments before a token are skipped."""

    def __init__(self, text: str) -> None:
        self.text = text

    def token(self, pos: int) -> str:
        """The token that begins here; empty at the end."""
        match = _TOKEN.match(self.text, pos)
        return match[0] if match is not None else ""

    def skip(self, pos: int) -> int:
        """The position after white space and comments."""
        match = _SKIPPED.match(self.text, pos)
        return match.end() if match is not None else pos

    def after(self, pos: int) -> int:
        """The position after a field, with the one comma or semicolon that may follow it."""
        pos = self.skip(pos)
        return self.skip(pos + 1) if self.text[pos : pos + 1] in (",", ";") else pos

    def place(self, pos: int) -> str:
        """Line and column, counted from one."""
        return f"{self.text.count(chr(10), 0, pos) + 1}:{pos - self.text.rfind(chr(10), 0, pos)}"

    def error(self, pos: int, what: str) -> TextError:
        """An error about the current position."""
        return TextError(f"{self.place(pos)}: {what}")

    def expected(self, pos: int, what: str) -> TextError:
        """An error that states the expectation at the current position."""
        sign = self.token(pos)
        return self.error(pos, f"expected {what}, found {short(sign) if sign else 'the end'}")

    def unclosed(self, opened: int, pos: int) -> TextError:
        """An error about an unclosed message, reported at the last token of the text, at `pos` or after."""
        last = pos
        while pos < len(self.text):
            last = pos
            pos = self.skip(pos + len(self.token(pos)))
        return self.error(
            last, f'expected "{CLOSING[self.text[opened]]}" for the "{self.text[opened]}" at {self.place(opened)}, found the end'
        )

    def strings(self, pos: int, expected: str) -> tuple[bytes, int, int]:
        """Read adjacent strings: their concatenation, the position of the last one, and the next position."""
        pieces = []
        last = pos
        while True:
            match = _QUOTED.match(self.text, pos)
            if match is None:
                break
            last = pos
            try:
                pieces.append(unescaped(match[0][1:-1]))
            except ValueError as error:
                raise self.error(pos, f"a string in which {error}") from None
            pos = self.skip(match.end())
        if self.text[pos : pos + 1] in ('"', "'"):
            raise self.error(pos, f"a string without its closing quote: {short(self.token(pos))}")
        if not pieces:
            raise self.expected(pos, expected)
        return b"".join(pieces), last, pos

    def skip_name(self, pos: int, closing: str) -> int:
        """Skip the name of a field, an extension `[a.b]` or the type of an any `[a.b.c/d.e]`."""
        sign = self.token(pos)
        if sign != "[":
            if not NAME.match(sign):
                raise self.expected(pos, f'the name of a field or "{closing}"')
            return self.skip(pos + len(sign))
        pos, count = self.skip_dotted(self.skip(pos + 1))
        if count == _ANY_NAMES and self.token(pos) == "/":
            pos, _ = self.skip_dotted(self.skip(pos + 1))
        if self.token(pos) != "]":
            raise self.expected(pos, '"]"')
        return self.skip(pos + 1)

    def skip_dotted(self, pos: int) -> tuple[int, int]:
        """Skip names joined by dots. Returns the position after them, and their number."""
        count = 0
        while True:
            sign = self.token(pos)
            if not _IDENTIFIER.match(sign):
                raise self.expected(pos, "a name")
            count += 1
            pos = self.skip(pos + len(sign))
            if self.token(pos) != ".":
                return pos, count
            pos = self.skip(pos + 1)

    def skip_value(self, pos: int) -> int:
        """Skip a string, a word or a number."""
        sign = self.token(pos)
        if sign[:1] in ('"', "'") and sign:
            return self.strings(pos, "")[2]
        if not is_value(sign):
            raise self.expected(pos, "a value")
        return self.skip(pos + len(sign))


def short(word: str) -> str:
    """A token for an error message, abbreviated if long."""
    return repr(word if len(word) <= _SHOWN else f"{word[:_SHOWN]}...")
