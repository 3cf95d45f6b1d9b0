"""The values that pass between the node runs of a recorded step, by graph and loops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from graphcore.attrs import attr_text
from graphcore.graph.model.node import Node
from graphcore.plumbing import ENTER, EXIT, NEXT_ITERATION, RECV, SEND
from graphcore.runtime.core.events import Around, Event

Loop = tuple[str, int, Around]
"""Frame, iteration, and the loops around."""
Token = tuple[str, Loop]
"""A node, and the loop in which its consumers take its outputs."""
TRANSFER: Final = "_src"
"""The attr of the sends and receives that partitioning has made."""
_EVERY: Final = -1


class Tokens:
    """The inputs and outputs of the node runs of a step.

    Args:
        nodes: the nodes of the step; those in functions are unknown.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._producers: dict[str, tuple[list[Node], list[Node]]] = {}

    def node_of(self, event: Event) -> Node | None:
        """The node of an event, None in functions."""
        return None if event.call else self._nodes.get(event.node)

    def inputs(self, node: Node, event: Event) -> list[Token]:
        """The tokens that a run of `node` may take; those of branches that were not taken have no event."""
        values, controls = self._producers_of(node)
        return [*self._taken(values, event), *self._taken(controls, event)]

    def values(self, node: Node, event: Event) -> list[Token]:
        """The tokens of `inputs` without those of control inputs, in the order of the inputs."""
        return self._taken(self._producers_of(node)[0], event)

    def _producers_of(self, node: Node) -> tuple[list[Node], list[Node]]:
        """The producers of the inputs of a node, and its other control inputs."""
        producers = self._producers.get(node.name)
        if producers is None:
            values = dict.fromkeys([tensor.node for tensor in node.inputs])
            producers = self._producers[node.name] = list(values), [other for other in node.control_inputs if other not in values]
        return producers

    def _taken(self, producers: Iterable[Node], event: Event) -> list[Token]:
        loop = _loop(event)
        return [(producer.name, (loop[0], _EVERY, loop[2]) if _is_invariant(producer) else loop) for producer in producers]

    def output(self, node: Node, event: Event) -> Token:
        """The token of the outputs of a run of `node`."""
        frame, iteration, around = _loop(event)
        if node.op in NEXT_ITERATION:
            return node.name, (frame, iteration + 1, around)
        if node.op in ENTER:
            inner = attr_text(node.attr["frame_name"])
            return node.name, (inner, _EVERY if _is_invariant(node) else 0, (*around, (frame, iteration)) if frame else around)
        if node.op in EXIT:
            return node.name, (*around[-1], around[:-1]) if around else ("", 0, ())
        return node.name, (frame, iteration, around)


def is_transfer(node: Node | None) -> bool:
    """True for the sends and receives that partitioning has made."""
    return node is not None and node.op in SEND | RECV and TRANSFER in node.attr


def link_of(node: Node) -> tuple[str, str]:
    """The devices from and to which a send or receive passes a value."""
    return attr_text(node.attr["send_device"]), attr_text(node.attr["recv_device"])


def transfer_key(node: Node, event: Event) -> tuple[Any, ...]:
    """The identity of one transfer, the same for its send and its receive."""
    return attr_text(node.attr["tensor_name"]), *link_of(node), _loop(event)


def _loop(event: Event) -> Loop:
    return event.frame, event.iteration, event.around


def _is_invariant(node: Node) -> bool:
    """True for an Enter whose value every iteration takes."""
    return node.op in ENTER and bool(node.attr.get("is_constant"))
