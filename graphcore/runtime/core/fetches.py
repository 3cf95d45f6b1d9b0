"""Fetches: nested structures of tensors, nodes, variables and names, flattened and rebuilt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from graphcore.brief import brief
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph import Graph
from graphcore.graph.model.node import Node, Tensor

Packer = Callable[[list[Any]], Any]


class FetchStructure:
    """The tensors to compute (`tensors`), nodes to run (`targets`), and the result's form (`pack`)."""

    __slots__ = ("pack", "targets", "tensors")

    def __init__(self, tensors: list[Tensor], targets: list[Node], pack: Packer) -> None:
        self.tensors = tensors
        self.targets = targets
        self.pack = pack


def parse_fetches(graph: Graph, fetches: Any) -> FetchStructure:
    """Resolve `fetches` in `graph`.

    Raises:
        InvalidArgumentError: something cannot be fetched, such as None, or belongs to another graph.
        NotFoundError: no such name.
    """
    tensors: list[Tensor] = []
    targets: list[Node] = []
    if fetches is None:
        fetches = _results_of(graph)
    pack = _packer(graph, fetches, tensors, targets)
    return FetchStructure(tensors, targets, pack)


def _results_of(graph: Graph) -> list[Node] | None:
    """The nodes of the results of a model of another framework; None for other graphs."""
    return [node for node in graph.op_nodes() if node.is_opaque and node.registration.traits.role == "return"] or None


def _packer(graph: Graph, fetch: Any, tensors: list[Tensor], targets: list[Node]) -> Packer:
    if fetch is None:
        raise InvalidArgumentError(
            "Cannot fetch None: required a tensor, a node, a variable, a name, or a nesting of them; a gradient is None where nothing that is "
            "differentiated depends on its x, and gc.summary.merge_all() is None where there are no summaries"
        )
    if hasattr(fetch, "as_fetches"):
        held = fetch.as_fetches()
        present = [(lambda _: None) if part is None else _packer(graph, part, tensors, targets) for part in held]
        return lambda values: type(held)(*[part(values) for part in present])
    if isinstance(fetch, Mapping):
        parts = {key: _packer(graph, item, tensors, targets) for key, item in fetch.items()}
        return _mapping_packer(fetch, parts)
    if isinstance(fetch, list | tuple):
        packers = [_packer(graph, item, tensors, targets) for item in fetch]
        if hasattr(fetch, "_fields"):
            return lambda values: type(fetch)(*(part(values) for part in packers))
        kind = type(fetch)
        return lambda values: kind([part(values) for part in packers])
    element = _element(graph, fetch)
    if isinstance(element, Node):
        targets.append(element)
        return lambda _: None
    index = len(tensors)
    tensors.append(element)
    return lambda values: values[index]


def _mapping_packer(fetch: Mapping[Any, Any], parts: dict[Any, Packer]) -> Packer:
    """Packs results into a mapping of the type of `fetch`, or a dict if that cannot be copied."""
    if type(fetch) is dict or not isinstance(fetch, dict):
        return lambda values: {key: part(values) for key, part in parts.items()}
    kind: Callable[[], Any] = partial(defaultdict, fetch.default_factory) if isinstance(fetch, defaultdict) else type(fetch)

    def pack(values: list[Any]) -> Any:
        results = {key: part(values) for key, part in parts.items()}
        try:
            made = kind()
        except TypeError:
            return results
        for key, value in results.items():
            made[key] = value
        return made

    return pack


def _element(graph: Graph, fetch: Any) -> Node | Tensor:
    try:
        element = graph.as_graph_element(fetch)
    except GraphError as error:
        error.message = f"Cannot fetch {brief(fetch)}: {error.message}"
        raise
    return _value_of(element) if isinstance(element, Node) and element.is_opaque else element


def _value_of(node: Node) -> Node | Tensor:
    """The value that a node of another framework names: its only output, or the result of the model."""
    if len(node.outputs) == 1:
        return node.outputs[0]
    return node.inputs[0] if not node.outputs and len(node.inputs) == 1 else node


def plan_key(fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
    """The cache key of a plan for these arguments, None if they are not hashable."""
    shape = fetches if type(fetches) is Tensor else _frozen(fetches)
    return (shape, tuple(feed_dict)) if feed_dict else (shape, ())


def _frozen(fetch: Any) -> Any:
    """A nested structure as a hashable value."""
    if isinstance(fetch, list | tuple):
        return (type(fetch), *[_frozen(item) for item in fetch])
    if isinstance(fetch, Mapping):
        return (type(fetch), *[(type(key), key, _frozen(item)) for key, item in fetch.items()])  # 1 and True are equal, but not of one type
    return fetch
