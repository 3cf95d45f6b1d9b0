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

    New names differ from the taken ones also when the case of letters is ignored, as in TensorFlow. Names that are given exactly, as those of
    files, may be alike. While a cell runs again, the names of its earlier run are free for it (`release`), and numbering starts over, so that the same code gets
    the same names.

    Attributes:
        on_taken: a callback for each name of a node or scope that is taken, for derivations.
    """

    __slots__ = ("_candidate", "_candidate_for", "_cells", "_further", "_next", "_owned_scopes", "_released", "_taken", "on_taken")

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}  # by lower case
        self._further: dict[str, set[str]] = {}  # the other taken names of the same lower case; there are none most often
        self._cells: dict[str, str] = {}  # the owners of scopes
        self._next: dict[str, int] = {}
        self._candidate = self._candidate_for = ""
        self._released: set[str] = set()
        self._owned_scopes: dict[str, set[str]] = {}
        self.on_taken: Callable[[str], None] | None = None

    def unique(self, name: str) -> str:
        """`name`, or the first free one of `name_1`, `name_2`, ... It is not taken by this."""
        alike = name.lower()
        if alike not in self._taken or (self._released and self._is_released(alike)):
            return name
        count = self._next.get(alike, 1)
        while f"{alike}_{count}" in self._taken and not (self._released and self._is_released(f"{alike}_{count}")):
            count += 1
        self._next[alike] = count
        self._candidate, self._candidate_for = f"{name}_{count}", alike
        return self._candidate

    def _is_released(self, alike: str) -> bool:
        """True iff all taken names with this lower case are free for the running cell."""
        return self._taken[alike] in self._released and self._released.issuperset(self._further.get(alike, ()))

    def _is_taken(self, name: str) -> bool:
        alike = name.lower()
        return self._taken.get(alike) == name or name in self._further.get(alike, ())

    def take(self, name: str) -> None:
        """Mark a node's name as taken."""
        alike = name.lower()
        first = self._taken.setdefault(alike, name)
        if first is not name and first != name:
            self._further.setdefault(alike, set()).add(name)
        if self.on_taken is not None:
            self.on_taken(name)
        if name is self._candidate:  # the next call need not try it again
            self._candidate = ""
            self._next[self._candidate_for] = self._next.get(self._candidate_for, 0) + 1
        if self._released:
            self._released.discard(name)

    def take_all(self, names: Iterable[str]) -> None:
        """Mark many nodes' names as taken."""
        for name in names:
            self.take(name)

    def state(self) -> tuple[Any, ...]:
        """A snapshot for `restore`."""
        further = {alike: set(names) for alike, names in self._further.items()}
        owned = {cell: set(names) for cell, names in self._owned_scopes.items()}
        return dict(self._taken), dict(self._next), set(self._released), owned, further, dict(self._cells)

    def restore(self, state: tuple[Any, ...]) -> None:
        """Return to the snapshot `state`."""
        self._taken, self._next, released, self._owned_scopes, self._further, self._cells = state
        self._release(released)
        self._candidate = ""

    def free(self, name: str) -> None:
        """Free a name."""
        if self._is_taken(name):
            alike = name.lower()
            others = {self._taken.pop(alike), *self._further.pop(alike, ())} - {name}
            if others:
                self._taken[alike], *further = sorted(others)
                if further:
                    self._further[alike] = set(further)
            self._cells.pop(name, None)
        self._released.discard(name)
        self._next.pop(_stem(name), None)

    def take_scope(self, scope: str, cell: str) -> None:
        """Mark a scope as taken by a cell ("" for none). The scopes around it are not, as in TensorFlow."""
        is_new = not self._is_taken(scope)
        self.take(scope)
        if cell:
            if is_new:
                self._cells[scope] = cell
            self._owned_scopes.setdefault(cell, set()).add(scope)

    def _release(self, names: Iterable[str]) -> None:
        """Let only these of the taken names be free for the running cell."""
        self._released = {name for name in names if self._is_taken(name)}
        for name in self._released:
            self._next.pop(_stem(name), None)

    def release(self, cell: str, node_names: list[str]) -> None:
        """Free these node names, and the cell's scopes, for the running cell."""
        self._release(self._owned_scopes.pop(cell, set()).union(node_names))

    def begin_again(self, names: Iterable[str]) -> set[str]:
        """Free these names for a rebuilt derivation. Returns a token for `end_again`."""
        before = self._released
        self._release(names)
        return before

    def end_again(self, before: set[str]) -> None:
        """Free names that were not taken again; those released for the running cell stay so."""
        self.end_release()
        self._release(before)

    def end_release(self) -> None:
        """Free released names that were not taken again for all cells."""
        for name in list(self._released):
            self.free(name)
        self._release(())

    def keep_released(self, cell: str) -> None:
        """Keep released names that were not taken again as taken (the cell failed)."""
        kept = [name for name in self._released if self._cells.get(name) == cell]
        self._owned_scopes = {**self._owned_scopes, cell: self._owned_scopes.get(cell, set()).union(kept)}
        self._release(())


def _stem(name: str) -> str:
    """The lower case of a name without the number that made it unique."""
    head, _, tail = name.lower().rpartition("_")
    return head if tail.isdigit() else name.lower()


def checked_scope(name: str, *, inner: bool) -> str:
    """Return `name` if it may be (part of) a scope.

    Raises:
        InvalidArgumentError: it has characters that node names may not have.
    """
    valid = _SCOPE_NAME.match(name) if inner else is_valid_node_name(name)
    if not valid:
        raise InvalidArgumentError(f"'{name}' is not a valid scope name: required letters, digits and any of _ . - /")
    return name
