"""Queue scenarios for this project and TensorFlow: each returns plain values and error texts.

Imports nothing of either.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np


class Side(Protocol):
    """A player of scenarios."""

    def node(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any], name: str) -> Any:
        """A node of the graph: its only output, or the node itself. Inputs are outputs, arrays, or lists of these."""

    def outputs(self, node: Any) -> Any:
        """All outputs of the node with this one."""

    def run(self, what: Any) -> Any:
        """Run fetches.

        Raises:
            Exception: an error of the run.
        """

    def text(self, error: Exception) -> str:
        """The error's own words."""

    def wait_until_blocked(self, queue: Any, enqueues: int, dequeues: int) -> None:
        """Wait until so many enqueues (or closes) and dequeues are blocked at a queue."""


class InBackground:
    """A run in another thread."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._found: list[Any] = []
        self._thread = threading.Thread(target=lambda: self._found.append(work()), daemon=True)
        self._thread.start()

    def result(self) -> Any:
        """The outcome of the run."""
        self._thread.join(30)
        assert self._found, "the run has not ended"
        return self._found[0]

    @property
    def is_going_on(self) -> bool:
        return self._thread.is_alive()


class Queue:
    """A queue, and nodes that use it, made on first use."""

    def __init__(self, side: Side, kind: str = "FIFOQueue", types: Sequence[str] = ("float",), name: str = "q", **attrs: Any) -> None:
        self.side = side
        self.types = list(types)
        self.version = attrs.pop("version", "V2")
        attrs.setdefault("shapes", [[] for _ in types])
        self.handle = side.node(kind + self.version, [], {"component_types": self.types, **attrs}, name)

    def run(self, what: Any) -> Any:
        """A run's values as plain ones, or its error as text, without the numbers in queue names."""
        try:
            return plain(self.side.run(what))
        except Exception as error:  # noqa: BLE001 - whatever it is, the other side must raise it too
            return re.sub(r"'_\d+_", "'_N_", f"{type(error).__name__}: {self.side.text(error)}")

    def begin(self, what: Any) -> InBackground:
        return InBackground(lambda: self.run(what))

    def blocked(self, enqueues: int, dequeues: int) -> None:
        self.side.wait_until_blocked(self.handle, enqueues, dequeues)

    def _use(self, op: str, inputs: Sequence[Any] = (), **attrs: Any) -> Any:
        return self.side.node(f"Queue{op}{self.version}", [self.handle, *inputs], attrs, op)

    def enqueue(self, *values: Any) -> Any:
        return self._use("Enqueue", [[self._array(value, i) for i, value in enumerate(values)]])

    def enqueue_many(self, *values: Any) -> Any:
        return self._use("EnqueueMany", [[self._array(value, i) for i, value in enumerate(values)]])

    def dequeue(self, types: Sequence[str] | None = None) -> Any:
        return self.side.outputs(self._use("Dequeue", component_types=list(types or self.types)))

    def dequeue_many(self, n: Any, types: Sequence[str] | None = None) -> Any:
        return self.side.outputs(self._use("DequeueMany", [np.int32(n)], component_types=list(types or self.types)))

    def dequeue_up_to(self, n: Any) -> Any:
        return self.side.outputs(self._use("DequeueUpTo", [np.int32(n)], component_types=self.types))

    def close(self, *, cancel: bool = False) -> Any:
        return self._use("Close", cancel_pending_enqueues=cancel)

    def size(self) -> Any:
        return self._use("Size")

    def is_closed(self) -> Any:
        return self._use("IsClosed")

    def _array(self, value: Any, place: int) -> Any:
        if not isinstance(value, list | float | int | bytes):
            return value
        kinds = {"float": np.float32, "int32": np.int32, "string": np.object_}
        array = np.asarray(value)
        return array.astype(np.float32 if array.dtype == np.float64 else kinds.get(self.types[min(place, len(self.types) - 1)]))


def plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def in_order(side: Side) -> Any:
    q = Queue(side, types=["float", "string"], shapes=[[2], []], capacity=5)
    q.run(q.enqueue([1.0, 2.0], b"a"))
    q.run(q.enqueue_many([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], [b"b", b"c", b"d"]))
    found = [q.run(q.size()), q.run(q.dequeue()), q.run(q.dequeue_many(2)), q.run(q.size()), q.run(q.is_closed())]
    return [*found, q.run(q.dequeue_many(0)), q.run(q.dequeue_up_to(1)), q.run(q.dequeue_up_to(0))]


def any_shapes(side: Side) -> Any:
    q = Queue(side, types=["float", "float"], shapes=[], capacity=8)
    q.run(q.enqueue([1.0, 2.0], 3.0))
    q.run(q.enqueue_many([[1.0], [2.0]], [5.0, 6.0]))
    found = [q.run(q.dequeue()), q.run(q.dequeue()), q.run(q.dequeue_many(1)), q.run(q.dequeue_up_to(1)), q.run(q.dequeue_many(0))]
    return [*found, q.run(q.enqueue_many([1.0], [1.0, 2.0])), q.run(q.size())]


def closed(side: Side) -> Any:
    found = []
    for kind in ("FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue"):
        q = Queue(side, kind, name=kind)
        found += [q.run(q.close()), q.run(q.is_closed()), q.run(q.enqueue(1.0)), q.run(q.enqueue_many([1.0, 2.0])), q.run(q.dequeue())]
        found += [q.run(q.dequeue_many(2)), q.run(q.dequeue_up_to(2)), q.run(q.close()), q.run(q.close(cancel=True)), q.run(q.size())]
    return found


def closed_with_elements(side: Side) -> Any:
    q = Queue(side)
    q.run(q.enqueue_many([1.0, 2.0, 3.0]))
    q.run(q.close())
    return [q.run(what) for what in (q.dequeue(), q.dequeue_many(3), q.size(), q.dequeue_up_to(3), q.dequeue_up_to(3), q.dequeue_many(0))]


def refused(side: Side) -> Any:
    q = Queue(side, types=["float", "int32"], shapes=[[2], []], capacity=5)
    found = [q.run(q.enqueue([1.0, 2.0, 3.0], 1)), q.run(q.enqueue([1.0, 2.0], np.float32(1))), q.run(q.enqueue([1.0, 2.0]))]
    found += [q.run(q.enqueue_many([[1.0, 2.0]], [1, 2])), q.run(q.enqueue_many([[1.0]], [1]))]
    found += [q.run(q.dequeue(["float"])), q.run(q.dequeue_many(1, ["int32", "float"]))]
    n = side.node("Neg", [np.int32(1)], {}, "n")
    found += [q.run(side.outputs(side.node("QueueDequeueUpToV2", [q.handle, n], {"component_types": q.types}, "many")))]
    waiting = side.node("QueueDequeueV2", [q.handle], {"component_types": q.types, "timeout_ms": 50}, "timed")
    return [*found, q.run(side.outputs(waiting)), q.run(q.size())]


def impossible(side: Side) -> Any:
    found = []
    for kind, attrs in (
        ("FIFOQueue", {"shapes": [[], []]}),
        ("FIFOQueue", {"shapes": [[None]]}),
        ("PaddingFIFOQueue", {"shapes": []}),
        ("PaddingFIFOQueue", {"shapes": [None]}),
        ("RandomShuffleQueue", {"capacity": 3, "min_after_dequeue": 3}),
        ("RandomShuffleQueue", {"min_after_dequeue": -1}),
    ):
        q = Queue(side, kind, **attrs)
        found.append(q.run(q.size()))
    return found


def shared(side: Side) -> Any:
    q = Queue(side, capacity=3, shared_name="a")
    q.run(q.enqueue(4.0))
    same = Queue(side, name="b", capacity=3, shared_name="a")
    found = [same.run(same.dequeue()), same.run(same.size())]
    for kind, types, attrs in (
        ("FIFOQueue", ["float"], {"capacity": 4}),
        ("FIFOQueue", ["int32"], {"capacity": 3}),
        ("FIFOQueue", ["float"], {"capacity": 3, "shapes": [[2]]}),
        ("FIFOQueue", ["float"], {"capacity": 3, "shapes": []}),
        ("RandomShuffleQueue", ["float"], {"capacity": 3}),
        ("PaddingFIFOQueue", ["float"], {"capacity": 3}),
        ("FIFOQueue", ["float"], {"capacity": 4, "container": "elsewhere"}),
    ):
        other = Queue(side, kind, types, "c", shared_name="a", **attrs)
        found.append(other.run(other.size()))
    return found


