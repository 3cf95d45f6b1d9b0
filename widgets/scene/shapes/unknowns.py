"""The texts of sizes in pictures: an unknown size has a text of its own, `?`, `?1`, `?2`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary, WeakSet

if TYPE_CHECKING:
    from graphcore.graph import Graph, Tensor

MAX_NODES: Final = 4000
"""The largest graph in which merged dimensions are found, which takes a look at every node; larger ones follow passed dimensions only."""
UNKNOWN: Final = "?"

_KNOWN: Final[WeakKeyDictionary[Graph, tuple[int, dict[int, int]]]] = WeakKeyDictionary()
"""The last numbers of unknown sizes, with the version of the graph."""


_BODIES: Final[WeakSet[Graph]] = WeakSet()
"""The bodies of calls: numbers of their own would say something else than those of the picture around them."""


def leave_unnumbered(body: Graph) -> None:
    """Note the body of a call, in which unknown sizes get numbers with the picture only."""
    _BODIES.add(body)


def unknown_text(number: int) -> str:
    """The text of an unknown size by its number: `?`, `?1`, `?2`."""
    return f"{UNKNOWN}{number or ''}"


def unknown_classes(graph: Graph) -> Iterator[int]:
    """The classes of unknown dimensions in the order of nodes, each as often as it occurs.

    See `Graph.dimension_classes`.
    """
    if len(graph) > MAX_NODES:
        return
    classes = graph.dimension_classes()
    for node in sorted(graph.op_nodes(), key=lambda node: node.id):
        for tensor, handle in zip(node.outputs, node.output_handles, strict=False):
            if handle.dims is None or all(dim.value >= 0 for dim in handle.dims):
                continue
            for text, number in zip(graph.size_texts(tensor), classes.get(tensor.name, ()), strict=False):
                if text == UNKNOWN:
                    yield number


def size_texts(tensor: Tensor) -> list[str]:
    """The sizes of a tensor of known rank: a number, the name of an unknown size, or `?` with its number."""
    graph = tensor.graph
    texts = graph.size_texts(tensor)
    if UNKNOWN not in texts or graph in _BODIES or len(graph) > MAX_NODES:
        return texts
    version, numbers = _KNOWN.get(graph, (-1, {}))
    if version != graph.version:
        numbers = {}
        for dim in unknown_classes(graph):
            numbers.setdefault(dim, len(numbers))
        _KNOWN[graph] = graph.version, numbers
    classes = graph.dimension_classes([tensor.name]).get(tensor.name, ())
    return [
        unknown_text(numbers.get(key, 0)) if text == UNKNOWN else text
        for text, key in zip(texts, classes or (-1,) * len(texts), strict=True)
    ]


def shape_text(tensor: Tensor) -> str:
    """The shape of a tensor: `[?,10]`, `?` for an unknown rank."""
    return UNKNOWN if tensor.shape.dims is None else f"[{','.join(size_texts(tensor))}]"
