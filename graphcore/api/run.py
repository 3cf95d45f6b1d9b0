"""`gc.run`: recorded runs of models of other frameworks, in these frameworks."""

from __future__ import annotations

from typing import Any

from graphcore.errors import FailedPreconditionError, InvalidArgumentError
from graphcore.frontends.frontend import Call, MakesCalls, Source
from graphcore.frontends.lowering import lower
from graphcore.frontends.runs import keep, run_recorded
from graphcore.frontends.sources import frontend_for, open_source
from graphcore.graph import Graph
from graphcore.runtime import RunRecord, Trace
from graphcore.runtime.core.tracing import last_trace


class Run:
    """A recorded run of a model of another framework.

    Attributes:
        graph: the graph of the run. `gc.show(run)` and a cell that ends with the run show it with times, ranges and faults of values.
        error: the error with which the model ended, None without one.
    """

    __slots__ = ("_result", "error", "graph", "trace")

    def __init__(self, graph: Graph, result: Any, error: Exception | None) -> None:
        trace = last_trace(graph)
        assert trace is not None
        self.graph = graph
        self.trace: Trace = trace
        """Times and values by node, as of the runs of sessions: `run.trace.values.first_bad`."""
        self.error = error
        self._result = result

    @property
    def result(self) -> Any:
        """The result of the call, or the list of a model's outputs.

        Raises:
            Exception: the error with which the model ended.
        """
        if self.error is not None:
            raise self.error
        return self._result

    def __repr__(self) -> str:
        ended = "" if self.error is None else f", ended by {type(self.error).__name__}"
        return f"<gc.Run of {len(list(self.graph.op_nodes())):,} nodes{ended}: {self.trace.values!r}>"


def run(value: Any, /, *args: Any, **kwargs: Any) -> Run:
    """Run a model or function of another framework once, with values and times of all its nodes.

    The result is that of the plain call, bit for bit. Afterwards parameters, buffers, gradients, optimizers, modes and random generators are as
    before, so that the next call gives what it would have given. Hooks run as in any call. What a function changes elsewhere, such as a
    list around it, stays changed.

    Args:
        value: a PyTorch module or function, or the graph, file or object of a model for which there is a runner.
        args, kwargs: the arguments of the call, or values of the inputs by their order and names.

    Returns:
        The run. One that fails has the values up to the node that failed, and `run.error`.

    Raises:
        FailedPreconditionError: nothing here runs such a model.
        InvalidArgumentError: the arguments do not fit, or the call fails before any operation.

    Example:
        >>> run = gc.run(model, x)  # doctest: +SKIP
        >>> run.trace.values.first_bad  # doctest: +SKIP
    """
    made = run_of(Call(value, args, kwargs)) if callable(value) else None
    return made or _run_graph(value if isinstance(value, Graph) else lower(open_source(value)), args, kwargs)


def run_of(call: Call) -> Run | None:
    """The run of a call, None if it is a call of no framework.

    Raises:
        FailedPreconditionError: nothing here runs such a call.
        InvalidArgumentError: the call fails before any operation.
    """
    source = Source(value=call)
    frontend: object = frontend_for(source)
    if isinstance(frontend, MakesCalls):
        record = RunRecord()
        made = frontend.make(call, record)
        graph = lower(made.source)
        keep(graph, record)
        return Run(graph, made.result, made.error)
    return None if frontend is None else _run_graph(lower(open_source(call)), (), {})


def _run_graph(graph: Graph, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    try:
        return Run(graph, run_recorded(graph, args, kwargs), None)
    except (FailedPreconditionError, InvalidArgumentError):
        raise
    except Exception as error:  # noqa: BLE001 - a framework may raise anything, which the run says
        return Run(graph, None, error)
