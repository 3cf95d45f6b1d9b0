"""`gc.function`: a Python function becomes a function of the graph, traced once for each combination of input types."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, overload
from weakref import WeakKeyDictionary

from graphcore.attrs import AttrValue
from graphcore.brief import brief
from graphcore.definitions import FunctionDef
from graphcore.dtypes import DType
from graphcore.errors import InvalidArgumentError
from graphcore.functions import function_defs_equal
from graphcore.graph import FunctionGraph, Graph, Tensor, as_constant_array, as_held_tensor, convert_to_tensor, get_default_graph
from graphcore.graph.single_change import refuse_finalized
from graphcore.passes.defining import note_sources
from graphcore.passes.graph_to_function import graph_to_function_def, normalized_name
from graphcore.runtime import Session, get_default_session

_VARIABLE: Final = frozenset({inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")


class Instantiation:
    """What a Python function has become for one combination of input types.

    Attributes:
        input_types: the types it was traced for.
        fdef: the function.
        structure: what the Python function returned, a number in the place of each tensor.
        captured: the tensors of the graph that it uses without being given them; they are its last arguments.
    """

    __slots__ = ("captured", "fdef", "input_types", "structure")

    def __init__(self, input_types: tuple[DType, ...], fdef: FunctionDef, structure: Any, captured: Sequence[Tensor] = ()) -> None:
        self.input_types = input_types
        self.fdef = fdef
        self.structure = structure
        self.captured = tuple(captured)

    def __repr__(self) -> str:
        return f"<gc.Instantiation {self.fdef.name}({', '.join([dtype.name for dtype in self.input_types])})>"


class Function:
    """A Python function that is traced into functions of the graph.

    Called with tensors (or what becomes constants) it adds one call node to the default graph; called with arrays alone while a session is
    the default, it runs and gives arrays.

    Args:
        python_function: takes tensors, gives a tensor or (nested) tuples, lists and dicts of tensors. It is called once for each
            combination of input types. Variables and tensors of the graph around it that it uses become further arguments, which every call
        hands over; gradients reach them.
        name: what the function is called in the graph; the Python function's name unless given.

    While it is traced other threads that build the same graph wait. So it must not wait for one of them (join it, take its result): neither
    would ever go on. Let such a thread finish before the first call, or build a graph of its own.
    """

    def __init__(self, python_function: Callable[..., Any], name: str | None = None) -> None:
        self.python_function = python_function
        self.name = _NOT_IN_NAMES.sub("_", name or python_function.__name__).lstrip("_") or "function"
        self.signature = inspect.signature(python_function)
        self._traced: WeakKeyDictionary[Graph, dict[tuple[DType, ...], Instantiation]] = WeakKeyDictionary()
        functools.update_wrapper(self, python_function)

    def __repr__(self) -> str:
        return f"<gc.Function {self.name}{self.signature}>"

    @property
    def instantiations(self) -> list[Instantiation]:
        """One a graph and combination of input types, in the order in which they were first used."""
        return [made for of_graph in self._traced.values() for made in of_graph.values()]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it; see the class.

        Raises:
            InvalidArgumentError: an argument is no value of a tensor, or the function gives something else than tensors.
        """
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        labels, values = self._flat(bound.arguments)
        session, graph = get_default_session(), get_default_graph()
        in_graph = any(isinstance(value, Tensor) or hasattr(value, "as_tensor") for value in values)
        if session is not None and session.graph is graph and values and not in_graph:
            return self._run(session, labels, values)
        tensors = [
            convert_to_tensor(graph, as_held_tensor(graph, value), None, f"argument {label} of {self.name}")
            for label, value in zip(labels, values, strict=True)
        ]
        made = self._instantiate(graph, labels, tuple([tensor.dtype.base for tensor in tensors]))
        node = graph.apply_op(made.fdef.name, [*tensors, *made.captured], None, self.name)
        return _filled(made.structure, node.outputs)

    def _run(self, session: Session, labels: list[str], values: list[Any]) -> Any:
        arrays = [as_constant_array(value, None, f"argument {label} of {self.name}") for label, value in zip(labels, values, strict=True)]
        made = self._instantiate(session.graph, labels, tuple([array.dtype for array in arrays]))
        handle = session.functions.instantiate(made.fdef.name)
        captured = session.run(list(made.captured)) if made.captured else []
        return _filled(made.structure, session.functions.run(handle, [*[array.array for array in arrays], *captured]))

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
        outermost = _outermost(graph)
        with outermost.lock:  # two threads that need it at once get the same; what is taken back of the library is nobody else's
            return self._instantiated(graph, outermost, labels, types)

    def _instantiated(self, graph: Graph, outermost: Graph, labels: list[str], types: tuple[DType, ...]) -> Instantiation:
        for place in (outermost, graph):
            known = self._traced.get(place, {}).get(types)
            if known is not None and graph.library.find(known.fdef.name) is known.fdef and all(map(_is_there, known.captured)):
                return known
        refuse_finalized(outermost)
        before = graph.library.state()
        try:
            made = self._trace(graph, labels, types)
            graph.library.add_function_def(made.fdef)
        except BaseException:
            graph.library.restore(before)
            raise
        # One that uses values of the function that is being traced serves that function alone.
        place = outermost if all(tensor.graph is outermost for tensor in made.captured) else graph
        self._traced.setdefault(place, {})[types] = made
        return made

    def _trace(self, graph: Graph, labels: list[str], types: tuple[DType, ...]) -> Instantiation:
        body = FunctionGraph.within(graph, self.name)
        tensors = []
        for index, (label, dtype) in enumerate(zip(labels, types, strict=True)):
            attrs: dict[str, AttrValue] = {"T": dtype, "index": index}
            tensors.append(body.apply_op("_Arg", (), attrs, normalized_name(label)).outputs[0])
        with body.as_default():
            result = self._call_python(tensors)
            found: list[tuple[str, Tensor]] = []
            structure = self._numbered(body, result, "output", found)
            for index, (label, tensor) in enumerate(found):
                body.apply_op("_Retval", [tensor], {"index": index}, f"{normalized_name(label)}_RetVal")
        made = self._defined(graph, body)
        note_sources(graph.library, made.name, body)
        return Instantiation(types, made, structure, [_origin(tensor) for tensor in body.captures])

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

    def _numbered(self, graph: Graph, value: Any, label: str, found: list[tuple[str, Tensor]]) -> Any:
        """The structure of `value` with a number in the place of each tensor, which is put into `found`."""
        if value is None:
            return None
        if isinstance(value, dict):
            return {key: self._numbered(graph, item, f"{label}_{key}", found) for key, item in value.items()}
        if isinstance(value, list | tuple):
            items = [self._numbered(graph, item, f"{label}_{index}", found) for index, item in enumerate(value)]
            return items if isinstance(value, list) else tuple(items)
        found.append((label, convert_to_tensor(graph, value, None, f"what {self.name} returns")))
        return len(found) - 1

    def _defined(self, graph: Graph, body: FunctionGraph) -> FunctionDef:
        """The function with this body: the one that is there (a notebook's cell that is run again defines it again), else under a free name."""
        name, count = self.name, 0
        while name in graph.library or name in graph.registry:
            known = graph.library.find(name)
            if known is not None and function_defs_equal(known, graph_to_function_def(body, name)):
                return known
            count += 1
            name = f"{self.name}_{count}"
        return graph_to_function_def(body, name)


