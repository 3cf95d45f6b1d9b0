"""Queues of tuples of tensors: what they hold, who waits to put something in or to take something out, and in which order.

Who enqueues, and who closes, stands in one line; who dequeues in another. Only the first of a line goes on; what it cannot do yet waits, and is
done by whoever makes it possible. So nothing here ever blocks: an attempt tells its outcome when it has one.
"""

from __future__ import annotations

import threading
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

Element = tuple[Any, ...]
"""One array a component."""
Sizes = tuple[int | None, ...]
UNBOUNDED: Final = 2**31 - 1
_DRAWN_AT_ONCE: Final = 64


class QueueSpec(msgspec.Struct, frozen=True):
    """The properties that a node declares of its queue.

    Args:
        kind: `FIFOQueue`, `PaddingFIFOQueue` or `RandomShuffleQueue`.
        dtypes: one a component.
        shapes: one a component; none where elements may have any shapes.
        capacity: how many elements it may hold.
        min_after_dequeue: how many a RandomShuffleQueue keeps until it is closed.
        seeds: what a RandomShuffleQueue draws by; both 0 for any.
    """

    kind: str
    dtypes: tuple[DType, ...]
    shapes: tuple[Sizes, ...]
    capacity: int
    min_after_dequeue: int = 0
    seeds: tuple[int, int] = (0, 0)


