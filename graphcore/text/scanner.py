"""Scanner for the text form: positions with line and column, and the grammar of names."""

from __future__ import annotations

import re
from typing import Final, NoReturn

from graphcore.definitions.value_text import escape_bytes
from graphcore.errors import InvalidArgumentError

SPACE: Final = re.compile(r"(?:\s+|#[^\n]*)*")
NAME: Final = re.compile(r"[A-Za-z0-9_.][\w.\-/>]*", re.ASCII)
"""A node, function or attr name that stands without quotes."""
INPUT: Final = re.compile(r"[A-Za-z0-9_.][\w.\-/>:]*", re.ASCII)
"""A body tensor (`x`, `node:out_arg:0`) that stands without quotes."""
QUOTED: Final = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|(.))")
_ESCAPES: Final = {"n": 10, "r": 13, "t": 9, "a": 7, "b": 8, "f": 12, "v": 11, '"': 34, "'": 39, "\\": 92, "?": 63}
_MOST_FOUND: Final = 20


def quote(data: bytes) -> str:
    """The bytes as a quoted string that `Scanner.quoted` reads back."""
    return f'"{escape_bytes(data)}"'


def name_text(name: str) -> str:
    """A name in the text form: bare if it can be read back, else quoted."""
    return name if NAME.fullmatch(name) else quote(name.encode(errors="surrogatepass"))


def input_text(name: str) -> str:
    """A body tensor in the text form."""
    return name if INPUT.fullmatch(name) else quote(name.encode(errors="surrogatepass"))


class Scanner:
    """A position in a text. Every method skips spaces and `#` comments first."""

    __slots__ = ("pos", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0

    def skip(self) -> int:
        """Skip to the next significant character. Returns its position."""
        match = SPACE.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
        return self.pos

    def sees(self, mark: str) -> bool:
        """True iff `mark` comes next."""
        return self.text.startswith(mark, self.skip())

    def take(self, mark: str) -> bool:
        """Read `mark` if it comes next. True iff it does."""
        if not self.text.startswith(mark, self.skip()):
            return False
        self.pos += len(mark)
        return True

    def expect(self, mark: str, what: str = "") -> None:
        """Read `mark`.

        Raises:
            InvalidArgumentError: something else comes next.
        """
        if not self.take(mark):
            self.fail(what or f"'{mark}'")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read a match of `pattern` at the current position, if there is one."""
        match = pattern.match(self.text, self.skip())
        if match is not None:
            self.pos = match.end()
        return match

    def match_here(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """`match` without skipping spaces first."""
        match = pattern.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
        return match

    def name(self, what: str, pattern: re.Pattern[str] = NAME) -> str:
        """Read a name, bare (according to `pattern`) or quoted.

        Raises:
            InvalidArgumentError: there is none; `what` names the expectation.
        """
        match = self.match(pattern)
        if match is not None:
            return match.group()
        if not self.sees('"'):
            self.fail(what)
        start = self.pos
        try:
            return self.quoted(what).decode(errors="surrogatepass")
        except UnicodeDecodeError:
            self.fail(f"{what} in UTF-8", start)

    def quoted(self, what: str) -> bytes:
        """Read a quoted string. Returns its bytes.

        Raises:
            InvalidArgumentError: none comes next.
        """
        start = self.skip()
        match = self.match(QUOTED)
        if match is None:
            self.fail(what)
        return self.unescape(match.group(1), start + 1)

    def at_end(self) -> bool:
        """True iff nothing is left."""
        return self.skip() >= len(self.text)

    def fail(self, expected: str, at: int | None = None) -> NoReturn:
        """Raise an error that states the expectation here (or at `at`).

        Raises:
            InvalidArgumentError: always.
        """
        position = self.skip() if at is None else at
        next_text = self.text[position : position + _MOST_FOUND].split("\n", 1)[0]
        fail_at(self.text, position, f"expected {expected}, found '{next_text}'" if next_text else f"expected {expected}, found the end")

    def unescape(self, raw: str, start: int) -> bytes:
        """Decode the C escapes in `raw`, which begins at `start`.

        Raises:
            InvalidArgumentError: an unknown escape.
        """
        if "\\" not in raw:
            return raw.encode(errors="surrogatepass")
        parts = bytearray()
        done = 0
        for escape in _ESCAPED.finditer(raw):
            parts += raw[done : escape.start()].encode(errors="surrogatepass")
            octal, hexadecimal, other = escape.groups()
            value = int(octal, 8) if octal else int(hexadecimal, 16) if hexadecimal else _ESCAPES.get(other, 256)
            if value > 255:
                self.fail("an escape that C knows", start + escape.start())
            parts.append(value)
            done = escape.end()
        return bytes(parts + raw[done:].encode(errors="surrogatepass"))


def fail_at(text: str, position: int, message: str) -> NoReturn:
    """Raise an error with line, column and the text of the line.

    Raises:
        InvalidArgumentError: always.
    """
    before = text[:position]
    line = before.count("\n") + 1
    column = position - (before.rfind("\n") + 1) + 1
    shown = text.split("\n")[line - 1]
    raise InvalidArgumentError(f"line {line}, column {column}: {message}\n  {shown}\n  {' ' * (column - 1)}^")
