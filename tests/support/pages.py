"""The data in standalone pages."""

from __future__ import annotations

import base64
import gzip
import re
from dataclasses import dataclass
from typing import Any

import msgspec


@dataclass
class Carried:
    """The data of a graph in a page: its tables, its texts, the names of its nodes, and its JSON."""

    head: dict[str, Any]
    texts: list[str]
    names: list[str]
    json: str


def data_of(page: str) -> dict[str, Any]:
    """The data in a standalone page."""
    found: dict[str, Any] = msgspec.json.decode(re.findall(r'id="graphloupe-data">(.*?)</script>', page, re.DOTALL)[0])
    return found


def carried_by(data: dict[str, Any]) -> Carried:
    """The graph in the data of a page."""
    packed = gzip.decompress(base64.b64decode(data["graph_gzip_base64"]))
    _, *lines = packed.splitlines()
    head, texts, _, scopes, names = [msgspec.json.decode(line) for line in lines[:5]]
    paths = head["spaces"][0]["paths"]
    full = ["/".join(filter(None, (paths[scope], name))) for scope, name in zip(scopes, names, strict=True)]
    return Carried(head, texts, full, packed.decode())
