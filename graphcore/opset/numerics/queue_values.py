"""Queues of tuples of tensors, with their waiting enqueues and dequeues, in order.

Enqueues and closes wait in one line, dequeues in another. Only the first of a line proceeds; if it cannot complete, it waits, and is
completed by the operation that makes it possible. So nothing here blocks: an attempt reports its outcome by a callback.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from graphcore.dtypes import DType
from graphcore.errors import CancelledError, GraphError, InvalidArgumentError, OutOfRangeError
from graphcore.kernel_context import Done
from graphcore.opset.numerics.philox import Generator, fresh_seed, words
from graphcore.support.critical_section import critical_section
from graphcore.support.forking import new_lock

Element = tuple[Any, ...]
"""One array a component."""
Sizes = tuple[int | None, ...]
UNBOUNDED: Final = 2**31 - 1
_DRAWN_AT_ONCE: Final = 64


class QueueSpec(msgspec.Struct, frozen=True):
    """The properties that a node declares of its queue.

    Args:
        kind: `FIFOQueue`, `PaddingFIFOQueue`, `PriorityQueue` or `RandomShuffleQueue`.
        dtypes: one for each component.
        shapes: one for each component; empty if elements may have any shapes.
        capacity: the most elements.
        min_after_dequeue: the number of elements a RandomShuffleQueue keeps until it is closed.
        seeds: the seeds of a RandomShuffleQueue; both 0 for random ones.
    """

    kind: str
    dtypes: tuple[DType, ...]
    shapes: tuple[Sizes, ...]
    capacity: int
    min_after_dequeue: int = 0
    seeds: tuple[int, int] = (0, 0)


class Queue:
    """A first-in-first-out queue.

    Attributes:
        name: the name in error texts.
        spec: its properties.
        op, owner: see `SharedResource`.
        closed: True once nothing can be enqueued any more.
        shape: the shape of the handle itself.
    """

    shape: ClassVar[tuple[int, ...]] = ()
    single: ClassVar[str] = "FIFOQueue"
    """The name of the kind in errors, other than those of dequeuing many."""

    def __init__(self, name: str, spec: QueueSpec, op: str) -> None:
        self.name = name
        self.spec = spec
        self.op = op
        self.owner = ""
        self.closed = False
        self._lock = new_lock()
        self._elements: Any = self._no_elements()
        self._entering: deque[Attempt] = deque()
        self._leaving: deque[Attempt] = deque()
        self._over: list[Attempt] = []
        self._ended = False

    def __repr__(self) -> str:
        most = "any number" if self.spec.capacity == UNBOUNDED else str(self.spec.capacity)
        return f"<{self.spec.kind} '{self.name}': {self.size} of {most} elements{', closed' if self.closed else ''}>"

    @property
    def size(self) -> int:
        """The number of elements."""
        return len(self._elements)

    @property
    def waiting(self) -> tuple[int, int]:
        """The numbers of waiting enqueues or closes, and of waiting dequeues."""
        return len(self._entering), len(self._leaving)

    @property
    def is_full(self) -> bool:
        """True iff nothing can be enqueued now."""
        return len(self._elements) >= self.spec.capacity

    @property
    def available(self) -> int:
        """The number of elements that may be dequeued now."""
        return len(self._elements)

    # ---- operations of the attempt at the head of a line ----------------------------------------------------------

    def _no_elements(self) -> Any:
        return deque()

    def put(self, element: Element) -> None:
        """Add an element."""
        self._elements.append(element)

    def take(self) -> Element:
        """Remove the next element."""
        taken: Element = self._elements.popleft()
        return taken

    def put_back(self, elements: Sequence[Element]) -> None:
        """Undo the removal of `elements`."""
        self._elements.extendleft(reversed(elements))

    # ---- the lines ---------------------------------------------------------------------------------------------------

    def join(self, attempt: Attempt) -> None:
        """Append an attempt to its line, and process both lines."""
        with self._changing():
            if self._ended:
                attempt.fail(attempt.cancelled())
            if attempt.is_over:
                self._over.append(attempt)
            else:
                (self._leaving if isinstance(attempt, Dequeue) else self._entering).append(attempt)

    def withdraw(self, attempt: Attempt) -> None:
        """Remove an attempt from its line, unless it is completed."""
        with self._changing():
            self._cancel([attempt])

    def close_at_once(self, attempt: Attempt) -> None:
        """Close the queue, and cancel waiting enqueues."""
        with self._changing():
            self.closed = True
            self._cancel(list(self._entering))
            attempt.is_over = True
            self._over.append(attempt)

    def end(self) -> None:
        """Cancel all waiting and later attempts."""
        with self._changing():
            self._ended = True
            self._cancel([*self._entering, *self._leaving])

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Process both lines after a change in the block, and notify completed attempts. Defers Ctrl-C."""
        with critical_section:
            with self._lock:
                yield
                while self._advance(self._entering) | self._advance(self._leaving):
                    pass
                over, self._over = self._over, []
            for attempt in over:
                attempt.notify()

    def _cancel(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            if attempt.is_over:
                continue
            attempt.give_back()
            attempt.fail(attempt.cancelled())
            for line in (self._entering, self._leaving):
                if attempt in line:
                    line.remove(attempt)
                    self._over.append(attempt)

    def _advance(self, line: deque[Attempt]) -> bool:
        """Advance the head of a line, and its successors if it completes. True iff anything has changed."""
        changed = False
        while line:
            attempt = line[0]
            if not attempt.is_over:
                changed = attempt.advance() or changed
            if not attempt.is_over:
                return changed
            self._over.append(attempt)
            line.popleft()
            changed = True
        return changed


class ShuffleQueue(Queue):
    """A queue that returns random elements, and keeps some until it is closed."""

    single = "RandomShuffleQueue"

    def __init__(self, name: str, spec: QueueSpec, op: str) -> None:
        super().__init__(name, spec, op)
        first, second = spec.seeds if any(spec.seeds) else (fresh_seed(), fresh_seed())
        self._generator = Generator(first & (1 << 64) - 1, second & (1 << 64) - 1)
        self._drawn: deque[int] = deque()

    @property
    def available(self) -> int:
        """The number of elements that may be dequeued now."""
        return len(self._elements) if self.closed else max(0, len(self._elements) - self.spec.min_after_dequeue)

    def _no_elements(self) -> Any:
        return []

    def take(self) -> Element:
        """Remove a random element; the last takes its place."""
        if not self._drawn:
            self._drawn.extend(words(np, self._generator, self._generator.reserve(_DRAWN_AT_ONCE // 4), _DRAWN_AT_ONCE).tolist())
        elements = self._elements
        place = self._drawn.popleft() % len(elements)
        taken: Element = elements[place]
        elements[place] = elements[-1]
        elements.pop()
        return taken

    def put_back(self, elements: Sequence[Element]) -> None:
        """Undo the removal of `elements`."""
        self._elements.extend(reversed(elements))


class PriorityQueue(Queue):
    """A queue that returns the element with the smallest first component, the oldest of equal ones."""

    single = "PriorityQueue"

    def __init__(self, name: str, spec: QueueSpec, op: str) -> None:
        super().__init__(name, spec, op)
        self._number = 0

    def _no_elements(self) -> Any:
        return []

    def put(self, element: Element) -> None:
        """Add an element."""
        self._number += 1
        heapq.heappush(self._elements, (int(element[0]), self._number, element))

    def take(self) -> Element:
        """Remove the element with the smallest priority."""
        taken: Element = heapq.heappop(self._elements)[2]
        return taken

    def put_back(self, elements: Sequence[Element]) -> None:
        """Undo the removal of `elements`, which come before those of equal priority."""
        for number, element in enumerate(elements, -len(elements)):
            heapq.heappush(self._elements, (int(element[0]), number, element))


class Attempt:
    """An operation on a queue: see `Pending`.

    Attributes:
        is_over: True once the outcome is decided.
        error: the error, None for success.
    """

    __slots__ = ("_done", "error", "is_over", "queue")

    called: ClassVar[str] = ""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.is_over = False
        self.error: GraphError | None = None
        self._done: Done | None = None

    def begin(self, done: Done) -> None:
        """See `Pending.begin`."""
        self._done = done
        self.queue.join(self)

    def cancel(self) -> None:
        """See `Pending.cancel`."""
        self.queue.withdraw(self)

    def cancelled(self) -> CancelledError:
        """The error of a cancelled attempt."""
        return CancelledError(f"{self.called} operation was cancelled")

    def fail(self, error: GraphError) -> None:
        """Complete with an error."""
        self.error = error
        self.is_over = True

    def advance(self) -> bool:
        """Proceed as far as possible. True iff anything was done."""
        raise NotImplementedError

    def give_back(self) -> None:
        """Undo partial work on cancellation."""

    def outputs(self) -> Any:
        """The outputs of a completed attempt."""
        return None

    def notify(self) -> None:
        """Notify the callback."""
        if self._done is None:
            return
        outputs: Any = None
        error: Exception | None = self.error
        try:
            outputs = self.outputs() if error is None else None
        except Exception as failure:  # noqa: BLE001 - the error is for the dequeuing node, not for the enqueuing one
            error = failure
        self._done(outputs, error)


class Enqueue(Attempt):
    """Adds elements, each as soon as there is space."""

    __slots__ = ("_left",)

    called = "Enqueue"

    def __init__(self, queue: Queue, elements: Sequence[Element]) -> None:
        super().__init__(queue)
        self._left = deque(elements)

    def advance(self) -> bool:
        """Add elements while there is space; none to a closed queue."""
        queue, left = self.queue, self._left
        before = len(left)
        if left and queue.closed:
            self.fail(CancelledError(f"{queue.single} '{queue.name}' is closed."))
            return True
        while left and not queue.is_full:
            queue.put(left.popleft())
        self.is_over = not left
        return len(left) < before


class Close(Attempt):
    """Closes the queue after earlier enqueues have completed."""

    __slots__ = ("_at_once",)

    called = "Close"

    def __init__(self, queue: Queue, *, at_once: bool) -> None:
        super().__init__(queue)
        self._at_once = at_once

    def begin(self, done: Done) -> None:
        """See `Pending.begin`."""
        self._done = done
        if self._at_once:
            self.queue.close_at_once(self)
        else:
            self.queue.join(self)

    def advance(self) -> bool:
        """Close the queue."""
        if self.queue.closed:
            self.fail(CancelledError(f"Queue '{self.queue.name}' is already closed."))
        self.queue.closed = self.is_over = True
        return True


class Dequeue(Attempt):
    """Removes elements as they become available, up to the requested number.

    Args:
        queue: the queue.
        count: the number of elements.
        finish: makes the outputs from the elements.
        up_to: accept fewer elements once the queue is closed.
        kind: the name of the queue in errors.
    """

    __slots__ = ("_count", "_finish", "_kind", "_taken", "_up_to")

    called = "Dequeue"

    def __init__(self, queue: Queue, count: int, finish: Callable[[Sequence[Element]], Any], kind: str, *, up_to: bool = False) -> None:
        super().__init__(queue)
        self._count = count
        self._finish = finish
        self._kind = kind
        self._up_to = up_to
        self._taken: list[Element] = []
        self.is_over = not count

    def advance(self) -> bool:
        """Take available elements; if no more can come, return them or complete with fewer."""
        queue, taken = self.queue, self._taken
        missing, size = self._count - len(taken), queue.size
        if queue.closed and size < missing:
            self.give_back()
            if not (self._up_to and queue.size):
                text = f"is closed and has insufficient elements (requested {missing}, current size {size})"
                self.fail(OutOfRangeError(f"{self._kind} '{queue.name}' {text}"))
                return True
            missing = self._count = queue.size
        moved = min(missing, queue.available)
        for _ in range(moved):
            taken.append(queue.take())
        self.is_over = moved == missing
        return moved > 0

    def give_back(self) -> None:
        """Return the elements taken so far."""
        self.queue.put_back(self._taken)
        self._taken.clear()

    def outputs(self) -> Any:
        """The dequeued elements as outputs."""
        return self._finish(self._taken)


def mismatch(queue: Queue, spec: QueueSpec, op: str) -> InvalidArgumentError | None:
    """The conflict of `spec`, declared by a node of op `op`, with `queue`; None if there is none."""
    own = queue.spec
    if own.kind != spec.kind:
        return InvalidArgumentError(f"Expected {own.kind}, found {op}")
    shared = f"Shared queue '{queue.name}' has"
    if own.capacity != spec.capacity:
        return InvalidArgumentError(f"{shared} capacity {own.capacity} but requested capacity was {spec.capacity}")
    if own.min_after_dequeue != spec.min_after_dequeue:
        what = "min_after_dequeue"
        return InvalidArgumentError(f"{shared} {what} {own.min_after_dequeue} but requested {what} was {spec.min_after_dequeue}.")
    if any(spec.seeds) and own.seeds != spec.seeds:
        return InvalidArgumentError(f"{shared} random seeds {own.seeds} but requested seeds are {spec.seeds}.")
    if own.dtypes != spec.dtypes:
        return InvalidArgumentError(
            f"{shared} component types {type_names(own.dtypes)} but requested component types were {type_names(spec.dtypes)}"
        )
    if len(own.shapes) != len(spec.shapes) or not all(map(agrees, own.shapes, spec.shapes)):
        return InvalidArgumentError(
            f"{shared} component shapes {_shown(own.shapes)} but requested component shapes were {_shown(spec.shapes)}"
        )
    return None


def type_names(dtypes: Sequence[DType]) -> str:
    """The names of types, for error texts."""
    return ", ".join([dtype.text for dtype in dtypes])


def shown_sizes(sizes: Sizes) -> str:
    """A shape, for error texts."""
    return f"[{','.join(['?' if size is None else str(size) for size in sizes])}]"


def agrees(wanted: Sizes, actual: Sequence[int | None]) -> bool:
    """True iff two shapes are compatible."""
    return len(wanted) == len(actual) and all(a is None or b is None or a == b for a, b in zip(wanted, actual, strict=True))


def _shown(shapes: Sequence[Sizes]) -> str:
    return f"[{', '.join(map(shown_sizes, shapes))}]"