def shared_shuffled(side: Side) -> Any:
    attrs: dict[str, Any] = {"capacity": 9, "min_after_dequeue": 2, "seed": 1, "seed2": 2, "shared_name": "b"}
    q = Queue(side, "RandomShuffleQueue", **attrs)
    found = [q.run(q.size())]
    for change in ({"min_after_dequeue": 3}, {"seed": 5}, {"seed2": 5}, {"capacity": 8}, {"seed": 0, "seed2": 0}):
        other = Queue(side, "RandomShuffleQueue", name="c", **{**attrs, **change})
        found.append(other.run(other.size()))
    return found


def shuffled(side: Side) -> Any:
    found = []
    for seed, seed2 in ((1, 2), (0, 5), (7, 0), (-1, 12345678901), (87654321, 1)):
        q = Queue(side, "RandomShuffleQueue", ["int32"], f"q{seed2}", capacity=200, min_after_dequeue=3, seed=seed, seed2=seed2)
        q.run(q.enqueue_many(list(range(120))))
        found += [[q.run(q.dequeue()) for _ in range(5)], q.run(q.dequeue_many(100)), q.run(q.close()), q.run(q.dequeue_many(16))]
        found += [q.run(q.dequeue_up_to(16)), q.run(q.dequeue())]
    return found


def padded(side: Side) -> Any:
    q = Queue(side, "PaddingFIFOQueue", ["float", "string"], shapes=[[None, 2], [None]], capacity=10)
    q.run(q.enqueue([[1.0, 1.0]], [b"a", b"b"]))
    for _ in range(2):
        q.run(q.enqueue([[2.0, 2.0], [3.0, 3.0]], [b"x"]))
    q.run(q.enqueue_many([[[4.0, 4.0]], [[5.0, 5.0]]], [[b"y"], [b"z"]]))
    found = [q.run(q.dequeue_many(2)), q.run(q.dequeue()), q.run(q.dequeue_up_to(2)), q.run(q.dequeue_many(0))]
    found += [q.run(q.enqueue([[1.0, 1.0, 1.0]], [b"x"])), q.run(q.enqueue_many([[[1.0]]], [[b"x"]]))]
    return [*found, q.run(q.enqueue_many([[[1.0, 1.0]]], [b"x"]))]


def in_one_run(side: Side) -> Any:
    q = Queue(side, capacity=1)
    many, one, enqueue, last = q.dequeue_many(3), q.enqueue(4.0), q.enqueue_many([1.0, 2.0, 3.0]), q.dequeue()
    return [q.run([many, enqueue]), sorted(q.run([last[0], one])[:1])]


def more_than_fits(side: Side) -> Any:
    q = Queue(side, capacity=2)
    many = q.begin(q.dequeue_many(5))
    q.blocked(0, 1)
    return [q.run(q.enqueue_many([1.0, 2.0, 3.0, 4.0])), q.run(q.size()), q.run(q.enqueue(5.0)), many.result()]


def first_come(side: Side) -> Any:
    q = Queue(side, capacity=10)
    many, one = q.dequeue_many(3), q.dequeue()
    first = q.begin(many)
    q.blocked(0, 1)
    second = q.begin(one)
    q.blocked(0, 2)
    q.run(q.enqueue_many([1.0, 2.0]))
    found = [q.run(q.size()), second.is_going_on]
    q.run(q.enqueue_many([3.0, 4.0]))
    return [*found, first.result(), second.result()]


def closing_wakes(side: Side) -> Any:
    q = Queue(side)
    one, many = q.dequeue(), q.dequeue_up_to(3)
    first = q.begin(one)
    q.blocked(0, 1)
    second = q.begin(many)
    q.blocked(0, 2)
    q.run(q.close())
    return [first.result(), second.result()]


