"""Plans with branches and loops: one generated Python function with `if` and `while` where the graph has Switch and Merge."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from graphcore.graph.control_flow import NodeFrame
from graphcore.graph.node import Node, Tensor
from graphcore.runtime.buffers import reuse_buffers
from graphcore.runtime.holdings import Holdings
from graphcore.runtime.loops_lowering import Begin, lower_loops
from graphcore.runtime.loops_structure import find_structure
from graphcore.runtime.loops_text import loops_text
from graphcore.runtime.lowering import Lowered, MakeKernel
from graphcore.runtime.memory import guard_sizes
from graphcore.runtime.plan import Plan
from graphcore.runtime.program import Step
from graphcore.runtime.watcher import Watcher


class LoopPlan(Plan):
    """A compiled subgraph with branches and loops."""

    __slots__ = ()
    _text = staticmethod(loops_text)

    def run_step(self, step: Step, values: Sequence[Any]) -> list[Any]:
        """Run it recorded, node by node with loop and iteration, and stop before the next node when the step is cancelled.

        Raises:
            CancelledError: it was cancelled.
        """
        watcher = _LoopWatcher(self.lowered, step)
        try:
            return self._compile_watched()(watcher.before, watcher.after, watcher.turn, watcher.leave, *values)
        finally:
            watcher.close()


class _LoopWatcher(Watcher):
    """Keeps the step of a watched run at the loop and iteration that it is in."""

    __slots__ = ("_around", "_holdings", "_loops")

    def __init__(self, lowered: Lowered, step: Step) -> None:
        super().__init__(lowered, step)
        self._around: list[tuple[int, str, int]] = []
        self._holdings = Holdings(step)
        self._loops = {
            number: operation.loop.name
            for number, operation in enumerate(lowered.operations)
            if isinstance(operation, Begin) and operation.loop is not None
        }

    def turn(self, loop: int) -> None:
        """An iteration of the loop that begins with operation `loop` begins."""
        step = self._step
        self._check(loop)
        if self._around and self._around[-1][0] == loop:
            step.iteration += 1
            return
        self._around.append((loop, step.frame, step.iteration))
        step.frame, step.iteration = self._loops[loop], 0

    def leave(self) -> None:
        """The innermost loop has ended."""
        _, self._step.frame, self._step.iteration = self._around.pop()

    def close(self) -> None:
        """The run is over, also if in the middle of a loop."""
        while self._around:
            self.leave()
        self._holdings.close()

    def _count(self, number: int, values: tuple[Any, ...]) -> None:  # noqa: ARG002 - what is overridden takes it
        # An operation of a loop gives an array in each iteration, and may give the last one back or keep it.
        self._holdings.add(values)


def build_loop_plan(
    nodes: Sequence[Node],
    info: Mapping[Node, NodeFrame],
    fetches: Sequence[Tensor],
    targets: Collection[Node],
    feeds: Sequence[Tensor],
    make_kernel: MakeKernel,
) -> LoopPlan:
    """Compile `nodes`, which are what `fetches` and `targets` need when `feeds` are given, producers first; `info` says their frames.

    Raises:
        UnimplementedError: they are not made of branches and loops only.
        GraphError: a node carries an error or cannot run; a tensor is larger than the memory.
    """
    structure = find_structure(nodes, info, feeds)
    lowered = lower_loops(structure, nodes, fetches, targets, feeds, make_kernel)
    guard_sizes(lowered)
    reuse_buffers(lowered)
    return LoopPlan(lowered)
