"""What passes may change, said by each of them; tests hold them to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

AnyPass = TypeVar("AnyPass", bound=Callable[..., Any])
ANY: Final[frozenset[str]] = frozenset({"*"})
"""Ops of any kind."""
NOTHING: Final[frozenset[str]] = frozenset()


class PassDeclaration(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass may do to the graph that it is given. All it does keeps what the graph computes.

    Args:
        name: what the pass is called.
        adds, removes: the ops of nodes that it may add and remove; `ANY` for nodes of any op.
        rewires: it may change which tensors nodes take and which nodes they wait for.
        keeps_leaves: nodes that nothing takes anything from, and that no earlier pass left over, stay under their names.
        keeps_state: nodes with state stay, but for calls of functions whose bodies take their place.
        keeps_order: a node with state that takes anything from another such node, or waits for it, however far around, goes on doing so.
            Where one node becomes several, each takes its own inputs only, and less waits for less.
        once: run a second time at once, it finds nothing more to do.
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
    """A decorator: the function is a pass that does no more than this."""

    def declare(function: AnyPass) -> AnyPass:
        _declared[declaration.name] = function, declaration
        return function

    return declare


def declared_passes() -> dict[str, tuple[Callable[..., Any], PassDeclaration]]:
    """Every pass that says what it may change, by name, with what it says."""
    return dict(_declared)
