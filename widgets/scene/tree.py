"""The name scopes of a graph as a tree, and the parts each scope falls into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node

FAN_OUT: Final = 64
"""Parts of one chunk when a scope has too many parts of its own."""
CHUNK_ABOVE: Final = 300
"""A scope with more parts than this is shown as chunks of consecutive parts."""
SMALL_THING: Final = 8
"""A node and the helper scope of the same name are one thing up to this many nodes."""


class Thing:
    """A node with the small scope of its own name (`W` with `W/read`, `W/Assign`): one box until it is opened."""

    __slots__ = ("node", "scope")

    def __init__(self, node: Node, scope: Scope) -> None:
        self.node = node
        self.scope = scope

    @property
    def key(self) -> str:
        """The path of the scope."""
        return self.scope.path

    @property
    def total(self) -> int:
        """The number of nodes, the main one included."""
        return self.scope.total + 1

    def parts(self) -> list[Part]:
        """What appears when it is opened."""
        return [self.node, *self.scope.parts()]

    def all_nodes(self) -> list[Node]:
        """The main node and its helpers."""
        return [self.node, *self.scope.all_nodes()]


class Chunk:
    """A run of consecutive parts of a scope that has too many: `key` is the scope's path, a level and a position."""

    __slots__ = ("_parts", "first", "key", "last", "total")

    def __init__(self, key: str, parts: list[Part]) -> None:
        self.key = key
        self._parts = parts
        self.total = sum(part_total(part) for part in parts)
        head, tail = parts[0], parts[-1]
        self.first: str = head.first if isinstance(head, Chunk) else _part_name(head)
        self.last: str = tail.last if isinstance(tail, Chunk) else _part_name(tail)

    @property
    def label(self) -> str:
        """The names of the first and the last part."""
        return f"{self.first} … {self.last}"

    def parts(self) -> list[Part]:
        """What appears when it is opened."""
        return self._parts

    def all_nodes(self) -> list[Node]:
        """Every node inside, at any depth."""
        nodes: list[Node] = []
        for part in self._parts:
            if isinstance(part, Scope | Chunk | Thing):
                nodes.extend(part.all_nodes())
            else:
                nodes.append(part)
        return nodes


class Scope:
    """A name scope: its own nodes, its inner scopes, and `total`, the nodes at any depth. The root's path is ""."""

    __slots__ = ("_parts", "nodes", "order", "parent", "path", "scopes", "total")

    def __init__(self, path: str, parent: Scope | None, order: int) -> None:
        self.path = path
        self.parent = parent
        self.order = order
        self.nodes: dict[str, Node] = {}
        self.scopes: dict[str, Scope] = {}
        self.total = 0
        self._parts: list[Part] | None = None

    @property
    def key(self) -> str:
        """The path."""
        return self.path

    @property
    def label(self) -> str:
        """The last component of the path."""
        return self.path.rpartition("/")[2]

    def parts(self) -> list[Part]:
        """What appears when it is opened: nodes, things and scopes in the order they were made, in chunks if too many.

        A scope of one node is that node.
        """
        if self._parts is None:
            self._parts = _chunked(self.path, self._plain_parts(), 0)
        return self._parts

    def all_nodes(self) -> list[Node]:
        """Every node inside, at any depth."""
        nodes: list[Node] = []
        stack = [self]
        while stack:
            scope = stack.pop()
            nodes.extend(scope.nodes.values())
            stack.extend(scope.scopes.values())
        return nodes

    def touch(self) -> None:
        """Forget the parts: something inside has changed."""
        self._parts = None

    def _plain_parts(self) -> list[Part]:
        parts: list[Part] = []
        things = set()
        for path, scope in self.scopes.items():
            main = self.nodes.get(path)
            if main is not None and scope.total < SMALL_THING:
                things.add(path)
                parts.append(Thing(main, scope))
            else:
                parts.append(scope if scope.total > 1 else scope.all_nodes()[0])
        parts.extend(node for name, node in self.nodes.items() if name not in things)
        if self.scopes:
            parts.sort(key=_part_order)
        return parts