def closing_gives_back(side: Side) -> Any:
    q = Queue(side)
    many, one = q.dequeue_many(4), q.dequeue()
    q.run(q.enqueue_many([1.0, 2.0]))
    first = q.begin(many)
    q.blocked(0, 1)
    found = [q.run(q.size())]
    second = q.begin(one)
    q.blocked(0, 2)
    q.run(q.close())
    return [*found, first.result(), second.result(), q.run(q.size()), q.run(q.dequeue())]


def closing_contents_up_to(side: Side) -> Any:
    found = []
    shuffling: dict[str, Any] = {"min_after_dequeue": 2, "seed": 1, "seed2": 2}
    for kind, attrs in (("FIFOQueue", {}), ("RandomShuffleQueue", shuffling)):
        q = Queue(side, kind, **attrs)
        q.run(q.enqueue_many([1.0, 2.0, 3.0, 4.0, 5.0]))
        up_to = q.begin(q.dequeue_up_to(7))
        q.blocked(0, 1)
        found += [q.run(q.size()), q.run(q.close()), up_to.result()]
    return found


def closing_waits(side: Side) -> Any:
    q = Queue(side, capacity=1)
    one, many, late, close = q.enqueue(5.0), q.enqueue_many([6.0, 7.0]), q.enqueue(8.0), q.close()
    dequeue, is_closed = q.dequeue(), q.is_closed()
    q.run(one)
    waiting = []
    for number, what in enumerate((many, close, late)):
        waiting.append(q.begin(what))
        q.blocked(number + 1, 0)
    found = [q.run(is_closed), waiting[1].is_going_on, *[q.run(dequeue) for _ in range(3)]]
    return [*found, *[each.result() for each in waiting], q.run(is_closed), q.run(dequeue)]


def closing_cancels(side: Side) -> Any:
    q = Queue(side, capacity=1)
    one, many, close = q.enqueue(5.0), q.enqueue_many([6.0, 7.0]), q.close(cancel=True)
    q.run(one)
    waiting = []
    for number, what in enumerate((one, many)):
        waiting.append(q.begin(what))
        q.blocked(number + 1, 0)
    q.run(close)
    return [*[each.result() for each in waiting], q.run(q.dequeue()), q.run(q.dequeue())]


def keeps_some(side: Side) -> Any:
    q = Queue(side, "RandomShuffleQueue", ["int32"], capacity=20, min_after_dequeue=2, seed=1, seed2=2)
    enqueue = q.enqueue_many([0, 1])
    q.run(enqueue)
    one = q.begin(q.dequeue())
    q.blocked(0, 1)
    return [q.run(enqueue), one.result(), q.run(q.size())]


def no_room_at_all(side: Side) -> Any:
    q = Queue(side, capacity=0)
    waiting = q.begin(q.enqueue(1.0))
    q.blocked(1, 0)
    return [waiting.is_going_on, q.run(q.size()), q.run(q.close(cancel=True)), waiting.result()]


def references(side: Side) -> Any:
    found = []
    for kind in ("FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue"):
        seeds: dict[str, Any] = {"seed": 1, "seed2": 2} if kind == "RandomShuffleQueue" else {}
        q = Queue(side, kind, name=kind, version="", capacity=5, **seeds)
        found += [q.run(q.enqueue(1.0)), q.run(q.dequeue()), q.run(q.enqueue_many([2.0, 3.0])), q.run(q.size()), q.run(q.dequeue_many(1))]
        found += [q.run(q.close()), q.run(q.is_closed()), q.run(q.dequeue_up_to(2)), q.run(q.dequeue()), q.run(q.dequeue(["int32"]))]
    return found


SCENARIOS: dict[str, Callable[[Side], Any]] = {
    scenario.__name__: scenario
    for scenario in (
        in_order,
        any_shapes,
        closed,
        closed_with_elements,
        refused,
        impossible,
        shared,
        shared_shuffled,
        shuffled,
        padded,
        in_one_run,
        more_than_fits,
        first_come,
        closing_wakes,
        closing_gives_back,
        closing_contents_up_to,
        closing_waits,
        closing_cancels,
        keeps_some,
        no_room_at_all,
        references,
    )
}
