"""The names in views of the nodes of a recorded run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from graphcore.errors import GraphError
from graphcore.frontends.record import foreign_of
from graphcore.functions.library import GRADIENT_OP
from graphcore.passes import InstantiatedFunctions
from graphcore.passes.optimize.redundant_calls import computed_by
from graphcore.plumbing import WHILE
from widgets.scene.calls import Callee, callees_of

if TYPE_CHECKING:
    from graphcore.definitions import NodeDef
    from graphcore.graph import Graph
    from graphcore.runtime import Trace


_known: WeakKeyDictionary[Graph, tuple[int, Trace, RunNames]] = WeakKeyDictionary()


def run_names(graph: Graph, trace: Trace) -> RunNames:
    """The names of the nodes of a recorded run of a graph."""
    cached = _known.get(graph)
    if cached is None or cached[0] != graph.version or cached[1] is not trace:
        cached = _known[graph] = (graph.version, trace, RunNames(graph, _originals_of(graph, trace)))
    return cached[2]


def names_of_unfinished(graph: Graph, nodes: Collection[str]) -> RunNames:
    """The names of the nodes of a run that has not ended.

    Args:
        graph: the graph.
        nodes: the names of the nodes that it may run.
    """
    replaced = computed_by([node for node in map(graph.find, nodes) if node is not None])
    return RunNames(graph, _originals(graph, replaced, nodes))


def _originals_of(graph: Graph, trace: Trace) -> dict[str, str]:
    replaced = computed_by(trace.nodes)
    return _originals(graph, replaced, {event.node for event in trace.events if not event.call} if replaced else ())


def _originals(graph: Graph, replaced: Mapping[str, str], ran: Collection[str]) -> dict[str, str]:
    """The calls and loops that ran as part of their gradients, by the names of the nodes that ran."""
    gradients = graph.gradient_records
    return {replacement: name for name, replacement in replaced.items() if name not in ran and name not in gradients}


class _Body:
    """The nodes of the graph, or of a called function, by name.

    `prefix` is that of their names in views, `returned` are the nodes whose values the function returns.
    """

    def __init__(self, prefix: str, nodes: Mapping[str, NodeDef], returned: Collection[str] = ()) -> None:
        self.prefix = prefix
        self.nodes = nodes
        self.returned = returned

    @cached_property
    def consumers(self) -> Mapping[str, Sequence[str]]:
        """The nodes that take the values or the control of each node."""
        takers: dict[str, dict[str, None]] = {}
        for name, node in self.nodes.items():
            for source in _sources(node):
                takers.setdefault(source, {})[name] = None
        return {source: tuple(names) for source, names in takers.items()}


_Contents = tuple["Mapping[str, NodeDef]", Collection[str]]


class RunNames:
    """Gives the nodes of recorded events the names that they have in views.

    A node in the body of a call is named as the open call names it: `loop:body/add`. A call that was inlined into the function around it is
    found by its name. What a loop or call computed as part of its gradient belongs to the loop or call itself.

    Args:
        graph: the graph.
        originals: the calls and loops that ran as part of their gradients, by the names of the nodes that ran.
    """

    def __init__(self, graph: Graph, originals: Mapping[str, str]) -> None:
        self._originals = originals
        self._library = graph.library
        self._foreign = foreign_of(graph)
        self._functions = InstantiatedFunctions(graph.library)
        self._definitions: dict[object, _Contents] = {}
        self._bodies: dict[str, _Body | None] = {"": _Body("", {node.name: node.node_def for node in graph.op_nodes()})}
        self._names: dict[tuple[str, str], tuple[str, bool]] = {}

    def name_of(self, call: str, node: str) -> tuple[str, bool]:
        """The name of a node, and True.

        For a node that views do not show the name of the nearest node that calls it, and False.

        Args:
            call: the surrounding calls, as `NodeTime.call`.
            node: its name in the innermost function.
        """
        name = self._names.get((call, node))
        if name is None:
            name = self._names[call, node] = self._find(call, node)
        return name

    def op_of(self, call: str, node: str) -> str:
        """The op of a node, "" if it is unknown.

        Args:
            call, node: as of `name_of`.
        """
        definition = self._known_node(call, node)
        return "" if definition is None else definition.op

    def inputs_of(self, call: str, node: str) -> list[str]:
        """The names of the nodes whose values and control a node takes.

        Args:
            call, node: as of `name_of`.
        """
        definition = self._known_node(call, node)
        return [] if definition is None else _sources(definition)

    def value_inputs_of(self, call: str, node: str) -> list[str]:
        """The names of the nodes whose values a node takes, in the order of its inputs.

        Args:
            call, node: as of `name_of`.
        """
        definition = self._known_node(call, node)
        return [] if definition is None else [text.partition(":")[0] for text in definition.input if not text.startswith("^")]

    def consumers_of(self, call: str, node: str) -> Sequence[str]:
        """The names of the nodes that take the values or the control of a node.

        Args:
            call, node: as of `name_of`.
        """
        body = self._body(call)
        return () if body is None else body.consumers.get(node, ())

    def is_carried(self, call: str, node: str) -> bool:
        """True for a node in the body of a loop whose value the next iteration takes.

        Args:
            call, node: as of `name_of`.
        """
        around, _, segment = call.rpartition(" > ")
        body = self._body(call)
        in_loop = body is not None and body.prefix.endswith(":body/") and self.op_of(around, segment.partition(":")[0]) in WHILE
        return in_loop and body is not None and node in body.returned

    def _known_node(self, call: str, node: str) -> NodeDef | None:
        body = self._body(call)
        place = None if body is None else self._place(body, node)
        return None if place is None else place[0].nodes[place[1]]

    def _find(self, call: str, node: str) -> tuple[str, bool]:
        body = self._body(call)
        place = None if body is None else self._place(body, node)
        if place is not None:
            return self._original(place[0].prefix + place[1]), True
        around, _, segment = call.rpartition(" > ")
        return (self._find(around, segment.partition(":")[0])[0] if call else node), False

    def _original(self, name: str) -> str:
        """The name of a node in a loop or call that ran as part of its gradient; `name` in others."""
        caller, colon, inner = name.partition(":")
        original = self._originals.get(caller)
        if original is None:
            return name
        body, place = self._bodies[""], original
        while colon and body is not None:
            label, _, rest = inner.partition("/")
            body = self._labelled(body, place, label)
            place, colon, inner = rest.partition(":")
        return original + name[len(caller) :] if body is not None and place in body.nodes else name

    def _body(self, call: str) -> _Body | None:
        if call not in self._bodies:
            around, _, segment = call.rpartition(" > ")
            caller, _, function = segment.partition(":")
            outer = self._body(around)
            place = None if outer is None else self._place(outer, caller)
            self._bodies[call] = None if place is None else self._opened(*place, function)
        return self._bodies[call]

    def _place(self, body: _Body, name: str) -> tuple[_Body, str] | None:
        """The body with a node, and its name there: an inlined node is in the body of an inner call."""
        if name in body.nodes:
            return body, name
        parts = name.split("/")
        for count in range(1, len(parts)):
            caller = "/".join(parts[:count])
            inner = self._opened(body, caller, "") if caller in body.nodes else None
            place = None if inner is None else self._place(inner, "/".join(parts[count:]))
            if place is not None:
                return place
        return None

    def _opened(self, body: _Body, caller: str, function: str) -> _Body | None:
        """The body of a call, of the function of this name if it calls several."""
        node = body.nodes[caller]
        called = callees_of(node, is_function=node.op in self._library)
        callees = [callee for callee in called if len(called) == 1 or callee.function.name == function]
        return _Body(f"{body.prefix}{caller}:{callees[0].label}/", *self._nodes_of(callees[0])) if callees else None

    def _labelled(self, body: _Body, caller: str, label: str) -> _Body | None:
        """The body of the callee that views call `label`."""
        node = body.nodes.get(caller)
        called = [] if node is None else callees_of(node, is_function=node.op in self._library)
        return next((_Body("", *self._nodes_of(callee)) for callee in called if callee.label == label), None)

    def _nodes_of(self, callee: Callee) -> _Contents:
        nodes = self._definitions.get(callee.key)
        if nodes is None:
            nodes = self._definitions[callee.key] = self._read(callee)
        return nodes

    def _read(self, callee: Callee) -> _Contents:
        function = callee.function
        if self._foreign is not None:
            opened = self._foreign.body(function.name, "")
            return {node.name: node.node_def for node in opened.graph.op_nodes()}, opened.rets
        definition = None if callee.gradient else self._library.find(function.name)
        if definition is not None:
            return {node.name: node for node in definition.node_def}, {text.partition(":")[0] for text in definition.ret.values()}
        try:
            body = self._functions.body_of(*((GRADIENT_OP, {"f": function}) if callee.gradient else (function.name, function.attr)))
        except GraphError:
            return {}, ()
        return {node.name: node.node_def for node in body.graph.op_nodes()}, ()


def _sources(node: NodeDef) -> list[str]:
    return [text.removeprefix("^").partition(":")[0] for text in node.input]


def split_name(name: str) -> tuple[str, str]:
    """The open calls around a node, and its name in the innermost."""
    call, colon, rest = name.rpartition(":")
    if not colon:
        return "", name
    label, slash, inner = rest.partition("/")
    return f"{call}:{label}{slash}", inner
