"""Queues and other resources, except variables, shared by name between nodes of a session."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from typing import Any, Protocol

from graphcore.errors import CancelledError
from graphcore.support.critical_section import critical_section
from graphcore.support.forking import new_lock


class SharedResource(Protocol):
    """A resource with the lifetime of a session.

    Attributes:
        op: the op of the node that the resource belongs to.
        owner: the node whose declaration is in force; "" after that node is gone, when the next node to look it up may declare it.
    """

    op: str
    owner: str

    def end(self) -> None:
        """End the resource after its removal: pending operations are cancelled."""


class SharedResources:
    """The shared resources of one session, those in function bodies included. Thread-safe."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._known: dict[tuple[str, Hashable], SharedResource] = {}
        self._made = 0
        self._is_closed = False

    def find(
        self, container: str, name: Hashable, node: str, make: Callable[[int], SharedResource], fits: Callable[[Any], bool]
    ) -> SharedResource:
        """Find or make a resource.

        A resource that its owner declares differently now is ended and replaced; other nodes get it unchanged.

        Args:
            container: the namespace.
            name: the shared name.
            node: the node that looks it up.
            make: makes the resource, given the number of resources made before.
            fits: returns True if a resource agrees with the node's declaration.

        Raises:
            CancelledError: the session is closed.
        """
        with critical_section, self._lock:
            if self._is_closed:
                raise CancelledError("The session was closed")
            resource = self._known.get((container, name))
            if resource is not None and (resource.owner not in ("", node) or fits(resource)):
                resource.owner = resource.owner or node
                return resource
            created = make(self._made)
            created.owner = node
            self._known[container, name] = created
            self._made += 1
        if resource is not None:
            resource.end()
        return created

    def disown(self, is_gone: Callable[[SharedResource], bool]) -> None:
        """Clear the owner of resources whose owner is gone; the next node may declare them."""
        for resource in list(self._known.values()):
            if resource.owner and is_gone(resource):
                resource.owner = ""

    def all(self) -> list[SharedResource]:
        """All resources."""
        with self._lock:
            return list(self._known.values())

    def reset(self, containers: Container[str]) -> None:
        """End the resources in `containers`."""
        with critical_section, self._lock:
            ended = [self._known.pop(key) for key in list(self._known) if key[0] in containers]
        for resource in ended:
            resource.end()

    def close(self) -> None:
        """End all resources; further look-ups fail."""
        with critical_section, self._lock:
            self._is_closed = True
            ended = list(self._known.values())
            self._known.clear()
        for resource in ended:
            resource.end()
