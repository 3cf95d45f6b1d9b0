"""The plan engine: an acyclic subgraph becomes one generated Python function over local variables."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final

from graphcore.errors import GraphError, InternalError
from graphcore.graph.model.node import Node, Tensor
from graphcore.runtime.core.kernel_checks import explain_at, outputs_unset, shown_name
from graphcore.runtime.core.memory import keep_freed_memory
from graphcore.runtime.core.program import Step
from graphcore.runtime.core.prune import needed_nodes
from graphcore.runtime.core.sizes import OWN_SIZES, PeakMemory, Sizes
from graphcore.runtime.plan.buffers import reuse_buffers
from graphcore.runtime.plan.parallel import has_large, mark_long, run_apart
from graphcore.runtime.plan.peak_memory import peak_of_plan
from graphcore.runtime.plan.plan_instrumentation import WatchedPlan, Watcher
from graphcore.runtime.plan.plan_text import WORDS, PlanText, plan_text
from graphcore.runtime.plan.schedule import JOIN, MakeKernel, Schedule, Value, schedule_nodes
from graphcore.runtime.plan.size_guards import guard_sizes
from graphcore.support.deadline import check_time
from graphcore.support.forking import new_lock
from graphcore.support.generated_code import compile_generated

_numbers: Final = itertools.count(1)
_NAMED: Final = 4
"""Feeds and fetches that a plan names where it is shown."""
_UNPACKING: Final = ("values to unpack", "cannot unpack", "has no attribute 'dtype'")


class Plan:
    """A compiled subgraph; several threads may run it at once.

    Attributes:
        source: the generated code, one line for each node, with its name; tracebacks and profilers point into it.
        nodes: the nodes that are run, in order.
        run: the function: fed arrays in, fetched arrays out.
        schedule: the operations behind the code.
    """

    __slots__ = ("_line_nodes", "_lock", "_watched", "filename", "nodes", "run", "schedule", "source")
    _text = staticmethod(plan_text)
    _watcher = Watcher
    _peak = staticmethod(peak_of_plan)

    def __init__(self, schedule: Schedule) -> None:
        text = self._text(schedule)
        self.schedule = schedule
        self.source = text.annotated()
        self.filename, self.run = _compiled(text, self.source)
        self._line_nodes = {self.filename: text.line_nodes}
        self._lock = new_lock()
        self._watched: WatchedPlan | None = None
        self.nodes = [operation.node for operation in schedule.operations if operation.apart != JOIN]

    def __repr__(self) -> str:
        feeds, gives = _named(self.schedule.feeds), _named(self.schedule.results)
        count = len(self.nodes)
        return f"<{type(self).__name__} of {count} node{'s' * (count != 1)}: {feeds} -> {gives}; its code is in .source>"

    def run_step(self, step: Step, values: Sequence[Any]) -> list[Any]:
        """Run with recording by node, loop and iteration; cancellation stops it before the next node.

        Raises:
            CancelledError: it was cancelled.
        """
        plan = self._watched or self._compile_watched()
        watcher = self._watcher(plan, step, values)
        try:
            return plan.run(*watcher.observers(), *values)
        finally:
            watcher.close()

    def peak_memory(self, sizes: Sizes = OWN_SIZES) -> PeakMemory:
        """The predicted peak of live arrays, from shapes; see `Program.peak_memory`."""
        return self._peak(self.schedule, sizes)

    def node_at(self, traceback: TracebackType | None) -> Node | None:
        """The node at the current line of the innermost frame of this plan."""
        node = None
        while traceback is not None:
            lines = self._line_nodes.get(traceback.tb_frame.f_code.co_filename)
            if lines is not None:
                node = lines.get(traceback.tb_lineno, node)
            traceback = traceback.tb_next
        return node

    def explain(self, error: BaseException) -> BaseException:
        """Convert `error` to a GraphError with node, inputs and the user's line.

        Other exceptions than `Exception` (Ctrl-C) are returned with a note.
        """
        node = self.node_at(error.__traceback__)
        is_plain = isinstance(error, Exception) and not isinstance(error, GraphError)
        if node is None:
            return InternalError(f"{type(error).__name__}: {error}") if is_plain else error
        if is_plain and isinstance(error, AttributeError | TypeError | ValueError) and any(text in str(error) for text in _UNPACKING):
            return outputs_unset(node, f"it left some unset or gave more ({error})")
        return explain_at(node, error, self._actual(error, node))

    def close(self) -> None:
        """Release the source text."""
        for filename in self._line_nodes:
            linecache.cache.pop(filename, None)

    def _compile_watched(self) -> WatchedPlan:
        with self._lock:
            if self._watched is None:
                text = self._text(self.schedule, watched=True)
                filename, run = _compiled(text, text.annotated())
                self._line_nodes = {**self._line_nodes, filename: text.line_nodes}
                self._watched = WatchedPlan(self.schedule, run, text.notes)
            return self._watched

    def _actual(self, error: BaseException, node: Node) -> Iterator[Any]:
        """The actual inputs, if the plan's frame still has them."""
        traceback, frame = error.__traceback__, None
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename in self._line_nodes:
                frame = traceback.tb_frame
            traceback = traceback.tb_next
        operation = next((operation for operation in self.schedule.operations if operation.node is node), None)
        if frame is None or operation is None or not operation.inputs:
            return
        shared, variables = frame.f_locals.get("v"), self.schedule.variables
        for value in operation.inputs:
            name = value.name
            in_scope = variables.get(name, value.constant)
            yield shared[int(name[2:-1])] if shared is not None and name[0] == "v" else frame.f_locals.get(name, in_scope)


