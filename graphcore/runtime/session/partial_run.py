"""Partial runs: one run in several steps, each with some of the feeds and fetches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graphcore.attrs import Array
from graphcore.errors import GraphError, InvalidArgumentError
from graphcore.graph.model.node import Node, Tensor
from graphcore.graph.saved_values import with_absent_values
from graphcore.plumbing import ENTER
from graphcore.runtime.backends.work import StepwiseProgram
from graphcore.runtime.core.cancellation import CancellationManager
from graphcore.runtime.core.feeds import Feeder, make_feeder, resolve_feeds
from graphcore.runtime.core.fetches import FetchStructure, parse_fetches
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.prune import needed_nodes
from graphcore.runtime.core.timed_run import planning_within, run_watched
from graphcore.runtime.session.planner import Planner
from graphcore.runtime.session.prepared import uses_rendezvous
from graphcore.runtime.session.runner import Runner

_Build = Callable[[list[Tensor], list[Node], list[Tensor]], StepwiseProgram]
"""Prepares a run that is fed step by step, given its fetches, targets and feeds."""
_SET_UP_FIRST = "Must run 'setup' before performing partial runs!"


class PartialRun:
    """A partial run in progress, by the dataflow engine, on one or several devices. Each node runs once, as early as possible.

    Args:
        structure: the fetches of all steps.
        feeds: the feeds of all steps.
        build: prepares the run.
        watched: True if the run can be stopped.

    Attributes:
        uses_rendezvous: True if its nodes send or receive.

    Raises:
        GraphError: a node cannot run, or a loop is malformed, fed or fetched from.
    """

    def __init__(self, structure: FetchStructure, feeds: Sequence[Tensor], build: _Build, watched: Step | None = None) -> None:
        self._waiting_fetches = {*structure.tensors, *structure.targets}
        self._fetches = frozenset(self._waiting_fetches)
        self._feeders: dict[Tensor, Feeder] = {tensor: make_feeder(tensor) for tensor in feeds}
        self._unfed = set(feeds)
        self._fed: dict[Tensor, Any] = {}
        self._feed_numbers = {tensor: number for number, tensor in enumerate(feeds)}
        self._fetch_numbers = {tensor: number for number, tensor in reversed(list(enumerate(structure.tensors)))}
        ends = structure.tensors, structure.targets, list(feeds)
        needed = needed_nodes(*ends)
        self._run = build(*ends).begin(watched)
        self._watched = watched
        self.uses_rendezvous = uses_rendezvous(needed)
        self._enters: dict[object, list[Node]] = {}
        for node in needed:
            if node.op in ENTER:
                self._enters.setdefault(node.node_def.attr["frame_name"], []).append(node)
        self._has_begun = False
        self._failed = False
        self._lock = threading.Lock()

    @property
    def is_over(self) -> bool:
        """True iff all has been fed and fetched, or a node has failed."""
        return self._failed or not (self._unfed or self._waiting_fetches)

    def step_within(self, timeout_in_ms: int, structure: FetchStructure, feeds: Mapping[Tensor, Any]) -> Any:
        """Make a step within a time limit, for runs that can be stopped; at the deadline the run ends.

        Raises:
            DeadlineExceededError: the deadline passed.
        """
        watched = self._watched
        if watched is None:
            return self.step(structure, feeds)
        try:
            return run_watched(_StepProgram(self, structure, feeds), (), watched, timeout_in_ms)[0]
        finally:
            # Stopped: over, even while an abandoned kernel still runs.
            self._failed = self._failed or (watched.cancellation is not None and watched.cancellation.is_cancelled())

    def step(self, structure: FetchStructure, feeds: Mapping[Tensor, Any]) -> Any:
        """Take some feeds, return some fetches. A refused step changes nothing.

        Raises:
            InvalidArgumentError: a feed or fetch that was not announced or was used before, a fetch whose feeds are missing, or
                one on a branch that was not taken, which ends the run.
            GraphError: a node failed, and with it the run.
        """
        with self._lock:
            if self.is_over:
                raise InvalidArgumentError(_SET_UP_FIRST)
            values = {tensor: self._checked(tensor, value) for tensor, value in feeds.items()}
            wanted: list[Tensor | Node] = [*structure.tensors, *structure.targets]
            for fetch in wanted:
                self._check_fetch(fetch, self._unfed - values.keys())
            try:
                with np.errstate(all="ignore"):
                    self._resume(values)
                results = structure.pack([self._result(tensor) for tensor in structure.tensors])
                self._waiting_fetches -= set(wanted)
            except BaseException:
                self._failed = True
                raise
            return results

    def _resume(self, values: Mapping[Tensor, Array]) -> None:
        for tensor, value in values.items():
            # Later steps may read it, after the caller has changed the array.
            self._fed[tensor] = kept = value.copy()
            kept.flags.writeable = False
            self._run.feed(self._feed_numbers[tensor], kept)
        self._unfed -= values.keys()
        if not self._has_begun:
            self._has_begun = True
            self._run.start()
        self._run.resume()

    def _result(self, tensor: Tensor) -> Any:
        """A copy of a value for the caller."""
        value = self._fed[tensor] if tensor in self._fed else self._run.result(self._fetch_numbers[tensor])
        if not isinstance(value, np.ndarray):
            return value
        return value.copy() if value.ndim else value[()]

    def _checked(self, tensor: Tensor, value: Any) -> Array:
        feeder = self._feeders.get(tensor)
        if feeder is None:
            raise _refused(f"The feed {tensor.name} was not specified in partial_run_setup.", tensor.node)
        if tensor not in self._unfed:
            raise _refused(f"The feed {tensor.name} has already been fed.", tensor.node)
        return feeder(value)

    def _check_fetch(self, fetch: Tensor | Node, unfed: Collection[Tensor]) -> None:
        node = fetch if isinstance(fetch, Node) else fetch.node
        if fetch not in self._fetches:
            raise _refused(f"The fetch {fetch.name} was not specified in partial_run_setup.", node)
        if fetch not in self._waiting_fetches:
            raise _refused(f"The fetch {fetch.name} was already fetched.", node)
        if self._needs(fetch, unfed):
            raise _refused(f"Tensor {fetch.name} can't be computed from the feeds that have been fed so far.", node)

    def _needs(self, fetch: Tensor | Node, unfed: Collection[Tensor]) -> bool:
        """True iff `fetch` depends on a missing feed."""
        pending: list[Tensor | Node] = [fetch]
        seen: set[Tensor | Node] = set()
        while pending:
            item = pending.pop()
            if item in unfed:
                return True
            if item in seen or item in self._feeders:
                continue
            seen.add(item)
            if isinstance(item, Tensor):
                pending.append(item.node)
            elif self._is_fed(item):
                pending += item.outputs
            else:
                pending += [*item.inputs, *item.control_inputs]
                if item.op in ENTER:  # no iteration ends before all Enters of its loop have arrived
                    pending += self._enters.get(item.node_def.attr["frame_name"], ())
        return False

    def _is_fed(self, node: Node) -> bool:
        return bool(node.outputs) and all(tensor in self._feeders for tensor in node.outputs)


class PartialRuns:
    """The partial runs of a session in progress, by handle."""

    def __init__(self, planner: Planner, runner: Runner) -> None:
        self._planner = planner
        self._runner = runner
        self._runs: dict[str, PartialRun] = {}
        self._last_handle = 0

    def set_up(self, fetches: Any, feeds: Iterable[Any]) -> str:
        """Begin a partial run; see `Session.partial_run_setup`."""
        planner, graph, limit = self._planner, self._planner.graph, self._runner.timeout_in_ms
        with graph.lock, planner.lock, planning_within(limit):
            graph.settle()
            planner.check_may_plan()
            watched = Step(None, CancellationManager()) if limit else None
            run = PartialRun(parse_fetches(graph, fetches), resolve_feeds(graph, feeds), planner.build_stepwise, watched)
            self._last_handle += 1
            handle = f"partial_run_{self._last_handle}"
            self._runs[handle] = run
            return handle

    def step(self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any]) -> Any:
        """Continue a partial run; see `Session.partial_run`."""
        run = self._runs.get(handle)
        if run is None:
            raise InvalidArgumentError(_SET_UP_FIRST)
        graph = self._planner.graph
        structure = parse_fetches(graph, fetches)
        values = dict(zip(resolve_feeds(graph, feed_dict), feed_dict.values(), strict=True))
        try:
            return run.step_within(self._runner.timeout_in_ms, structure, values)
        except BaseException as error:
            if run.is_over and run.uses_rendezvous:
                self._runner.abort_rendezvous(error)
            explained = with_absent_values(error, graph, graph.absent_values)
            if explained is not error:
                raise explained from error
            raise
        finally:
            graph.run_count += 1
            if run.is_over:
                self._runs.pop(handle, None)

    def clear(self) -> None:
        """Discard all runs."""
        self._runs.clear()


class _StepProgram:
    """One step of a partial run, in the form of a program."""

    def __init__(self, run: PartialRun, structure: FetchStructure, feeds: Mapping[Tensor, Any]) -> None:
        self._run = run
        self._structure = structure
        self._feeds = feeds

    def run_step(self, _step: Step, _values: Sequence[Any]) -> list[Any]:
        """Make the step. Returns its result as a single item."""
        return [self._run.step(self._structure, self._feeds)]


def _refused(text: str, node: Node) -> GraphError:
    return InvalidArgumentError.at(node, text)
