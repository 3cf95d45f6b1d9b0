"""The dataflow engine: runs any graph, loops and branches among it, by tokens; what waits for a value holds up nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from graphcore.errors import GraphError, InternalError
from graphcore.graph.model.gc_pause import paused_collector
from graphcore.graph.model.node import Node, Tensor
from graphcore.runtime.core.program import Step
from graphcore.runtime.dataflow.dataflow import DataflowRun
from graphcore.runtime.dataflow.fused import FusedRun, prepare
from graphcore.runtime.dataflow.fusing import fuse
from graphcore.runtime.dataflow.memory import peak_of_table
from graphcore.runtime.dataflow.table import Table, build_table
from graphcore.runtime.plan.peak_memory import OWN_SIZES, PeakMemory, Sizes
from graphcore.runtime.plan.schedule import MakeKernel

_UNWATCHED: Final = Step()


class DataflowProgram:
    """A subgraph made ready for the dataflow engine. Several threads may run it at once.

    Attributes:
        nodes: the nodes that it may run, producers first.
    """

    __slots__ = ("_fused", "_table", "nodes")

    source: Final = ""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._fused: Table | None = None
        self.nodes = table.nodes

    def __repr__(self) -> str:
        return f"<DataflowProgram of {len(self.nodes)} nodes>"

    def run(self, *values: Any) -> list[Any]:
        """Fed arrays in, fetched arrays out.

        Raises:
            GraphError: what a kernel raised, with its node.
            InvalidArgumentError: a fetched value is dead.
        """
        return self._run(_UNWATCHED, values)

    def run_step(self, step: Step, values: Sequence[Any]) -> list[Any]:
        """As `run`: recorded, and stopped before the next node when the step is cancelled; what waits is ended then.

        Raises:
            CancelledError: it was cancelled.
        """
        return self._run(step, values) if step.recorder is None else DataflowRun(self._table, step, values).run(values)

    def _run(self, step: Step, values: Sequence[Any]) -> list[Any]:
        """As nobody looks at single nodes, those that wait for nothing but each other run in one go."""
        if self._fused is None:
            with paused_collector():
                self._fused = prepare(fuse(self._table))
        return FusedRun(self._fused, step).run(values)

    def peak_memory(self, sizes: Sizes = OWN_SIZES) -> PeakMemory:
        """The most that the arrays of a run will hold at once, as the shapes tell; see `Program.peak_memory`."""
        return peak_of_table(self._table, sizes)

    def begin(self, step: Step | None = None) -> DataflowRun:
        """A run to which values are fed one after the other; cancelling `step` stops it before the next node."""
        return DataflowRun(self._table, step or _UNWATCHED)

    def explain(self, error: BaseException) -> BaseException:
        """`error` as a GraphError; those of nodes have been explained already."""
        return (
            error
            if isinstance(error, GraphError) or not isinstance(error, Exception)
            else InternalError(f"{type(error).__name__}: {error}")
        )

    def close(self) -> None:
        """Nothing is held."""


def build_dataflow(fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor], make_kernel: MakeKernel) -> DataflowProgram:
    """Make ready what `fetches` and `targets` need when `feeds` are given.

    Raises:
        GraphError: a needed node carries an error or cannot run, or a loop is malformed.
    """
    return DataflowProgram(build_table(fetches, targets, feeds, make_kernel))
