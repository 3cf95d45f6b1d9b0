"""Runs that go on one node at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

import msgspec

from graphcore.errors import FailedPreconditionError, GraphError, InvalidArgumentError
from graphcore.graph.attached import Attached
from graphcore.runtime.core.cancellation import CancellationManager
from graphcore.runtime.core.events import Event
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.tensor_stats import TensorStats
from graphcore.runtime.core.tracing import Trace
from graphcore.support.critical_section import critical_section

if TYPE_CHECKING:
    from graphcore.graph.model.node import Node
    from graphcore.runtime.core.value_records import Key, ValueRecorder, ValueRecords
    from graphcore.runtime.stepping.gate import Gate

_CLOSING_SECONDS: Final = 1.0


class NodeStep(msgspec.Struct, frozen=True):
    """A node that has run, or was dead, in a `SteppedRun`.

    Attributes:
        event: its end, or its death.
        values: the statistics of its outputs.
    """

    event: Event
    values: tuple[TensorStats, ...]

    def __repr__(self) -> str:
        return f"<gc.NodeStep {self.name}: {'dead' if self.is_dead else '; '.join([one.words for one in self.values]) or 'no values'}>"

    @property
    def name(self) -> str:
        """The node, after the surrounding calls as in `Event.path`."""
        return self.event.path

    @property
    def is_dead(self) -> bool:
        """True for a node on a branch that was not taken."""
        return self.event.kind == "dead"

    @property
    def is_finite(self) -> bool:
        """True iff its outputs have neither NaN nor Inf."""
        return all(one.is_finite for one in self.values)


Test = Callable[[NodeStep], bool]


class SteppedRun:
    """A run by the dataflow engine that waits before each node, in a thread of its own.

    It is made by `Session.step_through`, and waits until it is stepped to its end or closed. Other runs and cells may go on meanwhile. Nodes
    in the bodies of functions count as nodes. The values of all nodes are recorded.

    Args:
        nodes: the nodes of the graph that it may run.
        feeds: the names of the fed nodes.
        gate: records it.
        execute: runs it, and returns the fetched values.

    Attributes:
        nodes: the names of these nodes.
        feeds: as given.
    """

    def __init__(self, nodes: Sequence[Node], feeds: Sequence[str], gate: Gate, execute: Callable[[Step], Any]) -> None:
        self.nodes = frozenset([node.name for node in nodes])
        self.feeds = feeds
        self._nodes = nodes
        self._gate = gate
        assert gate.values is not None
        self._values: ValueRecorder = gate.values
        self._cancellation = CancellationManager()
        self._result: Any = None
        self._error: BaseException | None = None
        self._read = 0, 0
        work = copy_context().run
        self._thread = threading.Thread(target=work, args=(self._work, execute), name="graphcore-stepped-run", daemon=True)
        critical_section.start(self._thread)
        gate.rest()

    def __repr__(self) -> str:
        if not self.is_over:
            return f"<gc.SteppedRun before '{self.next}'>"
        if self._error is None:
            return "<gc.SteppedRun done>"
        return f"<gc.SteppedRun ended: {self._error.message if isinstance(self._error, GraphError) else repr(self._error)}>"

    @property
    def next(self) -> str:
        """The node before which it waits, named as by `Event.path`; "" if it does not wait."""
        return " > ".join(filter(None, self.place or ()))

    @property
    def place(self) -> tuple[str, str] | None:
        """The surrounding calls of `next`, and the node; None if it does not wait."""
        return self._gate.next

    @property
    def is_over(self) -> bool:
        """True iff it has ended."""
        return self._gate.is_over

    @property
    def error(self) -> BaseException | None:
        """The error that has ended it, None if there is none."""
        return self._error if self.is_over else None

    @property
    def values(self) -> ValueRecords:
        """The recorded values so far."""
        return self._values.records(self._nodes)

    @property
    def trace(self) -> Trace:
        """The events so far, without the time spent waiting."""
        return Trace(self._gate.events, self._nodes, values=self.values)

    def events_from(self, first: int) -> list[Event]:
        """The events so far without the `first` ones."""
        return self._gate.events_from(first)

    def stats_from(self, first: int) -> tuple[list[TensorStats], int]:
        """The recorded values so far from a place on, in order, and the place to go on from.

        0 is the first place.
        """
        return self._values.stats_from(first)

    @property
    def same(self) -> Mapping[Key, Key]:
        """For tensors of nodes that needed no kernel, the tensor with the same value.

        It grows as `stats_from` reads.
        """
        return self._values.same

    def step(self, count: int = 1) -> NodeStep | None:
        """Run the next nodes.

        Args:
            count: the number of nodes.

        Returns:
            The last node that has ended; None if none did, since a node has begun to run the body of a function.

        Raises:
            GraphError: a node failed.
            InvalidArgumentError: not a positive number.
            FailedPreconditionError: the run has ended.
        """
        if count < 1:
            raise InvalidArgumentError(f"count: required a positive number of nodes, got {count}")
        last = None
        for _ in range(count):
            self._require_waiting()
            ended = self.advance()
            self._raise_error()
            last = next((node for node in reversed(ended) if not node.event.how), None)
            if self.is_over:
                break
        return last

    def run_until(self, test: str | Test) -> NodeStep | None:
        """Run nodes until a test holds for one that has ended.

        Args:
            test: the name of a node, or a function of a `NodeStep`: `lambda node: not node.is_finite`.

        Returns:
            The node; None if the run has ended before.

        Raises:
            GraphError: a node failed.
            FailedPreconditionError: the run has ended.
        """
        self._require_waiting()
        holds: Test = (lambda node: test in {node.name, node.event.node}) if isinstance(test, str) else test
        while not self.is_over:
            for node in self.advance():
                if holds(node):
                    self._raise_error()
                    return node
        self._raise_error()
        return None

    def finish(self) -> Any:
        """Run all other nodes, and return the fetches in their structure.

        Raises:
            GraphError: a node failed.
        """
        while not self.is_over:
            self.advance()
        self._raise_error()
        return self._result

    def close(self) -> None:
        """End it before the next node. Nothing happens if it has ended."""
        self._gate.close()
        self._cancellation.start_cancel()
        self._thread.join(_CLOSING_SECONDS)

    def advance(self, seconds: float | None = None) -> list[NodeStep]:
        """Let the next node run, unless the last one still does.

        Args:
            seconds: the most seconds to wait for it; None for as long as it takes.

        Returns:
            The nodes that have ended since the last call.
        """
        begun = time.monotonic()
        if self._gate.rest(seconds):
            self._gate.allow()
            self._gate.rest(None if seconds is None else max(0.0, seconds - (time.monotonic() - begun)))
        return self._ended()

    def _ended(self) -> list[NodeStep]:
        """The nodes that have ended since the last call."""
        events, stats = self._read
        fresh = self._gate.events_from(events)
        values, read = self._values.stats_from(stats)
        self._read = events + len(fresh), read
        by_run: dict[object, list[TensorStats]] = {}
        for one in values:
            by_run.setdefault((one.node, one.frame, one.iteration, one.around, one.call), []).append(one)
        return [
            NodeStep(event, tuple(by_run.get((event.node, event.frame, event.iteration, event.around, event.call), ())))
            for event in fresh
            if event.kind in {"end", "dead"}
        ]

    def _work(self, execute: Callable[[Step], Any]) -> None:
        try:
            self._result = execute(Step(self._gate, self._cancellation))
        except BaseException as error:  # noqa: BLE001 - the caller of `step` gets it
            self._error = error
        finally:
            self._gate.end()

    def _require_waiting(self) -> None:
        if self.is_over:
            raise FailedPreconditionError("Required a run that has not ended; Session.step_through begins a new one")

    def _raise_error(self) -> None:
        if self.error is not None:
            raise self.error


last_stepped_run: Final[Attached[SteppedRun]] = Attached()
"""The run of `Session.step_through` that was begun last on a graph, until another recorded run of the graph is newer."""