@overload
def function(python_function: Callable[..., Any], *, name: str | None = None) -> Function: ...


@overload
def function(python_function: None = None, *, name: str | None = None) -> Callable[[Callable[..., Any]], Function]: ...


def function(python_function: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Make a graph function of a Python function; a decorator, with or without arguments.

    Args:
        python_function: takes tensors and gives tensors.
        name: what it is called in the graph.

    Raises:
        InvalidArgumentError: it is no function.
    """
    if python_function is None:
        return lambda decorated: function(decorated, name=name)
    given: Any = python_function
    if not callable(given) or not (name or hasattr(given, "__name__")):
        raise InvalidArgumentError(
            f"gc.function takes a Python function, whose types come from each call (a callable without a name needs name=); "
            f"got {brief(python_function)} ({type(python_function).__name__})"
        )
    return Function(python_function, name)


def _outermost(graph: Graph) -> Graph:
    """The graph that all functions being traced are in the end for: what is traced within one of them serves all of it."""
    while graph.outer is not None:
        graph = graph.outer
    return graph


def _origin(tensor: Tensor) -> Tensor:
    """What a tensor stands for that is an argument for a captured one."""
    graph = tensor.graph
    while isinstance(graph, FunctionGraph):
        origin = next((outer for outer, argument in graph.captures.items() if argument is tensor), None)
        if origin is None:
            break
        tensor, graph = origin, origin.graph
    return tensor


def _is_there(tensor: Tensor) -> bool:
    """True iff a tensor is still what it was when a function captured it."""
    return tensor.node.graph.find(tensor.node.name) is tensor.node


def _filled(structure: Any, values: Sequence[Any]) -> Any:
    if isinstance(structure, dict):
        return {key: _filled(item, values) for key, item in structure.items()}
    if isinstance(structure, list):
        return [_filled(item, values) for item in structure]
    if isinstance(structure, tuple):
        return tuple([_filled(item, values) for item in structure])
    return None if structure is None else values[structure]
