"""The record of a run in another framework, of which a trace is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from graphcore.runtime.core.events import ArrayLife, Event, Recorder
from graphcore.runtime.core.tensor_stats import TensorStats
from graphcore.runtime.core.tracing import Trace
from graphcore.runtime.core.value_records import ValueRecorder, ValueRecords
from graphcore.runtime.runners.array_views import array_of, bytes_of, device_of, wait_for

if TYPE_CHECKING:
    from graphcore.graph import Graph


_Named = TypeVar("_Named", Event, TensorStats, ArrayLife)


class RunRecord:
    """Records a run: times, bytes, devices, and the statistics of values as each node ends.

    It is a `Watch`. It writes the names of the source; `trace` gives the nodes the names of a graph.

    Args:
        patterns: glob patterns of the names, in the source, of nodes with histograms.
        now: the clock, in nanoseconds.

    Attributes:
        running: the nodes that have begun and not ended, outermost first, each with its calls.
    """

    def __init__(self, patterns: Sequence[str] = ("*",), now: Callable[[], int] = perf_counter_ns) -> None:
        self._values = ValueRecorder(patterns)
        self._events = Recorder(self._values, now)
        self.running: list[tuple[str, str]] = []

    def give(self, node: str, values: Sequence[object], call: str = "") -> None:
        """A node has its values without computing them; see `Watch`."""
        self._record(node, values, call)

    def begin(self, node: str, call: str = "") -> None:
        """A node begins to run; see `Watch`."""
        self.running.append((node, call))
        self._events.record("start", node, call=call)

    def ran(self, node: str, start: int, outputs: Sequence[object]) -> None:
        """A node has run that began at a time of the clock; its name was not known then."""
        self._events.add([Event("start", node, start, thread=get_ident())], ())
        self.running.append((node, ""))
        self.end(node, outputs)

    def end(self, node: str, outputs: Sequence[object], call: str = "") -> None:
        """The node has run; see `Watch`."""
        for value in outputs:
            wait_for(value)
        size = sum(map(bytes_of, outputs))
        device = next((name for name in map(device_of, outputs) if name), "")
        self._events.record("end", node, bytes=size, device=device, call=call)
        if (node, call) in self.running:
            self.running.remove((node, call))
        self._record(node, outputs, call)

    def hold(self, node: str, size: int, call: str = "") -> Callable[[], None]:
        """Memory of a node's output is taken now.

        Returns:
            A function to be called when it is released.
        """
        return partial(self._events.end_array, self._events.record_array(node, call, "", size))

    def trace(self, graph: Graph, names: Mapping[str, str]) -> Trace:
        """The trace of the run so far.

        Args:
            graph: the graph that shows the model.
            names: the names of its nodes by those of the source; a node that has none keeps its own.
        """
        nodes = list(graph.op_nodes())
        stats, _ = self._values.stats_from(0)
        records = ValueRecords([_renamed(one, names) for one in stats], {}, nodes)
        events = tuple([_renamed(event, names) for event in self._events.events])
        arrays = tuple([_renamed(life, names) for life in self._events.arrays])
        return Trace(events, nodes, _peak(arrays), arrays, values=records)

    def _record(self, node: str, values: Sequence[object], call: str) -> None:
        arrays = [array_of(value) for value in values]
        with np.errstate(all="ignore"):  # around the statistics alone: the settings of the model are its own
            self._values.record(node, arrays, ("", 0, (), call))


def _renamed(one: _Named, names: Mapping[str, str]) -> _Named:
    """A record with the name that its node has in the graph. With a call around, that of the outermost node changes."""
    if not one.call:
        name = names.get(one.node, one.node)
        return one if name == one.node else msgspec.structs.replace(one, node=name)
    outermost, colon, rest = one.call.partition(":")
    name = names.get(outermost, outermost)
    return one if name == outermost else msgspec.structs.replace(one, call=f"{name}{colon}{rest}")


def _peak(arrays: Sequence[ArrayLife]) -> int:
    """The most bytes that were held at once."""
    changes = sorted([(life.start, life.bytes) for life in arrays] + [(life.end, -life.bytes) for life in arrays])
    most = held = 0
    for _, size in changes:
        held += size
        most = max(most, held)
    return most
