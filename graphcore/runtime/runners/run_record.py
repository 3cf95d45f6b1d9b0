"""The record of a run in another framework, of which a trace is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from graphcore.runtime.core.events import ArrayLife, Event
from graphcore.runtime.core.recorder import Recorder
from graphcore.runtime.core.tensor_stats import TensorStats
from graphcore.runtime.core.tracing import Trace
from graphcore.runtime.core.value_records import ValueRecorder, ValueRecords
from graphcore.runtime.runners.array_views import array_of, bytes_of, device_of, wait_for
from graphcore.runtime.runners.node_names import NodeNames

if TYPE_CHECKING:
    from graphcore.graph import Graph


_Named = TypeVar("_Named", Event, TensorStats, ArrayLife)


class RunRecord:
    """Records a run: times, bytes, devices, and the statistics of values as each node ends.

    It is a `Watch`. It writes the names of the source; `trace` gives the nodes the names of a graph.

    Args:
        patterns: glob patterns of the names, in the source, of nodes with histograms.
        now: the clock, in nanoseconds.
        recorder: takes the record, with values if it records these; by default one of its own.

    Attributes:
        running: the nodes that have begun and not ended, outermost first, each with its calls.
    """

    def __init__(
        self, patterns: Sequence[str] = ("*",), now: Callable[[], int] = perf_counter_ns, recorder: Recorder | None = None
    ) -> None:
        self._events = Recorder(ValueRecorder(patterns), now) if recorder is None else recorder
        self._values = self._events.values
        self._other_names: dict[str, str] = {}
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

    def rename(self, node: str, name: str) -> None:
        """Give a node that has run another name."""
        self._other_names[node] = name

    def drop(self, node: str) -> None:
        """Leave a node that has run out of the trace: it was part of another one."""
        self._other_names[node] = ""

    def last_name(self, node: str) -> str:
        """The name that a node has got at last, "" for one that was dropped."""
        while node and node in self._other_names:
            node = self._other_names[node]
        return node

    def hold(self, node: str, size: int, call: str = "") -> Callable[[], None]:
        """Memory of a node's output is taken now.

        Returns:
            A function to be called when it is released.
        """
        return partial(self._events.end_array, self._events.record_array(node, call, "", size))

    def trace(self, graph: Graph, names: NodeNames | Mapping[str, str]) -> Trace:
        """The trace of the run so far.

        Args:
            graph: the graph that shows the model.
            names: the names of its nodes by those of the source; a node that has none keeps its own.
        """
        names = names if isinstance(names, NodeNames) else NodeNames(names)
        nodes = list(graph.op_nodes())
        stats = [] if self._values is None else self._values.stats_from(0)[0]
        records = ValueRecords([_renamed(one, names) for one in self._final(stats)], {}, nodes, names.bodies)
        events = tuple([_renamed(event, names) for event in self._final(self._events.events)])
        arrays = tuple([_renamed(life, names) for life in self._final(self._events.arrays)])
        return Trace(events, nodes, peak_of(arrays), arrays, values=records)

    def _final(self, records: Iterable[_Named]) -> Iterator[_Named]:
        """Records with the names that nodes have got at last, without those that were dropped."""
        for one in records:
            name = self.last_name(one.node)
            if name:
                yield one if name == one.node else msgspec.structs.replace(one, node=name)

    def _record(self, node: str, values: Sequence[object], call: str) -> None:
        if self._values is None:
            return
        arrays = [array_of(value) for value in values]
        with np.errstate(all="ignore"):  # around the statistics alone: the settings of the model are its own
            self._values.record(node, arrays, ("", 0, (), call))


def _renamed(one: _Named, names: NodeNames) -> _Named:
    """A record with the names that its node and the calls around have in the graph."""
    call, node = names.place(one.call, one.node)
    return one if (call, node) == (one.call, one.node) else msgspec.structs.replace(one, node=node, call=call)


def peak_of(arrays: Sequence[ArrayLife]) -> int:
    """The most bytes that were held at once."""
    changes = sorted([(life.start, life.bytes) for life in arrays] + [(life.end, -life.bytes) for life in arrays])
    most = held = 0
    for _, size in changes:
        held += size
        most = max(most, held)
    return most
