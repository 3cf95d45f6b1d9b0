"""XML without document types, whose entities can grow a small file beyond all memory."""

from __future__ import annotations

from typing import Any, Final
from xml.etree import ElementTree as ET  # the tree alone: the parser below refuses what is unsafe
from xml.parsers import expat

from graphcore.errors import InvalidArgumentError, ResourceExhaustedError

MAX_DEPTH: Final = 200
MAX_ELEMENTS: Final = 10_000_000


def parsed_xml(data: bytes, what: str) -> ET.Element:
    """The root of an XML document.

    Args:
        data: the document.
        what: its name, for errors.

    Raises:
        InvalidArgumentError: it is damaged, has a document type, or is nested too deeply.
        ResourceExhaustedError: it has too many elements.
    """
    reading = _Reading(what)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.builder.data
    parser.StartDoctypeDeclHandler = reading.refuse
    parser.EntityDeclHandler = reading.refuse
    try:
        parser.Parse(data, True)
        return reading.builder.close()
    except (expat.ExpatError, AssertionError, LookupError, ValueError) as error:
        raise InvalidArgumentError(f"{what} is damaged XML: {str(error)[:200]}") from None


class _Reading:
    """The tree of a document as it grows."""

    def __init__(self, what: str) -> None:
        self.builder: ET.TreeBuilder = ET.TreeBuilder()
        self._what = what
        self._depth = 0
        self._count = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin an element."""
        self._depth += 1
        self._count += 1
        if self._depth > MAX_DEPTH:
            raise InvalidArgumentError(f"{self._what} has elements that are nested more than {MAX_DEPTH} deep")
        if self._count > MAX_ELEMENTS:
            raise ResourceExhaustedError(f"{self._what} has more than {MAX_ELEMENTS:,} elements, the limit")
        self.builder.start(tag, attributes)

    def end(self, tag: str) -> None:
        """End an element."""
        self._depth -= 1
        self.builder.end(tag)

    def refuse(self, *_: Any) -> None:
        """Refuse a document type."""
        raise InvalidArgumentError(f"{self._what} declares a document type or entities, which no model needs; it is not read")
