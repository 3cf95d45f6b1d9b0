"""A reader for the protobuf text of attr defaults (`{ dtype: DT_INT32 int_val: 5 }`).

Registering an op must not load the protobuf runtime, so this small reader stands alone. It accepts the same subset as TensorFlow's own
small reader: no separators between fields, decimal integers, one quoted string a value.
"""

from __future__ import annotations

import re
from typing import Final

from graphcore.errors import InvalidArgumentError

_SPACE: Final = re.compile(r"(?:\s|#[^\n]*)*", re.ASCII)
_NAME: Final = re.compile(r"\w+", re.ASCII)
_SCALAR: Final = re.compile(r"[A-Za-z0-9_.+-]+", re.ASCII)
_QUOTED: Final = re.compile(r""""((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'""", re.DOTALL)
_ESCAPE: Final = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_HEX: Final = re.compile(rb"[0-9a-fA-F]*")
_SIMPLE: Final = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
    b"\\": b"\\",
    b"'": b"'",
    b'"': b'"',
    b"?": b"?",
}
_CLOSE: Final = {"{": "}", "<": ">"}
_MAX_DEPTH: Final = 100


class Word(str):
    """A bare word or number of the text, as written."""

    __slots__ = ()


Message = list[tuple[str, "Value"]]
"""The fields in their order; a repeated field occurs several times."""
Value = Word | bytes | Message


def unescape(text: str) -> bytes:
    r"""Decode the C escapes of `text`.

    Raises:
        InvalidArgumentError: an unknown escape, or a value beyond its range (`\x100`).
    """
    data = text.encode()
    return _ESCAPE.sub(_unescape_one, data) if b"\\" in data else data


def _unescape_one(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, short, long, other = match.groups()
    if other is not None:
        if other not in _SIMPLE:
            raise InvalidArgumentError(_bad_escape(match))
        return _SIMPLE[other]
    if short is not None or long is not None:
        rune = int(short or long, 16)
        if 0xD800 <= rune < 0xE000:
            raise InvalidArgumentError(f"invalid surrogate character (0xD800-DFFF): {match.group().decode()}")
        if rune > 0x10FFFF:
            raise InvalidArgumentError(f"Value of {match.group().decode()} exceeds Unicode limit (0x10FFFF)")
        return chr(rune).encode()
    number = int(octal, 8) if octal is not None else int(hexadecimal, 16)
    if number > 0xFF:
        raise InvalidArgumentError(f"Value of {match.group().decode()} exceeds 0xff")
    return bytes([number])


def _bad_escape(match: re.Match[bytes]) -> str:
    escape, rest = match.group().decode(errors="replace"), match.string[match.end() :]
    if escape in {r"\x", r"\X"}:
        return f"{escape} cannot be followed by a non-hex digit" if rest else f"String cannot end with {escape}"
    if escape in {r"\u", r"\U"}:
        count = 4 if escape == r"\u" else 8
        digits = _HEX.match(rest)
        seen = "" if len(rest) < count or digits is None else f": {escape}{digits.group().decode()}"
        return f"{escape} must be followed by {count} hex digits{seen}"
    return f"Unknown escape sequence: {escape}"


def parse_values(text: str, *, is_list: bool) -> list[Value]:
    """Parse a text that consists of one value or a bracketed list.

    Raises:
        InvalidArgumentError: it is something else.
    """
    reader = _Reader(text)
    if not is_list:
        values = [reader.value(0)]
    elif reader.take("["):
        values = reader.rest_of_list(0, may_be_empty=True)
    else:
        raise reader.unexpected("[")
    if reader.position < len(text):
        raise reader.unexpected("the end")
    return values


class _Reader:
    """A position in the text, always after any space."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.skip()

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()

    def unexpected(self, wanted: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"Expected {wanted} at '{self.text[self.position : self.position + 40]}'")

    def take(self, mark: str) -> bool:
        if not self.text.startswith(mark, self.position):
            return False
        self.position += len(mark)
        self.skip()
        return True

    def token(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        match = pattern.match(self.text, self.position)
        if match is None:
            raise self.unexpected(wanted)
        self.position = match.end()
        self.skip()
        return match

    def rest_of_list(self, depth: int, *, may_be_empty: bool = False) -> list[Value]:
        if may_be_empty and self.take("]"):
            return []
        values = [self.value(depth)]
        while self.take(","):
            values.append(self.value(depth))
        if not self.take("]"):
            raise self.unexpected("]")
        return values

    def value(self, depth: int) -> Value:
        mark = self.text[self.position : self.position + 1]
        if mark in {'"', "'"}:
            match = self.token(_QUOTED, "a quoted string")
            return unescape(match.group(1) if match.group(1) is not None else match.group(2))
        if mark in {"{", "<"}:
            self.take(mark)
            return self.message(_CLOSE[mark], depth + 1)
        return Word(self.token(_SCALAR, "a value").group())

    def message(self, close: str, depth: int) -> Message:
        if depth > _MAX_DEPTH:
            raise InvalidArgumentError(f"Messages are nested deeper than {_MAX_DEPTH}")
        fields: Message = []
        while not self.take(close):
            name = self.token(_NAME, f"a field name or {close}").group()
            has_colon = self.take(":")
            if not has_colon and self.text[self.position : self.position + 1] not in {"{", "<", "["}:
                raise self.unexpected(":")
            values = self.rest_of_list(depth) if self.take("[") else [self.value(depth)]
            fields.extend((name, value) for value in values)
        return fields
