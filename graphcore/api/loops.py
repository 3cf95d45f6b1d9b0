"""`gc.while_loop`: Python functions as condition and body of one node."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from graphcore import dtypes
from graphcore.api.branches import TracedFor, define_outputs, following_captures, held, leaving_no_trace, unite_arguments
from graphcore.api.predicates import scalar_choice
from graphcore.api.structures import Composite, describe, fill, flatten, outline
from graphcore.api.unneeded import drop_unneeded_effects
from graphcore.attrs import AttrValue, Func
from graphcore.errors import InvalidArgumentError
from graphcore.graph import FunctionGraph, Graph, Tensor, convert_to_tensor, get_default_graph
from graphcore.passes.functions.defining import function_label, sweep
from graphcore.shapes import Shape, as_shape
from graphcore.tf1.arrays.layout import stop_gradient
from graphcore.tf1.variables.references import changed_resources, settle_references


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,  # noqa: ARG001 - a hint to TensorFlow's GPUs, without effect on results
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Run `body` on `loop_vars`, then on its own results, as long as `cond` returns true.

    Args:
        cond: takes the loop variables, returns one bool.
        body: takes the loop variables, returns as many values of the same types and shapes. Tensors of the surrounding graph that `cond` and
            `body` use are captured.
        loop_vars: the initial values: a tensor, or (nested) lists, tuples and dicts of tensors.
        shape_invariants: a shape for each loop variable, None for sizes that change between iterations; those of `loop_vars` by default.
        parallel_iterations: the number of iterations that may overlap if the loop is lowered.
        back_prop: False stops gradients at the results.
        swap_memory: without effect.
        name: the name of the node, "while" by default.
        maximum_iterations: a limit on the number of iterations.
        return_same_structure: keep a list or tuple of a single variable; otherwise the tensor itself is returned.

    Other threads that build this graph wait while `cond` and `body` are traced, so neither must wait for them (see `gc.Graph`).

    Returns:
        The results of the last iteration, in the form of `loop_vars`, or the tensor of a single loop variable.

    Raises:
        InvalidArgumentError: `body` returns other types, shapes or a different number of values; nothing is added to the graph.

    Example:
        >>> n, total = gc.while_loop(lambda n, total: n < 5, lambda n, total: [n + 1, total + n], [0, 0])
        >>> print(*gc.Session().run([n, total]))
        5 10
    """
    graph = get_default_graph()
    name = name or "while"
    builders: list[_WhileBuilder] = []

    def build() -> Any:
        with leaving_no_trace(graph, name) as exact:
            builders.append(_WhileBuilder(graph, exact, loop_vars, maximum_iterations, shape_invariants))
            return builders[0].build(cond, body, parallel_iterations)

    result = following_captures(graph, name, build, lambda: builders[0].traced_for if builders else None)
    if not back_prop:
        structure, leaves = flatten(result)
        result = fill(structure, [stop_gradient(leaf) for leaf in leaves])
    single = isinstance(result, list | tuple) and len(result) == 1 and not return_same_structure
    return result[0] if single else result


