"""Function bodies as graphs for shape inference, cached by function and attrs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from graphcore.attrs import AttrValue, Func
from graphcore.definitions import FunctionDef, NodeDef
from graphcore.errors import GraphError
from graphcore.functions import FunctionLibraryDefinition, canonicalize, instantiate_function
from graphcore.graph.model.filling import fill_in_order
from graphcore.graph.model.node import Node, Tensor
from graphcore.inference import ShapeHandle
from graphcore.plumbing import ARG, RETVAL

MOST_NESTED_NODES: Final = 2_000
"""The most nodes of called functions that are inferred for one call; shapes beyond are unknown."""
MOST_NESTED_CALLS: Final = 48
"""The deepest calls within functions that are followed; shapes beyond are unknown. Each takes 11 of the 1,000 frames of Python's stack."""

_MOST_KEPT: Final = 64
_MOST_FORMS: Final = 4096


def why_not_followed(library: FunctionLibraryDefinition, node_def: NodeDef) -> str:
    """The reason why calls inside the functions that a node calls are not inferred; "" if all are."""
    called = _called(library, node_def)
    for _ in range(MOST_NESTED_CALLS + 1):
        called = {name: inner for body in called.values() for node in body.node_def for name, inner in _called(library, node).items()}
        if not called:
            return ""
    return f"its functions call others more than {MOST_NESTED_CALLS} deep, and shapes there are not inferred"


def _called(library: FunctionLibraryDefinition, node_def: NodeDef) -> dict[str, FunctionDef]:
    names = {node_def.op}
    for value in node_def.attr.values():
        names |= {function.name for function in (value if isinstance(value, tuple) else (value,)) if isinstance(function, Func)}
    return {name: definition for name in names if (definition := library.find(name)) is not None}


class CallForm(msgspec.Struct, frozen=True, eq=False):
    """The results of calls with one pattern of arguments, while the values asked for are unknown.

    Args:
        results: see `CallPattern.form_of`.
        asked: the numbers of the arguments with these values, with True for a value that is asked for as a shape.
    """

    results: tuple[Any, ...]
    asked: frozenset[tuple[int, bool]]


class InferredBody(msgspec.Struct, frozen=True, eq=False):
    """The nodes of a function, producers first; its arguments and returns by index.

    `outputs` caches the shapes of calls: many calls of one function are alike. `forms` caches the results of calls by the pattern of their
    arguments: explanations infer a call many times, each time with something unknown.
    """

    order: list[Node]
    args: list[Node]
    results: list[Tensor]
    outputs: dict[tuple[object, ...], tuple[ShapeHandle, ...]] = msgspec.field(default_factory=dict)
    forms: dict[tuple[object, ...], CallForm] = msgspec.field(default_factory=dict)

    def keep(self, key: tuple[object, ...], outputs: tuple[ShapeHandle, ...]) -> None:
        """Cache the result of a call, and discard the oldest."""
        if len(self.outputs) >= _MOST_KEPT:
            self.outputs.clear()
        self.outputs[key] = outputs

    def keep_form(self, key: tuple[object, ...], form: CallForm) -> None:
        """Cache the form of the results of a call, and discard the oldest."""
        if len(self.forms) >= _MOST_FORMS:
            self.forms.clear()
        self.forms[key] = form


class FunctionShapes:
    """Function bodies by function and attrs. After a replacement in the library, they are instantiated again."""

    __slots__ = ("_bodies", "_budget", "refused")

    def __init__(self) -> None:
        self.refused = 0
        """The number of calls that were not followed, for want of time."""
        self._bodies: dict[str, tuple[FunctionDef, InferredBody | None]] = {}
        self._budget = 0

    def may_enter(self, body: InferredBody, *, is_nested: bool) -> bool:
        """True iff the nodes of `body` may be inferred for a call, to limit nested calls (10^10 nodes)."""
        self._budget = self._budget - len(body.order) if is_nested else MOST_NESTED_NODES
        self.refused += self._budget < 0
        return self._budget >= 0

    def body_of(
        self, library: FunctionLibraryDefinition, graph_class: Any, name: str, attrs: Mapping[str, AttrValue]
    ) -> InferredBody | None:
        """The body of function `name`, None if it does not exist or cannot be instantiated."""
        definition = library.find(name)
        if definition is None:
            return None
        public = {key: value for key, value in attrs.items() if not key.startswith("_")}
        key = canonicalize(name, public)
        entry = self._bodies.get(key)
        if entry is None or entry[0] is not definition:
            entry = self._bodies[key] = (definition, _made(library, graph_class, definition, public))
        return entry[1]


def _made(
    library: FunctionLibraryDefinition, graph_class: Any, definition: FunctionDef, attrs: Mapping[str, AttrValue]
) -> InferredBody | None:
    graph = graph_class(library.default_registry)
    graph.library = library
    graph.refiner.infers_functions = False  # done for each call, since a function may be recursive
    try:
        fill_in_order(graph, instantiate_function(definition, attrs, library.look_up_op_def).nodes)
    except GraphError:
        return None
    nodes: list[Node] = graph.nodes
    args = [node for node in nodes if node.op in ARG]
    rets = [node for node in nodes if node.op in RETVAL]
    return InferredBody(nodes, sorted(args, key=_index), [node.inputs[0] for node in sorted(rets, key=_index)])


def _index(node: Node) -> int:
    index = node.node_def.attr["index"]
    assert isinstance(index, int)
    return index
