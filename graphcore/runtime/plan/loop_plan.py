"""Plans with branches and loops: one generated Python function with `if` and `while`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from graphcore.graph.control_flow.frames import NodeFrame
from graphcore.graph.model.node import Node, Tensor
from graphcore.runtime.core.events import Around
from graphcore.runtime.core.program import Step
from graphcore.runtime.plan.buffers import reuse_buffers
from graphcore.runtime.plan.loop_memory import peak_of_loops
from graphcore.runtime.plan.loop_schedule import Begin, schedule_loops
from graphcore.runtime.plan.loop_structure import find_structure
from graphcore.runtime.plan.loop_text import loops_text
from graphcore.runtime.plan.parallel import has_large, mark_long
from graphcore.runtime.plan.plan import Plan
from graphcore.runtime.plan.plan_instrumentation import WatchedPlan, Watcher
from graphcore.runtime.plan.schedule import MakeKernel
from graphcore.runtime.plan.size_guards import guard_sizes


class _LoopWatcher(Watcher):
    """Keeps loop and iteration of a watched run up to date."""

    __slots__ = ("_around", "_loops")

    def __init__(self, plan: WatchedPlan, step: Step, feeds: Sequence[Any] = ()) -> None:
        super().__init__(plan, step, feeds)
        self._around: list[tuple[int, str, int, Around]] = []
        self._loops = {
            number: operation.loop.name for number, operation in enumerate(plan.schedule.operations) if isinstance(operation, Begin)
        }

    def observers(self) -> list[Callable[..., Any]]:
        """The first arguments of the watched code."""
        return [*super().observers(), self.iterate, self.leave]

    def iterate(self, loop: int) -> None:
        """Begin an iteration of the loop that begins with operation `loop`."""
        step = self._step
        self._check(loop)
        if self._around and self._around[-1][0] == loop:
            step.iteration += 1
            return
        self._around.append((loop, step.frame, step.iteration, step.around))
        step.frame, step.iteration, step.around = self._loops[loop], 0, step.within()

    def leave(self) -> None:
        """End the innermost loop."""
        step = self._step
        _, step.frame, step.iteration, step.around = self._around.pop()

    def close(self) -> None:
        """End the run, also in the middle of a loop."""
        while self._around:
            self.leave()
        super().close()


class LoopPlan(Plan):
    """A compiled subgraph with branches and loops."""

    __slots__ = ()
    _text = staticmethod(loops_text)
    _watcher = _LoopWatcher
    _peak = staticmethod(peak_of_loops)


def build_loop_plan(
    nodes: Sequence[Node],
    info: Mapping[Node, NodeFrame],
    fetches: Sequence[Tensor],
    targets: Collection[Node],
    feeds: Sequence[Tensor],
    make_kernel: MakeKernel,
) -> LoopPlan:
    """Compile `nodes`, the subgraph for `fetches` and `targets`, given `feeds`.

    Args:
        nodes: the nodes, producers first.
        info: their frames.

    Raises:
        UnimplementedError: they are not composed of branches and loops only.
        GraphError: a node has an error or cannot run; a tensor exceeds the allocation limit.
    """
    structure = find_structure(nodes, info, feeds)
    schedule = schedule_loops(structure, nodes, fetches, targets, feeds, make_kernel)
    any_large = has_large(nodes, feeds)
    guard_sizes(schedule, any_large=any_large)
    mark_long(schedule, any_large=any_large)
    reuse_buffers(schedule)
    return LoopPlan(schedule)
