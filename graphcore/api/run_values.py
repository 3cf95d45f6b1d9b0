"""The values of one run of a model, whatever it runs in, node by node."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from graphcore.api.show import graph_behind
from graphcore.attrs import Array
from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.frontends.frontend import Call, MakesCalls, Source
from graphcore.frontends.lowering import lower
from graphcore.frontends.record import foreign_of
from graphcore.frontends.runs import feeds_of
from graphcore.frontends.source_names import names_in
from graphcore.frontends.sources import frontend_for, open_source
from graphcore.runtime import RunRecord, Session
from graphcore.runtime.runners.array_views import array_of

if TYPE_CHECKING:
    from graphcore.frontends.record import ForeignRecord
    from graphcore.graph import Graph

Visit = Callable[[str, Array], None]
"""Takes the name of a node in the graph, and its first output, which is the visitor's own."""


class RunValues(Protocol):
    """A run that gives the values of its nodes once."""

    graph: Graph

    def visit(self, wanted: Collection[str], visit: Visit) -> None:
        """Give the values of some nodes in the order of the run."""


def values_of(value: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> RunValues:
    """The run of a model. A call is made at once, since its graph is that of the run; other models run when they are visited.

    Raises:
        FailedPreconditionError: nothing here runs such a model.
        InvalidArgumentError: the arguments do not fit, or there is no such model.
        Exception: the error with which a call ends.
    """
    if isinstance(value, Session):
        return _SessionValues(value, args, kwargs)
    call = value if isinstance(value, Call) else Call(value, tuple(args), kwargs) if callable(value) else None
    if call is not None:
        call = _with_tensors(call)
        if frontend_for(Source(value=call)) is None:
            call = _with_arrays_of_jax(call)
        source = Source(value=call)
        frontend: object = frontend_for(source)
        if isinstance(frontend, MakesCalls):
            record = _KeepingRecord()
            made = frontend.make(call, record)
            if made.error is not None:
                raise made.error
            return _CallValues(lower(made.source), record)
        if frontend is not None:
            return _ModelValues(lower(open_source(call)), (), {})
    graph = graph_behind(value)
    if foreign_of(graph) is None:
        return _SessionValues(Session(graph=graph), args, kwargs)
    return _ModelValues(graph, args, kwargs)


class _KeepingRecord(RunRecord):
    """A record of the values alone: the first output of each node, as it was when the node ended."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Array] = {}

    def _record(self, node: str, values: Sequence[object], call: str) -> None:
        if values and not call:
            array = array_of(values[0])
            if array is not None:
                self.kept[node] = np.array(array)  # later operations may change it in place


class _CallValues:
    def __init__(self, graph: Graph, record: _KeepingRecord) -> None:
        self.graph = graph
        self._record = record

    def visit(self, wanted: Collection[str], visit: Visit) -> None:
        kept, self._record.kept = self._record.kept, {}
        foreign = foreign_of(self.graph)
        assert foreign is not None
        names = names_in(foreign)
        while kept:
            node = next(iter(kept))
            array = kept.pop(node)
            last = self._record.last_name(node)
            name = names.place("", last)[1] if last else ""
            if name in wanted:
                visit(name, array)


class _ModelValues:
    """The values of a model that its own runner runs."""

    def __init__(self, graph: Graph, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.graph = graph
        record = foreign_of(graph)
        assert record is not None
        self._foreign: ForeignRecord = record
        if record.source.runner is None:
            raise FailedPreconditionError(f"Nothing here runs a model of the kind {record.source.kind}; it can only be shown")
        self._args = [_plain(value) for value in args]
        self._kwargs = {name: _plain(value) for name, value in kwargs.items()}

    def visit(self, wanted: Collection[str], visit: Visit) -> None:
        make = self._foreign.source.runner
        assert make is not None
        make().run(feeds_of(self._foreign, self._args, self._kwargs), _VisitingWatch(self._foreign, wanted, visit))


class _VisitingWatch:
    """Gives the values of some nodes away as they end; see `Watch`."""

    def __init__(self, record: ForeignRecord, wanted: Collection[str], visit: Visit) -> None:
        self._names = names_in(record)
        self._wanted = wanted
        self._visit = visit

    def give(self, node: str, values: Sequence[object], call: str = "") -> None:
        self.end(node, values, call)

    def begin(self, node: str, call: str = "") -> None:
        """Do nothing: values come at the end."""

    def end(self, node: str, outputs: Sequence[object], call: str = "") -> None:
        name = "" if call else self._names.place("", node)[1]
        if name in self._wanted and outputs:
            array = array_of(outputs[0])
            if array is not None:
                self._visit(name, np.array(array))


class _SessionValues:
    """The values of a graph of this library."""

    def __init__(self, session: Session, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.graph = session.graph
        self._session = session
        inputs = [node for node in self.graph.op_nodes() if node.registration.traits.role == "placeholder"]
        names = [node.name for node in inputs]
        if len(args) > len(inputs):
            raise InvalidArgumentError(
                f"Required values for at most {len(inputs)} placeholders ({', '.join(names) or 'none'}), got {len(args)}"
            )
        unknown = [name for name in kwargs if name not in names]
        if unknown:
            raise InvalidArgumentError(f"There is no placeholder '{unknown[0]}'; the placeholders are {', '.join(names) or 'none'}")
        feeds = {**dict(zip(names, args, strict=False)), **kwargs}
        self._feeds = {node.outputs[0]: _plain(feeds[node.name]) for node in inputs if node.name in feeds}

    def visit(self, wanted: Collection[str], visit: Visit) -> None:
        nodes = [node for node in self.graph.op_nodes() if node.name in wanted and node.outputs]
        values = self._session.run([node.outputs[0] for node in nodes], self._feeds)
        for node, value in zip(nodes, values, strict=True):
            array = array_of(value)
            if array is not None:
                visit(node.name, array)


def _plain(value: Any) -> Any:
    """A tensor of a framework as an array, which the runners of other frameworks take."""
    array = array_of(value)
    return value if array is None else array


def _with_tensors(call: Call) -> Call:
    """The call with arrays of NumPy as tensors where the function is a module of PyTorch."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(call.function, torch.nn.Module):
        return call
    args = [torch.from_numpy(value) if isinstance(value, np.ndarray) else value for value in call.args]
    kwargs = {name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value for name, value in call.kwargs.items()}
    return Call(call.function, tuple(args), kwargs, call.gradients)


def _with_arrays_of_jax(call: Call) -> Call:
    """The call with arrays of JAX, by which a plain function is known as one of JAX."""
    jax: Any = sys.modules.get("jax")
    if jax is None:
        return call
    args = [jax.numpy.asarray(value) if isinstance(value, np.ndarray) else value for value in map(_plain, call.args)]
    kwargs = {name: jax.numpy.asarray(value) if isinstance(value, np.ndarray) else value for name, value in call.kwargs.items()}
    return Call(call.function, tuple(args), kwargs, call.gradients)
