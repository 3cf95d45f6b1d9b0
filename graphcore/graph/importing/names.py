"""The names of imported nodes: prefixed and unique."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from graphcore.definitions import GraphDef, is_valid_node_name
from graphcore.errors import InvalidArgumentError
from graphcore.graph.graph import Graph
from graphcore.graph.importing.options import ImportOptions


class ImportNames(msgspec.Struct, frozen=True):
    """The names of one import.

    Attributes:
        own: the names in the GraphDef.
        prefix: the prefix of all names, with its slash.
        renamed: the new names of those that are taken.
    """

    own: dict[str, None]
    prefix: str
    renamed: dict[str, str]

    def final(self, name: str) -> str:
        """The name in the graph of a node of the GraphDef."""
        return self.renamed.get(name) or self.prefix + name


def import_names(graph: Graph, graph_def: GraphDef, options: ImportOptions) -> ImportNames:
    """Find a name for each node of the GraphDef.

    Raises:
        InvalidArgumentError: a name is invalid, repeated, or taken; or the prefix is invalid.
    """
    own = _checked_names(graph_def, allow_internal_ops=options.allow_internal_ops)
    taken = _TakenNames(graph)
    prefix = _free_prefix(options, own, taken)
    if options.uniquify_names and not (prefix and options.uniquify_prefix):
        return ImportNames(own, prefix, _free_names(own, prefix, taken))
    if not taken.is_empty:
        _refuse_taken(own, prefix, taken)
    return ImportNames(own, prefix, {})


def _checked_names(graph_def: GraphDef, *, allow_internal_ops: bool) -> dict[str, None]:
    names: dict[str, None] = {}
    for node_def in graph_def.node:
        name = node_def.name
        if not is_valid_node_name(name, allow_internal_ops=allow_internal_ops):
            raise InvalidArgumentError(f"Node '{name}': Node name contains invalid characters", op=node_def.op, node=name)
        names[name] = None
    if len(names) < len(graph_def.node):
        _refuse_twice(graph_def)
    return names


def _refuse_twice(graph_def: GraphDef) -> None:
    seen: set[str] = set()
    for node_def in graph_def.node:
        if node_def.name in seen:
            raise InvalidArgumentError(f"Node '{node_def.name}' is not unique", op=node_def.op, node=node_def.name)
        seen.add(node_def.name)


def _free_prefix(options: ImportOptions, own: dict[str, None], taken: _TakenNames) -> str:
    prefix = options.prefix
    if not prefix:
        return ""
    stem = prefix.removesuffix("/")
    if not is_valid_node_name(stem):
        raise InvalidArgumentError(f"Imported node name prefix '{stem}/' would lead to invalid node names")
    if options.uniquify_prefix and taken.has(stem):
        stem = _first_free(stem, taken, {*own, *_scopes_of(own)})
    return f"{stem}/"


def _free_names(own: dict[str, None], prefix: str, taken: _TakenNames) -> dict[str, str]:
    """Rename each taken name to the first free one, avoiding names and scopes of the GraphDef."""
    renamed: dict[str, str] = {}
    if taken.is_empty:
        return renamed
    used = {prefix + name for name in (*own, *_scopes_of(own))}
    for name in own:
        wanted = prefix + name
        if taken.has(wanted):
            renamed[name] = free = _first_free(wanted, taken, used)
            used.add(free)
    return renamed


def _first_free(name: str, taken: _TakenNames, used: set[str]) -> str:
    count = 1
    while taken.has(candidate := f"{name}_{count}") or candidate in used:
        count += 1
    return candidate


def _refuse_taken(own: dict[str, None], prefix: str, taken: _TakenNames) -> None:
    for name in own:
        if taken.has_node(prefix + name) or (not prefix and taken.has(name)):
            raise InvalidArgumentError(f"Node name '{prefix + name}' already exists in the Graph", node=prefix + name)


def _scopes_of(names: Iterable[str]) -> set[str]:
    """All scopes in `names`."""
    scopes: set[str] = set()
    for name in names:
        end = name.rfind("/")
        while end > 0 and name[:end] not in scopes:
            scopes.add(name[:end])
            end = name.rfind("/", 0, end)
    return scopes


class _TakenNames:
    """The taken names: existing nodes, unless the running cell may replace them, and their scopes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._scopes: set[str] | None = None

    @property
    def is_empty(self) -> bool:
        """True iff every name is free."""
        return len(self.graph) == 0

    def has_node(self, name: str) -> bool:
        """True iff a node has this name."""
        node = self.graph.find(name)
        return (node is not None and not self.graph.cells.may_replace(node)) or name in {"_SOURCE", "_SINK"}

    def has(self, name: str) -> bool:
        """True iff a node, or a scope of one, has this name."""
        if self.has_node(name):
            return True
        if self._scopes is None:
            replaceable = self.graph.cells.may_replace
            self._scopes = _scopes_of([node.name for node in self.graph.op_nodes() if not replaceable(node)])
        return name in self._scopes
