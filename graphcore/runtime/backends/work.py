"""The subgraphs that backends get, and the programs that they give back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self

import msgspec

from graphcore.graph.model.node import Node, Tensor
from graphcore.runtime.backends.mild_initializers import mild_initializers
from graphcore.runtime.core.program import Program, Step
from graphcore.runtime.core.prune import needed_nodes
from graphcore.runtime.core.recorder import Recorder
from graphcore.runtime.core.rewrite import subgraph_to_run
from graphcore.runtime.core.value_records import ValueRecords
from graphcore.runtime.dataflow.dataflow import DataflowRun
from graphcore.runtime.partitions.stepwise_run import StepwiseRun


class Subgraph(msgspec.Struct, frozen=True, eq=False):
    """The part of a graph that a run needs.

    Args:
        fetches, targets, feeds: the tensors to fetch, further nodes to run, and the tensors that are fed.
        nodes: its nodes.
        mild: the names of the initializers among them that leave values as they are.
    """

    fetches: Sequence[Tensor]
    targets: Sequence[Node]
    feeds: Sequence[Tensor]
    nodes: Sequence[Node]
    mild: frozenset[str]

    @classmethod
    def of(cls, fetches: list[Tensor], targets: list[Node], feeds: list[Tensor]) -> Self:
        """The subgraph for `fetches` and `targets`, given `feeds`; see `subgraph_to_run`.

        Raises:
            GraphError: a tensor within a loop is fetched or fed, or a fed shape does not fit.
        """
        fetches, targets, feeds = subgraph_to_run(fetches, targets, feeds)
        nodes = needed_nodes(fetches, targets, feeds)
        return cls(fetches, targets, feeds, nodes, mild_initializers(targets, nodes))

    @property
    def ends(self) -> tuple[Sequence[Tensor], Sequence[Node], Sequence[Tensor]]:
        """Its fetches, targets and feeds."""
        return self.fetches, self.targets, self.feeds

    @property
    def is_empty(self) -> bool:
        """True iff nothing is fetched, and no node is to run."""
        return not self.fetches and not self.targets


class Built(msgspec.Struct, frozen=True, eq=False):
    """A subgraph that a backend has made ready to run.

    Args:
        program: runs it.
        device: the name of the device that does all of it; None if several share it.
    """

    program: Program
    device: str | None


class StepwiseProgram(Protocol):
    """A subgraph prepared for runs that are fed step by step."""

    def begin(self, step: Step | None = None) -> DataflowRun | StepwiseRun:
        """Begin a run; cancelling `step` stops it before the next node."""


class RecordedRun(msgspec.Struct, frozen=True, eq=False):
    """A recorded run that has ended.

    Args:
        program: what was run.
        device: the device that did all of it; None if several shared it.
        recorder: its events.
        peak_bytes: the most bytes of arrays that were alive at once.
        values: gives the statistics of its values, if they were recorded.
    """

    program: Program
    device: str | None
    recorder: Recorder
    peak_bytes: int
    values: Callable[[], ValueRecords] | None
