"""The dataflow engine: the reference semantics of any graph, by tokens, frames and iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from graphcore.errors import GraphError, InternalError
from graphcore.graph.model.node import Node, Tensor
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.sizes import OWN_SIZES, PeakMemory, Sizes
from graphcore.runtime.dataflow.dataflow import DataflowRun
from graphcore.runtime.dataflow.table import Table, build_table
from graphcore.runtime.plan.schedule import MakeKernel

_UNWATCHED: Final = Step()


class DataflowProgram:
    """A subgraph prepared for the dataflow engine. Thread-safe.

    Attributes:
        nodes: the nodes it may run, producers first.
    """

    __slots__ = ("_table", "nodes")

    source: Final = ""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.nodes = table.nodes

    def __repr__(self) -> str:
        return f"<DataflowProgram of {len(self.nodes)} nodes>"

    def run(self, *values: Any) -> list[Any]:
        """Fed arrays in, fetched arrays out.

        Raises:
            GraphError: an error of a kernel, with its node.
            InvalidArgumentError: a fetched value is dead.
        """
        return DataflowRun(self._table, _UNWATCHED).run(values)

    def run_step(self, step: Step, values: Sequence[Any]) -> list[Any]:
        """Run with recording; cancellation stops it before the next node and ends waits.

        Raises:
            CancelledError: it was cancelled.
        """
        return DataflowRun(self._table, step, values).run(values)

    def peak_memory(self, sizes: Sizes = OWN_SIZES) -> PeakMemory:  # noqa: ARG002 - the signature is Program's
        """Unknown, as it depends on the order in which values arrive."""
        return PeakMemory(None, reason="the dataflow engine runs it, and how much is alive at once depends on when values arrive")

    def begin(self, step: Step | None = None) -> DataflowRun:
        """A run that is fed step by step; cancelling `step` stops it before the next node."""
        return DataflowRun(self._table, step or _UNWATCHED)

    def explain(self, error: BaseException) -> BaseException:
        """Convert `error` to a GraphError; errors of nodes are converted already."""
        return (
            error
            if isinstance(error, GraphError) or not isinstance(error, Exception)
            else InternalError(f"{type(error).__name__}: {error}")
        )

    def close(self) -> None:
        """Do nothing: the program holds no resources."""


def build_dataflow(fetches: Sequence[Tensor], targets: Sequence[Node], feeds: Sequence[Tensor], make_kernel: MakeKernel) -> DataflowProgram:
    """Prepare the subgraph for `fetches` and `targets`, given `feeds`.

    Raises:
        GraphError: a needed node has an error or cannot run, or a loop is malformed.
    """
    return DataflowProgram(build_table(fetches, targets, feeds, make_kernel))
