"""A recorded run: its events, and what can be told from them."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.graph.node import Node
from graphcore.runtime.events import Event


class Trace:
    """A recorded run.

    Attributes:
        events: in the order in which they came.
        nodes: the nodes of the run.
    """

    __slots__ = ("events", "nodes")

    def __init__(self, events: tuple[Event, ...], nodes: Sequence[Node]) -> None:
        self.events = events
        self.nodes = nodes