Part: TypeAlias = "Node | Thing | Chunk | Scope"


class ScopeTree:
    """All scopes of one graph by path, kept in step with it by `sync`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.root = Scope("", None, 0)
        self._scopes: dict[str, Scope] = {"": self.root}
        self._version = -1

    def sync(self) -> None:
        """Take in what has changed since the last call."""
        if self.graph.version == self._version:
            return
        self.root = Scope("", None, 0)
        self._scopes = {"": self.root}
        self._add_all(self.graph.nodes)
        self._version = self.graph.version

    def find(self, path: str) -> Scope | None:
        """The scope with this path."""
        return self._scopes.get(path)

    def scope_of(self, name: str) -> Scope | None:
        """The scope that directly holds the node of this name."""
        return self._scopes.get(name.rpartition("/")[0])

    def keys_to_node(self, name: str) -> list[str]:
        """The keys of everything that must be open for the node to show, outermost first."""
        return self._walk(name, is_node=True)

    def keys_to_part(self, key: str) -> list[str]:
        """The keys of everything around a scope, thing or chunk, outermost first, and itself; what is not there is left out."""
        return self._walk(key, is_node=False)

    def _walk(self, target: str, *, is_node: bool) -> list[str]:
        keys: list[str] = []
        parts = self.root.parts()
        while True:
            part = next((part for part in parts if _leads_to(part, target, is_node=is_node)), None)
            if part is None or not isinstance(part, Scope | Chunk | Thing) or (is_node and part.key == target):
                return keys
            keys.append(part.key)
            if part.key == target:
                return keys
            parts = part.parts()

    def _add_all(self, nodes: Iterable[Node]) -> None:
        scopes = self._scopes
        for node in nodes:
            name = node.name
            prefix = name.rpartition("/")[0]
            scope = scopes.get(prefix)
            if scope is None:
                scope = self._make_scope(prefix, node.id)
            scope.nodes[name] = node
        self._count()

    def _make_scope(self, path: str, order: int) -> Scope:
        outer = path.rpartition("/")[0]
        parent = self._scopes.get(outer)
        if parent is None:
            parent = self._make_scope(outer, order)
        scope = self._scopes[path] = Scope(path, parent, order)
        parent.scopes[path] = scope
        return scope

    def _count(self) -> None:
        for scope in self._scopes.values():
            scope.total = len(scope.nodes)
        for scope in _inner_first(self._scopes.values()):
            if scope.parent is not None:
                scope.parent.total += scope.total


def part_total(part: Part) -> int:
    """The number of nodes in a part."""
    return part.total if isinstance(part, Scope | Chunk | Thing) else 1


def _part_order(part: Part) -> int:
    if isinstance(part, Thing):
        return part.node.id
    if isinstance(part, Scope):
        return part.order
    return 0 if isinstance(part, Chunk) else part.id


def _part_name(part: Scope | Thing | Node) -> str:
    name = part.key if isinstance(part, Scope | Thing) else part.name
    return name.rpartition("/")[2]


def _leads_to(part: Part, target: str, *, is_node: bool) -> bool:
    if isinstance(part, Chunk):
        return (not is_node and part.key == target) or any(_leads_to(inner, target, is_node=is_node) for inner in part.parts())
    if isinstance(part, Scope | Thing):
        itself = part.key == target and (isinstance(part, Thing) or not is_node)
        return itself or target.startswith(part.key + "/")
    return is_node and part.name == target


def _chunked(path: str, parts: list[Part], level: int) -> list[Part]:
    if len(parts) <= (CHUNK_ABOVE if level == 0 else FAN_OUT):
        return parts
    chunks: list[Part] = [
        Chunk(f"{path}/#{level}.{number}", parts[start : start + FAN_OUT]) for number, start in enumerate(range(0, len(parts), FAN_OUT))
    ]
    return _chunked(path, chunks, level + 1)


def _inner_first(scopes: Iterable[Scope]) -> Iterator[Scope]:
    """Scopes ordered so that each comes before its parent."""
    return iter(sorted(scopes, key=lambda scope: -scope.path.count("/") if scope.path else 1))
