"""The subject of a function view: a function with its form and body, or a gradient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, islice
from typing import TYPE_CHECKING, Final

import msgspec

from graphcore.attrs import Attrs, AttrValue, Func
from graphcore.definitions import FunctionDef, validate_node_def
from graphcore.errors import GraphError
from graphcore.functions import FunctionLibraryDefinition, substitute_placeholders
from graphcore.functions.library import GRADIENT_OP
from graphcore.graph import GradientRecord, Graph, Tensor, copy_sharing_library, graph_from_nodes, graph_with_library
from graphcore.passes import (
    FunctionBody,
    InstantiatedFunctions,
    expand_inline_functions,
    function_def_to_body,
    graph_to_function_def,
    remove_dead_nodes,
    remove_identity_nodes,
    remove_list_array_converter,
)
from graphcore.passes.gradients.functions.symbolic_gradient import LABEL, symbolic_gradient
from graphcore.plumbing import RETVAL
from widgets.function.definition_scene import Definition
from widgets.function.form import AttrForm
from widgets.function_views import AttrField, Crumb, FunctionUse
from widgets.scene.calls import Callee, call_body, callee_arguments, callees, calls_functions
from widgets.scene.function_info import instantiated_text
from widgets.scene.words import attr_text, tensor_label

if TYPE_CHECKING:
    from graphcore.graph import Node

MAX_USES: Final = 30
_ROUNDS: Final = 6
"""Gradients within gradients that replace their placeholders."""


class Use(msgspec.Struct, frozen=True):
    """One use of a function: its attrs, and for a call its arguments and device."""

    label: str
    fdef: FunctionDef
    attrs: dict[str, AttrValue]
    detail: str = ""
    given: tuple[Tensor, ...] | None = None
    device: str = ""

    def shown(self) -> FunctionUse:
        """The entry in the list of uses."""
        return FunctionUse(label=self.label, detail=self.detail)


class Subject:
    """A function definition, with a form for attrs and the resulting body.

    Args:
        use: the function, its attrs, its arguments.
        functions: instantiates functions, including those it calls.
        uses: further uses to choose from.
        label: its label in the breadcrumbs.

    Attributes:
        body: the body for the attrs of the form; the last valid one.
        graph: the body's graph with the shapes of the arguments.
        problem: the reason for which the attrs of the form give no body, "" if they do.
    """

    derived = False

    def __init__(self, use: Use, functions: InstantiatedFunctions, uses: Iterable[Use] = (), label: str = "") -> None:
        self.functions = functions
        self.uses = list(uses)
        self.chosen = self.uses.index(use) if use in self.uses else -1
        self.use = use
        self.label = label or use.fdef.name
        self.body: FunctionBody | None = None
        self.problem = ""
        self.graph = graph_with_library(functions.library)
        self._form = AttrForm(use.fdef.signature.attr, use.attrs)
        self.definition = Definition(use.fdef, functions.library)
        self.instantiate()

    @property
    def name(self) -> str:
        """The function's name."""
        return self.use.fdef.name

    def crumb(self) -> Crumb:
        """The breadcrumb of this subject."""
        attrs = ", ".join(f"{name}={attr_text(value)}" for name, value in self._form.values.items())
        return Crumb(label=self.label, detail=attrs)

    def fields(self) -> list[AttrField]:
        """The form."""
        return self._form.fields()

    @property
    def text(self) -> str:
        """The instantiated body."""
        return "" if self.body is None else instantiated_text(self.body)

    def set(self, name: str, text: str) -> bool:
        """Enter text into a field of the form. True iff the body has changed.

        Raises:
            InvalidArgumentError: there is no such attr.
        """
        if not self._form.set(name, text):
            return False
        if self.use.given is not None:
            # The shapes of that call belong to its own types.
            self.use = msgspec.structs.replace(self.use, given=None)
        self.chosen = -1
        self.instantiate()
        return True

    def choose(self, place: int) -> bool:
        """Switch to another use; False if there is none of that number."""
        if not 0 <= place < len(self.uses):
            return False
        self.chosen = place
        self.use = self.uses[place]
        self.definition = Definition(self.use.fdef, self.functions.library)
        self._form = AttrForm(self.use.fdef.signature.attr, self.use.attrs)
        self.instantiate()
        return True

    def instantiate(self) -> None:
        """Instantiate the body for the form. After an error, the last body stays and `problem` is set."""
        missing = [field.name for field in self._form.fields() if field.name not in self._form.values]
        if missing:
            self.problem = f"A value is missing for: {', '.join(missing)}"
            return
        try:
            body = self._made()
            for node in body.graph.nodes:
                # Instantiation binds attrs without checking that the ops of the body allow them.
                validate_node_def(node.node_def, node.op_def)
            self.graph = self._graph_of(body)
            self.body = body
        except GraphError as error:
            self.problem = error.message
            return
        self.problem = ""

    def bound(self, callee: Callee) -> dict[str, AttrValue]:
        """Bind the attrs of a callee by those in the form; unbound attrs are left out."""
        values = self._form.values
        return {
            name: item for name, value in callee.function.attr.items() if (item := substitute_placeholders(values.get, value)) is not None
        }

    def _made(self) -> FunctionBody:
        fdef, attrs = self.use.fdef, {**self.use.attrs, **self._form.values}
        if self.functions.library.find(fdef.name) is fdef:
            return self.functions.body_of(fdef.name, attrs)
        return function_def_to_body(fdef, attrs, self.functions.library)

    def _graph_of(self, body: FunctionBody) -> Graph:
        arguments = None if self.use.given is None else list(self.use.given)
        if arguments is None and not self.use.device:
            return body.graph
        return call_body(Callee("", Func(self.name, {})), "", body, self.use.device, arguments, None).graph


