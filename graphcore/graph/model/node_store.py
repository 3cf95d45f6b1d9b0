"""The nodes of a graph by name and by id, and the inputs that await a node."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from graphcore.graph.model.node import Node

Awaiting = list[tuple[Node, int]]
"""Consumers with the input slot that awaits a node; -1 stands for the control inputs."""


class NodeStore:
    """The tables of nodes of one graph. Its methods only update tables; `Graph` and its editor contain the rules for changes.

    Attributes:
        by_name: the op nodes by name, in the order of their ids.
        by_id: the same by id.
        next_id: the id of the next node.
        awaited: by the name of a missing node, the inputs that wait for it.
    """

    __slots__ = ("_next_number", "awaited", "by_id", "by_name", "next_id")

    def __init__(self) -> None:
        self.by_name: dict[str, Node] = {}
        self.by_id: dict[int, Node] = {}
        self.next_id = 2  # 0 and 1 are the source and the sink
        self.awaited: dict[str, Awaiting] = {}
        self._next_number = 0

    def has(self, node: Node) -> bool:
        """True for an op node of this graph."""
        return self.by_name.get(node.name) is node

    def adopt(self, node: Node) -> None:
        """Enter a node that has its id already."""
        self.by_name[node.name] = self.by_id[node.id] = node
        self.next_id = node.id + 1

    def remove(self, node: Node) -> None:
        """Remove a node, which awaits nothing any more."""
        del self.by_name[node.name], self.by_id[node.id]
        self.stop_awaiting(node)

    def new_name(self, prefix: str) -> str:
        """A name beginning with `prefix` that no node has and that this method has not given before."""
        while True:
            name = f"{prefix}/_{self._next_number}"
            self._next_number += 1
            if name not in self.by_name:
                return name

    # ---- inputs that await a node ------------------------------------------------------------------------------------

    def await_node(self, name: str, consumer: Node, slot: int) -> None:
        """Feed input `slot` of `consumer` when a node called `name` is added."""
        entries = self.awaited.setdefault(name, [])
        if (consumer, slot) not in entries:
            entries.append((consumer, slot))

    def stop_awaiting(self, consumer: Node, slots: Collection[int] | None = None) -> None:
        """Cancel the waits of input slots of `consumer` (None: all)."""
        for name in {tensor.node.name for tensor in consumer.inputs} | {control.name for control in consumer.control_inputs}:
            left = [
                entry for entry in self.awaited.get(name, ()) if entry[0] is not consumer or (slots is not None and entry[1] not in slots)
            ]
            if left:
                self.awaited[name] = left
            else:
                self.awaited.pop(name, None)

    def take_awaiting(self, name: str) -> Awaiting:
        """The inputs that await a node called `name`; they no longer do."""
        return [(consumer, slot) for consumer, slot in self.awaited.pop(name) if self.has(consumer)]

    def awaiting(self) -> list[tuple[str, Node, int]]:
        """The inputs that await a node: name of the node, consumer, slot."""
        waiting = [(name, consumer, slot) for name, entries in self.awaited.items() for consumer, slot in entries]
        return [(name, consumer, slot) for name, consumer, slot in waiting if self.has(consumer)]

    # ---- transactions ------------------------------------------------------------------------------------------------

    def state(self) -> tuple[Any, ...]:
        """A snapshot for `restore`."""
        awaited = {name: list(entries) for name, entries in self.awaited.items()}
        return dict(self.by_name), dict(self.by_id), awaited, self.next_id, self._next_number

    def restore(self, state: tuple[Any, ...]) -> None:
        """Return to the snapshot `state`."""
        self.by_name, self.by_id, self.awaited, self.next_id, self._next_number = state
