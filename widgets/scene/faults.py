"""The errors that paint a node red: its own, and those with which a cell failed at it."""

from __future__ import annotations

from itertools import chain, count
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from graphcore.errors import GraphError
    from graphcore.graph import Graph, Node, Tensor


class Refused(msgspec.Struct, frozen=True):
    """A node that could not be made: its name, the error, and the tensors that it was to take."""

    name: str
    text: str
    inputs: list[Tensor]


def fault_of(node: Node) -> GraphError | None:
    """The error of a node.

    None for a node that is only left by a cell that failed elsewhere: it gets a quiet mark.
    """
    cells = node.graph.cells
    failure = cells.failure_at(node) if cells.failures else None
    if failure is not None:
        return failure
    return None if node.error is None or node.error.is_left else node.error


def is_faulty(node: Node) -> bool:
    """True iff `fault_text` has something to say."""
    return bool(node.input_errors) or fault_of(node) is not None


def refused_input(node: Node) -> str:
    """The node that its cell failed to make it take, since that depends on it: a circle; "" for none."""
    return node.error.input if node.error is not None and node.error.is_mark else ""


def fault_text(node: Node) -> str:
    """The errors of a node and its inputs in words, "" if there are none."""
    fault = fault_of(node)
    parts = [] if fault is None else [fault.message]
    said = parts[0] if parts else ""
    parts.extend(text for _, text in sorted(node.input_errors.items()) if text not in said)
    return "\n".join(parts)


def refused_nodes(graph: Graph) -> list[Refused]:
    """The nodes that cells could not make, in whose place the graph has none.

    Two of one name get the names that they would have had in the graph.
    """
    refused: dict[str, Refused] = {}
    for error in graph.cells.refusals.values():
        wanted = error.node or error.op
        name = next(free for free in chain([wanted], (f"{wanted}_{number}" for number in count(1))) if free not in refused)
        refused[name] = Refused(name, error.message, [tensor for tensor in dict.fromkeys(error.inputs) if tensor in graph])
    return list(refused.values())
