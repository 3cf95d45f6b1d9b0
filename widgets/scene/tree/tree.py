"""All scopes of one graph, and the way to each node and part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphcore.passes import InstantiatedFunctions
from widgets.scene.calls import Opener, calls_functions
from widgets.scene.tree.folds import Group, leads_to
from widgets.scene.tree.saved_models import passes_on, served
from widgets.scene.tree.scopes import FOLDS, Call, Part, Scope, Scopes

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node


class ScopeTree:
    """All scopes of one graph by path, kept up to date by `sync`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._functions = InstantiatedFunctions(graph.library)
        self._scopes = Scopes("", (), Opener(self._functions))
        self._state: tuple[object, ...] = ()
        self._opened_first: frozenset[str] | None = None

    @property
    def root(self) -> Scope:
        """The outermost scope."""
        return self._scopes.root

    def sync(self) -> None:
        """Update after changes of the graph."""
        state = self.graph.version, self.graph.cells.runs
        if state == self._state:
            return
        if self._functions.library is not self.graph.library:
            self._functions = InstantiatedFunctions(self.graph.library)
        self._scopes = Scopes("", self.graph.nodes, Opener(self._functions))
        self._state = state
        self._opened_first = None

    @property
    def opened_first(self) -> frozenset[str]:
        """The keys of what is open until the user closes it.

        In a SavedModel that is the signature that is served, down to the body that computes.
        """
        if self._opened_first is None:
            self._opened_first = frozenset(self._keys_to_served())
        return self._opened_first

    def _keys_to_served(self) -> Iterator[str]:
        if not self.graph.signatures:
            return
        found = served(self.graph, self.root.parts())
        if found is None:
            return
        yield found.key
        work: list[Part] = [part for part in found.items if isinstance(part, Call)]
        while len(work) == 1 and isinstance(part := work[0], Call | Scope):
            yield part.key
            work = [inner for inner in part.parts() if not isinstance(inner, Group) and not passes_on(inner)]

    def find(self, path: str) -> Scope | None:
        """The scope with this path."""
        return self._scopes.by_path.get(path)

    def call_of(self, node: Node) -> Call | None:
        """The part of a node that calls functions, None for any other node."""
        if not calls_functions(node):
            return None
        parts = self.root.parts()
        while (part := next((part for part in parts if leads_to(part, node.name, is_node=True)), None)) is not None:
            if isinstance(part, Call) and part.node is node:
                return part
            parts = part.parts() if isinstance(part, FOLDS) else []
        return None

    def scope_of(self, name: str) -> Scope | None:
        """The scope that directly holds the node of this name."""
        return self._scopes.by_path.get(name.rpartition("/")[0])

    def keys_to_node(self, name: str) -> list[str]:
        """The keys of everything around a node, outermost first: all must be open for it to show."""
        return self._walk(name, is_node=True)[0]

    def has_node(self, name: str) -> bool:
        """True iff there is a node of this name, in the graph or in an open call's body."""
        return self._walk(name, is_node=True)[1]

    def keys_to_part(self, key: str) -> list[str]:
        """The keys around a scope, thing or group, outermost first, and its own; missing ones are left out."""
        return self._walk(key, is_node=False)[0]

    def _walk(self, target: str, *, is_node: bool) -> tuple[list[str], bool]:
        """The keys on the path, and True if it leads to the target."""
        keys: list[str] = []
        parts = self.root.parts()
        while True:
            part = next((part for part in parts if leads_to(part, target, is_node=is_node)), None)
            if part is None or not isinstance(part, FOLDS):
                return keys, part is not None
            if is_node and part.key == target and not isinstance(part, Scope):
                return keys, True
            keys.append(part.key)
            if part.key == target:
                return keys, True
            parts = part.parts()
