"""Custom gradients in the bodies of functions, branches and loops.

A body is differentiated as a copy of its nodes, which knows nothing of the tensors that the Python function of a gradient refers to. So this
is traced to a function when the body is, and the values that it takes become inputs of the node that asks for the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from graphcore.definitions import FunctionDef
from graphcore.functions import FunctionLibraryDefinition
from graphcore.graph import FunctionGraph, Node, Tensor, convert_to_tensor, get_default_graph
from graphcore.passes.functions.defining import define_body, function_label
from graphcore.passes.functions.function_origins import call_of
from graphcore.passes.gradients.node_gradients import DIFFERENTIABLE
from graphcore.passes.gradients.overrides import register_gradient_function
from graphcore.tf1.variables.references import settle_references


class TracedGradient(msgspec.Struct, frozen=True):
    """The gradient of a node that passes on results, arguments, and other values that it takes.

    Args:
        function: its name.
        definitions: the function, and those that it calls.
        taken: for each result, True if the function takes its gradient.
        given: for each argument, True if the function returns a gradient of it.
    """

    function: str
    definitions: tuple[FunctionDef, ...]
    taken: tuple[bool, ...]
    given: tuple[bool, ...]

    @property
    def slots(self) -> frozenset[int]:
        """The inputs of the node that have a gradient."""
        return frozenset([len(self.taken) + number for number, is_given in enumerate(self.given) if is_given])

    def __call__(self, node: Node, *incoming: Any) -> list[Any]:
        """The gradients of the inputs of `node`, built in the default graph."""
        graph = get_default_graph()
        for definition in self.definitions:  # the library keeps those that are in use only
            graph.library.add_function_def(definition)
        results, count = len(self.taken), len(self.taken) + len(self.given)
        taken = [gradient for gradient, is_taken in zip(incoming, self.taken, strict=False) if is_taken]
        outputs = iter(graph.apply_op(self.function, [*taken, *node.inputs[count:]], None, "gradient").outputs)
        argument_gradients = [next(outputs) if is_given else None for is_given in self.given]
        return [None] * results + argument_gradients + [None] * (len(node.inputs) - count)


def trace_gradient(
    body: FunctionGraph, gradient: Callable[..., Sequence[Any]], results: Sequence[Tensor], arguments: Sequence[Tensor], label: str
) -> tuple[TracedGradient, list[Tensor]]:
    """Trace a gradient within a body.

    Args:
        body: the body.
        gradient: takes the gradients of the results (None for those without), returns those of the arguments, or None.
        results, arguments: tensors of the body.
        label: the preferred name of the function.

    Returns:
        The gradient, and the tensors of the body that it takes besides.
    """
    label = function_label(body, label, "gradient")
    graph = FunctionGraph.within(body, label, f"the gradient '{label}'")
    incoming = [
        graph.argument(f"d{i}", result.dtype, result.shape) if result.dtype in DIFFERENTIABLE else None for i, result in enumerate(results)
    ]
    with graph.as_default():
        gradient_tensors = [
            None if value is None else convert_to_tensor(graph, value, argument.dtype.base, f"gradient {i} of '{label}'")
            for i, (value, argument) in enumerate(zip(gradient(*incoming), arguments, strict=True))
        ]
    settle_references(graph)
    for index, tensor in enumerate([value for value in gradient_tensors if value is not None]):
        graph.apply_op("_Retval", [tensor], {"index": index}, f"output_{index}_RetVal")
    function = define_body(graph, label, shared=True)
    taken, returned = tuple([value is not None for value in incoming]), tuple([value is not None for value in gradient_tensors])
    definitions = tuple(body.library.reachable_definitions([call_of(function.name)]))
    return TracedGradient(function.name, definitions, taken, returned), list(graph.captures)


def register_traced(gradient: TracedGradient, library: FunctionLibraryDefinition, new_name: Callable[[], str]) -> str:
    """Register a gradient of a library; returns its name.

    A body that is traced again becomes an equal function, so equal gradients have one name.
    """
    names = _names.setdefault(library, {})
    key = gradient.function, gradient.taken, gradient.given
    if key not in names:
        names[key] = new_name()
        register_gradient_function(names[key], gradient)
    return names[key]


_names: Final[WeakKeyDictionary[FunctionLibraryDefinition, dict[Any, str]]] = WeakKeyDictionary()
