"""Splits an op's doc text into summary, description and the descriptions of its args and attrs."""

from __future__ import annotations

import re
from typing import Final

_ITEM: Final = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s*:\s*", re.ASCII)


def split_doc(text: str) -> tuple[str, str, list[tuple[str, str]]]:
    """Split into the first line, the description, and the `name: text` items.

    Items include their continuation lines.

    Args:
        text: the doc; a leading newline and trailing spaces are ignored.
    """
    lines = [line.rstrip(" \t\n\v\f\r") for line in text.split("\n")]
    start = _skip_blank(lines, 0)
    summary = lines[start] if start < len(lines) else ""
    start = _skip_blank(lines, start + 1)
    end = _next_item(lines, start)
    description = "\n".join(_without_trailing_blank(lines[start:end]))
    items = []
    while end < len(lines):
        start, end = end, _next_item(lines, end + 1)
        items.append(_item(lines[start:end]))
    return summary, description, items


def _skip_blank(lines: list[str], start: int) -> int:
    while start < len(lines) and not lines[start]:
        start += 1
    return start


def _next_item(lines: list[str], start: int) -> int:
    while start < len(lines) and _ITEM.match(lines[start]) is None:
        start += 1
    return start


def _without_trailing_blank(lines: list[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1]:
        end -= 1
    return lines[:end]


def _item(lines: list[str]) -> tuple[str, str]:
    match = _ITEM.match(lines[0])
    assert match is not None
    rest = _without_trailing_blank([lines[0][match.end() :], *lines[1:]])
    indent = min((len(line) - len(line.lstrip(" ")) for line in rest[1:] if line), default=0)
    return match.group(1), "\n".join([*rest[:1], *(line[indent:] for line in rest[1:])])
