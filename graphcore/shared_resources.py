"""Queues and other resources that the nodes and functions of a session share by name, variables aside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Hashable
from typing import Any, Protocol

from graphcore.errors import CancelledError
from graphcore.support.critical_section import critical_section


class SharedResource(Protocol):
    """Something that lasts as long as a session.

    Attributes:
        op: the op of the node that stands for it.
        owner: the node whose declaration it follows; "" if that is gone, and the next that asks for it may declare it.
    """

    op: str
    owner: str

    def end(self) -> None:
        """Nobody can find it any more: who waits at it is told that this was cancelled."""


class SharedResources:
    """The shared resources of one session; those in the bodies of functions are among them. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, Hashable], SharedResource] = {}
        self._made = 0
        self._is_closed = False

    def find(
        self, container: str, name: Hashable, node: str, make: Callable[[int], SharedResource], fits: Callable[[Any], bool]
    ) -> SharedResource:
        """Find or make a resource. One that its owner now declares otherwise ends, and begins anew; other nodes get it as it is.

        Args:
            container: the name space.
            name: what it is shared by.
            node: the node that asks for it.
            make: makes it; given how many were made before.
            fits: whether it is what the node declares.

        Raises:
            CancelledError: the session is closed.
        """
        with critical_section, self._lock:
            if self._is_closed:
                raise CancelledError("The session was closed")
            found = self._known.get((container, name))
            if found is not None and (found.owner not in ("", node) or fits(found)):
                found.owner = found.owner or node
                return found
            made = make(self._made)
            made.owner = node
            self._known[container, name] = made
            self._made += 1
        if found is not None:
            found.end()
        return made

    def disown(self, is_gone: Callable[[SharedResource], bool]) -> None:
        """Let whoever asks next declare what belongs to an owner that is gone."""
        for resource in list(self._known.values()):
            if resource.owner and is_gone(resource):
                resource.owner = ""

    def reset(self, containers: Container[str]) -> None:
        """End what is in `containers`."""
        with critical_section, self._lock:
            ended = [self._known.pop(key) for key in list(self._known) if key[0] in containers]
        for resource in ended:
            resource.end()

    def close(self) -> None:
        """End everything; nothing can be found or made any more."""
        with critical_section, self._lock:
            self._is_closed = True
            ended = list(self._known.values())
            self._known.clear()
        for resource in ended:
            resource.end()
