"""What a watched run calls around each node."""

from __future__ import annotations

from typing import Any

from graphcore.errors import CancelledError
from graphcore.runtime.lowering import Lowered
from graphcore.runtime.program import Step


class Watcher:
    """Records the nodes of one run, and stops it when it is cancelled.

    Attributes:
        before, after: to be called with a node's number, and after it with its outputs too.
    """

    __slots__ = ("_cancellation", "_lowered", "_names", "_step", "after", "before")

    def __init__(self, lowered: Lowered, step: Step) -> None:
        self._lowered = lowered
        self._step = step
        self._cancellation = step.cancellation
        self._names = [step.prefix + operation.node.name for operation in lowered.operations]
        self.before = self._before_recorded if step.recorder is not None else self._before
        self.after = self._after_recorded if step.recorder is not None else _nothing

    def _before(self, number: int) -> None:
        cancellation = self._cancellation
        if cancellation is not None and cancellation.is_cancelled():
            node = self._lowered.operations[number].node
            raise CancelledError(f"The run was stopped before '{node.name}' (op {node.op})", op=node.op, node=node.name, source=node.source)

    def _before_recorded(self, number: int) -> None:
        if self._cancellation is not None:
            self._before(number)
        recorder = self._step.recorder
        assert recorder is not None
        recorder.record("start", self._names[number], frame=self._step.frame, iteration=self._step.iteration)

    def _after_recorded(self, number: int, *outputs: Any) -> None:
        recorder = self._step.recorder
        assert recorder is not None
        size = 0
        for value in outputs:
            size += getattr(value, "nbytes", 0)
        recorder.record("end", self._names[number], bytes=size, frame=self._step.frame, iteration=self._step.iteration)


def _nothing(_number: int, *_outputs: Any) -> None:
    return None
