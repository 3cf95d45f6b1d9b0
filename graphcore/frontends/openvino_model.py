"""OpenVINO models: the graph in XML, the elements of constants in the .bin file of the same name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.foreign import ForeignGraph
from graphcore.frontends.openvino_reader.constants import Elements
from graphcore.frontends.openvino_reader.networks import NetworkReader
from graphcore.frontends.openvino_reader.plain_xml import parsed_xml
from graphcore.frontends.reading import source_bytes

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from graphcore.frontends.frontend import Source

KIND: Final = "OpenVINO model (.xml, with its .bin beside it)"
_BEGIN: Final = re.compile(rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*\?>\s*)?(<!DOCTYPE\s+net\b[^>]*>\s*|<!--.{0,2000}?-->\s*)*<net[\s>]", re.DOTALL)
_SHOWN: Final = 30
_LEAST: Final = 10
"""The version from which on the layers of all models have the form that is read here."""


def sniff(source: Source) -> bool:
    """True iff the source is the XML of an OpenVINO model."""
    return source.path is not None and not source.members and _BEGIN.match(source.head) is not None


def read(source: Source) -> ForeignGraph:
    """Read an OpenVINO model.

    Raises:
        GraphError: it is damaged, or exceeds a limit.
    """
    path = source.path
    assert path is not None  # files only are sniffed
    root = parsed_xml(source_bytes(source), f"'{path.name}'")
    if root.tag != "net":
        raise InvalidArgumentError(f"'{path.name}' is no OpenVINO model: required <net>, got <{root.tag[:60]}>")
    version = root.get("version", "")
    if version.isdecimal() and int(version[:9]) < _LEAST:
        raise InvalidArgumentError(f"'{path.name}' has version {version[:9]} of OpenVINO's format; required {_LEAST} or newer")
    elements = Elements(path)
    reader = NetworkReader(elements)
    main = reader.read(root, root.get("name") or "main")
    facts = {"format": version} | _facts(root)
    if reader.opsets:
        facts["sets of ops"] = ", ".join(sorted(reader.opsets)[:_SHOWN])
    notes = []
    if elements.path is None and any(node.weight is not None for node in main.nodes):
        notes.append(f"The elements of the constants are not there: required '{path.with_suffix('.bin').name}' beside the model.")
    producer = f"OpenVINO {facts.pop('OpenVINO Runtime', '').partition('-')[0]}".strip()
    return ForeignGraph("OpenVINO model", main, producer, root.get("name", "")[:200], reader.functions, facts, notes)


def _facts(root: Element) -> dict[str, str]:
    """The notes on the whole model."""
    facts: dict[str, str] = {}
    for element in root.findall("rt_info//*"):
        value = element.get("value")
        if value is not None and len(facts) < _SHOWN:
            facts[(element.get("name") or element.tag)[:100]] = value[:500]
    return facts
