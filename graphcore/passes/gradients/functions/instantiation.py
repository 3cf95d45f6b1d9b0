"""Instantiation of functions by name and attrs: library functions, gradients of functions and ops."""

from __future__ import annotations

from collections.abc import Iterable

from graphcore.attrs import Attrs, Func
from graphcore.definitions import FunctionDef, NodeDef
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.functions import FunctionLibraryDefinition, canonicalize
from graphcore.functions.library import FUNC_ATTR, GRADIENT_OP
from graphcore.graph import copy_sharing_library
from graphcore.graph.shapes.function_shapes import FunctionShapes
from graphcore.passes.functions.function_body import FunctionBody, function_def_to_body
from graphcore.passes.functions.inline import inline_function_body
from graphcore.passes.gradients.bodies.resolved_dims import with_actual_sizes
from graphcore.passes.gradients.functions.symbolic_gradient import FULL, symbolic_gradient
from graphcore.registry import get_op_gradient_creator, op_registry


class InstantiatedFunctions:
    """The instantiated functions of one library, cached.

    Args:
        library: the functions. After a replacement, the function and all its callers are instantiated again.
    """

    def __init__(self, library: FunctionLibraryDefinition) -> None:
        self.library = library
        self._bodies: dict[str, _CachedBody] = {}
        self._inferred = FunctionShapes()

    def body_of(self, name: str, attrs: Attrs) -> FunctionBody:
        """Function `name` with these attrs; for SymbolicGradient the gradient of the function in attr `f`.

        The result is cached until a function it depends on is replaced.

        Raises:
            NotFoundError: no such function, or no gradient for such an op.
            InvalidArgumentError: the function cannot be instantiated for these attrs.
        """
        key = canonicalize(name, attrs)
        cached = self._bodies.get(key)
        if cached is None or not cached.is_current(self.library):
            cached = self._bodies[key] = _CachedBody(self._make(name, attrs), self.library, NodeDef("", name, (), "", attrs))
        return cached.body

    def _make(self, name: str, attrs: Attrs) -> FunctionBody:
        if name == GRADIENT_OP:
            return self._gradient(attrs)
        definition = self.library.find(name)
        if definition is None:
            raise NotFoundError(f"Function {name} is not defined.", op=name)
        return function_def_to_body(definition, attrs, self.library, self._inferred)

    def _gradient(self, attrs: Attrs) -> FunctionBody:
        function = attrs.get(FUNC_ATTR)
        if not isinstance(function, Func):
            raise InvalidArgumentError(f"SymbolicGradient is missing attr: {FUNC_ATTR}", op=GRADIENT_OP, attr=FUNC_ATTR)
        if function.name == GRADIENT_OP:
            raise InvalidArgumentError("Can't take gradient of SymbolicGradient", op=GRADIENT_OP)
        named = self.library.find_gradient(function.name)
        if named:
            return self._own_gradient(named, function)
        if function.name in self.library:
            return symbolic_gradient(self.without_gradients(self.body_of(function.name, function.attr)))
        creator = get_op_gradient_creator(function.name)
        if creator is None:
            raise InvalidArgumentError(f"No gradient is defined for {function.name}", op=function.name)
        entry = op_registry.look_up(function.name)
        creator = (entry.full_gradient if function.attr.get(FULL) is True else entry.exact_gradient) or creator
        public = {key: value for key, value in function.attr.items() if not key.startswith("_")}
        return function_def_to_body(with_actual_sizes(function.name, creator(public)), public, self.library)

    def _own_gradient(self, name: str, function: Func) -> FunctionBody:
        """The function that is declared as the gradient of another one.

        Raises:
            InvalidArgumentError: it does not fit that function.
        """
        gradient = self.body_of(name, function.attr)
        if function.name in self.library:
            forward = self.body_of(function.name, function.attr)
            required = [*forward.arg_types, *forward.ret_types], [*forward.arg_types]
            if required != ([*gradient.arg_types], [*gradient.ret_types]):
                raise InvalidArgumentError(
                    f"'{name}', the gradient of function '{function.name}', must take its arguments and a gradient for each result, "
                    f"({_names(required[0])}), and return a gradient for each argument, ({_names(required[1])}); "
                    f"it takes ({_names(gradient.arg_types)}) and returns ({_names(gradient.ret_types)})",
                    op=name,
                )
        return gradient

    def without_gradients(self, body: FunctionBody) -> FunctionBody:
        """The body with every SymbolicGradient node expanded, so that it can be differentiated again.

        Raises:
            InvalidArgumentError: one of them is for a recursive function.
        """
        if not any(node.op == GRADIENT_OP for node in body.graph.op_nodes()):
            return body
        graph, _ = copy_sharing_library(body.graph)
        while calls := [node for node in graph.op_nodes() if node.op == GRADIENT_OP]:
            for node in calls:
                self._require_end(node.node_def)
                inline_function_body(self.library, graph, node, self.body_of(GRADIENT_OP, node.node_def.attr))
        return FunctionBody(body.fdef, body.arg_types, body.ret_types, graph)

    def _require_end(self, gradient: NodeDef) -> None:
        """Refuse the gradient of a recursive function, the expansion of which would not end."""
        function = gradient.attr.get(FUNC_ATTR)
        definition = self.library.find(function.name) if isinstance(function, Func) else None
        if definition is not None and definition.name in self.library.reachable_definitions(definition.node_def):
            raise InvalidArgumentError(
                f"The gradient of {definition.name}, which calls itself, cannot be differentiated", op=GRADIENT_OP, node=gradient.name
            )


def _names(types: Iterable[DType]) -> str:
    return ", ".join([dtype.text for dtype in types])


class _CachedBody:
    """A body with the versions of the functions and gradients it depends on."""

    __slots__ = ("_call", "_functions", "_gradients", "_version", "body")

    def __init__(self, body: FunctionBody, library: FunctionLibraryDefinition, call: NodeDef) -> None:
        self.body = body
        self._call = call
        self._functions, self._gradients = _behind(library, call)
        self._version = library.version

    def is_current(self, library: FunctionLibraryDefinition) -> bool:
        """False if one of them has changed."""
        if self._version == library.version:
            return True
        functions, gradients = _behind(library, self._call)
        same = functions.keys() == self._functions.keys() and all(self._functions[name] is now for name, now in functions.items())
        if same and gradients == self._gradients:
            self._version = library.version
            return True
        return False


def _behind(library: FunctionLibraryDefinition, call: NodeDef) -> tuple[dict[str, FunctionDef], dict[str, str]]:
    functions = {function.name: function for function in library.reachable_definitions([call])}
    called = call.attr.get(FUNC_ATTR)
    names = [*functions, called.name] if isinstance(called, Func) else list(functions)
    return functions, {name: library.find_gradient(name) for name in names}
