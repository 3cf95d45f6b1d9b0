"""The function view: a definition beside its body for chosen attrs, with navigation into calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphcore.api import Function
from graphcore.attrs import AttrValue, as_attr_value
from graphcore.definitions import FunctionDef
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import Graph, get_default_graph
from graphcore.passes import InstantiatedFunctions
from widgets import requests
from widgets.function import FunctionSession, Subject, Use, first_uses
from widgets.live.function_display import to_function_bundle
from widgets.live.live_view import LiveView


class FunctionView(LiveView):
    """A live view of a function: its definition on the left, its body for chosen attrs on the right.

    Args:
        function: a `gc.function`, a FunctionDef, or the name of a function of the graph.
        graph: the graph with the functions and calls; the default graph by default.
        attrs: initial values; other attrs have their defaults.

    Raises:
        NotFoundError: the graph has no function of this name.
        InvalidArgumentError: the function was never called, so that it has no traces; or `attrs` are not attrs of it.
    """

    def __init__(
        self, function: Function | FunctionDef | str, graph: Graph | None = None, attrs: Mapping[str, object] | None = None
    ) -> None:
        where = get_default_graph() if graph is None else graph
        uses, library = _uses(function, where)
        first = _with_attrs(uses[0], attrs or {})
        subject = Subject(first, InstantiatedFunctions(library), [first, *uses[1:]] if len(uses) > 1 else [])
        self._session = FunctionSession(self._send_message)
        self._session.open(subject)
        super().__init__(subject.name, "function")

    @property
    def subject(self) -> Subject:
        """The current function with its form and body."""
        return self._session.subject

    def still_bundle(self) -> dict[str, str]:
        """The static picture and text, as MIME data."""
        return to_function_bundle(self.subject)

    def static_html(self) -> str:
        """The static picture and text, as HTML without script."""
        return self.still_bundle()["text/html"]

    def _answer(self, request: Any) -> None:
        match request:
            case requests.BackRequest(crumb=crumb):
                self._session.back(crumb)
            case _:
                self._session.answer(request)


def _uses(function: Function | FunctionDef | str, graph: Graph) -> tuple[list[Use], FunctionLibraryDefinition]:
    library = graph.library
    if isinstance(function, Function):
        made = [item for item in function.instantiations if library.find(item.fdef.name) is item.fdef] or function.instantiations
        if not made:
            raise InvalidArgumentError(f"{function.name} has not been called yet: it is traced for the types of its first call")
        traced = [Use(item.fdef.name, item.fdef, {}, ", ".join(dtype.text for dtype in item.input_types)) for item in made]
        return [*traced, *first_uses(graph, [item.fdef.name for item in made])], _library_with(library, [item.fdef for item in made])
    if isinstance(function, FunctionDef):
        extended = _library_with(library, [function])
        return [Use(function.name, function, {}), *(first_uses(graph, [function.name]) if extended is library else [])], extended
    definition = library.find(function)
    if definition is None:
        names = ", ".join(library.list_function_names()) or "none"
        raise NotFoundError(f"Function {function} is not defined. The functions of the graph are: {names}", op=function)
    return [Use(function, definition, {}), *first_uses(graph, [function])], library


def _library_with(library: FunctionLibraryDefinition, functions: list[FunctionDef]) -> FunctionLibraryDefinition:
    """The graph's library if it has these functions, else a copy of it with them added."""
    if all(library.find(function.name) is function for function in functions):
        return library
    extended = FunctionLibraryDefinition(library.default_registry, library.to_proto())
    for function in functions:
        if extended.find(function.name) is None and function.name not in extended.default_registry:
            extended.add_function_def(function)
    return extended


def _with_attrs(use: Use, attrs: Mapping[str, object]) -> Use:
    kinds = {attr.name: attr.type for attr in use.fdef.signature.attr}
    unknown = [name for name in attrs if name not in kinds]
    if unknown:
        raise InvalidArgumentError(
            f"{use.fdef.name} has no attr '{unknown[0]}'; its attrs are: {', '.join(kinds) or 'none'}", attr=unknown[0]
        )
    values: dict[str, AttrValue] = {name: as_attr_value(value, kinds[name]) for name, value in attrs.items()}
    return Use(use.label, use.fdef, {**use.attrs, **values}, use.detail)