class _WhileBuilder:
    def __init__(self, graph: Graph, name: str, loop_vars: Any, limit: Any, invariants: Any) -> None:
        self.graph = graph
        self.name = name
        self.limit = limit
        self.traced_for: TracedFor | None = None
        self.structure, leaves = flatten(loop_vars)
        if not leaves:
            raise InvalidArgumentError(f"'{self.name}' needs at least one loop variable", node=self.name)
        self.starts: list[Tensor] = [
            convert_to_tensor(graph, leaf, None, f"loop variable {i} of {self.name}") for i, leaf in enumerate(leaves)
        ]
        self.shapes = self._shapes(invariants)
        self.has_invariants = invariants is not None

    def _shapes(self, invariants: Any) -> list[Shape]:
        if invariants is None:
            return [tensor.shape for tensor in self.starts]
        invariant_shapes = _spread(fill(self.structure, self.starts), invariants)
        if len(invariant_shapes) != len(self.starts):
            raise InvalidArgumentError(
                f"shape_invariants of '{self.name}': required {len(self.starts)} shapes, one a loop variable, got {len(invariant_shapes)}",
                node=self.name,
            )
        shapes = [as_shape(item) for item in invariant_shapes]
        for i, (shape, tensor) in enumerate(zip(shapes, self.starts, strict=True)):
            if not _covers(shape, tensor.shape):
                raise InvalidArgumentError(
                    f"The shape invariant {shape} of loop variable {i} of '{self.name}' does not cover what it begins as, {describe(tensor)}",
                    node=self.name,
                )
        return shapes

    def build(self, cond: Callable[..., Any], body: Callable[..., Any], parallel_iterations: int) -> Any:
        cond_graph = FunctionGraph.within(
            self.graph, function_label(self.graph, self.name, "cond"), f"the condition of loop '{self.name}'", self.name
        )
        body_graph = FunctionGraph.within(
            self.graph, function_label(self.graph, self.name, "body"), f"the body of loop '{self.name}'", self.name
        )
        cond_graph.awaited, body_graph.awaited = {}, {}
        cond_args, body_args = self._arguments(cond_graph, cond), self._arguments(body_graph, body)
        body_graph.starts = dict(zip(body_args, [*self._counter(), *self.starts], strict=True))
        condition = self._trace_condition(cond_graph, cond, cond_args)
        results = self._trace_body(body_graph, body, body_args)
        drop_unneeded_effects(cond_graph, [condition])
        drop_unneeded_effects(body_graph, results)
        cond_graph.references |= body_graph.references
        now = settle_references(cond_graph, repeats=True, changed=changed_resources(body_graph))
        condition = now.get(condition, condition)
        now = settle_references(body_graph, repeats=True)
        results = [now.get(result, result) for result in results]
        captured = unite_arguments([cond_graph, body_graph], [cond_args, body_args])
        starts = [*self._counter(), *self.starts, *captured]
        types = tuple([tensor.dtype.base for tensor in starts])
        passed_on = [body_graph.capture(tensor) for tensor in captured]
        functions = define_outputs(cond_graph, [condition], [dtypes.bool_]), define_outputs(body_graph, [*results, *passed_on], types)
        attrs: dict[str, AttrValue] = {
            "cond": Func(functions[0].name),
            "body": Func(functions[1].name),
            "parallel_iterations": parallel_iterations,
            "_lower_using_switch_merge": True,
        }
        if self.has_invariants:
            attrs["output_shapes"] = (*[Shape([]) for _ in self._counter()], *self.shapes, *[tensor.shape for tensor in captured])
        stateful = any(function.signature.is_stateful for function in functions)
        with self.graph.control_dependencies(list(cond_graph.awaited | body_graph.awaited)):
            node = self.graph.apply_op("While" if stateful else "StatelessWhile", [starts], attrs, f"{self.name}/")
        if not isinstance(self.graph, FunctionGraph):
            sweep(self.graph)
        self.traced_for = TracedFor(self.graph, node.inputs, [cond_graph, body_graph])
        first = 0 if self.limit is None else 1
        return fill(self.structure, node.outputs[first : first + len(self.starts)])

    def _counter(self) -> list[Tensor]:
        if self.limit is None:
            return []
        if not hasattr(self, "_zero"):
            self._zero = convert_to_tensor(self.graph, 0, dtypes.int32, "the loop's counter")
        return [self._zero]

    def _arguments(self, graph: FunctionGraph, function: Callable[..., Any]) -> list[Tensor]:
        counter = [] if self.limit is None else [graph.argument("loop_counter", dtypes.int32, Shape([]))]
        labels = _parameter_names(function, self.structure, len(self.starts))
        return counter + [
            graph.argument(_variable_name(tensor), tensor.dtype, shape, label=label)
            for tensor, shape, label in zip(self.starts, self.shapes, labels, strict=True)
        ]

    def _trace_condition(self, graph: FunctionGraph, cond: Callable[..., Any], arguments: list[Tensor]) -> Tensor:
        own = arguments if self.limit is None else arguments[1:]
        with graph.as_default():
            result = held(graph, self._call(cond, own))
            tensor = convert_to_tensor(graph, result, None, f"what the condition of {self.name} gives")
            if tensor.dtype.base is not dtypes.bool_ or tensor.shape.rank not in (0, None):
                raise (
                    InvalidArgumentError(
                        f"The condition of '{self.name}' must give one bool, got {describe(tensor)}",
                        node=self.name,
                        source=tensor.node.source,
                    )
                    .advise(
                        "Compare in the condition, as in `lambda i: i < 10`, so that it is true or false.",
                        required="one bool",
                        came=f"{tensor.dtype.base.text} {tensor.shape}",
                    )
                    .about_inputs(tuple(self.starts))
                )
            tensor = scalar_choice(graph, tensor, f"The condition of '{self.name}'", "condition")
            if self.limit is None:
                return tensor
            limit = convert_to_tensor(graph, self.limit, dtypes.int32, f"maximum_iterations of {self.name}")
            within = graph.apply_op("Less", [arguments[0], limit], None, "within_maximum_iterations")
            return graph.apply_op("LogicalAnd", [within.outputs[0], tensor], None, "go_on").outputs[0]

    def _trace_body(self, graph: FunctionGraph, body: Callable[..., Any], arguments: list[Tensor]) -> list[Any]:
        own = arguments if self.limit is None else arguments[1:]
        with graph.as_default():
            structure, leaves = flatten(self._call(body, own))
            if len(leaves) == 1 and len(self.starts) == 1:
                structure = self.structure
            if outline(structure).replace("[", "(").replace("]", ")") != outline(self.structure).replace("[", "(").replace("]", ")"):
                raise InvalidArgumentError(
                    f"The body of '{self.name}' must give what it takes: required the form {outline(self.structure)}, got {outline(structure)} "
                    f"({'; '.join([describe(leaf) for leaf in leaves])})",
                    node=self.name,
                ).advise(
                    "Let the body return a value for each loop variable: as many as it takes, in the same order.",
                    required=f"the form {outline(self.structure)}",
                    came=f"the form {outline(structure)}",
                )
            results = [self._checked(graph, i, leaf) for i, leaf in enumerate(leaves)]
            if self.limit is None:
                return results
            return [graph.apply_op("AddV2", [arguments[0], 1], None, "next_loop_counter").outputs[0], *results]

    def _checked(self, graph: FunctionGraph, number: int, leaf: Any) -> Tensor:
        start, shape = self.starts[number], self.shapes[number]
        tensor = convert_to_tensor(graph, held(graph, leaf), start.dtype.base, f"loop variable {number} after one round of {self.name}")
        if tensor.dtype.base is not start.dtype.base:
            raise (
                InvalidArgumentError(
                    f"Loop variable {number} of '{self.name}' must keep its type: it begins as {describe(start)}\n"
                    f"  and is after one round {describe(tensor)}",
                    node=self.name,
                    source=tensor.node.source,
                )
                .advise(
                    f"Convert what the body returns: `gc.cast(..., gc.{start.dtype.public_name})`, or begin with a {tensor.dtype.base.text}.",
                    required=f"{start.dtype.base.text} after each round",
                    came=tensor.dtype.base.text,
                )
                .about_inputs(tuple(self.starts))
            )
        if not _covers(shape, tensor.shape):
            raise (
                InvalidArgumentError(
                    f"Loop variable {number} of '{self.name}' must keep its shape: it begins as {describe(start)}\n"
                    f"  and is after one round {describe(tensor)}\n  Where a size may change, give shape_invariants with None in its place; "
                    f"where it does not, say so with set_shape.",
                    node=self.name,
                    source=tensor.node.source,
                )
                .advise(
                    _invariant(number, len(self.starts), shape, tensor.shape),
                    required=f"the shape {shape} after each round",
                    came=str(tensor.shape),
                )
                .about_inputs(tuple(self.starts))
            )
        return tensor

    def _call(self, function: Callable[..., Any], values: list[Tensor]) -> Any:
        filled = fill(self.structure, values)
        return function(*filled) if isinstance(filled, list | tuple) else function(filled)


