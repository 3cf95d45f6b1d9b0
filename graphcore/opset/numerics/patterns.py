"""Regular expressions in the syntax of RE2, which TensorFlow uses, for Python's `re`."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from typing import Final

_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_OPERATORS: Final = re.compile(r"\(\?(?:P<\w+>|[ims]*(?:-[ims]+)?[:)])")
_ESCAPE: Final = re.compile(r"\\(?:x\{([0-9A-Fa-f]+)\}|x[0-9A-Fa-f]{2}|[pP](?:\{(\^?\w+)\}|(\w))|Q(.*?)(?:\\E|\Z)|.)", re.DOTALL)
_CLASSES: Final = {"d": "0-9", "s": "\\t\\n\\f\\r ", "w": "0-9A-Za-z_"}


class PatternError(ValueError):
    """A pattern that RE2 refuses, or that cannot be expressed."""


@lru_cache(maxsize=256)
def compiled(pattern: bytes) -> re.Pattern[str]:
    """The pattern for texts decoded from UTF-8.

    Raises:
        PatternError: RE2 refuses it, or it needs properties of scripts.
    """
    try:
        return re.compile(_translated(pattern.decode(errors="surrogateescape")), re.ASCII)
    except re.error as error:
        raise PatternError(str(error)) from None


def _translated(pattern: str) -> str:
    out, at, multiline = [], 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            text, at = _escaped(pattern, at, inside=False)
            out.append(text)
        elif char == "[":
            text, at = _char_class(pattern, at)
            out.append(text)
        elif char == "(" and pattern.startswith("(?", at):
            found = _OPERATORS.match(pattern, at)
            if found is None:
                raise PatternError(f"invalid perl operator: {pattern[at : at + 3]}")
            flags = found[0][2:].partition("-")[0]
            multiline |= "m" in flags and "P" not in flags
            # Python takes flags for the rest of a pattern only at its beginning.
            out.append(found[0] if not found[0].endswith(")") or not at else _raise_flags(found[0]))
            at = found.end()
        else:
            out.append("\\Z" if char == "$" and not multiline else char)
            at += 1
    return "".join(out)


def _raise_flags(flags: str) -> str:
    raise PatternError(f"flags within a pattern are not available: {flags}")


def _escaped(pattern: str, at: int, *, inside: bool) -> tuple[str, int]:
    """The escape at a position, within a class or not, and the position after it."""
    found = _ESCAPE.match(pattern, at)
    if found is None:
        raise PatternError("trailing \\")
    code, property_name, letter, quoted = found.groups()
    end = found.end()
    kind = found[0][1]
    if code is not None:
        return re.escape(chr(int(code, 16))), end
    if kind in "pP":
        return _property(property_name or letter, negated=kind == "P", inside=inside), end
    if quoted is not None:
        return re.escape(quoted), end
    if kind == "z":
        return "\\Z", end
    if kind in _CLASSES:
        return (_CLASSES[kind] if inside else f"[{_CLASSES[kind]}]"), end
    if kind.lower() in _CLASSES and not inside:
        return f"[^{_CLASSES[kind.lower()]}]", end
    if kind.isdigit() and kind != "0":
        raise PatternError(f"invalid escape sequence: {found[0]}")
    if kind == "Z":
        raise PatternError("invalid escape sequence: \\Z")
    return found[0], end


def _char_class(pattern: str, at: int) -> tuple[str, int]:
    end, out = at + 1, ["["]
    if pattern.startswith("^", end):
        out.append("^")
        end += 1
    first = True
    while first or not pattern.startswith("]", end):
        if end >= len(pattern):
            raise PatternError(f"missing ]: {pattern[at:]}")
        named = re.compile(r"\[:(\^?)(\w+):\]").match(pattern, end)
        if named is not None:
            if named[2] not in _POSIX or named[1]:
                raise PatternError(f"invalid character class range: {named[0]}")
            out.append(_POSIX[named[2]])
            end = named.end()
        elif pattern[end] == "\\":
            text, end = _escaped(pattern, end, inside=True)
            out.append(text)
        else:
            out.append("\\" + pattern[end] if pattern[end] in "[]&~|" else pattern[end])
            end += 1
        first = False
    return "".join(out) + "]", end + 1


def _property(name: str, *, negated: bool, inside: bool) -> str:
    negated ^= name.startswith("^")
    ranges = _category(name.removeprefix("^"), negated)
    if not ranges:
        raise PatternError(f"invalid character class range: \\p{{{name}}}")
    return ranges if inside else f"[{ranges}]"


@lru_cache(maxsize=64)
def _category(name: str, negated: bool) -> str:
    """The ranges of a general category, as in a class."""
    ranges, start = [], -1
    for code in range(sys.maxunicode + 2):
        hit = code <= sys.maxunicode and (name == "Any" or unicodedata.category(chr(code)).startswith(name)) != negated
        if hit and start < 0:
            start = code
        elif not hit and start >= 0:
            ranges.append(f"{re.escape(chr(start))}-{re.escape(chr(code - 1))}")
            start = -1
    return "".join(ranges)
