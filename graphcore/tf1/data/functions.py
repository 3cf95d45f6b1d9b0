"""Python functions of elements, traced to functions of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphcore.api.branches import TracedFor, define_outputs, following_captures, held, leaving_no_trace, unite_arguments
from graphcore.attrs import Func
from graphcore.errors import InvalidArgumentError
from graphcore.graph import FunctionGraph, Graph, Node, Tensor, convert_to_tensor
from graphcore.passes.functions.defining import function_label, sweep
from graphcore.tf1.data.structures import Spec, arguments, flatten

Finish = Callable[["TracedFunction", list[Tensor]], Node]
"""Adds the node that calls the function, given the captured tensors."""


class TracedFunction:
    """A traced function.

    Attributes:
        func: its name in the library.
        structure: the nesting of its results.
        spec: their types and shapes; of the elements of a dataset, if it returns one.
        captured: the tensors of the graph that it uses.
    """

    def __init__(self, func: Func, structure: Any, spec: Spec, captured: Sequence[Tensor]) -> None:
        self.func = func
        self.structure = structure
        self.spec = spec
        self.captured = list(captured)


class _TracedForElements(TracedFor):
    """The captured tensors and the elements that a function was traced for."""

    def __init__(self, graph: Graph, tensors: Sequence[Tensor], bodies: Sequence[FunctionGraph], elements: Callable[[], Spec]) -> None:
        self._elements = elements
        super().__init__(graph, tensors, bodies)

    def kinds(self) -> list[str]:
        """See `TracedFor.kinds`; those of the components come first."""
        return [*self._elements().kinds(), *super().kinds()]


def node_with_function(
    graph: Graph,
    name: str,
    function: Callable[..., Any],
    structure: Any,
    elements: Callable[[], Spec],
    finish: Finish,
    *,
    gives_dataset: bool,
) -> tuple[Node, TracedFunction]:
    """Trace a function of an element, and add the node that calls it.

    Args:
        graph: the graph of the dataset; the node goes into a body that is being built in it.
        name: the name of the node.
        function: the Python function.
        structure: the nesting of an element.
        elements: the present types and shapes of elements.
        finish: adds the node.
        gives_dataset: the function returns a dataset.

    Raises:
        InvalidArgumentError: it returns something else than it should.
    """
    graph = graph.building()
    traced: list[TracedFunction] = []
    bodies: list[FunctionGraph] = []
    inputs: list[Tensor] = []

    def build() -> Node:
        with leaving_no_trace(graph, name) as exact:
            body = FunctionGraph.within(graph, function_label(graph, exact, "function"))
            traced_function = trace(body, function, structure, elements(), gives_dataset=gives_dataset)
            traced.append(traced_function)
            node = finish(traced_function, traced_function.captured)
            bodies.append(body)
            inputs.extend(node.inputs)
        if not isinstance(graph, FunctionGraph):
            sweep(graph)
        return node

    tracings: list[_TracedForElements] = []

    def traced_for() -> TracedFor | None:
        if bodies and not tracings:
            tracings.append(_TracedForElements(graph, inputs, bodies, elements))
        return tracings[0] if tracings else None

    node: Node = following_captures(graph, name, build, traced_for)
    return node, traced[-1]


def trace(body: FunctionGraph, function: Callable[..., Any], structure: Any, spec: Spec, *, gives_dataset: bool) -> TracedFunction:
    """Trace a function of an element of that structure in an empty body."""
    own = [body.argument(f"args_{i}", dtype, shape) for i, (dtype, shape) in enumerate(zip(spec.types, spec.shapes, strict=True))]
    with body.as_default():
        result = function(*arguments(structure, own))
        if gives_dataset:
            if not hasattr(result, "variant"):
                raise InvalidArgumentError(f"The function must return a Dataset, got {type(result).__name__}: {result!r}")
            inner, out_spec = result.structure, result.spec
            leaves = [result.variant]
        else:
            # A list is more often the results of one op than rows of a tensor.
            inner, leaves = flatten(tuple(result) if isinstance(result, list) else result)
            if any(leaf is None or hasattr(leaf, "variant") for leaf in leaves):
                raise InvalidArgumentError(f"The function must return tensors, or tuples and dicts of them; got {result!r}")
            leaves = [convert_to_tensor(body, held(body, leaf), None, f"output {i}") for i, leaf in enumerate(leaves)]
            out_spec = Spec(tuple([leaf.dtype.base for leaf in leaves]), tuple([leaf.shape for leaf in leaves]))
    captured = unite_arguments([body], [own])
    fdef = define_outputs(body, leaves, [leaf.dtype.base for leaf in leaves])
    return TracedFunction(Func(fdef.name), inner, out_spec, captured)
