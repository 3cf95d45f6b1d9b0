"""What happened in a run: one frozen record a happening. Every view of time replays these."""

from __future__ import annotations

from threading import get_ident
from time import perf_counter_ns
from typing import Any, Final, Literal

import msgspec

Around = tuple[tuple[str, int], ...]
Kind = Literal["scheduled", "start", "end", "dead", "sent", "received"]
KINDS: Final[tuple[Kind, ...]] = ("scheduled", "start", "end", "dead", "sent", "received")
CONSTANT: Final = "constant"
MERGED: Final = "merged"
PASSED: Final = "passed on"
UNNEEDED: Final = "unneeded"
SKIPPED: Final = (CONSTANT, MERGED, PASSED, UNNEEDED)
"""Why a node's kernel did not run: its outputs were known before; another node computes the same; it only passes a value on; only the
shape of its output, or nothing of it, was needed."""


class Event(msgspec.Struct, frozen=True):
    """One happening.

    Args:
        kind: "scheduled" (its inputs are there), "start" and "end" of its kernel, "dead" (it was not computed, for it lies on a
            branch that was not taken), "sent", "received".
        node: the name of the node.
        ns: when, in nanoseconds of one clock (`time.perf_counter_ns`).
        bytes: of "end": what the node's outputs take; of "sent" and "received": what was moved.
        thread: the identity of the thread.
        device: the full name of the device, "" where there is but one.
        frame: the loop's frame, "" outside of loops.
        iteration: the loop's turn, from 0.
        call: the calls of functions that it happened in, outermost first, as `node:Function` with ` > ` between them, and `#n` behind
            the n-th time that a node runs the same function; "" outside of functions. `node` is a node of the innermost function.
        how: "" where a kernel ran; else why none had to: one of `SKIPPED`.
        around: the loops around that of `frame`, outermost first: frame and iteration of each.
    """

    kind: Kind
    node: str
    ns: int
    bytes: int = 0
    thread: int = 0
    device: str = ""
    frame: str = ""
    iteration: int = 0
    call: str = ""
    how: str = ""
    around: Around = ()

    @property
    def iterations(self) -> tuple[int, ...]:
        """The turns of all loops that it happened in, outermost first; () outside of loops."""
        return turns(self.around, self.frame, self.iteration)

    @property
    def path(self) -> str:
        """The node with the calls that lead to it, as views name it."""
        return f"{self.call} > {self.node}" if self.call else self.node


def turns(around: Around, frame: str, iteration: int) -> tuple[int, ...]:
    """The turns of the loop of `frame` and of all around it, outermost first; () where that is "": outside of loops."""
    return (*[turn for _, turn in around], iteration) if frame else ()


class Recorder:
    """Collects the events of a run, from any number of threads, in the order in which they came.

    Recording keeps a plain tuple: events are made of them when they are asked for, after the run.
    """

    __slots__ = ("_append", "_records")

    def __init__(self) -> None:
        self._records: list[tuple[Any, ...]] = []
        self._append = self._records.append  # one call that the interpreter does not interrupt

    def record(
        self,
        kind: Kind,
        node: str,
        *,
        bytes: int = 0,
        device: str = "",
        frame: str = "",
        iteration: int = 0,
        call: str = "",
        how: str = "",
        around: Around = (),
    ) -> None:
        """Keep what happens now.

        Args:
            kind, node, bytes, device, frame, iteration, call, how, around: see `Event`.
        """
        self._append((kind, node, perf_counter_ns(), bytes, get_ident(), device, frame, iteration, call, how, around))

    @property
    def events(self) -> tuple[Event, ...]:
        """What was recorded so far."""
        return tuple([Event(*record) for record in list(self._records)])

    def __len__(self) -> int:
        return len(self._records)

    def __bool__(self) -> bool:
        return True  # one that has recorded nothing yet is one all the same

    def clear(self) -> None:
        """Forget what was recorded."""
        self._records.clear()
