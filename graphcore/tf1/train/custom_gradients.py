"""Gradients that programs define: of single nodes by name, and of Python functions."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from graphcore.errors import AlreadyExistsError, InvalidArgumentError, UnimplementedError
from graphcore.graph import FunctionGraph, Graph, Node, Tensor, get_default_graph
from graphcore.graph.model.search import reachable
from graphcore.passes.gradients.overrides import GradientFunction, register_gradient_function
from graphcore.registry import register_op_no_gradient
from graphcore.tf1.arrays.layout import identity
from graphcore.tf1.framework import convert_to_tensor
from graphcore.tf1.train.traced_gradients import register_traced, trace_gradient

_numbers: Final = itertools.count(1)


class RegisterGradient:
    """A decorator that registers a gradient for nodes that ask for it.

    A node asks for it when it is made within `graph.gradient_override_map({op: name})`. The function takes the node and the gradients of
    its outputs, and returns the gradient of each input, or None for it. When the cell of the function runs again, gradients that were
    built with it are built again.

    Args:
        op_type: the name of the gradient, which is not that of an op.

    Raises:
        InvalidArgumentError: it is no name.
    """

    def __init__(self, op_type: Any) -> None:
        if not isinstance(op_type, str) or not op_type:
            raise InvalidArgumentError(f"RegisterGradient: op_type must be a string, got {op_type!r}")
        self._name = op_type

    def __call__(self, f: GradientFunction) -> GradientFunction:
        """Register `f`, and return it.

        Raises:
            AlreadyExistsError: an op has this name.
        """
        try:
            register_gradient_function(self._name, f)
        except AlreadyExistsError as error:
            raise _GradientExistsError(str(error)) from error
        return f


class _GradientExistsError(AlreadyExistsError, KeyError):
    """A gradient is known already; programs catch it as TensorFlow's KeyError."""


def NotDifferentiable(op_type: str) -> None:  # noqa: N802 - TF1's name
    """Register that gradients do not flow through an op, which has no gradient yet."""
    register_op_no_gradient(op_type)


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a gradient of its own.

    Args:
        f: takes tensors, and returns its result (a tensor or several) and a function from the gradients of the results to those of the
            arguments.

    Returns:
        The function of the tensors, with the result alone.
    """

    @wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        graph = get_default_graph()
        arguments = [identity(convert_to_tensor(argument)) for argument in args]
        returned = f(*arguments, **kwargs)
        if not isinstance(returned, tuple) or len(returned) != 2 or not callable(returned[1]):
            raise InvalidArgumentError(
                f"custom_gradient: required a function that returns its result and a gradient function, got {returned!r}"
            )
        result, gradient = returned
        results = [convert_to_tensor(value) for value in (result if isinstance(result, list | tuple) else [result])]
        _refuse_variables(f, gradient, results, arguments)
        ends = _with_gradient(graph, results, arguments, gradient, getattr(f, "__name__", "f"))
        return type(result)(ends) if isinstance(result, list | tuple) else ends[0]

    return decorated


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one tensor whose gradient is passed on unchanged.

    Args:
        f: takes a tensor, and returns one of its shape.
    """

    @custom_gradient
    def passed(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        return f(x, *args, **kwargs), lambda *gradients: [*gradients, *[None] * len(args)]

    return passed


def _with_gradient(graph: Graph, results: list[Tensor], arguments: list[Tensor], gradient: Callable[..., Any], label: str) -> list[Tensor]:
    """Copies of the results, through which gradients go to the arguments as a function says."""

    def of_arguments(*incoming: Any) -> list[Any]:
        result = gradient(*incoming)
        back = list(result) if isinstance(result, list | tuple) else [result]
        if len(back) != len(arguments):
            raise InvalidArgumentError(f"custom_gradient: required a gradient for each of {len(arguments)} arguments, got {len(back)}")
        return back

    def backward(_: Node, *incoming: Any) -> list[Any]:
        return [None] * len(results) + of_arguments(*incoming[: len(results)])

    passed = [*results, *arguments]
    if isinstance(graph, FunctionGraph):
        traced, captured = trace_gradient(graph, of_arguments, results, arguments, label)
        passed += captured
        name = register_traced(traced, graph.library, _new_name)
    else:
        name = _new_name()
        register_gradient_function(name, backward)
    with graph.gradient_override_map({"IdentityN": name}):
        return list(graph.apply_op("IdentityN", [passed], None, None).outputs[: len(results)])


def _new_name() -> str:
    return f"CustomGradient-{next(_numbers)}"


def _given(node: Node) -> list[Node]:
    """The nodes that give the inputs of a node; for a captured tensor, the node that gives it outside."""
    captures = node.graph.captures if isinstance(node.graph, FunctionGraph) else {}
    return [tensor.node for tensor in node.inputs] + [outer.node for outer, argument in captures.items() if argument.node is node]


def _refuse_variables(f: Callable[..., Any], gradient: Callable[..., Any], results: list[Tensor], arguments: list[Tensor]) -> None:
    """Refuse a function that uses trainable variables, whose gradients would be lost.

    Raises:
        UnimplementedError: it does.
    """
    starts = {tensor.node for tensor in arguments}
    inside = reachable([tensor.node for tensor in results], lambda node: [] if node in starts else _given(node))
    variable = next((node for node in inside if node.registration.traits.role == "variable"), None)
    if variable is not None:
        hint = "; its gradient function may not take 'variables' here" if "variables" in inspect.signature(gradient).parameters else ""
        raise UnimplementedError.at(
            variable,
            f"{getattr(f, '__name__', 'f')} has a custom gradient and uses variable '{variable.name}': pass its value as an argument{hint}",
        )