def _named(values: Sequence[Value]) -> str:
    """The first few of `values`, in words."""
    names = [shown_name(value.tensor) for value in values[:_NAMED]] + [f"{len(values) - _NAMED} more"] * (len(values) > _NAMED)
    return ", ".join(names) or "nothing"


def build_plan(
    fetches: Sequence[Tensor],
    targets: Sequence[Node],
    feeds: Sequence[Tensor],
    make_kernel: MakeKernel,
    needed: Sequence[Node] | None = None,
    threads: int = 0,
) -> Plan:
    """Compile the subgraph for `fetches` and `targets`, given `feeds`.

    Args:
        needed: the nodes of the subgraph, producers first, if known.
        threads: the number of heavy nodes to run concurrently; 0 for the best number on this machine.

    Raises:
        GraphError: a needed node has an error, cannot run, or is in a cycle; a tensor exceeds the allocation limit.
    """
    nodes = needed_nodes(fetches, targets, feeds) if needed is None else needed
    schedule = schedule_nodes(nodes, fetches, targets, feeds, make_kernel)
    any_large = has_large(nodes, feeds)
    guard_sizes(schedule, any_large=any_large)
    keep_freed_memory()
    if any_large:
        run_apart(schedule, nodes, threads)
    mark_long(schedule, any_large=any_large)
    reuse_buffers(schedule)
    return Plan(schedule)


def _compiled(text: PlanText, source: str) -> tuple[str, Callable[..., list[Any]]]:
    """Compile `text`, function by function, so that Ctrl-C and a time limit can interrupt.

    Tracebacks show the corresponding lines of `source`.
    """
    filename = f"<graphcore plan {next(_numbers)}>"
    lines = text.source.split("\n")
    for first, end in itertools.pairwise([*text.starts, len(lines)]):
        node = text.line_nodes.get(first + 2)  # the first line within the function
        if node is not None:
            check_time(node.name, node.op)
        piece = "\n" * first + "\n".join(lines[first:end])
        compile_generated(piece, filename, text.scope, WORDS)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    run: Callable[..., list[Any]] = text.scope["run"]
    return filename, run
