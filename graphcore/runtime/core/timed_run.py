"""Runs with recording or a time limit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

from graphcore.errors import CancelledError, DeadlineExceededError
from graphcore.graph.model.node import Node
from graphcore.runtime.core.cancellation import CancellationManager
from graphcore.runtime.core.interruptible_call import AbandonedCallError, InterruptibleCall
from graphcore.runtime.core.program import Step, current
from graphcore.support.critical_section import critical_contextmanager
from graphcore.support.deadline import time_limit

PATIENCE: Final = 0.1
"""Seconds for a kernel to end by itself, and as many again to end after the interruption."""


def planning_within(timeout_in_ms: int) -> AbstractContextManager[None]:
    """Limit planning within the block to some milliseconds; 0 for no limit."""
    return time_limit(time.monotonic() + timeout_in_ms / 1000, _too_long(timeout_in_ms)) if timeout_in_ms else nullcontext()


class Runs(Protocol):
    """The protocol of runnable steps: a program, or a part of a run."""

    def run_step(self, step: Step, values: Sequence[Any]) -> list[Any]:
        """Run it; see `Program.run_step`."""


def run_watched(program: Runs, values: Sequence[Any], step: Step, timeout_in_ms: int, begun: float = 0.0) -> list[Any]:
    """Run `program` as `step`, within `timeout_in_ms` milliseconds (0: no limit).

    Args:
        begun: the start of the time limit on the clock of `time.monotonic`; now by default.

    At the deadline, or on Ctrl-C, the run ends before its next node. A running kernel without state is interrupted and abandoned. One
    that may change a variable is completed, so that the variable is consistent.

    Raises:
        DeadlineExceededError: the deadline passed; the error names the next node, or the abandoned one.
    """
    if not timeout_in_ms:
        return _run(program, values, step)
    step.cancellation = step.cancellation or CancellationManager()
    step.deadline = (begun or time.monotonic()) + timeout_in_ms / 1000
    call = InterruptibleCall(_run_in_time, program, values, step, _too_long(timeout_in_ms))
    try:
        in_time = call.wait(max(0.0, step.deadline - time.monotonic()))
    except KeyboardInterrupt as error:
        stop_call(call, step)
        if step.node is not None:
            error.add_note(f"stopped while running '{step.node.name}' (op {step.node.op})")
        raise
    if not in_time and not stop_call(call, step):
        raise _abandoned(timeout_in_ms, step.node)
    try:
        result: list[Any] = call.result()
    except CancelledError as error:
        if in_time and not step.is_late():
            raise
        stopped = error if error.node or step.node is None else CancelledError.at(step.node, error.message)
        text = f"{_too_long(timeout_in_ms)}; stopped at node '{stopped.node}'"
        late = DeadlineExceededError(text, op=stopped.op, node=stopped.node, source=stopped.source)
        raise _advised(late, timeout_in_ms, f"the run was still at '{stopped.node}'") from error
    except AbandonedCallError:
        raise _abandoned(timeout_in_ms, step.node) from None
    return result


def _run(program: Runs, values: Sequence[Any], step: Step) -> list[Any]:
    with under_way(step):
        return program.run_step(step, values)


def _run_in_time(program: Runs, values: Sequence[Any], step: Step, text: str) -> list[Any]:
    with time_limit(step.deadline, text):  # bodies of functions are planned on their first call
        return _run(program, values, step)


def stop_call(call: InterruptibleCall, step: Step) -> bool:
    """End a run, or abandon it in a kernel without state. True if it has ended."""
    assert step.cancellation is not None
    step.cancellation.start_cancel()
    while not call.wait(PATIENCE):
        if step.node is not None and _may_be_abandoned(step.node):
            call.abandon()
            return call.wait(PATIENCE)
    return True


def _too_long(timeout_in_ms: int) -> str:
    return f"Required to be done within {timeout_in_ms} ms, which have passed"


def _abandoned(timeout_in_ms: int, node: Node | None) -> DeadlineExceededError:
    assert node is not None
    text = f"{_too_long(timeout_in_ms)}; stopped while running '{node.name}' (op {node.op})"
    return _advised(DeadlineExceededError.at(node, text), timeout_in_ms, f"'{node.name}' was still running")


def _advised(error: DeadlineExceededError, timeout_in_ms: int, came: str) -> DeadlineExceededError:
    return error.advise(
        "Allow more time (`timeout_in_ms` of `gc.RunOptions` or of the session), or compute less in one run. A loop whose condition stays true does "
        "not end, and what waits for a queue ends when something is put into it.",
        required=f"the end of the run within {timeout_in_ms} ms",
        came=came,
    )


def _may_be_abandoned(node: Node) -> bool:
    """True iff abandoning the kernel of `node` has no lasting effects."""
    if node.registration.is_function or (node.op_def.is_stateful and not node.registration.traits.draws):
        return False
    return not any(dtype.is_ref for dtype in (*node.input_types, *node.output_types))


@critical_contextmanager
def under_way(step: Step) -> Iterator[None]:
    """Set `step` as the current run of this thread: function calls and waits within belong to it."""
    before, current.step = current.step, step
    try:
        yield
    finally:
        current.step = before
