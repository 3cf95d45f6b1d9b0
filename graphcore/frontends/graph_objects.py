"""General graphs: networkx, Dask, and DOT text, in memory or as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.object_reader.dask_graphs import is_dask, read_dask
from graphcore.frontends.object_reader.dot_text import is_dot, read_dot
from graphcore.frontends.object_reader.networkx_graphs import read_networkx
from graphcore.frontends.reading import source_bytes

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph
    from graphcore.frontends.frontend import Source

KIND: Final = "graph of nodes and edges (networkx.DiGraph, Dask collection, DOT text .dot or .gv, graphviz.Source, graphviz.Digraph)"
_DRAWINGS: Final = frozenset({"Source", "Digraph", "Graph"})


def sniff(source: Source) -> bool:
    """True iff the source is a graph of networkx or Dask, or DOT text."""
    if source.path is not None:
        return bool(source.head) and not source.members and is_dot(source.head.decode(errors="replace"))
    value = source.value
    return (isinstance(value, str) and is_dot(value)) or _is_networkx(value) or is_dask(value) or _is_drawing(value)


def read(source: Source) -> ForeignGraph:
    """Read the graph. Nothing in it is changed or computed.

    Raises:
        GraphError: it is undirected, damaged, or exceeds a limit.
    """
    value: Any = source.value
    if source.path is not None:
        try:
            return read_dot(source_bytes(source).decode())
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(f"'{source.path.name}' is no text in UTF-8: {error}") from None
    if isinstance(value, str):
        return read_dot(value)
    if _is_drawing(value):
        return read_dot(str(value.source))
    return read_networkx(value) if _is_networkx(value) else read_dask(value)


def _is_networkx(value: object) -> bool:
    """True iff a value is a graph of networkx, and none of this package, whose graphs are such too."""
    kinds = type(value).__mro__
    if type(value).__module__.startswith("graphcore."):
        return False
    return any(kind.__name__ in {"Graph", "DiGraph"} and kind.__module__.startswith("networkx.") for kind in kinds)


def _is_drawing(value: object) -> bool:
    kind = type(value)
    return kind.__name__ in _DRAWINGS and kind.__module__.startswith("graphviz.") and isinstance(getattr(value, "source", None), str)
