"""The layers of a model that a group of nodes computes: those that can tell a known kind of block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from graphcore.graph.model.search import reachable
from graphcore.plumbing import NO_OP
from widgets.scene.structure.naming import layer_of
from widgets.scene.structure.serving import is_end, is_heavy, is_plumbing

if TYPE_CHECKING:
    from graphcore.graph import Node
    from graphcore.traits import Layer

_FAR: Final = 8
"""The most nodes between a softmax and the products around it: masks, dropout, changes of shape."""


def telling_layers(nodes: Sequence[Node], serving: Collection[str]) -> Counter[Layer]:
    """The layers of a group by number, as far as they are the block's own.

    Gradients, losses and biases tell no kind.

    A sum or a scaling counts if no parameter takes part and it is no sum of losses or gradients, a softmax if it weighs products of another product, and a sigmoid or tanh if it scales
    something, as gates do.

    Args:
        nodes: the nodes of the group.
        serving: the names of parameters, constants, and what is computed from these alone.
    """
    found: Counter[Layer] = Counter()
    for node in nodes:
        is_own = node.name not in node.graph.gradient_records and node.name not in serving
        layer = layer_of(node.op) if is_own and node.op != NO_OP and not is_plumbing(node) and not is_end(node) else ""
        if layer and _counts(node, layer, serving):
            found[layer] += 1
    return found


def _counts(node: Node, layer: Layer, serving: Collection[str]) -> bool:
    if layer in {"addition", "scaling"}:
        records = node.graph.gradient_records
        sources = {tensor.node.name for tensor in node.inputs}
        return bool(node.outputs) and node.outputs[0].shape.rank != 0 and sources.isdisjoint(serving) and not sources <= records.keys()
    if layer == "softmax":
        return _leads_to_product(node, _producers) and _leads_to_product(node, _forward_consumers)
    if layer in {"sigmoid", "tanh"}:
        return any(layer_of(consumer.op) == "scaling" for consumer in _through_plumbing(node))
    return True


def _leads_to_product(node: Node, following: Callable[[Node], Iterable[Node]]) -> bool:
    """True if a product is near, with nothing heavy between."""
    near, seen = [node], {node}
    for _ in range(_FAR):
        near = [other for each in near for other in following(each) if other not in seen]
        if any(layer_of(other.op) == "product" for other in near):
            return True
        near = [other for other in dict.fromkeys(near) if not is_heavy(other)]
        seen.update(near)
    return False


def _producers(node: Node) -> list[Node]:
    return [tensor.node for tensor in node.inputs]


def _forward_consumers(node: Node) -> list[Node]:
    records = node.graph.gradient_records
    return [consumer for tensor in node.outputs for consumer in tensor.consumers() if consumer.name not in records]


def _through_plumbing(node: Node) -> set[Node]:
    """The consumers of a node, and of those that pass its value on."""
    return reachable(_forward_consumers(node), lambda each: _forward_consumers(each) if is_plumbing(each) else [])
