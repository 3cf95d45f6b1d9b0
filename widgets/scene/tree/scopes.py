"""Name scopes and calls: the parts of a graph that names and functions form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from graphcore.difference.marks import shown_difference
from graphcore.errors import GraphError
from graphcore.frontends.record import foreign_of
from widgets.scene.calls import CallBody, Callee, Opener, calls_functions, has_hub
from widgets.scene.structure.naming import is_foreign
from widgets.scene.structure.serving import is_parameter
from widgets.scene.tree.chains import chain_label, parents_of
from widgets.scene.tree.folds import Fold, Group, Thing, any_leads_to, nodes_of, structured, total_of
from widgets.scene.tree.saved_models import with_signatures, within_function
from widgets.scene.tree.unchanged import unchanged_together

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node

SMALL_THING: Final = 8
"""A node and the helper scope of the same name are one thing up to this many nodes."""
MOST_FRAMES: Final = 64
"""The most frames within each other; what is deeper stays in a closed box."""


class Call(Fold):
    """A node that calls functions: a box that opens into bodies. A scope of its own name belongs to it."""

    __slots__ = ("_bodies", "_opener", "_roots", "failure", "node", "scope")

    def __init__(self, node: Node, scope: Scope | None, opener: Opener) -> None:
        super().__init__()
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
        return 1 + (self.scope.total if self.scope is not None else 0) + total_of(self.helpers)

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
        hub: list[Part] = [self.node] if has_hub(self.node) else []
        return [*hub, *self.inside(), *self.beside()]

    def inside(self) -> list[Part]:
        """The parts of its bodies."""
        return list(self.roots) if len(self.roots) > 1 else [part for root in self.roots for part in root.parts()]

    def beside(self) -> list[Part]:
        """Its helpers."""
        return [*(self.scope.parts() if self.scope is not None else []), *self.helpers]

    def all_nodes(self) -> list[Node]:
        """The call and its helpers."""
        return [self.node, *(self.scope.all_nodes() if self.scope is not None else []), *nodes_of(self.helpers)]

    def leads_to(self, target: str, *, is_node: bool) -> bool:
        """True iff it is or contains the node, or the part with the key, `target`."""
        inside = target == self.key or target.startswith((self.key + "/", self.key + ":"))
        return inside or any_leads_to(self.helpers, target, is_node=is_node)

    def _instantiate(self) -> list[CallBody]:
        if self.refusal:
            return []
        try:
            return self._opener.bodies(self.node)
        except GraphError as error:
            self.failure = error.message
        return []


class Scope(Fold):
    """A name scope: its own nodes, its inner scopes, and `total`, the nodes at any depth. The root's path is "".

    `callee` is the function of the scope if it is one of several bodies of a call.
    """

    __slots__ = ("_contents", "_total", "callee", "depth", "nodes", "opener", "order", "parent", "path", "scopes")

    def __init__(self, path: str, parent: Scope | None, order: int, opener: Opener) -> None:
        super().__init__()
        self.path = path
        self.callee: Callee | None = None
        self.opener = opener
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.order = order
        self.nodes: dict[str, Node] = {}
        self.scopes: dict[str, Scope] = {}
        self._total = 0
        self._contents: list[Part] | None = None

    @property
    def key(self) -> str:
        """The path."""
        return self.path

    @property
    def total(self) -> int:
        """The number of nodes inside, at any depth."""
        return self._total

    @property
    def label(self) -> str:
        """The last components of the path; for one of several bodies, its purpose and the function's name."""
        if self.callee is not None:
            return f"{self.callee.label} · {self.callee.title}"
        label = chain_label(self.path, self.parent.path if self.parent is not None else None)
        graph = self._graph()
        foreign = None if graph is None else foreign_of(graph)
        kind = "" if foreign is None else foreign.classes.get(self.path, "")
        return f"{label} {kind}" if kind else label

    @property
    def only_repeat(self) -> Group | None:
        """The repeat that a module of another framework consists of, None if it has more or none."""
        if self.callee is not None or self.depth > MOST_FRAMES or not self._is_foreign():
            return None
        parts = self.parts()
        only = parts[0] if len(parts) == 1 else None
        return only if isinstance(only, Group) and only.instances else None

    @property
    def is_layer(self) -> bool:
        """True iff it is a module of another framework that is one op with its parameters."""
        return self._is_foreign() and sum(not is_parameter(node) for node in self.all_nodes()) <= 1

    def _is_foreign(self) -> bool:
        first = next(iter(self.nodes.values()), None) or next(iter(self.all_nodes()), None)
        return first is not None and is_foreign(first)

    def parts(self) -> list[Part]:
        """The parts shown when it is open: in creation order, or groups of them if they are many.

        A scope of one node is that node. A scope that never opens has its nodes.
        """
        if self._contents is None and self.depth > MOST_FRAMES:
            self._contents = [*sorted(self.all_nodes(), key=_node_id)]
        if self._contents is None:
            parts, graph = self.apart(), self._graph()
            marks = None if graph is None else shown_difference.of(graph)
            if marks is not None:
                self._contents = structured(self.path, unchanged_together(self.path, parts, marks), 0)
            elif graph is not None and self.parent is None and (graph.saver_nodes or graph.signatures):
                self._contents = with_signatures(parts, graph)
            else:
                self._contents = structured(self.path, within_function(self.path, parts) if self.opener.around else parts, 0)
        return self._contents

    def _graph(self) -> Graph | None:
        """The graph of its nodes, None without any."""
        node = next(iter(self.nodes.values()), None)
        if node is None and not self.scopes:
            return None
        return (node or self.all_nodes()[0]).graph

    def apart(self) -> list[Part]:
        """The nodes and inner scopes, without groups."""
        return [*self._plain_parts(), *self.helpers]

    def take_in(self, helpers: Sequence[Part]) -> None:
        """Add parts from around it that serve its nodes."""
        super().take_in(helpers)
        self._total += total_of(helpers)
        self._contents = None

    def leads_to(self, target: str, *, is_node: bool) -> bool:
        """True iff it contains the node, or is or contains the part with the key, `target`."""
        inside = (target == self.key and not is_node) or target.startswith(self.key + "/")
        return inside or any_leads_to(self.helpers, target, is_node=is_node)

    def count(self) -> None:
        """Count the nodes of this scope and of those inside, which are counted before."""
        self._total = len(self.nodes) + sum([scope.total for scope in self.scopes.values()])

    def all_nodes(self) -> list[Node]:
        """Every node inside, at any depth."""
        nodes = nodes_of(self.helpers)  # those of inner scopes are among these, or come from beside them
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
            if main is None:
                parts.append(_alone(scope))
                continue
            with_scope.add(path)
            if calls_functions(main):
                parts.append(Call(main, scope, self.opener))
            elif scope.total < SMALL_THING:
                parts.append(Thing(main, scope))
            else:
                parts.append(scope)
                if main not in scope.helpers:
                    scope.take_in([main])
        parts.extend(single_part(node, self.opener) for name, node in self.nodes.items() if name not in with_scope)
        if self.scopes:
            parts.sort(key=_part_order)
        return parts


