"""Names in the graph that shows a source, by those in the source."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from graphcore.errors import GraphError
from graphcore.frontends.record import ForeignBody, ForeignRecord, foreign_of
from graphcore.frontends.words import valid_part
from graphcore.runtime.runners import NodeNames

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignFunction
    from graphcore.graph import Node


def names_in(record: ForeignRecord) -> NodeNames:
    """The names of the nodes of a graph, and of the functions that they call, by those in its source."""
    titles = titles_of(record.source.functions)

    @cache
    def opened(title: str) -> ForeignBody | None:
        try:
            return record.body(title, "")
        except GraphError:  # no view opens this function
            return None

    def inner(key: str) -> tuple[str, Mapping[str, str]] | None:
        title = titles.get(key)
        body = None if title is None else opened(title)
        inside = None if body is None else foreign_of(body.graph)
        return None if title is None or inside is None else (title, _names(inside))

    def bodies(title: str) -> Mapping[str, Node]:
        body = opened(title)
        return {} if body is None else {node.name: node for node in body.graph.op_nodes()}

    return NodeNames(_names(record), inner, bodies)


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
