"""Which nodes a run needs, producers first."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from graphcore.errors import InvalidArgumentError
from graphcore.graph.model.control_flow_ops import is_back_edge
from graphcore.graph.model.node import Node, Tensor

PLACEHOLDERS: Final = frozenset({"Placeholder", "PlaceholderV2", "_Arg", "_DeviceArg"})
"""Ops that stand for a feed: waiting for one that is fed means waiting for the feed, as by itself it cannot run."""


def is_replaced(node: Node, fed: Collection[Tensor]) -> bool:
    """Whether `node` does not run, though something waits for it: it stands for what is fed.

    Any other node of which every output is fed still does what it does, where it is waited for or asked for.
    """
    return node.op in PLACEHOLDERS and all(tensor in fed for tensor in node.outputs)


def needed_nodes(fetches: Iterable[Tensor], targets: Iterable[Node], fed: Collection[Tensor]) -> list[Node]:
    """The nodes that `fetches` and `targets` depend on when `fed` is given from outside, in an order to run them in.

    What comes back around a loop comes after the Merge that takes it.

    Raises:
        InvalidArgumentError: they depend on themselves other than around a loop.
    """
    fed_set = set(fed)
    order: list[Node] = []
    state: dict[Node, bool] = {}
    roots = [tensor.node for tensor in fetches if tensor not in fed_set] + list(targets)
    for root in roots:
        if root in state:
            continue
        pending: list[tuple[Node, bool]] = [(root, False)]
        while pending:
            node, leaving = pending.pop()
            if leaving:
                state[node] = True
                order.append(node)
                continue
            if node in state:
                if not state[node]:
                    raise InvalidArgumentError.at(node, f"Graph is invalid, contains a cycle through '{node.name}' (op {node.op})")
                continue
            state[node] = False
            pending.append((node, True))
            for dep in () if is_replaced(node, fed_set) else _dependencies(node, fed_set):
                if is_back_edge(dep.op, node.op):
                    roots.append(dep)
                elif not state.get(dep, False):
                    pending.append((dep, False))
    return order


def _dependencies(node: Node, fed: set[Tensor]) -> list[Node]:
    producers = [tensor.node for tensor in node.inputs if tensor not in fed]
    producers.extend(node.control_inputs)
    producers.reverse()
    return producers