def _alone(scope: Scope) -> Part:
    """The part for a scope: itself, or the single node or thing inside."""
    if scope.total == 1:
        return single_part(scope.all_nodes()[0], scope.opener)
    main, inner = next(iter(scope.nodes.values()), None), next(iter(scope.scopes.values()), None)
    is_thing = main is not None and inner is not None and len(scope.nodes) == len(scope.scopes) == 1 and main.name == inner.path
    if main is None or inner is None or not is_thing or inner.total >= SMALL_THING or calls_functions(main) or scope.helpers:
        return scope
    return Thing(main, inner)


def single_part(node: Node, opener: Opener) -> Part:
    """A part for a node by itself: a call if it calls functions."""
    return Call(node, None, opener) if calls_functions(node) else node


Part: TypeAlias = "Node | Thing | Call | Group | Scope"
FOLDS: Final = (Scope, Group, Thing, Call)
"""The parts that open."""


class Scopes:
    """The scopes in the names of some nodes, by path, below one root."""

    def __init__(self, root: str, nodes: Iterable[Node], opener: Opener) -> None:
        self.opener = opener
        self.root = Scope(root, None, 0, opener)
        self.by_path: dict[str, Scope] = {root: self.root}
        self._parents = parents_of(root, *_prefixes_and_names(nodes := list(nodes)))
        for node in nodes:
            prefix = node.name.rpartition("/")[0]
            scope = self.by_path.get(prefix) or self._make(prefix, node.id)
            scope.nodes[node.name] = node
        for scope in _inner_first(self.by_path.values()):
            scope.count()

    def _make(self, path: str, order: int) -> Scope:
        missing: list[str] = []  # innermost first; a file may nest scopes deeper than Python's recursion limit
        while (parent := self.by_path.get(path)) is None:
            missing.append(path)
            path = self._parents[path]
        for each in reversed(missing):
            scope = self.by_path[each] = Scope(each, parent, order, self.opener)
            parent.scopes[each] = scope
            parent = scope
        return parent


def _prefixes_and_names(nodes: Sequence[Node]) -> tuple[set[str], list[str]]:
    names = [node.name for node in nodes]
    return {name.rpartition("/")[0] for name in names}, names


def body_scope(body: CallBody, opener: Opener) -> Scope:
    """The scopes of a function body, below its path."""
    root = Scopes(body.path, body.nodes, opener).root
    root.callee = body.callee
    return root


def _node_id(node: Node) -> int:
    return node.id


def _part_order(part: Part) -> int:
    if isinstance(part, Thing | Call):
        return part.node.id
    if isinstance(part, Scope):
        return part.order
    return 0 if isinstance(part, Group) else part.id


def _inner_first(scopes: Iterable[Scope]) -> Iterator[Scope]:
    """Scopes ordered so that each comes before its parent."""
    return iter(sorted(scopes, key=lambda scope: -scope.path.count("/") if scope.path else 1))
