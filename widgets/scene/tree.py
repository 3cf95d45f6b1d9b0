"""The name scopes of a graph as a tree, and the parts of each scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from graphcore.errors import GraphError
from graphcore.passes import InstantiatedFunctions
from widgets.scene.calls import CallBody, Callee, Opener, calls_functions, has_hub

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node

FAN_OUT: Final = 64
"""Parts of one chunk when a scope has too many parts of its own."""
CHUNK_ABOVE: Final = 300
"""A scope with more parts than this is shown as chunks of consecutive parts."""
SMALL_THING: Final = 8
"""A node and the helper scope of the same name are one thing up to this many nodes."""


class Thing:
    """A node with the small scope of its own name (`W` with `W/read`, `W/Assign`): a box that opens."""

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
        """The parts shown when it is open."""
        return [self.node, *self.scope.parts()]

    def all_nodes(self) -> list[Node]:
        """The main node and its helpers."""
        return [self.node, *self.scope.all_nodes()]


class Call:
    """A node that calls functions: a box that opens into bodies. A scope of its own name belongs to it."""

    __slots__ = ("_bodies", "_opener", "_roots", "failure", "node", "scope")

    def __init__(self, node: Node, scope: Scope | None, opener: Opener) -> None:
        self.node = node
        self.scope = scope
        self.failure = ""
        self._opener = opener
        self._bodies: list[CallBody] | None = None
        self._roots: list[Scope] = []

    @property
    def key(self) -> str:
        """The name of the node."""
        return self.node.name

    @property
    def total(self) -> int:
        """The number of the graph's own nodes: the call and its helpers."""
        return 1 + (self.scope.total if self.scope is not None else 0)

    @property
    def refusal(self) -> str:
        """The reason for which it does not open, "" if it may. Known after `bodies` was read."""
        return self.failure or self._opener.refusal(self.node)

    @property
    def opens(self) -> bool:
        """True iff it has bodies; instantiates them."""
        return bool(self.bodies())

    def bodies(self) -> list[CallBody]:
        """The instantiated bodies; empty with a `refusal` if they cannot be instantiated."""
        if self._bodies is None:
            self._bodies = self._instantiate()
            self._roots = [body_scope(body, self._opener.inner(body)) for body in self._bodies]
        return self._bodies

    def parts(self) -> list[Part]:
        """The parts shown when it is open: body, or own box and a scope for each body; then helpers."""
        bodies = self.bodies()
        hub: list[Part] = [self.node] if has_hub(self.node) else []
        inside: list[Part] = list(self._roots) if len(bodies) > 1 else [part for root in self._roots for part in root.parts()]
        return [*hub, *inside, *(self.scope.parts() if self.scope is not None else [])]

    def all_nodes(self) -> list[Node]:
        """The call and its helpers."""
        return [self.node, *(self.scope.all_nodes() if self.scope is not None else [])]

    def _instantiate(self) -> list[CallBody]:
        if self.refusal:
            return []
        try:
            return self._opener.bodies(self.node)
        except GraphError as error:
            self.failure = error.message
        return []


class Chunk:
    """A run of consecutive parts of a scope with too many: `key` is the scope's path, level and position."""

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
        """The parts shown when it is open."""
        return self._parts

    def all_nodes(self) -> list[Node]:
        """Every node inside, at any depth."""
        nodes: list[Node] = []
        for part in self._parts:
            if isinstance(part, FOLDS):
                nodes.extend(part.all_nodes())
            else:
                nodes.append(part)
        return nodes


