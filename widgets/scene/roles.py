"""The backward pass: its nodes, and the forward boxes that they mirror."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from widgets.scene.tree import Call, Group, Scope, ScopeTree, Thing
from widgets.scene.types import Role

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node


class Roles:
    """Roles in one graph: recorded gradient nodes, and helpers in scopes that mostly consist of those."""

    def __init__(self, graph: Graph, tree: ScopeTree) -> None:
        self.graph = graph
        self._records = graph.gradient_records
        self._tree = tree
        self._counts: Counter[str] = Counter()
        self._helpers: dict[str, bool] = {}
        self.inner: set[str] = set()
        """Names of backward nodes in the bodies of open calls."""
        forwards: dict[str, set[str]] = {}
        for name, record in self._records.items():
            scope = tree.scope_of(name)
            if scope is not None and scope.path and not scope.scopes and record.function is not None:
                forwards.setdefault(scope.path, set()).add(record.forward)
            while scope is not None and scope.path:
                self._counts[scope.path] += 1
                scope = scope.parent
        self._bodies = {path: names.pop() for path, names in forwards.items() if len(names) == 1 and self._is_whole(path)}

    def body_of(self, path: str) -> str:
        """The forward node of the inlined gradient function in a scope, "" if it is none."""
        return self._bodies.get(path, "")

    def is_mostly_gradient(self, path: str) -> bool:
        """True iff most nodes of the scope with this path are gradient nodes."""
        return self._mostly_gradient(self._tree.find(path))

    def __contains__(self, name: str) -> bool:
        """True iff `name` is a recorded gradient node."""
        return name in self._records

    def is_gradient(self, node: Node) -> bool:
        """True for a recorded gradient node and for a helper in a scope of gradient nodes."""
        if node.name in self._records or node.name in self.inner:
            return True
        if not self._counts:
            return False
        path = node.name.rpartition("/")[0]
        known = self._helpers.get(path)
        if known is None:
            known = self._helpers[path] = self._mostly_gradient(self._tree.find(path))
        return known

    def of_part(self, part: Scope | Group | Thing | Call) -> Role:
        """The role of a whole scope: that of most of its nodes."""
        if isinstance(part, Scope):
            return "gradient" if self._mostly_gradient(part) else self.of_nodes(part.all_nodes()) if self.inner else "forward"
        return self.of_nodes(part.all_nodes())

    def of_nodes(self, nodes: list[Node]) -> Role:
        """The role of most of these nodes."""
        if not self._counts and not self._records and not self.inner:
            return "forward"
        gradient = sum(1 for node in nodes if self.is_gradient(node))
        return "gradient" if 2 * gradient > len(nodes) else "forward"

    def mirrored(self, nodes: list[Node], box_of: Mapping[str, str]) -> str:
        """The id of the forward box that most of these gradient nodes differentiate, "" if there is none.

        Args:
            box_of: box ids by node name.
        """
        forward: Counter[str] = Counter()
        for node in nodes:
            record = self._records.get(node.name)
            target = None if record is None else box_of.get(record.forward)
            if target is not None and target != box_of.get(node.name):
                forward[target] += 1
        if not forward:
            return ""
        best, count = forward.most_common(1)[0]
        return best if 2 * count > sum(forward.values()) else ""

    def _is_whole(self, path: str) -> bool:
        scope = self._tree.find(path)
        return scope is not None and all(name in self._records for name in scope.nodes)

    def _mostly_gradient(self, scope: Scope | None) -> bool:
        return scope is not None and bool(scope.path) and 2 * self._counts[scope.path] > scope.total
