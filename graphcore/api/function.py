"""`gc.function`: Python functions traced to graph functions, once for each tuple of input types."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, overload
from weakref import WeakKeyDictionary, WeakSet

from graphcore.api.definitions_in_cells import enter_definition, latest_definition, set_latest_definition, tracing
from graphcore.attrs import AttrValue
from graphcore.brief import brief
from graphcore.definitions import FunctionDef
from graphcore.dtypes import DType
from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError
from graphcore.functions import FunctionLibraryDefinition, function_defs_equal
from graphcore.graph import FunctionGraph, Graph, Node, Tensor, as_constant_array, as_held_tensor, convert_to_tensor, get_default_graph
from graphcore.graph.following.redefining import redefine_function
from graphcore.graph.graph import outermost
from graphcore.passes.functions.defining import note_sources
from graphcore.passes.functions.graph_to_function import graph_to_function_def, normalized_name
from graphcore.runtime import Session, get_default_session
from graphcore.source import caller_location
from graphcore.tf1.variables.references import settle_references

_VARIABLE: Final = frozenset({inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")


class Instantiation:
    """The function traced from a Python function for one combination of input types.

    Attributes:
        input_types: the types it was traced for.
        fdef: the function.
        structure: the returned structure, with a number in the place of each tensor.
        captured: tensors of the graph that are used without being arguments; they are passed as additional last arguments.
    """

    __slots__ = ("_captured_as", "_owner", "_used", "captured", "fdef", "input_types", "structure")

    def __init__(
        self, owner: Function, input_types: tuple[DType, ...], fdef: FunctionDef, structure: Any, captured: Sequence[Tensor]
    ) -> None:
        self.input_types = input_types
        self.fdef = fdef
        self.structure = structure
        self.captured = tuple(captured)
        self._captured_as = [_kind(tensor) for tensor in captured]
        self._owner = owner
        self._used: list[Instantiation] = []

    def __repr__(self) -> str:
        return f"<gc.Instantiation {self.fdef.name}({', '.join([dtype.text for dtype in self.input_types])})>"

    def uses(self, other: Instantiation) -> None:
        """Record that the body of this one calls `other`."""
        self._used.append(other)

    @property
    def signature(self) -> object:
        """The name, the captured tensors, and the types of the results."""
        return self.fdef.name, self.captured, [(arg.name, arg.type) for arg in self.fdef.signature.output_arg]

    def trace_again(self, graph: Graph) -> Instantiation:
        """The instantiation for the same types of the function now defined by its cell.

        Raises:
            FailedPreconditionError: that function cannot be traced for these types.
        """
        return self._owner.current().traced_for(graph, self.input_types)

    def is_of(self, function: Function) -> bool:
        """True iff it was traced from `function`, or from a definition that `function` replaces."""
        return self._owner.succeeds_to(function)

    def is_current(self, library: FunctionLibraryDefinition) -> bool:
        """True iff tracing again gives the same result: captured tensors and called functions are current."""
        return (
            self._owner.current() is self._owner
            and library.find(self.fdef.name) is self.fdef
            and all(map(_is_in_graph, self.captured))
            and [_kind(tensor) for tensor in self.captured] == self._captured_as
            and all(other.is_current(library) for other in self._used)
        )


class Function:
    """A Python function that is traced to functions of the graph.

    A call with tensors, or values that become constants, adds one call node to the default graph. A call with arrays only, in the presence
    of a default session, runs it and returns arrays.

    Args:
        python_function: takes tensors, returns a tensor or (nested) tuples, lists and dicts of tensors. It is called once for each
            combination of input types. Variables and tensors of the surrounding graph that it uses become further arguments, supplied by
            every call; gradients reach them.
        name: the name in the graph; the Python function's name by default.

    Other threads that build the same graph wait during tracing. So the function must not wait for one of them (join it, take its result):
    both would wait for ever. Let such a thread finish before the first call, or build a separate graph.
    """

    def __init__(self, python_function: Callable[..., Any], name: str | None = None) -> None:
        self.python_function = python_function
        self.name = _NOT_IN_NAMES.sub("_", name or python_function.__name__).lstrip("_") or "function"
        self.signature = inspect.signature(python_function)
        self._traced: WeakKeyDictionary[Graph, dict[tuple[DType, ...], Instantiation]] = WeakKeyDictionary()
        self._graphs: WeakSet[Graph] = WeakSet()
        self._place = enter_definition(self.name)
        earlier = latest_definition(self._place)
        set_latest_definition(self._place, self)
        self.source = caller_location()
        functools.update_wrapper(self, python_function)
        if isinstance(earlier, Function):
            for graph in list(earlier._graphs):
                self._graphs.add(graph)
                graph.derivations.reconsider()

    def __repr__(self) -> str:
        return f"<gc.Function {self.name}{self.signature}>"

    @property
    def instantiations(self) -> list[Instantiation]:
        """The instantiations, one for each graph and combination of input types, in order of first use."""
        return [instantiation for of_graph in self._traced.values() for instantiation in of_graph.values()]

    def succeeds_to(self, other: Function) -> bool:
        """True iff `other` is this function, or was defined at the same place of the same cell."""
        return self is other or (self._place is not None and self._place == other._place)

    def return_to_force(self) -> None:
        """Make this the latest definition in its place again, after a later one was taken back."""
        set_latest_definition(self._place, self)

    def current(self) -> Function:
        """The latest definition in its place: itself unless its cell has run again."""
        latest = latest_definition(self._place)
        return latest if isinstance(latest, Function) else self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; see the class. The latest definition is called if its cell has run again.

        Raises:
            InvalidArgumentError: an argument cannot be converted to a tensor, or the function returns something other than tensors.
        """
        current = self.current()
        if current is not self:
            return current(*args, **kwargs)
        labels, values = self.flat_arguments(args, kwargs)
        session, graph = get_default_session(), get_default_graph()
        in_graph = any(isinstance(value, Tensor) or hasattr(value, "as_tensor") for value in values)
        if session is not None and session.graph is graph and values and not in_graph:
            return self._run(session, labels, values)
        call = _Call(self, graph, args, kwargs)
        return graph.derivations.derive(f"the call of function '{self.name}'", call.build, fingerprint=call.fingerprint)

    def flat_arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
        """The names and values of the arguments of a call, one for each tensor."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return self._flat(bound.arguments)

    def call_node(self, graph: Graph, labels: list[str], values: list[Any]) -> tuple[Any, Node]:
        """Add a call node for these values. Returns it with the structure of the result."""
        tensors = [
            convert_to_tensor(graph, as_held_tensor(graph, value), None, f"argument {label} of {self.name}")
            for label, value in zip(labels, values, strict=True)
        ]
        instantiation = self._instantiate(graph, labels, tuple([tensor.dtype.base for tensor in tensors]))
        return instantiation.structure, graph.apply_op(instantiation.fdef.name, [*tensors, *instantiation.captured], None, self.name)

    def _run(self, session: Session, labels: list[str], values: list[Any]) -> Any:
        arrays = [as_constant_array(value, None, f"argument {label} of {self.name}") for label, value in zip(labels, values, strict=True)]
        instantiation = self._instantiate(session.graph, labels, tuple([array.dtype for array in arrays]))
        handle = session.functions.instantiate(instantiation.fdef.name)
        captured = session.run(list(instantiation.captured)) if instantiation.captured else []
        return _filled(instantiation.structure, session.functions.run(handle, [*[array.array for array in arrays], *captured]))

    def _flat(self, arguments: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
        labels: list[str] = []
        values: list[Any] = []
        for name, value in arguments.items():
            kind = self.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD and value:
                raise InvalidArgumentError(
                    f"Function {self.name} takes **{name}, and a graph function's arguments must be known beforehand"
                )
            many = kind is inspect.Parameter.VAR_POSITIONAL
            values += value if many else [] if kind is inspect.Parameter.VAR_KEYWORD else [value]
            labels += [f"{name}_{i}" for i in range(len(value))] if many else [] if kind is inspect.Parameter.VAR_KEYWORD else [name]
        return labels, values

    def _instantiate(self, graph: Graph, labels: list[str], types: tuple[DType, ...]) -> Instantiation:
        root = outermost(graph)
        with root.lock:  # concurrent calls share one result, and a rollback of the library affects no other thread
            return self._instantiated(graph, root, labels, types)

    def _instantiated(self, graph: Graph, root: Graph, labels: list[str], types: tuple[DType, ...]) -> Instantiation:
        earlier = self.known(graph, types)
        if earlier is not None:
            return self._note_use(earlier)
        root.refuse_finalized()
        before = graph.library.state()
        try:
            instantiation = self._trace(graph, labels, types)
            graph.library.add_function_def(instantiation.fdef)
        except BaseException:
            graph.library.restore(before)
            raise
        # An instantiation that uses values of the function being traced serves that function alone.
        place = root if all(tensor.graph is root for tensor in instantiation.captured) else graph
        self._traced.setdefault(place, {})[types] = instantiation
        self._graphs.add(root)
        _record_instantiation(graph.library, instantiation, before[1].get(instantiation.fdef.name))
        return self._note_use(instantiation)

    def traced_for(self, graph: Graph, types: tuple[DType, ...]) -> Instantiation:
        """The instantiation for arguments of these types.

        Raises:
            FailedPreconditionError: the number of arguments differs, or Python fails during tracing.
        """
        try:
            labels, _ = self.flat_arguments(types, {})
            return self._instantiate(graph, labels, types)
        except Exception as error:
            raise self.refusal(error) from error

    def refusal(self, error: Exception) -> FailedPreconditionError:
        """The error for a call that does not fit."""
        text = error.message if isinstance(error, GraphError) else f"{type(error).__name__}: {error}"
        return FailedPreconditionError(f"function '{self.name}' of {self.source.where} refuses it: {text}")

    def known(self, graph: Graph, types: tuple[DType, ...]) -> Instantiation | None:
        """The current instantiation for these types, None if there is none."""
        for place in (outermost(graph), graph):
            instantiation = self._traced.get(place, {}).get(types)
            if instantiation is not None and instantiation.is_current(graph.library):
                return instantiation
        return None

    @staticmethod
    def _note_use(instantiation: Instantiation) -> Instantiation:
        calls = tracing.get()
        if calls is not None:
            calls.append(instantiation)
        return instantiation

    def _trace(self, graph: Graph, labels: list[str], types: tuple[DType, ...]) -> Instantiation:
        body = FunctionGraph.within(graph, self.name)
        tensors = []
        for index, (label, dtype) in enumerate(zip(labels, types, strict=True)):
            attrs: dict[str, AttrValue] = {"T": dtype, "index": index}
            tensors.append(body.apply_op("_Arg", (), attrs, normalized_name(label)).outputs[0])
        used: list[Instantiation] = []
        token = tracing.set(used)
        try:
            with body.as_default():
                result = self._call_python(tensors)
        finally:
            tracing.reset(token)
        settle_references(body)
        with body.as_default():
            outputs: list[tuple[str, Tensor]] = []
            structure = self._numbered(body, result, "output", outputs)
            for index, (label, tensor) in enumerate(outputs):
                body.apply_op("_Retval", [tensor], {"index": index}, f"{normalized_name(label)}_RetVal")
        definition = self._defined(graph, body)
        note_sources(graph.library, definition.name, body)
        instantiation = Instantiation(self, types, definition, structure, [_origin(tensor) for tensor in body.captures])
        for other in used:
            instantiation.uses(other)
        return instantiation

    def _call_python(self, tensors: list[Tensor]) -> Any:
        left = iter(tensors)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        parameters = self.signature.parameters
        for name, parameter in parameters.items():
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                positional += islice(left, len(tensors) - sum(other.kind not in _VARIABLE for other in parameters.values()))
            elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                named[name] = next(left)
            elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                positional.append(next(left))
        return self.python_function(*positional, **named)

    def _numbered(self, graph: Graph, value: Any, label: str, outputs: list[tuple[str, Tensor]]) -> Any:
        """Replace each tensor in the structure `value` by a number; the tensors are added to `outputs`."""
        if value is None:
            return None
        if isinstance(value, dict):
            return {key: self._numbered(graph, item, f"{label}_{key}", outputs) for key, item in value.items()}
        if isinstance(value, list | tuple):
            items = [self._numbered(graph, item, f"{label}_{index}", outputs) for index, item in enumerate(value)]
            return items if isinstance(value, list) else tuple(items)
        outputs.append((label, convert_to_tensor(graph, value, None, f"what {self.name} returns")))
        return len(outputs) - 1

    def _defined(self, graph: Graph, body: FunctionGraph) -> FunctionDef:
        """Add a function with this body to the library, or reuse an equal one (from an earlier run).

        A definition from an earlier run of its cell passes its name on.
        """
        name, count = self.name, 0
        while name in graph.library or name in graph.registry:
            earlier = graph.library.find(name)
            definition = graph_to_function_def(body, name)
            if earlier is not None and function_defs_equal(earlier, definition):
                return earlier
            if earlier is not None and self._may_replace(graph, earlier):
                redefine_function(outermost(graph), definition, self.source.where)
                return definition
            count += 1
            name = f"{self.name}_{count}"
        return graph_to_function_def(body, name)

    def _may_replace(self, graph: Graph, earlier: FunctionDef) -> bool:
        """True iff `earlier` was traced from this function, or from one it replaces, and is outdated."""
        instantiation = _instantiation_of(graph.library, earlier)
        return instantiation is not None and instantiation.is_of(self) and not instantiation.is_current(graph.library)


_instantiations: Final[WeakKeyDictionary[FunctionLibraryDefinition, dict[str, list[Instantiation]]]] = WeakKeyDictionary()
"""The instantiations made for each library, by name: the current one, and former ones that may return."""


def _instantiation_of(library: FunctionLibraryDefinition, function: FunctionDef) -> Instantiation | None:
    return next(
        (instantiation for instantiation in _instantiations.get(library, {}).get(function.name, ()) if instantiation.fdef is function), None
    )


def _record_instantiation(library: FunctionLibraryDefinition, instantiation: Instantiation, before: FunctionDef | None) -> None:
    by_name = _instantiations.setdefault(library, {})
    by_name[instantiation.fdef.name] = [
        *[other for other in by_name.get(instantiation.fdef.name, ()) if other.fdef is before and before is not instantiation.fdef],
        instantiation,
    ]


class _Call:
    """One call of a function: adds its node, and rebuilds it after a redefinition."""

    def __init__(self, function: Function, graph: Graph, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.function = function
        self.graph = graph
        self.args = args
        self.kwargs = kwargs
        self.first: tuple[Any, tuple[DType, ...]] | None = None

    def build(self) -> Any:
        """The results of the call.

        Raises:
            FailedPreconditionError: the function was redefined with another signature, or cannot be traced any more.
        """
        function = self.function.current()
        if self.first is None:
            structure, node = function.call_node(self.graph, *function.flat_arguments(self.args, self.kwargs))
            self.first = structure, node.output_types
            return _filled(structure, node.outputs)
        try:
            structure, node = function.call_node(self.graph, *self._arguments(function))
        except Exception as error:
            raise function.refusal(error) from error
        if (structure, node.output_types) != self.first:
            signatures = [", ".join([dtype.text for dtype in types]) for types in (self.first[1], node.output_types)]
            raise FailedPreconditionError(
                f"function '{function.name}', defined again in {function.source.where}, has another signature: it gave ({signatures[0]}) and gives "
                f"({signatures[1]})"
            )
        return _filled(structure, node.outputs)

    def fingerprint(self) -> object:
        """The current function and the argument types: all that the node depends on besides its inputs."""
        function = self.function.current()
        try:
            _, values = self._arguments(function)
            types = tuple([_dtype_of(self.graph, value) for value in values])
        except (GraphError, TypeError):  # rebuilding the node reports the error
            return None
        return types, id(function.known(self.graph, types))

    def _arguments(self, function: Function) -> tuple[list[str], list[Any]]:
        labels, values = function.flat_arguments(self.args, self.kwargs)
        return labels, [self.graph.present(value) if isinstance(value, Tensor) else value for value in values]


def _dtype_of(graph: Graph, value: Any) -> DType:
    held = as_held_tensor(graph, value)
    return held.dtype.base if isinstance(held, Tensor) else as_constant_array(held, None, "an argument").dtype


@overload
def function(python_function: Callable[..., Any], *, name: str | None = None) -> Function: ...


@overload
def function(python_function: None = None, *, name: str | None = None) -> Callable[[Callable[..., Any]], Function]: ...


def function(python_function: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Make a graph function of a Python function; a decorator, with or without arguments.

    Args:
        python_function: takes and returns tensors.
        name: the name in the graph.

    Raises:
        InvalidArgumentError: it is no function.

    Example:
        >>> @gc.function
        ... def double(v):
        ...     return v + v
        >>> print(gc.Session().run(double(gc.constant(4.0))))
        8.0
    """
    if python_function is None:
        return lambda decorated: function(decorated, name=name)
    target: Any = python_function
    if not callable(target) or not (name or hasattr(target, "__name__")):
        raise InvalidArgumentError(
            f"gc.function takes a Python function, whose types come from each call (a callable without a name needs name=); "
            f"got {brief(python_function)} ({type(python_function).__name__})"
        )
    return Function(python_function, name)


def _origin(tensor: Tensor) -> Tensor:
    """The captured tensor that an argument represents."""
    graph = tensor.graph
    while isinstance(graph, FunctionGraph):
        origin = next((outer for outer, argument in graph.captures.items() if argument is tensor), None)
        if origin is None:
            break
        tensor, graph = origin, origin.graph
    return tensor


def _kind(tensor: Tensor) -> tuple[DType, str]:
    return tensor.dtype, str(tensor.shape)


def _is_in_graph(tensor: Tensor) -> bool:
    """True iff a captured tensor is unchanged in its graph."""
    return tensor.node.graph.find(tensor.node.name) is tensor.node


def _filled(structure: Any, values: Sequence[Any]) -> Any:
    if isinstance(structure, dict):
        return {key: _filled(item, values) for key, item in structure.items()}
    if isinstance(structure, list):
        return [_filled(item, values) for item in structure]
    if isinstance(structure, tuple):
        return tuple([_filled(item, values) for item in structure])
    return None if structure is None else values[structure]