class Queue:
    """A queue, first in, first out.

    Attributes:
        name: for error texts.
        spec: what it was made for.
        op, owner: see `SharedResource`.
        closed: nothing can be put in any more.
        shape: of the handle itself.
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
        self._lock = threading.Lock()
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
        """How many elements it holds."""
        return len(self._elements)

    @property
    def waiting(self) -> tuple[int, int]:
        """How many wait to put something in or to close it, and how many to take something out."""
        return len(self._entering), len(self._leaving)

    @property
    def is_full(self) -> bool:
        """True iff nothing can be put in now."""
        return len(self._elements) >= self.spec.capacity

    @property
    def available(self) -> int:
        """How many elements may be taken out now."""
        return len(self._elements)

    # ---- what an attempt does with the elements, while it is its turn -----------------------------------------------

    def _no_elements(self) -> Any:
        return deque()

    def put(self, element: Element) -> None:
        """Put an element in."""
        self._elements.append(element)

    def take(self) -> Element:
        """Take the next element out."""
        taken: Element = self._elements.popleft()
        return taken

    def put_back(self, elements: Sequence[Element]) -> None:
        """Undo the taking of `elements`."""
        self._elements.extendleft(reversed(elements))

    # ---- the lines ---------------------------------------------------------------------------------------------------

    def join(self, attempt: Attempt) -> None:
        """Have an attempt stand in line, and do all that can be done."""
        with self._changing():
            if self._ended:
                attempt.fail(attempt.cancelled())
            if attempt.is_over:
                self._over.append(attempt)
            else:
                (self._leaving if isinstance(attempt, Dequeue) else self._entering).append(attempt)

    def withdraw(self, attempt: Attempt) -> None:
        """Take an attempt out of its line, unless it is over."""
        with self._changing():
            self._cancel([attempt])

    def close_at_once(self, attempt: Attempt) -> None:
        """Close, and cancel who waits to put something in."""
        with self._changing():
            self.closed = True
            self._cancel(list(self._entering))
            attempt.is_over = True
            self._over.append(attempt)

    def end(self) -> None:
        """Cancel everybody who waits, and whoever comes."""
        with self._changing():
            self._ended = True
            self._cancel([*self._entering, *self._leaving])

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Something is changed in here: then all is done that has become possible, and who waited for it is told. Ctrl-C comes after that."""
        with critical_section:
            with self._lock:
                yield
                while self._advance(self._entering) | self._advance(self._leaving):
                    pass
                over, self._over = self._over, []
            for attempt in over:
                attempt.tell()

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
        """Let the first of a line do what it can, and the next if it is done. True iff anything has changed."""
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
    """A queue that gives a random one of its elements, and keeps some until it is closed."""

    single = "RandomShuffleQueue"

    def __init__(self, name: str, spec: QueueSpec, op: str) -> None:
        super().__init__(name, spec, op)
        seeds = spec.seeds if any(spec.seeds) else (fresh_seed(), fresh_seed())
        self._generator = Generator(*[seed & (1 << 64) - 1 for seed in seeds])
        self._drawn: deque[int] = deque()

    @property
    def available(self) -> int:
        """How many elements may be taken out now."""
        return len(self._elements) if self.closed else max(0, len(self._elements) - self.spec.min_after_dequeue)

    def _no_elements(self) -> Any:
        return []

    def take(self) -> Element:
        """Take a random element out; the last takes its place."""
        if not self._drawn:
            self._drawn.extend(words(np, self._generator, self._generator.reserve(_DRAWN_AT_ONCE // 4), _DRAWN_AT_ONCE).tolist())
        elements = self._elements
        place = self._drawn.popleft() % len(elements)
        taken: Element = elements[place]
        elements[place] = elements[-1]
        elements.pop()
        return taken

    def put_back(self, elements: Sequence[Element]) -> None:
        """Undo the taking of `elements`."""
        self._elements.extend(reversed(elements))


class Attempt:
    """One use of a queue under way: see `Pending`.

    Attributes:
        is_over: it is certain what came of it.
        error: why nothing came of it, None if all is well.
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
        """The error that ends it when it is cancelled."""
        return CancelledError(f"{self.called} operation was cancelled")

    def fail(self, error: GraphError) -> None:
        """Nothing comes of it."""
        self.error = error
        self.is_over = True

    def advance(self) -> bool:
        """Do what can be done now. True iff that was anything."""
        raise NotImplementedError

    def give_back(self) -> None:
        """Undo what cancelling it undoes."""

    def outputs(self) -> Any:
        """Its outputs, once it is done."""
        return None

    def tell(self) -> None:
        """Tell who began it."""
        if self._done is None:
            return
        outputs: Any = None
        error: Exception | None = self.error
        try:
            outputs = self.outputs() if error is None else None
        except Exception as failure:  # noqa: BLE001 - it is for who dequeues, not for who has put something in
            error = failure
        self._done(outputs, error)


class Enqueue(Attempt):
    """Puts elements in, as soon as there is room for each."""

    __slots__ = ("_left",)

    called = "Enqueue"

    def __init__(self, queue: Queue, elements: Sequence[Element]) -> None:
        super().__init__(queue)
        self._left = deque(elements)

    def advance(self) -> bool:
        """Put in what there is room for; nothing into a closed queue."""
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
    """Closes the queue, once who came before has put in what he wanted."""

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
        """Close it."""
        if self.queue.closed:
            self.fail(CancelledError(f"Queue '{self.queue.name}' is already closed."))
        self.queue.closed = self.is_over = True
        return True


class Dequeue(Attempt):
    """Takes elements out as they come, until it has as many as it wants.

    Args:
        queue: where from.
        count: how many.
        finish: makes the outputs of the elements.
        up_to: fewer will do once the queue is closed.
        kind: what the queue is called in errors.
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
        """Take what there is; where no more can come, give it back or be content with it."""
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
        """Put back what it has taken so far."""
        self.queue.put_back(self._taken)
        self._taken.clear()

    def outputs(self) -> Any:
        """The elements that were taken."""
        return self._finish(self._taken)


def mismatch(queue: Queue, spec: QueueSpec, op: str) -> InvalidArgumentError | None:
    """Why a node of op `op` that declares `spec` cannot share `queue`, None if it can."""
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
    return ", ".join([dtype.name for dtype in dtypes])


def shown_sizes(sizes: Sizes) -> str:
    """A shape, for error texts."""
    return f"[{','.join(['?' if size is None else str(size) for size in sizes])}]"


def agrees(wanted: Sizes, given: Sequence[int | None]) -> bool:
    """True iff two shapes can be the same."""
    return len(wanted) == len(given) and all(a is None or b is None or a == b for a, b in zip(wanted, given, strict=True))


def _shown(shapes: Sequence[Sizes]) -> str:
    return f"[{', '.join(map(shown_sizes, shapes))}]"
