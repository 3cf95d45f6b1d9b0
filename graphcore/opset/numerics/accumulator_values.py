"""Accumulators of gradients.

A mean is taken once enough gradients have come; those of earlier steps are dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
import numpy as np

from graphcore.dtypes import DType
from graphcore.errors import CancelledError, InvalidArgumentError
from graphcore.kernel_context import Done
from graphcore.shapes import Shape
from graphcore.support.forking import new_lock


class AccumulatorSpec(msgspec.Struct, frozen=True):
    """The properties that a node declares of its accumulator.

    Args:
        is_sparse: gradients are rows with indices.
        dtype: their type.
        sizes: the shape of a gradient, None for unknown sizes; None for any shape.
        mean: divide by the number of gradients.
    """

    is_sparse: bool
    dtype: DType
    sizes: tuple[int | None, ...] | None
    mean: bool


class Accumulator:
    """An accumulator. Thread-safe.

    Attributes:
        name: the name in error texts.
        spec: its properties.
        op, owner: see `SharedResource`.
        shape: the shape of the handle itself.
    """

    shape: ClassVar[tuple[int, ...]] = ()

    def __init__(self, name: str, spec: AccumulatorSpec, op: str) -> None:
        self.name = name
        self.spec = spec
        self.op = op
        self.owner = ""
        self._lock = new_lock()
        self._step = 0
        self._count = 0
        self._sum: Any = None
        self._waiting: deque[Take] = deque()
        self._ended = False

    def __repr__(self) -> str:
        return f"<{'sparse ' * self.spec.is_sparse}accumulator '{self.name}' of {self._count} gradients>"

    def end(self) -> None:
        """Cancel all waiting ops."""
        with self._lock:
            self._ended = True
            waiting, self._waiting = list(self._waiting), deque()
        for waiter in waiting:
            waiter.fail(CancelledError("The accumulator was removed, or the session closed", op=self.op))

    def count(self) -> int:
        """The number of gradients since the last mean was taken."""
        return self._count

    def set_step(self, step: int) -> None:
        """Set the step that gradients must be of at least."""
        with self._lock:
            self._step = max(self._step, step)

    def check(self, shape: tuple[int, ...]) -> None:
        """Check the shape of a gradient.

        Raises:
            InvalidArgumentError: it is not that of the accumulator.
        """
        wanted = self.spec.sizes
        if wanted is not None and not Shape(wanted).is_compatible_with(Shape(shape)):
            raise InvalidArgumentError(
                f"Shape mismatch: expected {Shape(wanted)}, got {list(shape)} (accumulator '{self.name}')", op=self.op
            )

    def apply(self, step: int, add: Callable[[Any], Any]) -> None:
        """Add a gradient, unless it is of an earlier step.

        Args:
            step: its step.
            add: returns the sum with it, given the sum so far, None for none.
        """
        with self._lock:
            if step < self._step:
                return
            self._sum = add(self._sum)
            self._count += 1
            ready = self._ready()
        for take, result in ready:
            take.succeed(result)

    def take(self, take: Take) -> None:
        """Complete an attempt once there are enough gradients."""
        with self._lock:
            cancelled = self._ended
            if not cancelled:
                self._waiting.append(take)
            ready = [] if cancelled else self._ready()
        if cancelled:
            take.fail(CancelledError("The session was closed", op=self.op))
        for waiter, result in ready:
            waiter.succeed(result)

    def forget(self, take: Take) -> bool:
        """Remove a waiting attempt. Returns False if it is not waiting any more."""
        with self._lock:
            if take not in self._waiting:
                return False
            self._waiting.remove(take)
            return True

    def _ready(self) -> list[tuple[Take, Any]]:
        ready = []
        while self._waiting and self._count >= self._waiting[0].needed:
            ready.append((self._waiting.popleft(), (self._sum, self._count)))
            self._sum, self._count = None, 0
            self._step += 1
        return ready


class Take:
    """An attempt to take the mean: the `Pending` result of a kernel.

    Args:
        accumulator: the accumulator.
        needed: the number of gradients to wait for.
        result: makes the outputs of the sum and the number of gradients.
    """

    def __init__(self, accumulator: Accumulator, needed: int, result: Callable[[Any, int], Any]) -> None:
        self.needed = needed
        self._accumulator = accumulator
        self._result = result
        self._done: Done | None = None

    def begin(self, done: Done) -> None:
        """Call `done` once the result is certain."""
        self._done = done
        self._accumulator.take(self)

    def cancel(self) -> None:
        """Cancel the wait."""
        if self._accumulator.forget(self):
            self.fail(CancelledError("TakeGrad operation was cancelled", op=self._accumulator.op))

    def succeed(self, outcome: tuple[Any, int]) -> None:
        """Hand over the result."""
        assert self._done is not None
        self._done(self._result(*outcome), None)

    def fail(self, error: Exception) -> None:
        """Hand over an error."""
        assert self._done is not None
        self._done(None, error)


def merged_rows(rows: Any, indices: Any, values: Any) -> Any:
    """Add rows with indices to a sum: (indices, sums, how many gradients each row has). Indices ascend in both."""
    if rows is None:
        return indices.tolist(), [row.copy() for row in values], [1] * len(indices)
    own_rows, sums, counts = rows
    result: tuple[list[int], list[Any], list[int]] = [], [], []
    i = j = 0
    while i < len(own_rows) or j < len(indices):
        first = i < len(own_rows) and (j == len(indices) or own_rows[i] <= indices[j])
        second = j < len(indices) and (i == len(own_rows) or indices[j] <= own_rows[i])
        result[0].append(own_rows[i] if first else int(indices[j]))
        result[1].append(sums[i] + values[j] if first and second else sums[i] if first else np.array(values[j]))
        result[2].append((counts[i] if first else 0) + int(second))
        i, j = i + int(first), j + int(second)
    return result
