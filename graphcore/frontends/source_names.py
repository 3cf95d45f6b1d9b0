"""Names in the graph that shows a source, by those in the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphcore.errors import GraphError
from graphcore.frontends.record import ForeignRecord, foreign_of
from graphcore.frontends.words import valid_part
from graphcore.runtime.runners import NodeNames

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignFunction


def names_in(record: ForeignRecord) -> NodeNames:
    """The names of the nodes of a graph, and of the functions that they call, by those in its source."""
    titles = titles_of(record.source.functions)

    def inner(key: str) -> tuple[str, Mapping[str, str]] | None:
        title = titles.get(key)
        try:
            body = None if title is None else foreign_of(record.body(title, "").graph)
        except GraphError:  # no view opens this function
            body = None
        return None if title is None or body is None else (title, _names(body))

    return NodeNames(_names(record), inner)


def titles_of(functions: Mapping[str, ForeignFunction]) -> dict[str, str]:
    """The names of functions in graphs by their keys: unique, and no longer than necessary."""
    titles: dict[str, str] = {}
    taken: set[str] = set()
    for key, function in functions.items():
        base = title = valid_part(function.name or key)
        number = 1
        while title in taken:
            number += 1
            title = f"{base}_{number}"
        taken.add(title)
        titles[key] = title
    return titles


def _names(record: ForeignRecord) -> dict[str, str]:
    return {node.name: name for name, node in record.nodes.items()}
