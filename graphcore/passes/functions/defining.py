"""Names of functions made for one node (branches, loop bodies, gradients).

They are named after the node, and replaced when it is made again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from weakref import ReferenceType, WeakKeyDictionary, ref

import msgspec

from graphcore.attrs import Attrs
from graphcore.definitions import FunctionDef
from graphcore.functions import FunctionLibraryDefinition, function_defs_equal
from graphcore.graph import FunctionGraph, Graph, Node
from graphcore.graph.graph import outermost
from graphcore.passes.functions.graph_to_function import graph_to_function_def
from graphcore.source import SourceLocation

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]+")


class _Definitions:
    """The functions made for nodes, in one library.

    Attributes:
        current: the actual name of each requested name.
        given: all names ever used. No name is used for a second function, since runtimes identify functions by name.
        outdated: True iff a function may have been replaced since the last sweep.
        sources: for each function the lines of user code that made its nodes.
        owner: the graph of the nodes; others may share its library.
        removed: the number of nodes removed from it up to the last sweep.
    """

    __slots__ = ("current", "given", "outdated", "owner", "removed", "sources")

    def __init__(self) -> None:
        self.current: dict[str, str] = {}
        self.given: set[str] = set()
        self.outdated = False
        self.sources: dict[str, dict[str, SourceLocation]] = {}
        self.owner: ReferenceType[Graph] | None = None
        self.removed = 0

    def state(self) -> tuple[Any, ...]:
        """A snapshot for `restore`."""
        return dict(self.current), set(self.given), self.outdated, dict(self.sources), self.removed

    def restore(self, state: tuple[Any, ...] | None) -> None:
        """Return to the snapshot `state`, together with the library; None if there are no definitions.

        No name may have been used since then.
        """
        current, given_names, self.outdated, sources, self.removed = ({}, set(), False, {}, 0) if state is None else state
        self.current, self.given, self.sources = dict(current), set(given_names), dict(sources)

    def sweep(self, graph: Graph) -> None:
        """Discard functions of nodes that have other functions by now, or were removed."""
        removed = graph.num_node_ids - len(graph)
        if self.owner is None or self.owner() is not graph or (not self.outdated and removed == self.removed):
            return
        self.outdated, self.removed = False, removed
        used = graph.library.reachable_definitions([node.node_def for node in graph.op_nodes()])
        for name in self.given:
            if name in graph.library and name not in used:
                graph.library.remove_function(name)
                self.sources.pop(name, None)


_definitions: Final[WeakKeyDictionary[FunctionLibraryDefinition, _Definitions]] = WeakKeyDictionary()


def function_label(graph: Graph, name: str, role: str) -> str:
    """The preferred name of a node's function, from the names of the node and of the function around it."""
    return f"{graph.label}_{name}_{role}" if isinstance(graph, FunctionGraph) else f"{name}_{role}"


def define_body(
    graph: Graph, wanted: str, control_rets: Sequence[Node] = (), attrs: Attrs | None = None, *, shared: bool = False
) -> FunctionDef:
    """Define the function with body `graph` in its library.

    Args:
        graph: the body; its library is the one of the graph whose node calls the function.
        wanted: the preferred name, stable for a node. An equal function made before under it is reused.
        control_rets: nodes that run before the function returns.
        attrs: the attrs of the function.
        shared: True if all nodes that call one function share it; False if it belongs to the node in its name.
    """
    library = graph.library
    definitions = _definitions_of(library)
    if definitions.owner is None:
        definitions.owner = ref(outermost(graph))
    wanted = _NOT_IN_NAMES.sub("_", wanted).strip("_")
    definition = graph_to_function_def(graph, wanted, control_rets)
    if attrs:
        definition = msgspec.structs.replace(definition, attr=dict(attrs))
    candidates = _all_made(definitions, wanted) if shared else [definitions.current.get(wanted, "")]
    before = None
    for name in candidates:
        before = library.find(name) if name else None
        if before is not None and function_defs_equal(before, msgspec.structs.replace(definition, signature=_renamed(definition, name))):
            note_sources(library, name, graph)
            return before
    fresh = _free_name(library, definitions, wanted)
    definition = msgspec.structs.replace(definition, signature=_renamed(definition, fresh))
    library.add_function_def(definition)
    definitions.outdated = definitions.outdated or before is not None or shared
    definitions.current[wanted] = fresh
    definitions.given.add(fresh)
    note_sources(library, fresh, graph)
    return definition


def note_sources(library: FunctionLibraryDefinition, name: str, graph: Graph) -> None:
    """Record the lines of user code that made the nodes of function `name`, for its errors.

    `graph` is its body.
    """
    definitions = _definitions_of(library)
    definitions.sources[name] = {node.name: node.source for node in graph.op_nodes() if node.source is not None}


def sources_of(library: FunctionLibraryDefinition, name: str) -> Mapping[str, SourceLocation]:
    """The lines of user code that made the nodes of a function, by node; {} for functions made elsewhere."""
    definitions = _definitions.get(library)
    return {} if definitions is None else definitions.sources.get(name, {})


def sweep(graph: Graph) -> None:
    """Discard functions of nodes that have other functions by now, or were removed."""
    definitions = _definitions.get(graph.library)
    if definitions is not None:
        definitions.sweep(graph)


def _definitions_of(library: FunctionLibraryDefinition) -> _Definitions:
    definitions = _definitions.get(library)
    if definitions is None:
        definitions = _definitions[library] = _Definitions()
        library.companions.append(definitions)
    return definitions


def _renamed(function: FunctionDef, name: str) -> Any:
    return msgspec.structs.replace(function.signature, name=name)


def _all_made(definitions: _Definitions, wanted: str) -> list[str]:
    """The names of all functions made so far under a requested name."""
    names, count = [], 0
    name = wanted
    while name in definitions.given:
        names.append(name)
        count += 1
        name = f"{wanted}_{count}"
    return names


def _free_name(library: FunctionLibraryDefinition, definitions: _Definitions, wanted: str) -> str:
    name, count = wanted, 0
    while name in library or name in library.default_registry or name in definitions.given:
        count += 1
        name = f"{wanted}_{count}"
    return name