class Scope:
    """A name scope: its own nodes, its inner scopes, and `total`, the nodes at any depth. The root's path is "".

    `callee` is the function of the scope if it is one of several bodies of a call.
    """

    __slots__ = ("_parts", "callee", "nodes", "opener", "order", "parent", "path", "scopes", "total")

    def __init__(self, path: str, parent: Scope | None, order: int, opener: Opener) -> None:
        self.path = path
        self.callee: Callee | None = None
        self.opener = opener
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
        """The last component of the path; for one of several bodies, its purpose and the function's name."""
        if self.callee is not None:
            return f"{self.callee.label} · {self.callee.title}"
        return self.path.rpartition("/")[2]

    def parts(self) -> list[Part]:
        """The parts shown when it is open: nodes, things and scopes in creation order, or chunks of them.

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

    def _plain_parts(self) -> list[Part]:
        parts: list[Part] = []
        with_scope = set()
        for path, scope in self.scopes.items():
            main = self.nodes.get(path)
            if main is not None and calls_functions(main):
                parts.append(Call(main, scope, self.opener))
            elif main is not None and scope.total < SMALL_THING:
                parts.append(Thing(main, scope))
            else:
                parts.append(scope if scope.total > 1 else single_part(scope.all_nodes()[0], self.opener))
                continue
            with_scope.add(path)
        parts.extend(single_part(node, self.opener) for name, node in self.nodes.items() if name not in with_scope)
        if self.scopes:
            parts.sort(key=_part_order)
        return parts


def single_part(node: Node, opener: Opener) -> Part:
    """A part for a node by itself: a call if it calls functions."""
    return Call(node, None, opener) if calls_functions(node) else node


Part: TypeAlias = "Node | Thing | Call | Chunk | Scope"
FOLDS: Final = (Scope, Chunk, Thing, Call)
"""The parts that open."""


class _Scopes:
    """The scopes in the names of some nodes, by path, below one root."""

    def __init__(self, root: str, nodes: Iterable[Node], opener: Opener) -> None:
        self.opener = opener
        self.root = Scope(root, None, 0, opener)
        self.by_path: dict[str, Scope] = {root: self.root}
        for node in nodes:
            prefix = node.name.rpartition("/")[0]
            scope = self.by_path.get(prefix) or self._make(prefix, node.id)
            scope.nodes[node.name] = node
        for scope in self.by_path.values():
            scope.total = len(scope.nodes)
        for scope in _inner_first(self.by_path.values()):
            if scope.parent is not None:
                scope.parent.total += scope.total

    def _make(self, path: str, order: int) -> Scope:
        missing: list[str] = []  # innermost first; a file may nest scopes deeper than Python's recursion limit
        while (parent := self.by_path.get(path)) is None:
            missing.append(path)
            path = path.rpartition("/")[0]
        for each in reversed(missing):
            scope = self.by_path[each] = Scope(each, parent, order, self.opener)
            parent.scopes[each] = scope
            parent = scope
        return parent


def body_scope(body: CallBody, opener: Opener) -> Scope:
    """The scopes of a function body, below its path."""
    root = _Scopes(body.path, body.nodes, opener).root
    root.callee = body.callee
    return root


class ScopeTree:
    """All scopes of one graph by path, kept up to date by `sync`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._functions = InstantiatedFunctions(graph.library)
        self._scopes = _Scopes("", (), Opener(self._functions))
        self._version = -1

    @property
    def root(self) -> Scope:
        """The outermost scope."""
        return self._scopes.root

    def sync(self) -> None:
        """Update after changes of the graph."""
        if self.graph.version == self._version:
            return
        if self._functions.library is not self.graph.library:
            self._functions = InstantiatedFunctions(self.graph.library)
        self._scopes = _Scopes("", self.graph.nodes, Opener(self._functions))
        self._version = self.graph.version

    def find(self, path: str) -> Scope | None:
        """The scope with this path."""
        return self._scopes.by_path.get(path)

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
        """The keys around a scope, thing or chunk, outermost first, and its own; missing ones are left out."""
        return self._walk(key, is_node=False)[0]

    def _walk(self, target: str, *, is_node: bool) -> tuple[list[str], bool]:
        """The keys on the path, and True if it leads to the target."""
        keys: list[str] = []
        parts = self.root.parts()
        while True:
            part = next((part for part in parts if _leads_to(part, target, is_node=is_node)), None)
            if part is None or not isinstance(part, FOLDS):
                return keys, part is not None
            if is_node and part.key == target:
                return keys, True
            keys.append(part.key)
            if part.key == target:
                return keys, True
            parts = part.parts()


def part_total(part: Part) -> int:
    """The number of nodes in a part."""
    return part.total if isinstance(part, FOLDS) else 1


def _part_order(part: Part) -> int:
    if isinstance(part, Thing | Call):
        return part.node.id
    if isinstance(part, Scope):
        return part.order
    return 0 if isinstance(part, Chunk) else part.id


def _part_name(part: Scope | Thing | Call | Node) -> str:
    name = part.key if isinstance(part, Scope | Thing | Call) else part.name
    return name.rpartition("/")[2]


def _leads_to(part: Part, target: str, *, is_node: bool) -> bool:
    if isinstance(part, Chunk):
        return (not is_node and part.key == target) or any(_leads_to(inner, target, is_node=is_node) for inner in part.parts())
    if isinstance(part, Scope | Thing | Call):
        itself = part.key == target and (not isinstance(part, Scope) or not is_node)
        return itself or target.startswith((part.key + "/", part.key + ":") if isinstance(part, Call) else part.key + "/")
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
