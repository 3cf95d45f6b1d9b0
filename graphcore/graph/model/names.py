"""Taken names, and making names unique."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from graphcore.definitions import is_valid_node_name
from graphcore.errors import InvalidArgumentError

_SCOPE_NAME: Final = re.compile(r"[A-Za-z0-9_.\-/]*\Z")


class NameTable:
    """Node and scope names of one graph.

    While a cell runs again, the names of its earlier run are free for it (`release`), and numbering starts over, so that the same code gets
    the same names.

    Attributes:
        on_taken: a callback for each name of a node or scope that is taken, for derivations.
    """

    __slots__ = ("_candidate", "_candidate_for", "_next", "_owned_scopes", "_released", "_taken", "on_taken")

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}
        self._next: dict[str, int] = {}
        self._candidate = self._candidate_for = ""
        self._released: set[str] = set()
        self._owned_scopes: dict[str, set[str]] = {}
        self.on_taken: Callable[[str], None] | None = None

    def unique(self, name: str) -> str:
        """`name`, or the first free one of `name_1`, `name_2`, ... It is not taken by this."""
        if name not in self._taken or name in self._released:
            return name
        count = self._next.get(name, 1)
        taken, released = self._taken, self._released
        candidate = f"{name}_{count}"
        while candidate in taken and candidate not in released:
            count += 1
            candidate = f"{name}_{count}"
        self._next[name] = count
        self._candidate, self._candidate_for = candidate, name
        return candidate

    def take(self, name: str) -> None:
        """Mark a node's name as taken."""
        self._taken[name] = ""
        if self.on_taken is not None:
            self.on_taken(name)
        if name is self._candidate:  # the next call need not try it again
            self._candidate = ""
            self._next[self._candidate_for] = self._next.get(self._candidate_for, 0) + 1
        if self._released:
            self._released.discard(name)

    def take_all(self, names: Iterable[str]) -> None:
        """Mark many nodes' names as taken."""
        self._taken.update(dict.fromkeys(names, ""))
        if self._released:
            self._released.difference_update(names)

    def state(self) -> tuple[Any, ...]:
        """A snapshot for `restore`."""
        return dict(self._taken), dict(self._next), set(self._released), {cell: set(names) for cell, names in self._owned_scopes.items()}

    def restore(self, state: tuple[Any, ...]) -> None:
        """Return to the snapshot `state`."""
        self._taken, self._next, self._released, self._owned_scopes = state
        self._candidate = ""

    def free(self, name: str) -> None:
        """Free a name."""
        self._taken.pop(name, None)
        self._next.pop(_stem(name), None)

    def take_scope(self, scope: str, cell: str) -> None:
        """Mark a scope as taken by a cell ("" for none). The scopes around it are not, as in TensorFlow."""
        self._taken.setdefault(scope, cell)
        self._released.discard(scope)
        if self.on_taken is not None:
            self.on_taken(scope)
        if cell:
            self._owned_scopes.setdefault(cell, set()).add(scope)

    def release(self, cell: str, node_names: list[str]) -> None:
        """Free these node names, and the cell's scopes, for the running cell."""
        self._released = self._owned_scopes.pop(cell, set()).union(node_names)
        self._recount()

    def begin_again(self, names: Iterable[str]) -> set[str]:
        """Free these names for a rebuilt derivation. Returns a token for `end_again`."""
        before, self._released = self._released, set(names)
        self._recount()
        return before

    def end_again(self, before: set[str]) -> None:
        """Free names that were not taken again; those released for the running cell stay so."""
        self.end_release()
        self._released = before

    def _recount(self) -> None:
        for name in self._released:
            self._next.pop(_stem(name), None)

    def end_release(self) -> None:
        """Free released names that were not taken again for all cells."""
        for name in self._released:
            self.free(name)
        self._released = set()

    def keep_released(self, cell: str) -> None:
        """Keep released names that were not taken again as taken (the cell failed)."""
        kept = [name for name in self._released if self._taken.get(name) == cell]
        self._owned_scopes = {**self._owned_scopes, cell: self._owned_scopes.get(cell, set()).union(kept)}
        self._released = set()


def _stem(name: str) -> str:
    head, _, tail = name.rpartition("_")
    return head if tail.isdigit() else name


def checked_scope(name: str, *, inner: bool) -> str:
    """Return `name` if it may be (part of) a scope.

    Raises:
        InvalidArgumentError: it has characters that node names may not have.
    """
    valid = _SCOPE_NAME.match(name) if inner else is_valid_node_name(name)
    if not valid:
        raise InvalidArgumentError(f"'{name}' is not a valid scope name: required letters, digits and any of _ . - /")
    return name