class GradientSubject(Subject):
    """The gradient of a body: derived on the left, with the gradients of single ops inlined on the right.

    Args:
        of: the differentiated subject.

    Raises:
        GraphError: there is no gradient.
    """

    derived = True

    def __init__(self, of: Subject) -> None:
        assert of.body is not None
        self._gradient = symbolic_gradient(_with_free_names(of.body) if of.derived else of.body)
        fdef = graph_to_function_def(self._gradient.graph, f"{of.name}Grad")
        super().__init__(Use(fdef.name, fdef, {}, given=_gradient_arguments(of), device=of.use.device), of.functions, label=f"∇ {of.label}")

    def _made(self) -> FunctionBody:
        graph, _ = copy_sharing_library(self._gradient.graph)
        for _ in range(_ROUNDS):
            if not expand_inline_functions(_Gradients(self.functions), graph):
                break
            remove_list_array_converter(graph)
        remove_identity_nodes(graph)
        remove_dead_nodes(graph)
        return FunctionBody(None, self._gradient.arg_types, self._gradient.ret_types, graph)

    def _graph_of(self, body: FunctionBody) -> Graph:
        graph = super()._graph_of(body)
        added = [node.name for node in graph.nodes if node.name.startswith(f"{LABEL}/")]
        # Nodes added by differentiation are drawn as the backward part.
        graph.gradient_records.update(dict.fromkeys(added, GradientRecord("", None, {}, "")))
        return graph


def _with_free_names(body: FunctionBody) -> FunctionBody:
    """A body with the nodes of an earlier differentiation renamed, to avoid clashes with new ones."""
    taken = {node.name.partition("/")[0] for node in body.graph.nodes}
    free = next(f"{LABEL}{number}" for number in count(1) if f"{LABEL}{number}" not in taken)

    def renamed(name: str) -> str:
        return f"{free}{name.removeprefix(LABEL)}" if name.startswith(f"{LABEL}/") else name

    nodes = [
        msgspec.structs.replace(
            node.node_def,
            name=renamed(node.name),
            input=tuple([f"^{renamed(text[1:])}" if text.startswith("^") else renamed(text) for text in node.node_def.input]),
        )
        for node in body.graph.nodes
    ]
    return FunctionBody(body.fdef, body.arg_types, body.ret_types, graph_from_nodes(nodes, body.graph.library))


def _gradient_arguments(of: Subject) -> tuple[Tensor, ...] | None:
    """The arguments of a gradient: those of the function, and a gradient for each return."""
    if of.use.given is None:
        return None
    rets = {node.node_def.attr["index"]: node.inputs[0] for node in of.graph.nodes if node.op in RETVAL}
    return (*of.use.given, *[tensor for _, tensor in sorted(rets.items(), key=lambda item: str(item[0]).zfill(6))])


class _Gradients:
    """Instantiates gradients only: calls of functions remain calls, as written."""

    def __init__(self, functions: InstantiatedFunctions) -> None:
        self._functions = functions
        self.library: FunctionLibraryDefinition = functions.library

    def body_of(self, name: str, attrs: Attrs) -> FunctionBody:
        """See `InstantiatedFunctions.body_of`."""
        if name != GRADIENT_OP:
            raise GraphError(f"{name} stays a call", op=name)
        return self._functions.body_of(name, attrs)


def uses_in_graph(graph: Graph, names: Iterable[str]) -> Iterator[Use]:
    """The calls of functions of these names in a graph, each with its types and arguments."""
    wanted = frozenset(names)
    for node in graph.nodes:
        if calls_functions(node):
            yield from _uses_of(graph, node, wanted)


def first_uses(graph: Graph, names: Iterable[str]) -> list[Use]:
    """The first calls in a graph of functions of these names."""
    return list(islice(uses_in_graph(graph, names), MAX_USES))


def use_of(library: FunctionLibraryDefinition, node: Node, callee: Callee) -> Use | None:
    """The use of a function by a calling node; None for a gradient or an undefined function."""
    fdef = library.find(callee.function.name)
    if fdef is None or callee.gradient:
        return None
    arguments = callee_arguments(node)
    labels = ", ".join(tensor_label(tensor) for tensor in arguments or ())
    label = f"call {node.name}" + (f" · {callee.label}" if callee.label else "")
    return Use(
        label,
        fdef,
        dict(callee.function.attr),
        labels,
        None if arguments is None else tuple(arguments),
        node.assigned_device or node.device,
    )


def _uses_of(graph: Graph, node: Node, wanted: frozenset[str]) -> Iterator[Use]:
    for callee in callees(node):
        if callee.function.name not in wanted:
            continue
        use = use_of(graph.library, node, callee)
        if use is not None:
            yield use
