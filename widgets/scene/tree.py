"""The name scopes of a graph as a tree, and the parts of each scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from graphcore.errors import GraphError
from graphcore.passes import InstantiatedFunctions
from widgets.scene.calls import CallBody, Callee, Opener, calls_functions, has_hub
from widgets.scene.structure import PARTS, Bunch, cycles, evaluation_order, hosts, joined, make_items, serving_nodes, summarise

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node

FEW_PARTS: Final = 40
"""A scope with more parts than this is shown as groups of them."""
FEW_NODES: Final = 150
"""Parts with more nodes than this together cannot all be open, so repeats among them are shown once."""
SMALL_THING: Final = 8
"""A node and the helper scope of the same name are one thing up to this many nodes."""


class Thing:
    """A node with what serves it: a box that opens.

    That is the small scope of its own name (`W` with `W/read`, `W/Assign`), and parameters.
    """

    __slots__ = ("helpers", "node", "scope")

    def __init__(self, node: Node, scope: Scope | None, helpers: Sequence[Part] = ()) -> None:
        self.node = node
        self.scope = scope
        self.helpers = list(helpers)

    @property
    def key(self) -> str:
        """The name of the node, which is also the path of the scope."""
        return self.node.name

    @property
    def total(self) -> int:
        """The number of nodes, the main one included."""
        return 1 + (self.scope.total if self.scope is not None else 0) + sum(part_total(part) for part in self.helpers)

    def parts(self) -> list[Part]:
        """The parts shown when it is open."""
        return [self.node, *(self.scope.parts() if self.scope is not None else []), *self.helpers]

    def all_nodes(self) -> list[Node]:
        """The main node and its helpers."""
        return [self.node, *(self.scope.all_nodes() if self.scope is not None else []), *nodes_of(self.helpers)]


class Call:
    """A node that calls functions: a box that opens into bodies. A scope of its own name belongs to it."""

    __slots__ = ("_bodies", "_opener", "_roots", "failure", "helpers", "node", "scope")

    def __init__(self, node: Node, scope: Scope | None, opener: Opener) -> None:
        self.node = node
        self.scope = scope
        self.helpers: list[Part] = []
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
        return 1 + (self.scope.total if self.scope is not None else 0) + sum(part_total(part) for part in self.helpers)

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

    @property
    def roots(self) -> list[Scope]:
        """The scope of each of its bodies."""
        self.bodies()
        return self._roots

    @property
    def around(self) -> tuple[str, ...]:
        """The keys of the functions around it, outermost first."""
        return self._opener.around

    def parts(self) -> list[Part]:
        """The parts shown when it is open: body, or own box and a scope for each body; then helpers."""
        bodies = self.bodies()
        hub: list[Part] = [self.node] if has_hub(self.node) else []
        inside: list[Part] = list(self._roots) if len(bodies) > 1 else [part for root in self._roots for part in root.parts()]
        return [*hub, *inside, *(self.scope.parts() if self.scope is not None else []), *self.helpers]

    def all_nodes(self) -> list[Node]:
        """The call and its helpers."""
        return [self.node, *(self.scope.all_nodes() if self.scope is not None else []), *nodes_of(self.helpers)]

    def _instantiate(self) -> list[CallBody]:
        if self.refusal:
            return []
        try:
            return self._opener.bodies(self.node)
        except GraphError as error:
            self.failure = error.message
        return []


class Group:
    """Parts of a scope that dataflow joins; a repeat if it has `instances`.

    Attributes:
        key: the scope's path, the depth, and the name of its first part, so that it survives changes elsewhere.
        items: the parts inside, in the order of the dataflow.
        differences: the ops in which the instances differ, in words; "" if they are exactly alike.
    """

    __slots__ = ("_parts", "depth", "differences", "instances", "items", "key", "label", "path", "total")

    def __init__(self, path: str, depth: int, bunch: Bunch, items: Sequence[Part]) -> None:
        self.path = path
        self.depth = depth
        self.items = [items[item] for item in bunch.items]
        self.key = f"{path}/#{depth}.{_name_at_start(self.items)}"
        self.label = bunch.label
        self.differences = bunch.differences
        self.instances: list[Part] = [
            Group(path, depth + 1, inner, items) if len(inner.items) > 1 else items[inner.items[0]] for inner in bunch.instances
        ]
        self.total = sum(part_total(part) for part in self.items)
        self._parts: list[Part] | None = None

    def parts(self) -> list[Part]:
        """The parts shown when it is open."""
        if self._parts is None:
            self._parts = _few(self.path, self.instances) if self.instances else structured(self.path, self.items, self.depth + 1)
        return self._parts

    def all_nodes(self) -> list[Node]:
        """Every node inside, at any depth."""
        return nodes_of(self.items)


class Scope:
    """A name scope: its own nodes, its inner scopes, and `total`, the nodes at any depth. The root's path is "".

    `adopted` are parts from around it that serve only its nodes, such as their parameters.

    `callee` is the function of the scope if it is one of several bodies of a call.
    """

    __slots__ = ("_parts", "adopted", "callee", "nodes", "opener", "order", "parent", "path", "scopes", "total")

    def __init__(self, path: str, parent: Scope | None, order: int, opener: Opener) -> None:
        self.path = path
        self.adopted: list[Part] = []
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
        """The parts shown when it is open: in creation order, or groups of them if they are many.

        A scope of one node is that node.
        """
        if self._parts is None:
            self._parts = structured(self.path, [*self._plain_parts(), *self.adopted], 0)
        return self._parts

    def adopt(self, parts: Sequence[Part]) -> None:
        """Take in parts from around it that serve its nodes."""
        self.adopted.extend(parts)
        self.total += sum(part_total(part) for part in parts)
        self._parts = None

    def all_nodes(self) -> list[Node]:
        """Every node inside, at any depth."""
        nodes: list[Node] = []
        stack = [self]
        while stack:
            scope = stack.pop()
            nodes.extend(scope.nodes.values())
            nodes.extend(nodes_of(scope.adopted))
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


Part: TypeAlias = "Node | Thing | Call | Group | Scope"
FOLDS: Final = (Scope, Group, Thing, Call)
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
        """The keys around a scope, thing or group, outermost first, and its own; missing ones are left out."""
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


def nodes_of(parts: Iterable[Part]) -> list[Node]:
    """Every node in some parts."""
    nodes: list[Node] = []
    for part in parts:
        if isinstance(part, FOLDS):
            nodes.extend(part.all_nodes())
        else:
            nodes.append(part)
    return nodes


def structured(path: str, parts: list[Part], depth: int) -> list[Part]:
    """The parts of a scope or group as they are shown: grouped and in order if they are many.

    Args:
        path: the path of the scope.
        depth: the number of groups around.
    """
    if len(parts) < 2 or (len(parts) <= FEW_PARTS and sum(part_total(part) for part in parts) <= FEW_NODES):
        return parts
    members = [_members(part) for part in parts]
    items = make_items(members, [_is_backward(nodes) for nodes in members])
    clumps = cycles(items)
    items, contents = joined(items, clumps)
    serving = serving_nodes([node for nodes in items.members for node in nodes])
    order = evaluation_order(items)
    host = hosts(items, order, [all(node.name in serving for node in nodes) for nodes in items.members])
    served: dict[int, list[int]] = {}
    for item, target in enumerate(host):
        if target != item:
            served.setdefault(target, []).append(item)
    made: list[Part] = []
    kept: list[list[int]] = []
    for item, content in enumerate(contents):
        if host[item] != item:
            continue
        helpers = [parts[each] for other in served.get(item, ()) for each in contents[other]]
        inside = [parts[each] for each in content]
        part = _with_helpers(inside[0], helpers) if len(inside) == 1 else None
        if part is None and len(inside) > 1:
            bunch = Bunch(list(range(len(inside))), label=f"cycle of {len(inside)}")
            part = Group(path, depth, bunch, inside)
            part._parts = inside  # a cycle has no order to find
            made.extend(helpers)
            kept.extend([other] for other in served.get(item, ()))
        made.append(part if part is not None else inside[0])
        kept.append([item, *served.get(item, ())])
    groups = [group for group in kept if len(group) > 1]
    items, contents = joined(items, groups)
    by_first = {group[0]: part for group, part in zip(kept, made, strict=True)}
    ordered = [by_first[content[0]] for content in contents]
    few = len(ordered) <= FEW_PARTS
    bunches = summarise(items, serving, most=FEW_PARTS if few else PARTS)
    result: list[Part] = []
    for bunch in bunches:
        if len(bunch.items) == 1 or (few and not bunch.instances) or len(bunch.items) == len(ordered):
            result.extend(ordered[item] for item in bunch.items)
        else:
            result.append(Group(path, depth, bunch, ordered))
    return result


def _few(path: str, instances: list[Part], level: int = 0, number: int = 1) -> list[Part]:
    """The instances of a repeat, joined in rows of neighbours if they are many."""
    if len(instances) <= FEW_PARTS:
        return instances
    size = FEW_PARTS
    while size * FEW_PARTS < len(instances):
        size *= FEW_PARTS
    rows: list[Part] = []
    for start in range(0, len(instances), size):
        row = instances[start : start + size]
        group = Group(path, -1 - level, Bunch(list(range(len(row))), f"{number + start} to {number + start + len(row) - 1}"), row)
        group._parts = _few(path, row, level + 1, number + start)
        rows.append(group)
    return rows


def _members(part: Part) -> list[Node]:
    return part.all_nodes() if isinstance(part, FOLDS) else [part]


def _is_backward(nodes: list[Node]) -> bool:
    records = nodes[0].graph.gradient_records
    return bool(records) and 2 * sum(1 for node in nodes if node.name in records) > len(nodes)


def _with_helpers(part: Part, helpers: list[Part]) -> Part | None:
    """The part together with what serves it."""
    if not helpers:
        return part
    if isinstance(part, Scope):
        part.adopt(helpers)
        return part
    if isinstance(part, Thing | Call):
        part.helpers.extend(helpers)
        return part
    return None if isinstance(part, Group) else Thing(part, None, helpers)


def _name_at_start(items: list[Part]) -> str:
    first = items[0]
    return first.key if isinstance(first, FOLDS) else first.name


def _part_order(part: Part) -> int:
    if isinstance(part, Thing | Call):
        return part.node.id
    if isinstance(part, Scope):
        return part.order
    return 0 if isinstance(part, Group) else part.id


def _leads_to(part: Part, target: str, *, is_node: bool) -> bool:
    if isinstance(part, Group):
        if not is_node and "/#" in target:
            return part.key == target or any(_leads_to(inner, target, is_node=False) for inner in part.parts())
        return any(_leads_to(inner, target, is_node=is_node) for inner in part.items)
    if isinstance(part, Scope | Thing | Call):
        itself = part.key == target and (not isinstance(part, Scope) or not is_node)
        within = target.startswith((part.key + "/", part.key + ":") if isinstance(part, Call) else part.key + "/")
        helpers = part.adopted if isinstance(part, Scope) else part.helpers
        return itself or within or any(_leads_to(inner, target, is_node=is_node) for inner in helpers)
    return is_node and part.name == target


def _inner_first(scopes: Iterable[Scope]) -> Iterator[Scope]:
    """Scopes ordered so that each comes before its parent."""
    return iter(sorted(scopes, key=lambda scope: -scope.path.count("/") if scope.path else 1))
