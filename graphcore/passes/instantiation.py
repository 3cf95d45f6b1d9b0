"""From a name and attrs to a function body: library functions, and gradients of functions and of ops."""

from __future__ import annotations

from graphcore.attrs import Attrs, Func
from graphcore.definitions import FunctionDef
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.functions import FunctionLibraryDefinition, canonicalize
from graphcore.functions.library import FUNC_ATTR, GRADIENT_OP
from graphcore.graph import copy_sharing_library
from graphcore.passes.function_body import FunctionBody, function_def_to_body
from graphcore.passes.inline import inline_function_body
from graphcore.passes.symbolic_gradient import symbolic_gradient
from graphcore.registry import get_op_gradient_creator


class InstantiatedFunctions:
    """The instantiated functions of one library, each made when first asked for.

    Args:
        library: the functions. One that is replaced in it is instantiated anew.
    """

    def __init__(self, library: FunctionLibraryDefinition) -> None:
        self.library = library
        self._bodies: dict[str, tuple[object, FunctionBody]] = {}

    def body_of(self, name: str, attrs: Attrs) -> FunctionBody:
        """Function `name` with these attrs; for SymbolicGradient the gradient of what attr `f` names.

        Raises:
            NotFoundError: no such function, or no gradient for such an op.
            InvalidArgumentError: the function cannot be instantiated for these attrs.
        """
        if name == GRADIENT_OP:
            return self._gradient(attrs)
        definition = self.library.find(name)
        if definition is None:
            raise NotFoundError(f"Function {name} is not defined.", op=name)
        return self._made(name, attrs, definition)

    def _made(self, name: str, attrs: Attrs, definition: FunctionDef) -> FunctionBody:
        key = canonicalize(name, attrs)
        known = self._bodies.get(key)
        if known is None or known[0] is not definition:
            known = self._bodies[key] = (definition, function_def_to_body(definition, attrs, self.library))
        return known[1]

    def _gradient(self, attrs: Attrs) -> FunctionBody:
        function = attrs.get(FUNC_ATTR)
        if not isinstance(function, Func):
            raise InvalidArgumentError(f"SymbolicGradient is missing attr: {FUNC_ATTR}", op=GRADIENT_OP, attr=FUNC_ATTR)
        if function.name == GRADIENT_OP:
            raise InvalidArgumentError("Can't take gradient of SymbolicGradient", op=GRADIENT_OP)
        named = self.library.find_gradient(function.name)
        if named:
            return self.body_of(named, function.attr)
        if function.name in self.library:
            return symbolic_gradient(self._without_gradients(self.body_of(function.name, function.attr)))
        creator = get_op_gradient_creator(function.name)
        if creator is None:
            raise InvalidArgumentError(f"No gradient is defined for {function.name}", op=function.name)
        public = {key: value for key, value in function.attr.items() if not key.startswith("_")}
        return self._made(f"{GRADIENT_OP} {function.name}", public, creator(public))

    def _without_gradients(self, body: FunctionBody) -> FunctionBody:
        """The body with every SymbolicGradient node replaced by what it stands for, so that it can be differentiated once more."""
        if not any(node.op == GRADIENT_OP for node in body.graph.op_nodes()):
            return body
        graph, _ = copy_sharing_library(body.graph)
        while calls := [node for node in graph.op_nodes() if node.op == GRADIENT_OP]:
            for node in calls:
                inline_function_body(self.library, graph, node, self.body_of(GRADIENT_OP, node.node_def.attr))
        return FunctionBody(body.fdef, body.arg_types, body.ret_types, graph)
