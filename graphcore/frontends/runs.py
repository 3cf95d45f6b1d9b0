"""Recorded runs of the models behind graphs of opaque ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError
from graphcore.frontends.record import ForeignRecord, foreign_of
from graphcore.frontends.source_names import names_in
from graphcore.graph.attached import Attached
from graphcore.runtime.runners import RunRecord

if TYPE_CHECKING:
    from graphcore.graph import Graph, Node

_failed: Final[Attached[Node]] = Attached()
"""The node at which the last run of a graph failed."""


def run_recorded(graph: Graph, args: Sequence[object] = (), kwargs: Mapping[str, object] | None = None) -> list[Any]:
    """Run the model behind a graph once in its own framework. The record is then `graph.trace`.

    A run that fails is recorded up to the node that failed, which is marked with the error.

    Args:
        graph: the graph of a model that its frontend can run.
        args: values of the inputs, in their order.
        kwargs: values of further inputs, by their names in the source.

    Returns:
        The results, in the order of the graph's outputs.

    Raises:
        FailedPreconditionError: the graph is of no other framework, or nothing runs such models.
        InvalidArgumentError: a value is missing, given twice, or for no input.
        Exception: the framework's own error.
    """
    record = foreign_of(graph)
    if record is None:
        raise FailedPreconditionError("Required a graph of another framework's model; graphs of this library run in a gc.Session")
    make = record.source.runner
    if make is None:
        raise FailedPreconditionError(f"Nothing here runs a model of the kind {record.source.kind}; it can only be shown")
    feeds = feeds_of(record, args, kwargs or {})
    watch = RunRecord()
    runner = make()
    _mark(graph, None, None)
    try:
        return runner.run(feeds, watch)
    except BaseException as error:
        failed = watch.running[-1] if watch.running else None
        if failed is not None:
            node, call = failed
            _mark(graph, graph.find(names_in(record).outermost(call, node)), error)
        raise
    finally:
        keep(graph, watch)


def keep(graph: Graph, record: RunRecord) -> None:
    """Make the trace of a run the one that views of the graph show."""
    foreign = foreign_of(graph)
    graph.trace = record.trace(graph, {} if foreign is None else names_in(foreign))


def feeds_of(record: ForeignRecord, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
    """The values of a model's inputs by the names of their nodes in the source.

    Raises:
        InvalidArgumentError: a value is given twice, or for no input.
    """
    inputs = [node.name for node in record.source.main.nodes if node.kind == "input"]
    if len(args) > len(inputs):
        raise InvalidArgumentError(f"Required values for at most {len(inputs)} inputs ({', '.join(inputs) or 'none'}), got {len(args)}")
    feeds = dict(zip(inputs, args, strict=False))
    for name, value in kwargs.items():
        if name not in inputs:
            raise InvalidArgumentError(f"There is no input '{name}'; the inputs are {', '.join(inputs) or 'none'}")
        if name in feeds:
            raise InvalidArgumentError(f"Input '{name}' got two values, by its place and by its name")
        feeds[name] = value
    return feeds


def _mark(graph: Graph, node: Node | None, error: BaseException | None) -> None:
    """Mark the node at which a run failed, in place of that of the run before."""
    last = _failed.of(graph)
    with graph.lock:
        _set_error(graph, last, None)
        _set_error(graph, node, error)
    _failed.set(graph, node)


def _set_error(graph: Graph, node: Node | None, error: BaseException | None) -> None:
    if node is not None:
        graph.journal.note(node)
        node.error = None if error is None else _as_graph_error(error, node)


def _as_graph_error(error: BaseException, node: Node) -> GraphError:
    if isinstance(error, GraphError):
        return error
    return InvalidArgumentError(f"{type(error).__name__}: {error}".strip()[:2000], node=node.name, op=node.op)
