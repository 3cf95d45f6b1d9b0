"""FunctionLibraryDefinition: the functions of a graph by name, with an op registry behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

from graphcore.attrs import AttrValue, Func
from graphcore.definitions.op_def_validation import validate_function_names
from graphcore.definitions.types import FunctionDef, FunctionDefLibrary, GradientDef, GraphDef, NodeDef, OpDef
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.functions.equality import function_defs_equal
from graphcore.inference.shape_fns.common_shape_fns import function_call_shape
from graphcore.registry import OpRegistration, OpRegistry, op_registry
from graphcore.support.critical_section import critical_section

GRADIENT_OP: Final = "SymbolicGradient"
FUNC_ATTR: Final = "f"


class Companion(Protocol):
    """State of a library: rolled back with the library, and notified when nodes are removed."""

    def state(self) -> Any:
        """A snapshot for `restore`."""

    def restore(self, state: Any) -> None:
        """Return to the snapshot `state`; None for a time before this object existed."""

    def sweep(self, graph: Any) -> None:
        """Forget the functions that nodes of `graph` do not call any more. Called when nodes have been removed."""


LibraryState = tuple[dict[str, OpRegistration], dict[str, FunctionDef], dict[str, str], bytes, bool, list[tuple[Companion, Any]]]


class _HasNodeDef(Protocol):
    @property
    def node_def(self) -> NodeDef: ...


class FunctionLibraryDefinition:
    """Functions by name, their registered gradients, and an op registry for other names.

    Args:
        default_registry: the registry for names that are not functions; the global registry by default.
        library: initial functions; of several with one name the last counts.

    Attributes:
        version: incremented by every change, so that caches can be invalidated.
        companions: state that is rolled back together with the library.
        finalized: True makes every change a FailedPreconditionError; set when the graph of the library is finalized.
    """

    def __init__(self, default_registry: OpRegistry | None = None, library: FunctionDefLibrary | None = None) -> None:
        self.default_registry = op_registry if default_registry is None else default_registry
        self._functions: dict[str, OpRegistration] = {}
        self._definitions: dict[str, FunctionDef] = {}
        self._gradients: dict[str, str] = {}
        self.version = 0
        self.companions: list[Companion] = []
        self.finalized = False
        self._other_fields = b"" if library is None else library.other_fields
        for function in () if library is None else library.function:
            validate_function_names(function.signature)
            self._set(function)
        for gradient in () if library is None else library.gradient:
            self._gradients[gradient.function_name] = gradient.gradient_func

    def __repr__(self) -> str:
        return f"<gc.FunctionLibraryDefinition {self.num_functions} functions, {len(self._gradients)} gradients>"

    @classmethod
    def over(cls, source: OpRegistry | FunctionLibraryDefinition | None) -> FunctionLibraryDefinition:
        """Make a library over a registry (None: the global one) or with the contents of another library."""
        if isinstance(source, FunctionLibraryDefinition):
            return cls(source.default_registry, source.to_proto())
        return cls(source)

    def contains(self, name: str) -> bool:
        """True iff there is a function of this name."""
        return name in self._definitions

    def __contains__(self, name: object) -> bool:
        return name in self._definitions

    def __iter__(self) -> Iterator[FunctionDef]:
        return iter(list(self._definitions.values()))

    def __len__(self) -> int:
        return len(self._definitions)

    @property
    def num_functions(self) -> int:
        """The number of functions."""
        return len(self._definitions)

    def list_function_names(self) -> list[str]:
        """The names of the functions, in the order in which they were added."""
        return list(self._definitions)

    def find(self, name: str) -> FunctionDef | None:
        """The function of this name, None if there is none."""
        return self._definitions.get(name)

    def find_gradient(self, name: str) -> str:
        """The function that is the gradient of function `name`, an empty string if none is."""
        return self._gradients.get(name, "")

    def look_up(self, name: str) -> OpRegistration:
        """The function as an op, or the op of this name.

        Raises:
            NotFoundError: there is neither.
        """
        return self._functions.get(name) or self.default_registry.look_up(name)

    def look_up_op_def(self, name: str) -> OpDef:
        """The signature of the function or op of this name.

        Raises:
            NotFoundError: there is neither.
        """
        return self.look_up(name).op_def

    def add_function_def(self, function: FunctionDef) -> None:
        """Add a function; an equal one may be there already.

        Raises:
            InvalidArgumentError: a different function or an op has its name.
        """
        self._refuse_finalized()
        if self._may_add(function, self._definitions):
            self._set(function)

    def add_gradient_def(self, gradient: GradientDef) -> None:
        """Declare `gradient_func` as the gradient of a function; neither need exist yet.

        Raises:
            InvalidArgumentError: another one is declared already.
        """
        self._refuse_finalized()
        _require_gradient_fits(gradient, self._gradients)
        self._set_gradient(gradient)

    def add_library(self, library: FunctionDefLibrary | FunctionLibraryDefinition) -> None:
        """Add all functions and gradients of another library, or none of them.

        Raises:
            InvalidArgumentError: one conflicts with this library or with another one of `other`.
        """
        self._refuse_finalized()
        other = library.to_proto() if isinstance(library, FunctionLibraryDefinition) else library
        functions = dict(self._definitions)
        gradients = dict(self._gradients)
        for function in other.function:
            if self._may_add(function, functions):
                functions[function.name] = function
        for gradient in other.gradient:
            _require_gradient_fits(gradient, gradients)
            gradients[gradient.function_name] = gradient.gradient_func
        with critical_section:
            for name, function in functions.items():
                if name not in self._definitions:
                    self._set(function)
            if gradients != self._gradients:
                self._gradients = gradients
                self.version += 1
            if other.other_fields not in self._other_fields:
                # Concatenated serialised messages are the serialised merged message.
                self._other_fields += other.other_fields

    def replace_function(self, name: str, function: FunctionDef) -> None:
        """Replace function `name` by `function`.

        Raises:
            InvalidArgumentError: there is no function `name`, or the new one's name is taken.
        """
        self._refuse_finalized()
        self._require_function(name)
        others = {other: definition for other, definition in self._definitions.items() if other != name}
        is_new = self._may_add(function, others)
        with critical_section:
            self.remove_function(name)
            if is_new:
                self._set(function)

    def replace_gradient(self, gradient: GradientDef) -> None:
        """Replace the gradient of a function.

        Raises:
            InvalidArgumentError: the function has no gradient yet.
        """
        self._refuse_finalized()
        self._require_gradient(gradient.function_name)
        self._set_gradient(gradient)

    def remove_function(self, name: str) -> None:
        """Remove a function.

        Raises:
            InvalidArgumentError: there is none of this name.
        """
        self._refuse_finalized()
        self._require_function(name)
        with critical_section:
            del self._definitions[name]
            del self._functions[name]
            self.version += 1

    def remove_gradient(self, name: str) -> None:
        """Remove the gradient of `name`.

        Raises:
            InvalidArgumentError: there is none.
        """
        self._refuse_finalized()
        self._require_gradient(name)
        del self._gradients[name]
        self.version += 1

    def clear(self) -> None:
        """Remove all functions and gradients."""
        self._refuse_finalized()
        with critical_section:
            self._functions.clear()
            self._definitions.clear()
            self._gradients.clear()
            self.version += 1
            self._other_fields = b""

    def unique_function_name(self, prefix: str) -> str:
        """`prefix` and the smallest number from 0 on that makes a name not in use."""
        number = 0
        while f"{prefix}{number}" in self._definitions:
            number += 1
        return f"{prefix}{number}"

    def get_attr(self, node: NodeDef | _HasNodeDef, name: str) -> AttrValue:
        """Attr `name` of the function that the node calls.

        For a SymbolicGradient, it is the attr of the registered gradient function, or else of the function itself.

        Raises:
            InvalidArgumentError: no such function, or it has no such attr.
        """
        function = self._called_by(node if isinstance(node, NodeDef) else node.node_def)
        if function is None or name not in function.attr:
            raise InvalidArgumentError(f"Attr {name} is not defined.", attr=name)
        return function.attr[name]

    def reachable_definitions(self, start: GraphDef | FunctionDef | Iterable[NodeDef]) -> FunctionLibraryDefinition:
        """The sub-library of functions reachable from the nodes, with their gradients.

        Reachable functions are those called, or named in attrs, directly or through other functions.
        """
        nodes = start.node if isinstance(start, GraphDef) else start.node_def if isinstance(start, FunctionDef) else start
        waiting = [name for node in nodes for name in names_in_node(node)]
        reachable = FunctionLibraryDefinition(self.default_registry)
        while waiting:
            name = waiting.pop()
            function = self._definitions.get(name)
            if function is None or name in reachable:
                continue
            reachable._set(function)
            waiting += [inner for node in function.node_def for inner in names_in_node(node)]
            if name in self._gradients:
                reachable._gradients[name] = self._gradients[name]
                waiting.append(self._gradients[name])
        return reachable

    def to_proto(self) -> FunctionDefLibrary:
        """The functions and gradients as a value."""
        gradients = tuple([GradientDef(name, gradient) for name, gradient in self._gradients.items()])
        return FunctionDefLibrary(tuple(self._definitions.values()), gradients, self._other_fields)

    def copy(self) -> FunctionLibraryDefinition:
        """A library of its own with the same functions and gradients."""
        return FunctionLibraryDefinition(self.default_registry, self.to_proto())

    def state(self) -> LibraryState:
        """A snapshot for `restore`."""
        beside = [(companion, companion.state()) for companion in self.companions]
        return dict(self._functions), dict(self._definitions), dict(self._gradients), self._other_fields, self.finalized, beside

    def restore(self, state: LibraryState) -> None:
        """Return to the snapshot `state`."""
        with critical_section:
            self._functions, self._definitions, self._gradients, self._other_fields, self.finalized, beside = state
            self.version += 1
            states = {id(companion): kept for companion, kept in beside}
            for companion in self.companions:
                companion.restore(states.get(id(companion)))

    def _called_by(self, node: NodeDef) -> FunctionDef | None:
        if node.op != GRADIENT_OP:
            return self._definitions.get(node.op)
        forward = node.attr.get(FUNC_ATTR)
        if not isinstance(forward, Func):
            return None
        return self._definitions.get(self._gradients.get(forward.name) or forward.name)

    def _set(self, function: FunctionDef) -> None:
        self._definitions[function.name] = function
        self._functions[function.name] = OpRegistration(function.signature, function_call_shape, is_function=True)
        self.version += 1

    def _set_gradient(self, gradient: GradientDef) -> None:
        if self._gradients.get(gradient.function_name) != gradient.gradient_func:
            self._gradients[gradient.function_name] = gradient.gradient_func
            self.version += 1

    def _may_add(self, function: FunctionDef, functions: dict[str, FunctionDef]) -> bool:
        """False if an equal function is there already."""
        name = function.name
        validate_function_names(function.signature)
        present = functions.get(name)
        if present is not None and not function_defs_equal(present, function):
            raise InvalidArgumentError(
                f"Cannot add function '{name}' because a different function with the same name already exists.", op=name
            )
        if present is None and name in self.default_registry:
            raise InvalidArgumentError(f"Cannot add function '{name}' because an op with the same name already exists.", op=name)
        return present is None

    def _refuse_finalized(self) -> None:
        if self.finalized:
            raise FailedPreconditionError("The graph has been finalized and cannot be modified, nor can its functions")

    def _require_function(self, name: str) -> None:
        if name not in self._definitions:
            raise InvalidArgumentError(f"Tried to remove non-existent function '{name}'.", op=name)

    def _require_gradient(self, name: str) -> None:
        if name not in self._gradients:
            raise InvalidArgumentError(f"Tried to remove non-existent gradient '{name}'.", op=name)


def _require_gradient_fits(gradient: GradientDef, gradients: dict[str, str]) -> None:
    name, present = gradient.function_name, gradients.get(gradient.function_name)
    if present is not None and present != gradient.gradient_func:
        raise InvalidArgumentError(
            f"Cannot assign gradient function '{gradient.gradient_func}' to '{name}' because it already has gradient function '{present}'",
            op=name,
        )


def names_in_node(node: NodeDef) -> list[str]:
    """The op of a node, and the functions that its attrs name."""
    names = [node.op]
    for value in node.attr.values():
        if isinstance(value, (Func, tuple)):
            names += _names_in_value(value)
    return names


def _names_in_value(value: AttrValue) -> list[str]:
    if isinstance(value, Func):
        return [value.name, *[name for item in value.attr.values() for name in _names_in_value(item)]]
    return [name for item in value for name in _names_in_value(item)] if isinstance(value, tuple) else []
