"""What a watched run of a plan calls around each node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from graphcore.errors import CancelledError
from graphcore.runtime.events import Recorder
from graphcore.runtime.lowering import BEGIN, JOIN, Lowered
from graphcore.runtime.program import Step

SENDING: Final = frozenset({"_Send", "_HostSend"})


class Watcher:
    """Records the nodes of one run, and stops it when it is cancelled.

    Attributes:
        before, after: to be called with a node's number, and after it with its outputs too (a sending node's input).
    """

    __slots__ = ("_joined", "_lowered", "_names", "_recorder", "_released", "_sizes", "_step", "after", "before")

    def __init__(self, lowered: Lowered, step: Step) -> None:
        self._lowered = lowered
        self._step = step
        self._sizes: dict[int, int] = {}
        self._recorder = Recorder() if step.recorder is None else step.recorder
        self.before: Callable[[int], None] = self._check
        self.after: Callable[..., None] = _nothing
        if step.recorder is None:
            return
        self.before, self.after = self._start, self._end
        self._names = [step.prefix + operation.node.name for operation in lowered.operations]
        self._released = lowered.released()
        self._joined = {id(operation.inputs[0]): operation.outputs for operation in lowered.operations if operation.apart == JOIN}

    def _check(self, number: int) -> None:
        cancellation = self._step.cancellation
        if cancellation is not None and (cancellation.is_cancelled() or cancellation.is_cancelling()):
            node = self._lowered.operations[number].node
            raise CancelledError(f"The run was stopped before '{node.name}' (op {node.op})", op=node.op, node=node.name, source=node.source)

    def _start(self, number: int) -> None:
        if self._step.cancellation is not None:
            self._check(number)
        step, name = self._step, self._names[number]
        self._recorder.record("scheduled", name, frame=step.frame, iteration=step.iteration)
        self._recorder.record("start", name, frame=step.frame, iteration=step.iteration)

    def _end(self, number: int, *values: Any) -> None:
        step, name, operation = self._step, self._names[number], self._lowered.operations[number]
        size = sum([getattr(value, "nbytes", 0) for value in values])
        sends = operation.node.op in SENDING
        self._recorder.record("end", name, bytes=0 if sends else size, frame=step.frame, iteration=step.iteration)
        if sends:
            self._recorder.record("sent", name, bytes=size, frame=step.frame, iteration=step.iteration)
        elif operation.kernel is not None:
            self._count(number, values)

    def _count(self, number: int, values: tuple[Any, ...]) -> None:
        """Keep count of the bytes that arrays of the run hold: a view holds none, and what was written into a buffer holds that one."""
        sizes, operation = self._sizes, self._lowered.operations[number]
        if operation.into is not None:
            overwritten = operation.inputs[operation.into]
            sizes[id(operation.outputs[0])] = sizes.pop(id(overwritten), 0)
        else:
            outputs = operation.outputs
            if operation.apart == BEGIN:  # here it has been called at once, and what the node gives is there already
                outputs = self._joined[id(outputs[0])]
                values = values[0] if len(outputs) > 1 else values
            for output, value in zip(outputs, values, strict=False):
                if not output.is_reference and getattr(value, "base", 0) is None:
                    sizes[id(output)] = value.nbytes
                    self._step.hold(value.nbytes)
        for output in self._released.get(number, ()):
            self._step.hold(-sizes.pop(id(output), 0))

    def close(self) -> None:
        """The run is over: what it gives belongs to who called it."""
        self._step.hold(-sum(self._sizes.values()))


def _nothing(_number: int, *_outputs: Any) -> None:
    return None
