"""Declarations of passes: the changes each may make, enforced by tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

AnyPass = TypeVar("AnyPass", bound=Callable[..., Any])
ANY: Final[frozenset[str]] = frozenset({"*"})
"""Ops of any kind."""
NOTHING: Final[frozenset[str]] = frozenset()


class PassDeclaration(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that a pass may make. All passes preserve the results of the graph.

    Args:
        name: the name of the pass.
        adds, removes: the ops of nodes that it may add and remove; `ANY` for nodes of any op.
        rewires: it may change inputs and control inputs of nodes.
        keeps_leaves: leaves, except those left over by an earlier pass, are kept under their names.
        keeps_state: stateful nodes are kept, except calls of functions that are inlined.
        keeps_order: a stateful node that depends on another one, directly or not, still does. If one node becomes several, each depends on its own inputs only.
        once: the pass is idempotent.
    """

    name: str
    adds: frozenset[str] = NOTHING
    removes: frozenset[str] = NOTHING
    rewires: bool = False
    keeps_leaves: bool = True
    keeps_state: bool = True
    keeps_order: bool = True
    once: bool = True

    def may_add(self, op: str) -> bool:
        """True iff the pass may add a node of type `op`."""
        return self.adds is ANY or op in self.adds

    def may_remove(self, op: str) -> bool:
        """True iff the pass may remove a node of type `op`."""
        return self.removes is ANY or op in self.removes


_declared: dict[str, tuple[Callable[..., Any], PassDeclaration]] = {}


def declares(declaration: PassDeclaration) -> Callable[[AnyPass], AnyPass]:
    """Decorate a pass with its declaration."""

    def declare(function: AnyPass) -> AnyPass:
        _declared[declaration.name] = function, declaration
        return function

    return declare


def declared_passes() -> dict[str, tuple[Callable[..., Any], PassDeclaration]]:
    """All declared passes by name, with their declarations."""
    return dict(_declared)