def _spread(value: Any, invariants: Any) -> list[Any]:
    """The invariants of the leaves of a structure, which are given in the form of it."""
    if isinstance(value, Composite):
        return list(value.component_shapes(invariants))
    if isinstance(value, dict) and isinstance(invariants, dict):
        return [shape for key in sorted(value, key=str) for shape in _spread(value[key], invariants.get(key))]
    if not isinstance(value, list | tuple) or not isinstance(invariants, list | tuple):
        return [invariants]
    if len(value) != len(invariants) or _is_one_shape(invariants, flatten(value)[1]):
        return [invariants] if _is_one_shape(invariants, flatten(value)[1]) else list(invariants)
    return [shape for item, invariant in zip(value, invariants, strict=True) for shape in _spread(item, invariant)]


def _is_one_shape(value: Any, starts: list[Tensor]) -> bool:
    return len(starts) == 1 and all(item is None or isinstance(item, int) for item in value)


def _invariant(number: int, count: int, before: Shape, after: Shape) -> str:
    """The shape of both rounds, with None for sizes that differ."""
    if before.rank is None or before.rank != after.rank:
        return "Let the body return a value of the same number of dimensions as it takes."
    wide = [a if a == b else None for a, b in zip(before.as_list(), after.as_list(), strict=True)]
    if count == 1:
        return f"If the size is to change, write `gc.while_loop(..., shape_invariants=[{wide}])`."
    return f"If the size is to change, give `shape_invariants` with {wide} for loop variable {number}, counted from 0."


def _covers(wide: Shape, narrow: Shape) -> bool:
    """True iff every shape that `narrow` allows is allowed by `wide`."""
    if wide.rank is None:
        return True
    if narrow.rank != wide.rank:
        return False
    return all(a is None or a == b for a, b in zip(wide.as_list(), narrow.as_list(), strict=True))


def _parameter_names(function: Callable[..., Any], structure: Any, count: int) -> list[str]:
    """The name of each loop variable: of its parameter in `function`, with the leaf's number.

    "" if the signature of `function` is unavailable.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [""] * count
    names = [""] * count
    for place, value in enumerate(structure if isinstance(structure, list | tuple) else [structure]):
        numbers = flatten(value)[1]
        parameter = parameters[min(place, len(parameters) - 1)] if parameters else None
        if parameter is None:
            continue
        several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        for offset, number in enumerate(numbers):
            index = place - len(parameters) + 1 if several else offset
            names[number] = f"{parameter.name}[{index}]" if several or len(numbers) > 1 else parameter.name
    return names


def _variable_name(tensor: Tensor) -> str:
    return tensor.node.name.rpartition("/")[2].lstrip("_") or "value"
