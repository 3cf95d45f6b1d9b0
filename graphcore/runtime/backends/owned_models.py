"""The backend of graphs that show models of other frameworks, which run there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from graphcore.errors import CancelledError, FailedPreconditionError, InvalidArgumentError, UnimplementedError
from graphcore.graph import Graph
from graphcore.graph.attached import Attached
from graphcore.graph.model.node import Node, Tensor
from graphcore.runtime.backends.this_cpu import ThisCpu
from graphcore.runtime.backends.work import Built, RecordedRun, StepwiseProgram, Subgraph
from graphcore.runtime.core.kernel_checks import explain_at
from graphcore.runtime.core.options import SessionOptions
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.sizes import PeakMemory
from graphcore.runtime.core.tracing import CPU, Trace
from graphcore.runtime.core.value_records import ValueRecords
from graphcore.runtime.engines import Engine
from graphcore.runtime.runners import NodeNames, Runner, RunRecord
from graphcore.runtime.runners.array_views import array_of, bytes_of
from graphcore.runtime.runners.run_record import peak_of


@dataclass(frozen=True, slots=True)
class OwnedModel:
    """The model of another framework behind a graph.

    Attributes:
        kind: the kind of model in words: `ONNX model`.
        runner: makes what runs it; None if nothing here does.
        names: the names of nodes in the graph, by those in the model.
        sources: the names in the model, by those in the graph, of nodes that take a feed.
    """

    kind: str
    runner: Callable[[], Runner] | None
    names: NodeNames
    sources: dict[str, str]


owned_model: Final[Attached[OwnedModel]] = Attached()


class OwningFramework(ThisCpu):
    """Runs a graph by the framework that owns the model behind it. See `Backend`.

    The whole model runs, up to the node that gives the last value to fetch. Inputs can be fed, and no other tensors.

    Args:
        graph, options: those of the session.
        model: the model.
    """

    def __init__(self, graph: Graph, options: SessionOptions, model: OwnedModel) -> None:
        super().__init__(graph, options)
        self._graph = graph
        self._model = model

    def __repr__(self) -> str:
        return f"<OwningFramework of a {self._model.kind}>"

    def build(self, subgraph: Subgraph, engine: Engine) -> Built:
        """Prepare a run.

        Raises:
            FailedPreconditionError: nothing here runs such models.
            InvalidArgumentError: a tensor is fed that is no input.
            UnimplementedError: an engine of this package is asked for.
        """
        model = self._model
        if model.runner is None:
            raise FailedPreconditionError(
                f"This graph shows a model of the kind {model.kind}, and nothing here runs such models. It can be shown, searched and compared; those "
                "that run in a session are ONNX models, JAX programs and PyTorch's exported programs. gc.run(model, x) runs calls"
            )
        if engine != "auto":
            raise UnimplementedError(
                f"A model of the kind {model.kind} runs in its own framework, not by the engine {engine!r} of this package"
            )
        for tensor in subgraph.feeds:
            if tensor.node.name not in model.sources:
                raise InvalidArgumentError.at(
                    tensor.node, f"'{tensor.name}' cannot be fed; the inputs of the model are {', '.join(model.sources) or 'none'}"
                )
        return Built(OwnedProgram(self._graph, model, model.runner(), subgraph), CPU)

    def build_stepwise(self, subgraph: Subgraph) -> StepwiseProgram:
        """Refuse to prepare a run that is fed step by step.

        Raises:
            UnimplementedError: always.
        """
        del subgraph
        raise UnimplementedError(
            f"A model of the kind {self._model.kind} runs as a whole in its own framework, and is not fed step by step"
        )

    def trace(self, run: RecordedRun) -> Trace:
        """The trace of a run."""
        recorder = run.recorder
        arrays, values = recorder.arrays, run.values
        return Trace(
            lambda: recorder.events,
            run.program.nodes,
            peak_of(arrays),
            arrays,
            values=None if values is None else lambda: self._with_bodies(values()),
        )

    def _with_bodies(self, values: ValueRecords) -> ValueRecords:
        values.bodies = self._model.names.bodies
        return values


class OwnedProgram:
    """A run of a model. See `Program`.

    Args:
        graph: the graph that shows the model.
        model, runner: the model, and what runs it.
        subgraph: what to fetch and to feed.
    """

    def __init__(self, graph: Graph, model: OwnedModel, runner: Runner, subgraph: Subgraph) -> None:
        self.nodes: Sequence[Node] = list(graph.op_nodes())
        self._graph = graph
        self._model = model
        self._runner = runner
        self._fetches = list(subgraph.fetches)
        self._targets = list(subgraph.targets)
        self._feeds = list(subgraph.feeds)
        self._running: Node | None = None

    def run(self, *values: Any) -> list[Any]:
        """Run without recording."""
        return self.run_step(Step(), values)

    def run_step(self, step: Step, values: Sequence[Any]) -> list[Any]:
        """Run with recording and cancellation.

        Raises:
            CancelledError: the step was cancelled.
        """
        self._running = None
        fed = dict(zip(self._feeds, values, strict=True))
        wanted = {(tensor.node.name, tensor.index) for tensor in self._fetches if tensor not in fed}
        watch = _SessionWatch(self, step, wanted, {tensor.node.name for tensor in self._feeds})
        feeds = {self._model.sources[tensor.node.name]: value for tensor, value in fed.items()}
        try:
            if wanted or self._targets:
                self._runner.run(feeds, watch)
        except _AllFetched:
            pass
        self._running = None
        return [fed[tensor] if tensor in fed else watch.value(tensor) for tensor in self._fetches]

    def explain(self, error: BaseException) -> BaseException:
        """Convert an error of the framework to a GraphError that names the node."""
        node = self._running
        return error if node is None else explain_at(node, error)

    def close(self) -> None:
        """Do nothing: the framework owns the model."""

    def peak_memory(self, sizes: object = None) -> PeakMemory:
        """Unknown: the framework decides."""
        del sizes
        return PeakMemory(None, reason=f"The memory of a {self._model.kind} is managed by its own framework")

    def reach(self, name: str, step: Step) -> None:
        """A node of the graph itself begins.

        Raises:
            CancelledError: the step was cancelled.
        """
        node = self._graph.find(name)
        self._running = step.node = node
        cancellation = step.cancellation
        if (
            node is not None
            and cancellation is not None
            and (cancellation.is_cancelled() or cancellation.is_cancelling() or step.is_late())
        ):
            raise CancelledError.at(node, f"The run was stopped before '{node.name}' (op {node.op})")

    def find(self, name: str) -> Node | None:
        """A node of the graph itself."""
        return self._graph.find(name)

    def users(self) -> dict[str, int]:
        """For each node the number of nodes that take its outputs, results of the graph among them."""
        users: dict[str, int] = {}
        for node in self.nodes:
            for producer in {tensor.node.name for tensor in node.inputs}:
                users[producer] = users.get(producer, 0) + 1
        return users

    def place(self, call: str, node: str) -> tuple[str, str]:
        """The surrounding calls and the name in the graph of a node of the model."""
        return self._model.names.place(call, node)


class _AllFetched(BaseException):
    """All that was to be fetched is there. No error: a framework that catches Exception must not catch it."""


class _SessionWatch:
    """Records a run of a session under the names of the graph, and keeps what is fetched.

    It ends the run when all of that is there.

    Args:
        program: the program.
        step: the run.
        wanted: the nodes and outputs to keep.
        fed: the nodes whose values the session has recorded.
    """

    def __init__(self, program: OwnedProgram, step: Step, wanted: set[tuple[str, int]], fed: set[str]) -> None:
        self._program = program
        self._step = step
        self._wanted = wanted
        self._outputs: dict[str, list[int]] = {}
        for name, output in wanted:
            self._outputs.setdefault(name, []).append(output)
        self._fed = fed
        self._ends = not program._targets
        self._values: dict[tuple[str, int], Any] = {}
        self._record = None if step.recorder is None else RunRecord(recorder=step.recorder)
        self._waiting = {} if step.recorder is None else program.users()
        self._held: dict[str, Callable[[], None]] = {}

    def give(self, node: str, values: Sequence[object], call: str = "") -> None:
        """See `Watch`."""
        around, name = self._program.place(call, node)
        if self._record is not None and (around or name not in self._fed):
            self._record.give(name, values, around)
        self._keep(name, values, around)

    def begin(self, node: str, call: str = "") -> None:
        """See `Watch`."""
        around, name = self._program.place(call, node)
        if not around:
            self._program.reach(name, self._step)
        if self._record is not None:
            self._record.begin(name, around)

    def end(self, node: str, outputs: Sequence[object], call: str = "") -> None:
        """See `Watch`."""
        around, name = self._program.place(call, node)
        if self._record is not None:
            self._record.end(name, outputs, around)
            if not around:
                self._hold(self._record, name, outputs)
        self._keep(name, outputs, around)

    def value(self, tensor: Tensor) -> Any:
        """A fetched value.

        Raises:
            InvalidArgumentError: the run did not compute it.
        """
        key = tensor.node.name, tensor.index
        if key not in self._values:
            raise InvalidArgumentError.at(tensor.node, f"'{tensor.name}' has no value of its own in the run of the model")
        return self._values[key]

    def _hold(self, record: RunRecord, name: str, outputs: Sequence[object]) -> None:
        """Count the memory of outputs until the last node has run that takes one of them."""
        node = self._program.find(name)
        size = sum(map(bytes_of, outputs))
        if node is None:
            return
        if size:
            release = self._held[name] = record.hold(name, size)
            if not self._waiting.get(name):
                release()
        for producer in {tensor.node.name for tensor in node.inputs}:
            self._waiting[producer] -= 1
            if not self._waiting[producer] and producer in self._held:
                self._held.pop(producer)()

    def _keep(self, name: str, values: Sequence[object], around: str) -> None:
        if around or name not in self._outputs:
            return
        for output in self._outputs[name]:
            if output < len(values):
                self._values[name, output] = _kept(values[output])
        del self._outputs[name]
        if self._ends and not self._outputs:
            raise _AllFetched


def _kept(value: object) -> object:
    """A fetched value: a copy as an array where it has elements, itself otherwise."""
    array = array_of(value)
    return value if array is None else np.array(array)
