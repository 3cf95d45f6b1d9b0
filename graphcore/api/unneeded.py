"""Effects in branches and loops that nothing needs, which do not run, as in TensorFlow 1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphcore.graph import FunctionGraph, Node, Tensor
from graphcore.graph.model.node import producers_of
from graphcore.graph.model.search import reachable
from graphcore.plumbing import ARG


def drop_unneeded_effects(body: FunctionGraph, results: Iterable[Any]) -> None:
    """Remove nodes with side effects if no result of a branch or loop depends on them.

    Those in the body of a `gc.function` or of a dataset's function stay: there all effects run.

    Args:
        body: the body, complete but for its returns.
        results: its results: tensors, nodes, and plain values.
    """
    if not body.drops_unneeded:
        return
    starts = {leaf.node if isinstance(leaf, Tensor) else leaf for leaf in results if isinstance(leaf, Tensor | Node)}
    needed = reachable(starts, producers_of)
    gone: set[Node] = set()
    for node in body.op_nodes():  # producers come first
        if node not in needed and node.op not in ARG and (node.op_def.is_stateful or not gone.isdisjoint(producers_of(node))):
            gone.add(node)
    for node in sorted(gone, key=lambda node: node.id, reverse=True):
        body.remove_node(node)
