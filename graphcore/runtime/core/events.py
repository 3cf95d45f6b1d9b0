"""The events of a run, as frozen records: the data of all views of time."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Around = tuple[tuple[str, int], ...]
Kind = Literal["scheduled", "start", "end", "dead", "sent", "received"]
KINDS: Final[tuple[Kind, ...]] = ("scheduled", "start", "end", "dead", "sent", "received")
CONSTANT: Final = "constant"
MERGED: Final = "merged"
PASSED: Final = "passed on"
UNNEEDED: Final = "unneeded"
SKIPPED: Final = (CONSTANT, MERGED, PASSED, UNNEEDED)
"""The reasons for not running a kernel.

In order: its outputs were known before; another node computes the same; it only passes a value on; only the shape of its output, or
nothing of it, was needed.
"""


class Event(msgspec.Struct, frozen=True):
    """An event.

    Args:
        kind: "scheduled" (its inputs are available), "start" and "end" of its kernel, "dead" (it is on a branch that was not taken), "sent", "received".
        node: the name of the node.
        ns: the time in nanoseconds of one clock (`time.perf_counter_ns`).
        bytes: of "end": the size of the node's outputs; of "sent" and "received": that of the value.
        thread: the identity of the thread.
        device: the full name of the device, "" if there is only one.
        frame: the loop's frame, "" outside of loops.
        iteration: the iteration, from 0.
        call: the surrounding function calls, outermost first, as `node:Function` with ` > ` between them, and `#n` after the n-th run of the same function by a node; "" outside of functions. `node` is a node of the innermost function.
        how: the reason why no kernel had to run, one of `SKIPPED`; "" if one ran.
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
        """The iterations of all surrounding loops, outermost first; () outside of loops."""
        return loop_iterations(self.around, self.frame, self.iteration)

    @property
    def path(self) -> str:
        """The node with the calls that lead to it, as views name it."""
        return f"{self.call} > {self.node}" if self.call else self.node


def loop_iterations(around: Around, frame: str, iteration: int) -> tuple[int, ...]:
    """The iterations of the loop of `frame` and of those around it, outermost first.

    () outside of loops, where `frame` is "".
    """
    return (*[turn for _, turn in around], iteration) if frame else ()


class ArrayLife(msgspec.Struct, frozen=True):
    """The time for which an array was alive in a run.

    Args:
        node: the node that made it.
        call: the surrounding function calls; see `Event.call`.
        device: the full name of the device, "" if there is only one, or in a function.
        start, end: the times on the clock of events.
        bytes: its size.
    """

    node: str
    call: str
    device: str
    start: int
    end: int
    bytes: int
