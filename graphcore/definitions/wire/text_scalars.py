"""The tokens of protobuf's text form, and their values as numbers, words and strings."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from itertools import repeat
from typing import Any, Final

from graphcore.definitions.wire.fields import RANGES, Field

SKIP: Final = r"\s*+(?:#[^\n]*+\s*+)*+"
"""White space and comments."""
QUOTED: Final = r'"(?:[^"\\\n]++|\\.)*+"' + "|" + r"'(?:[^'\\\n]++|\\.)*+'"
_SPACE: Final = r"\s*+(?!#)"
_COMMENT: Final = re.compile(r"#[^\n]*")
_STRING: Final = r'"(?:[^"\\\n]++|\\.)*+"'
_BODY: Final = re.compile(r'"((?:[^"\\\n]++|\\.)*+)"')
WORD: Final = r"[-+.0-9A-Za-z_]++"
"""An identifier or a number, and some things that are neither, which no field takes."""
SKIPPED: Final = re.compile(SKIP)
TOKEN: Final = re.compile(rf"[A-Za-z_][-+0-9A-Za-z_]*+|(?:[-+0-9]|\.[0-9])[-+.0-9A-Za-z_]*+|{QUOTED}|[\"'][^\n]*+")
_IDENTIFIER: Final = re.compile(r"[^\W\d][-+\w]*")
_OCTAL: Final = re.compile(r"(-?)0([0-9]+)")
_INFINITY: Final = re.compile(r"(-?)inf(?:inity)?f?", re.IGNORECASE)
_NAN: Final = re.compile(r"nanf?", re.IGNORECASE)
_BOOLS: Final = {"true": True, "t": True, "1": True, "True": True, "false": False, "f": False, "0": False, "False": False}

# An escape that Python's decoder reads differently from protobuf.
_ODD_ESCAPE: Final = re.compile(rb"\\(?:[^abfnrtv\\\"'0-7x]|x(?![0-9a-fA-F]{2})|[4-7][0-7]{2})")
_ESCAPE: Final = re.compile(
    rb"\\(?:([abfnrtv\\\"'])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([xuUN]|$)|)",
)
_LETTERS: Final = dict(zip(b"abfnrtv\\\"'", b"\a\b\f\n\r\t\v\\\"'", strict=True))


def unescaped(text: str) -> bytes:
    """Decode the text between the quotes of a string.

    Raises:
        ValueError: an escape is cut off or beyond its range.
    """
    raw = text.encode()
    if b"\\" not in raw:
        return raw
    if _ODD_ESCAPE.search(raw.replace(rb"\\", b"")) is None:
        return raw.decode("unicode_escape").encode("latin-1")
    return _ESCAPE.sub(_unescape, raw)


def _unescape(escape: re.Match[bytes]) -> bytes:
    letter, octal, byte, short, long, wrong = escape.groups()
    if letter is not None:
        return bytes([_LETTERS[letter[0]]])
    if octal is not None or byte is not None:
        number = int(octal, 8) if octal is not None else int(byte, 16)
        if number > 0xFF:
            raise ValueError(f"the escape {escape[0].decode()} is more than a byte")
        return bytes([number])
    if short is not None or long is not None:
        # Invalid code points and lone surrogates have no UTF-8 form.
        return chr(int(short or long, 16)).encode()
    if wrong is not None:
        raise ValueError(f"the escape {escape[0].decode()} is cut off or has no meaning here")
    return escape[0]


def integer(word: str) -> int:
    """An integer: decimal, hexadecimal (0x), octal (0 or 0o) or binary (0b).

    Raises:
        ValueError: it is none.
    """
    try:
        return int(word, 0)
    except ValueError:
        octal = _OCTAL.fullmatch(word)
        if octal is None:
            raise
        return int(octal[1] + octal[2], 8)


def _real(word: str) -> float:
    if _OCTAL.match(word) is not None:
        raise ValueError("a number with a point is not octal")
    try:
        return float(word)
    except ValueError:
        infinity = _INFINITY.fullmatch(word)
        if infinity is not None:
            return float(infinity[1] + "inf")
        if _NAN.fullmatch(word) is not None:
            return float("nan")
        return float(word.rstrip("fF"))


def is_value(token: str) -> bool:
    """True iff a token is a string, a name or a number: a possible value of an unknown field."""
    if token[:1] in ('"', "'"):
        try:
            unescaped(token[1:-1])
        except ValueError:
            return False
        return token != ""
    if _IDENTIFIER.fullmatch(token):
        return True
    try:
        _real(token)
    except ValueError:
        try:
            number = integer(token)
        except ValueError:
            return False
        return number in RANGES["int64"] or number in RANGES["uint64"]
    return True


def _flag(word: str) -> bool:
    if word not in _BOOLS:
        raise ValueError("neither true nor false")
    return _BOOLS[word]


def _integers(words: list[str]) -> list[int]:
    try:
        return list(map(int, words, repeat(0)))
    except ValueError:
        return list(map(integer, words))


def _reals(words: list[str]) -> list[float]:
    try:
        return list(map(float, words))
    except ValueError:
        return list(map(_real, words))


def _flags(words: list[str]) -> list[bool]:
    return list(map(_flag, words))


class TextField(Field):
    """A field with readers for its single values and its runs."""

    def __init__(self, descriptor: Any) -> None:
        super().__init__(descriptor)
        self.is_text = self.kind == "string"
        self.word: Callable[[str], Any] | None = None
        """The value of a word, for a field that holds no strings; a ValueError says why it is none."""
        self.words: Callable[[list[str]], list[Any]] = self._strings
        """The values of words and of the texts between quotes."""
        if self.kind == "enum":
            self.word, self.words = self._member, self._members
        elif self.kind in RANGES:
            self.word, self.words = integer, _integers
        elif self.kind in ("float", "double"):
            self.word, self.words = _real, _reals
        elif self.kind == "bool":
            self.word, self.words = _flag, _flags

    def _pattern(self, before: str, between: str) -> re.Pattern[str]:
        # Strings may contain text that looks like comments, and adjacent strings are joined, so those are read one by one. So are numbers
        # with a leading zero, which only integers may have. The block size makes the overhead for each value negligible and takes little
        # memory.
        if self.word is None:
            item = rf"{_STRING}\s*+(?![#\"']){between.format(SKIP=_SPACE)}"
        else:
            item = rf"{'' if self.words is _integers else '(?!-?0[0-9])'}{WORD}{SKIP}{between.format(SKIP=SKIP)}"
        return re.compile(rf"(?:{before}{item}){{1,2000}}")

    @functools.cached_property
    def run(self) -> re.Pattern[str]:
        """A pattern for `name: value name: value ...`."""
        return self._pattern(rf"{self.name}:\s*+", "(?:[,;]{SKIP}|(?![,;]))")

    @functools.cached_property
    def listed(self) -> re.Pattern[str]:
        """A pattern for `value, value, ...,` in a bracketed list."""
        return self._pattern("", ",{SKIP}")

    def in_run(self, block: str) -> list[Any]:
        """The values in a match of `run` or `listed`.

        Raises:
            ValueError: one of them is invalid; the caller searches for it.
        """
        if self.word is None:
            return self.words(_BODY.findall(block))
        if "#" in block:
            block = _COMMENT.sub("", block)
        return self.words(block.replace(f"{self.name}:", " ").replace(",", " ").replace(";", " ").split())

    def string(self, body: str) -> str | bytes:
        """The value of a string, from the text between its quotes.

        Raises:
            ValueError: an invalid escape, or a text field that is not UTF-8.
        """
        if not self.is_text:
            return unescaped(body)
        return unescaped(body).decode() if "\\" in body else body

    def _strings(self, bodies: list[str]) -> list[Any]:
        together = "".join(bodies).encode()
        if b"\\" not in together:
            return bodies if self.is_text else [body.encode() for body in bodies]
        if self.is_text or _ODD_ESCAPE.search(together.replace(rb"\\", b"")) is not None:
            return list(map(self.string, bodies))
        return [body.encode().decode("unicode_escape").encode("latin-1") for body in bodies]

    def _member(self, word: str) -> int:
        number = self.numbers.get(word)
        return int(word, 0) if number is None else number

    def _members(self, words: list[str]) -> list[int]:
        return list(map(self._member, words))
