"""A run over several devices that is fed step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.runtime.core.program import Step
from graphcore.runtime.core.rendezvous import Rendezvous
from graphcore.runtime.partitions.partition_run import Inbox, Part, PartitionRun


class StepwiseRun:
    """A run of several partitions in one thread, fed step by step, as a `DataflowRun` is on one device.

    Args:
        parts: the partitions.
        feeds: the number of feeds of all steps.
        step: the run as a whole.
    """

    def __init__(self, parts: Sequence[Part], feeds: int, step: Step) -> None:
        channel = Rendezvous()
        self._inbox = Inbox()
        self._runs = [PartitionRun(part, step, [None] * feeds, channel, self._inbox) for part in parts]

    def feed(self, number: int, value: Any) -> None:
        """Feed a value; it counts from the next `resume` on."""
        for run in self._runs:
            if number in run.part.feeds:
                run.feed(run.part.feeds.index(number), value)

    def start(self) -> None:
        """Make the nodes ready that need no feed."""
        for run in self._runs:
            run.prepare()

    def resume(self) -> None:
        """Run all nodes that can run; transfers of values that are not there yet wait for a later step.

        Raises:
            GraphError: an error of a node, with its device.
        """
        try:
            self._inbox.resume(self._runs)
        except BaseException:
            for run in self._runs:
                run.close()
            raise

    def result(self, number: int) -> Any:
        """A fetched value, once available.

        Raises:
            InvalidArgumentError: it is dead.
        """
        run = next(run for run in self._runs if number in run.part.fetches)
        return run.result(run.part.fetches.index(number))
