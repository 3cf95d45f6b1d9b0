"""Variables made within branches, loops and functions: their nodes are outside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from graphcore.errors import InvalidArgumentError
from graphcore.graph import FunctionGraph, Graph, Tensor
from graphcore.graph.building.colocation import variable_devices
from graphcore.graph.graph import outermost, surrounding


@contextmanager
def outside_of(body: Graph) -> Iterator[None]:
    """Build in the outermost graph on behalf of `body`: that graph itself, or a body in it."""
    graph = outermost(body)
    with ExitStack() as stack:
        stack.enter_context(variable_devices(graph))
        stack.enter_context(graph.as_default())
        stack.enter_context(graph.control_dependencies(None))
        if isinstance(body, FunctionGraph):
            stack.enter_context(graph.name_scope(body.name_outside()))
            if body.scopes.device:
                stack.enter_context(graph.device(body.scopes.device))
        yield


def check_from_outside(graph: Graph, value: object, name: str) -> None:
    """Check that an initial value is no tensor of a body.

    Args:
        graph: the outermost graph.
        value: the initial value.
        name: the name of the variable.

    Raises:
        InvalidArgumentError: it is one.
    """
    if not isinstance(value, Tensor) or value.graph is graph or graph not in surrounding(value.graph):
        return
    place = value.graph.place
    raise InvalidArgumentError.at(
        value.node, f"Initializer for variable '{name}' is from inside {place}: it runs once, and not there"
    ).advise(
        "Give a function that makes the initial value, as in `gc.Variable(lambda: gc.zeros([3]))`, or make the variable before.",
        required="an initial value from outside, or a function",
        came=f"'{value.name}' inside {place}",
    )
