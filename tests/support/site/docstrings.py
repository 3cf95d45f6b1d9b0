"""Docstrings as Markdown: sections become lists, and text outside of code keeps its characters."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

SECTION: Final = re.compile(r"^(Args|Returns|Raises|Example|Examples|Attributes|Yields):$")
ENTRY: Final = re.compile(r"^([\w*][\w*.]*(?:, [\w*.]+)*): (.*)$")
CODE: Final = re.compile(r"(`[^`]+`)")
TITLES: Final = {"Args": "Arguments", "Example": "Example", "Examples": "Example"}


def signature_of(name: str, value: Any) -> str:
    """The call of a function or class with its parameters, "" for other values."""
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError, NameError):  # the last, of annotations that only type checkers see
        return ""
    plain = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)  # annotations are texts here
    return name + re.sub(r" at 0x[0-9a-f]+", "", plain)


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    end = re.search(r"[.:](?=\s|$)", paragraph)
    return paragraph[: end.end()].rstrip(":") if end else paragraph


def escaped(line: str) -> str:
    """A line of prose, whose signs mean nothing to Markdown outside of code spans."""
    parts = CODE.split(line)
    return "".join(part if index % 2 else re.sub(r"([\\*_<>\[\]#|$~{}])", r"\\\1", part) for index, part in enumerate(parts))


def cell(text: str) -> str:
    """A text for a cell of a table."""
    return escaped(text).replace("\n", " ")


def markdown(text: str) -> str:
    """A docstring as Markdown."""
    lines: list[str] = []
    section = ""
    body: list[str] = []
    for line in [*text.splitlines(), "Returns:"]:
        heading = SECTION.match(line)
        leaves = section and line and not line.startswith(" ")
        if heading or leaves:
            lines += rendered(section, body)
            section, body = heading[1] if heading else "", []
        if not heading:
            body.append(line)
    return "\n".join(lines).strip()


def rendered(section: str, body: list[str]) -> list[str]:
    """The lines of one section."""
    if not any(line.strip() for line in body):
        return []
    if not section:
        return prose(body)
    inner = [line.removeprefix("    ") for line in body]
    title = [f"**{TITLES.get(section, section)}**", ""]
    if section.startswith("Example"):
        return [*title, *example(inner)]
    if section in {"Returns", "Yields"}:
        return [*title, *prose(inner)]
    return [*title, *entries(inner), ""]


def prose(lines: list[str]) -> list[str]:
    """Paragraphs and lists; indented lines after a blank one are code."""
    result: list[str] = []
    in_code = False
    before = ""
    for line in lines:
        indented = line.startswith("    ")
        begins = indented and not before.strip() and not in_code
        if begins:
            result.append("```text")
            in_code = True
        elif in_code and line.strip() and not indented:
            result += ["```", ""]
            in_code = False
        result.append(line[4:] if in_code else bulleted(line))
        before = line
    return [*result, *(["```"] if in_code else []), ""]


def bulleted(line: str) -> str:
    """A line of prose; that of a list keeps its sign."""
    sign = re.match(r"\s*- ", line)
    return line[: sign.end()] + escaped(line[sign.end() :]) if sign else escaped(line)


def entries(lines: list[str]) -> list[str]:
    """Arguments, errors or attributes as a list."""
    result: list[str] = []
    for line in lines:
        entry = ENTRY.match(line)
        if entry:
            result.append(f"- `{entry[1]}`: {escaped(entry[2])}")
        elif line.strip():
            result.append(f"  {escaped(line.strip())}" if result else escaped(line))
    return result


def example(lines: list[str]) -> list[str]:
    """An example as a session of Python."""
    text = "\n".join(lines).strip().replace("  # doctest: +SKIP", "").replace("  # doctest: +ELLIPSIS", "")
    return ["```pycon" if ">>>" in text else "```python", text, "```", ""]
