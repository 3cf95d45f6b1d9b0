"""The difference of two graphs: `gc.graph_diff`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import msgspec

from graphcore.api.committed_files import committed_file, is_committed
from graphcore.api.function import Function
from graphcore.api.interchange import load
from graphcore.api.show import graph_behind
from graphcore.brief import brief
from graphcore.definitions import FunctionDef, GraphDef
from graphcore.difference import DiffSteps, GraphDiff, GraphState, compare, state_of_function, state_of_graph
from graphcore.errors import InvalidArgumentError
from graphcore.frontends.frontend import Source
from graphcore.frontends.record import foreign_of
from graphcore.frontends.sources import frontend_for
from graphcore.graph import Graph, ImportOptions
from graphcore.graph import import_graph_def as _import
from graphcore.support.budget import within_one_budget


@overload
def graph_diff(a: Any, b: Any) -> GraphDiff: ...


@overload
def graph_diff(a: Any, b: Any, c: Any, /, *later: Any) -> DiffSteps: ...


@within_one_budget
def graph_diff(a: Any, b: Any, *later: Any) -> GraphDiff | DiffSteps:
    """The difference from `a` to `b`, and from each of further graphs to the next.

    Nodes of one name and op are the same node. Others are matched by their place in the structure, so that a renamed node or scope is no
    removal and addition. Types and shapes that only follow from another change are listed apart from it.

    Models of different frameworks are matched by the kinds of their ops, in the order of the flow of data, by modules, sizes and weights; so
    are nodes of one framework that neither name nor structure matches. The text names nodes that were fused, split, left out or inserted. Equal
    cases share a line, and weights of such nodes have none of their own.

    In a notebook the result is a picture of both graphs, `widgets.save(diff, "diff.html")` writes it as a page, and it prints in words:

        before = graph.copy()
        gc.optimize_graph(None, graph)
        gc.graph_diff(before, graph)

    Args:
        a, b, later: from the earliest to the latest: graphs, whatever has one (a tensor, a session, a function's body), GraphDefs, the paths of
            files, files of a commit of Git (`model.onnx@HEAD~1`), models of other frameworks as `gc.show` takes them (the `graph` of a `gc.run` for a
            call), or an earlier `GraphState`. FunctionDefs and traced functions are compared as they are defined.

    Returns:
        The difference; false if there is none. Of more than two graphs the steps from each to the next, and the whole way.

    Raises:
        NotFoundError: there is no such file or commit.
        InvalidArgumentError: it is no graph, or a function is compared with a graph.

    Example:
        >>> a = gc.constant(2.0, name="a")
        >>> before = a.graph.copy()
        >>> b = gc.square(a, name="b")
        >>> print(gc.graph_diff(before, a.graph))
        1 added, 1 unchanged
        + b  (Square) <- a
    """
    values = (a, b, *later)
    if len({isinstance(value, FunctionDef | Function) for value in values}) > 1:
        count = "two functions or two graphs" if not later else "functions or graphs alone"
        raise InvalidArgumentError(f"Required {count} to compare, got {' and '.join(map(brief, values))}")
    states = [state_of(value) for value in values]
    steps = [compare(before, after) for before, after in pairwise(states)]
    return steps[0] if not later else DiffSteps(tuple(steps), compare(states[0], states[-1]))


def state_of(value: Any) -> GraphState:
    """The state of a graph, a function, a GraphDef or a graph file now.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is none of these.
    """
    if isinstance(value, GraphState):
        return value
    if isinstance(value, Function):
        return state_of_function(_definition(value))
    if isinstance(value, FunctionDef):
        return state_of_function(value)
    if isinstance(value, str | os.PathLike):
        return _state_of_file(os.fspath(value))
    if isinstance(value, GraphDef):
        return state_of_graph(_with_shapes_if_they_fit(partial(_imported, value)))
    graph = value if isinstance(value, Graph) else getattr(value, "graph", None)
    if not isinstance(graph, Graph) and frontend_for(Source(value=value)) is None:
        raise InvalidArgumentError(
            f"Required a graph, something that has one, a GraphDef, a model or the path of its file, got {brief(value)}"
        )
    return _state(graph if isinstance(graph, Graph) else graph_behind(value))


def _state_of_file(text: str) -> GraphState:
    with committed_file(text) if is_committed(text) else nullcontext(Path(text)) as path:
        state = _state(_with_shapes_if_they_fit(partial(load, path, allow_unknown_ops=True, allow_internal_ops=True)))
    return msgspec.structs.replace(state, title=Path(text).name)


def _state(graph: Graph) -> GraphState:
    """The state of a graph, with the classes of the modules of another framework's model."""
    state, record = state_of_graph(graph), foreign_of(graph)
    return state if record is None else msgspec.structs.replace(state, classes=dict(record.classes))


def _imported(graph_def: GraphDef, *, validate_shape: bool) -> Graph:
    graph = Graph()
    _import(graph_def, graph, ImportOptions(allow_unknown_ops=True, allow_internal_ops=True, validate_shape=validate_shape))
    return graph


def _with_shapes_if_they_fit(read: Callable[..., Graph]) -> Graph:
    """Read a graph. Contradictory shapes are left out: graphs are compared when something is wrong with one."""
    try:
        return read(validate_shape=True)
    except InvalidArgumentError:
        return read(validate_shape=False)


def _definition(function: Function) -> FunctionDef:
    traced = function.instantiations
    if not traced:
        raise InvalidArgumentError(f"'{function.name}' has not been called yet: it is traced for the types of its first call")
    return traced[-1].fdef
