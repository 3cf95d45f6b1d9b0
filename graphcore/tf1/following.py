"""Calls whose nodes are built again when their inputs change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphcore.api.structures import flatten
from graphcore.graph import Tensor, get_default_graph


def derived(what: str, build: Callable[[], Any], *inputs: Any) -> Any:
    """Build nodes, and build them again after changes of `inputs`, whose ranks and shapes Python reads.

    Args:
        what: a description of the call, for messages.
        build: builds the nodes in the default graph and returns the result.
        inputs: (nested) tensors and other values.
    """
    graph = get_default_graph()
    tensors = [leaf for leaf in flatten(list(inputs))[1] if isinstance(leaf, Tensor) and leaf.graph is graph]
    return graph.derivations.derive(what, build, depends_on=tensors, fingerprint=_nothing)


def _nothing() -> None:
    """No other dependencies: within another derivation the call is a part of that."""
